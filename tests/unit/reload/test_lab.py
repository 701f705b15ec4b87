"""Which nodes get a new image, and what is undone, with a fake ssh that answers for each node from a table."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.images import components
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.reload import lab, logins, on_node
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import COMPONENTS, Component

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
FIRST, SECOND, THIRD = (f"192.168.111.{number}" for number in (20, 21, 22))
SSH = """#!/usr/bin/env python3
import json, os, sys
folder = os.environ["LAB"]
place, component, image = sys.argv[-3:]
address = next(word for word in sys.argv if word.startswith("core@"))[5:]
program = sys.stdin.read()
with open(f"{folder}/calls", "a") as stream:
    stream.write(json.dumps([address, place, image]) + "\\n")
code, error = json.load(open(f"{folder}/table")).get(f"{address} {place} {image}", [0, ""])
if code in (0, 1, 40):
    compile(program, "program", "exec")
    print(json.dumps({"before": "old"}))
    print(json.dumps({"step": "pulled"}))
if error:
    print(error, file=sys.stderr)
sys.exit(code)
"""


class Fake:
    """A compact lab whose nodes answer from `table`: "ADDRESS PLACE IMAGE" -> exit code and error."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lines = folder, list[str]()
        self.table: dict[str, tuple[int, str]] = {}
        plan = build.build(profile.load("compact_ipv4", PROFILES), "lab")
        self.lab = lab.Lab(plan, ["env"], logins.Logins(folder, ["env"], folder), self.lines.append)

    def replace(self, component: str) -> bool:
        (self.folder / "table").write_text(json.dumps(self.table))
        return lab.replace(self.lab, component, "new")

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(SSH)
    (tmp_path / "bin/ssh").chmod(0o755)
    monkeypatch.setenv("LAB", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return Fake(tmp_path)


def test_the_service_runs_on_the_rendezvous_host(fake: Fake) -> None:
    assert fake.replace(Component.API_SERVER)
    assert fake.calls == [[FIRST, "service", "new"]]
    assert fake.lines == ["master-0: pulled"]


def test_agents_follow_their_service(fake: Fake) -> None:
    assert fake.replace(Component.NODE_AGENT)
    assert fake.calls[0] == [FIRST, "service", "new"]
    assert sorted(fake.calls[1:]) == [[address, "agent", "new"] for address in (FIRST, SECOND, THIRD)]


def test_a_second_time_without_a_change(fake: Fake) -> None:
    fake.table = {f"{FIRST} service new": (on_node.UNCHANGED, "")}
    assert not fake.replace(Component.API_SERVER)
    assert "master-0: no change (service)" in fake.lines


def test_one_agent_that_fails_leaves_the_lab_as_it_was(fake: Fake) -> None:
    fake.table = {f"{SECOND} agent new": (1, "agent.service does not work with it")}
    with pytest.raises(LabError, match=r"agent: master-1: agent\.service does not work with it"):
        fake.replace(Component.NODE_AGENT)
    undone = [call for call in fake.calls if call[2] == "old"]
    assert sorted(undone) == [[FIRST, "agent", "old"], [FIRST, "service", "old"], [THIRD, "agent", "old"]]
    assert undone[-1] == [FIRST, "service", "old"]


def test_control_planes_are_replaced_one_after_the_other(fake: Fake) -> None:
    fake.table = {f"{SECOND} cluster new": (1, "kube-apiserver.service does not work with it")}
    with pytest.raises(LabError, match="hyperkube: master-1"):
        fake.replace(Component.HYPERKUBE)
    assert fake.calls == [
        [FIRST, "cluster", "new"],
        [SECOND, "cluster", "new"],
        [FIRST, "cluster", "old"],
    ]


def test_a_node_that_is_off_is_left_out(fake: Fake) -> None:
    fake.table = {f"{THIRD} cluster new": (255, "connect to host port 22: No route to host")}
    assert fake.replace(Component.HYPERKUBE)
    assert "master-2: left out, it does not answer: connect to host port 22: No route to host" in fake.lines


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((on_node.ABSENT, ""), "runs nowhere in cluster lab now; agentlab deploy --override"),
        ((255, "No route to host"), r"runs nowhere in cluster lab now \(master-0 does not answer: No route to host\)"),
        ((on_node.BUSY, ""), "master-0: an installation is under way"),
    ],
)
def test_what_cannot_be_replaced_now(fake: Fake, answer: tuple[int, str], message: str) -> None:
    fake.table = {f"{FIRST} service new": answer}
    with pytest.raises(LabError, match=message):
        fake.replace(Component.ORCHESTRATOR)


def test_components_that_never_run() -> None:
    for name in {*COMPONENTS} - {*lab.PLACES}:
        with pytest.raises(LabError, match=f"{name}: a running lab has nothing to restart with it"):
            lab.places_of(name)
    assert {*lab.PLACES} <= {*components.COMPONENTS}
    assert {place.name for places in lab.PLACES.values() for place in places} == {*on_node.PLACES}
    assert {name for name, places in lab.PLACES.items() if places[0].name == "service"} == {*on_node.VARIABLES}


def test_a_node_needs_the_standard_library_alone() -> None:
    tree: Any = ast.parse(Path(on_node.__file__).read_text())
    assert not [part for part in ast.walk(tree) if isinstance(part, ast.ImportFrom) and part.level]
