"""The wait for an installation of the lab: what the watchers get of a plan, and what they leave."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import installation
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.watcher import SIMULATED_FOR
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.save_points import PausedClock
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner
from ansible_collections.agentlab.ocp.plugins.module_utils.waitfor import Outcome


class Waited:
    """Replaces the watchers: keeps what they get, reports and shows something, and ends with `outcome`."""

    outcome = Outcome(0, console="https://console")

    def __call__(self, build: Path | None, collection: Path) -> Any:
        self.build, self.collection = build, collection
        return self.wait

    def wait(self, event: str, directory: Path, report: Any, show: Any, **options: Any) -> Outcome:
        self.options = options
        report("info", "Cluster is installed")
        show({"status": "installed"}, [])
        return self.outcome


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Waited:
    monkeypatch.setattr(installation, "wait_for_by", made := Waited())
    return made


def planned(tmp_path: Path, text: str = "") -> Any:
    (tmp_path / "p.yml").write_text(f"topology: sno\nhypervisor: {{state_dir: {tmp_path}/labs}}\n{text}")
    return build.build(profile.load(tmp_path / "p.yml"), "ostest")


def wait(tmp_path: Path, *given: Any, **more: Any) -> Outcome:
    logs = tmp_path / "logs"
    return installation.wait("install-complete", tmp_path, *given, copy=logs / "wait-for.log", folder=logs, **more)


def test_without_a_plan_the_apis_alone_are_watched(tmp_path: Path, waited: Waited) -> None:
    assert wait(tmp_path, stall=90) == waited.outcome
    assert not {"diagnose", "stable_for", "clock"} & waited.options.keys()
    assert (waited.build, waited.options["controller"], waited.options["stall"]) == (None, False, 90)
    assert "Cluster is installed" in (tmp_path / "logs/wait-for.log").read_text()
    assert json.loads((tmp_path / "logs/cluster.json").read_text()) == {"status": "installed"}
    assert "Cluster is installed" in (tmp_path / "logs/events.jsonl").read_text()


def test_with_a_plan_of_the_lab_payload_its_machines_are_watched(tmp_path: Path, waited: Waited) -> None:
    assert not wait(tmp_path, planned(tmp_path), build=tmp_path / "openshift-install").error
    assert waited.options["controller"] and waited.options["stable_for"] == SIMULATED_FOR
    assert "diagnose" in waited.options and waited.build == tmp_path / "openshift-install"
    assert "this enters it" in (tmp_path / "logs/wait-for.log").read_text()


def test_a_failure_saves_nothing(tmp_path: Path, waited: Waited) -> None:
    waited.outcome = Outcome(5, "no host registered")
    assert wait(tmp_path, planned(tmp_path)) == waited.outcome
    assert "this enters it" not in (tmp_path / "logs/wait-for.log").read_text()


@pytest.mark.parametrize("binary", [None, Path("/build")])
def test_a_snapshot_that_cannot_be_saved_is_an_error_after_the_installation(
    tmp_path: Path, waited: Waited, monkeypatch: pytest.MonkeyPatch, binary: Path | None
) -> None:
    plan = planned(tmp_path, "snapshots: [installed]\n")
    known = SimpleNamespace(rendezvous_ip="192.168.111.20", token="", scheme="http")
    monkeypatch.setattr(installation, "load_wait_for", lambda __: known)
    outcome = wait(tmp_path, plan, owner.caller(plan, tmp_path), build=binary)
    assert outcome.exit_code == 0 and outcome.error.startswith("snapshot installed was not saved: ")
    assert isinstance(waited.options.get("clock"), PausedClock) == (binary is None)
