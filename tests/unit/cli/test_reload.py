"""`agentlab reload`, with nodes and builds that are functions of the tests."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload import build as payload_build
from ansible_collections.agentlab.ocp.payload.machine_os.distro import BuildError
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import cluster, reload
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.reload import lab, watch

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
API_SERVER = "agent-installer-api-server"
LAB = ("--cluster", "lab")
ENTER = cluster.Cluster.enter


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """Writes the run directory of cluster `lab`, whose network is that of the tests."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    monkeypatch.setattr(cluster.Cluster, "enter", lambda *__, **___: [])
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    def write(**release: object) -> Plan:
        chosen = profile.load("sno_ipv4", PROFILES)
        chosen["hypervisor"]["state_dir"] = str(tmp_path / "state")
        made = build.build(chosen, "lab")
        made["release"].update(release)
        (tmp_path / "lab").mkdir(exist_ok=True)
        (tmp_path / "lab" / rundir.PLAN).write_text(rundir.dump(made))
        return made

    return write


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is built: the overrides of each build. An entry that a test puts there is raised by the next build."""
    done: list[object] = []

    def component(self: payload_build.Builder, name: str, storage: Path) -> str:
        if done and isinstance(done[-1], Exception):
            raise done.pop()
        done.append(dict(self.overrides))
        return f"registry.test/{name}@{storage.name}"

    monkeypatch.setattr(payload_build.Builder, "component", component)
    return done


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The images that nodes got; the second time, the same image changes nothing."""
    got: list[str] = []
    monkeypatch.setattr(lab, "replace", lambda __, ___, image: image not in got and not got.append(image))
    return got


def program(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "assisted-service").write_text("#!/bin/sh\n")
    (folder / "assisted-service").chmod(0o755)
    return folder


def test_a_component_of_this_checkout(
    plan: Callable[..., Plan], builds: list[object], nodes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plan()
    assert reload.main([API_SERVER, *LAB]) == 0
    assert reload.main([API_SERVER, *LAB]) == 0
    assert builds == [{}, {}] and nodes == [f"registry.test/{API_SERVER}@storage"]
    lines = capsys.readouterr().out.splitlines()
    assert "reloaded in" in lines[1] and "no change since it was started" in lines[3]


@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_a_result_for_programs(
    plan: Callable[..., Plan],
    builds: list[object],
    nodes: list[str],
    capsys: pytest.CaptureFixture[str],
    form: str,
    load: Callable[[str], dict[str, object]],
) -> None:
    """The progress is on standard error."""
    plan()
    for changed in (True, False):
        assert reload.main([API_SERVER, "-o", form, *LAB]) == 0
        shown = capsys.readouterr()
        found = load(shown.out)
        assert found.pop("seconds") >= 0
        assert found == {"component": API_SERVER, "image": f"registry.test/{API_SERVER}@storage", "changed": changed}
        assert "built and pushed in" in shown.err


def test_a_watch_has_no_result_for_programs(
    plan: Callable[..., Plan], builds: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        reload.main([API_SERVER, "--watch", "-o", "json", *LAB])
    assert end.value.code == 2 and not builds
    assert "not allowed with argument" in capsys.readouterr().err


def test_a_replacement_ends_also_without_a_reader(
    plan: Callable[..., Plan], builds: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`| head -1` ended the verb between two nodes."""
    plan()
    done = []

    def replace(running: lab.Lab, component: str, image: str) -> bool:
        os.close(reader)
        for name in ("master-0", "master-1"):
            running.report(f"{name}: image pulled")
            done.append(name)
        return True

    monkeypatch.setattr(lab, "replace", replace)
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert reload.main([API_SERVER, *LAB]) == 0
    assert done == ["master-0", "master-1"]


def test_what_a_component_is_built_from(
    plan: Callable[..., Plan], builds: list[object], nodes: list[str], tmp_path: Path
) -> None:
    mine, planned = program(tmp_path / "mine"), program(tmp_path / "planned")
    plan(payload_overrides={API_SERVER: str(planned)})
    reload.main([API_SERVER, *LAB])
    reload.main([API_SERVER, "--from", str(mine), *LAB])
    assert builds == [{API_SERVER: str(planned)}, {API_SERVER: str(mine)}]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["service"], "service: no component of the release has this name; did you mean agent-installer-api-server?"),
        (["must-gather"], "must-gather: a running lab has nothing to restart with it"),
        ([API_SERVER, "--from", "/nowhere"], f"{API_SERVER}: /nowhere: there is no such directory"),
        (
            [API_SERVER, "--watch", "--from", f"quay.io/x/y@sha256:{'1' * 64}"],
            f"--watch: quay.io/x/y@sha256:{'1' * 64} is not a directory",
        ),
    ],
)
def test_what_cannot_be_reloaded(
    plan: Callable[..., Plan], builds: list[object], capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    plan()
    assert reload.main([*argv, *LAB]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"agentlab: {message}") and shown.count("\n") == 1
    assert not builds


def test_a_lab_with_a_real_release(plan: Callable[..., Plan], capsys: pytest.CaptureFixture[str]) -> None:
    plan(payload="ocp")
    assert reload.main([API_SERVER, *LAB]) == 1
    assert "cluster lab installs a real release" in capsys.readouterr().err


def test_a_lab_that_does_not_run(
    plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan()
    monkeypatch.setattr(cluster.Cluster, "enter", ENTER)
    assert reload.main([API_SERVER, *LAB]) == 1
    assert "cluster lab has no running sandbox" in capsys.readouterr().err


COMPILER = """python of /cache/tree: *** Error compiling '/cache/code/payload/api_server/app.py'...
  File "/usr/lib/agentlab/ansible_collections/agentlab/ocp/payload/api_server/app.py", line 3
    def x(:
          ^
SyntaxError: invalid syntax"""


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (COMPILER, "payload/api_server/app.py, line 3: SyntaxError: invalid syntax"),
        ("skopeo: is not installed", "skopeo: is not installed"),
    ],
)
def test_a_build_that_fails(
    plan: Callable[..., Plan],
    builds: list[object],
    nodes: list[str],
    capsys: pytest.CaptureFixture[str],
    printed: str,
    reason: str,
) -> None:
    plan()
    builds.append(BuildError(printed))
    assert reload.main([API_SERVER, *LAB]) == 1
    shown = capsys.readouterr().err
    assert shown == f"agentlab: {API_SERVER} cannot be built, the lab is as it was: {reason}\n"
    assert not nodes


def test_a_watch_survives_a_failing_build(
    plan: Callable[..., Plan],
    builds: list[object],
    nodes: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """First it is built, then the program is gone, then a node fails, then it is there again; then Ctrl-C."""
    plan()
    mine = program(tmp_path / "mine")
    real, looks = watch.wait, 0

    def wait(before: watch.State, files: Callable[[], list[Path]]) -> watch.State:
        nonlocal looks
        looks += 1
        if looks == 1:
            (mine / "assisted-service").unlink()
            builds.append(BuildError("has no entry point"))
        elif looks == 2:
            program(mine)
            builds.append(LabError("master-0: it does not work"))
        elif looks == 3:
            (mine / "assisted-service").write_text("#!/bin/sh\nexit 1\n")
        else:
            raise KeyboardInterrupt
        return real(before, files, lambda __: None)

    monkeypatch.setattr(watch, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        reload.main([API_SERVER, "--watch", "--from", str(mine), *LAB])
    shown = capsys.readouterr()
    assert len(builds) == 2 and looks == 4
    assert shown.err.count("\n") == 2 and "no entry point" in shown.err and "does not work" in shown.err
    assert shown.out.count("changed: assisted-service") == 3


def test_sources_of_the_checkout_are_watched() -> None:
    names = {path.name for path in reload._files(reload.Reload(API_SERVER, None, None))}
    assert {"app.py", "start_db.sh"} <= names
    assert all(path.is_file() for path in reload._files(reload.Reload(API_SERVER, None, None)))
