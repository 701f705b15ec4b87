"""The events of a verb that runs a playbook."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.callback import run_state
from ansible_collections.agentlab.ocp.plugins.module_utils import cli, state
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import lab
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.follow import print_events
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, EventLog, event, read
from ansible_collections.agentlab.ocp.tests.recorded import runs

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"


@pytest.mark.slow
def test_a_stage_and_its_tasks(tmp_path: Path) -> None:
    environment = {**os.environ, "AGENTLAB_RUNS": str(tmp_path)}
    command = [sys.executable, "-m", PACKAGE, "configure", "--cluster", "unit"]
    for arguments, wanted in ((["compact_ipv4"], 0), (["--check"], 0), (["-e", "agentlab_run_dir=/proc/x"], 2)):
        done = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == wanted, done.stdout + done.stderr
        found = read(tmp_path / "unit" / FILE).events
        assert [(one["kind"], one["subject"], one["state"]) for one in found if one["kind"] != "task"] == [
            ("run", "compact_ipv4", ""), ("stage", "configure", "started"), ("stage", "configure", "ok"),
        ]  # fmt: skip
    assert found[0]["text"].startswith("agentlab 1.")
    assert {(one["state"], one["stage"]) for one in found if one["kind"] == "task"} == {("ok", "configure")}


def test_events_are_printed_while_a_playbook_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = EventLog(tmp_path / FILE)
    log.write([event("message", "wait", text="before")])
    with print_events(tmp_path) as other:
        assert other is sys.stderr
        log.write([event("message", "wait", text="one\u2028"), event("message", "wait", text="two")])
    shown = [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["one", "two"]


@pytest.fixture
def playbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs `validate` or `gather` on a cluster `lab`, with a function in place of Ansible that gets the log of events."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    rundir.write(rundir.prepare(tmp_path / "lab", "sno_ipv4", ROOT / "config_examples", "lab")[1])
    log = EventLog(tmp_path / "lab" / FILE)
    log.write([event("check", "of a former run", "ok")])

    def call(argv: list[str], act: Callable[[EventLog], int]) -> int:
        def ansible(*given: Any) -> int:
            given[-1].write("a task\n")
            return act(log)

        monkeypatch.setattr(lab, "_ansible", ansible)
        return cli.main([*argv, "--cluster", "lab"])

    return call


@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_checks_for_programs(playbook: Any, capsys: pytest.CaptureFixture[str], form: str, load: Any) -> None:
    def act(log: EventLog) -> int:
        log.write([event("check", "nodes", "ok", "1 of 1"), event("check", "pods", "failed", "1 of 2", level="error")])
        return 2

    assert playbook(["validate", "-o", form], act) == 2
    shown = capsys.readouterr()
    assert load(shown.out) == [
        {"name": "nodes", "ok": True, "found": "1 of 1"},
        {"name": "pods", "ok": False, "found": "1 of 2"},
    ]
    assert "a task\n" in shown.err


def test_what_is_printed_after_a_playbook_is_not_in_its_result(
    playbook: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The conclusion and the place of the run page were among the lines of `wait -o jsonl`, too."""
    (tmp_path / "lab/report").mkdir()
    (tmp_path / "lab/report/index.html").touch()
    assert playbook(["validate", "-o", "json"], lambda log: 0) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == [] and "is installed" in shown.err and "run page: " in shown.err
    assert playbook(["wait", "-o", "jsonl"], lambda log: bool(log.write([event("message", "wait", text="x")])) * 0) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["text"] == "x" and "is installed" in shown.err and "run page: " in shown.err


def test_what_was_gathered_for_programs(playbook: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def act(log: EventLog) -> int:
        (tmp_path / "lab/report").mkdir()
        log.write([event("cause", "", text="VM x is off", next="agentlab boot", level="error")])
        return 0

    assert playbook(["gather", "-o", "json"], act) == 0
    assert json.loads(capsys.readouterr().out) == {
        "directory": str(tmp_path / "lab/report"),
        "page": str(tmp_path / "lab/report/index.html"),
        "causes": [{"text": "VM x is off", "next": "agentlab boot"}],
    }


@pytest.mark.parametrize("verb", ["validate", "gather"])
def test_without_a_run_there_is_no_result(playbook: Any, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    with pytest.raises(SystemExit) as end:
        playbook([verb, "--check", "-o", "json"], lambda log: pytest.fail("it ran"))
    assert end.value.code == 2
    assert "-o/--output: not allowed with argument --check" in capsys.readouterr().err


def result(action: str, name: str = "Do", **data: Any) -> Any:
    task = SimpleNamespace(action=f"agentlab.ocp.{action}", get_name=lambda: f"agentlab.ocp.role : {name}", _role=None)
    return SimpleNamespace(task=task, result=data)


class Run:
    """A run of playbooks, as Ansible would report it to the callback."""

    def __init__(self, run_dir: Path) -> None:
        self.callback = run_state.CallbackModule()
        self.callback._plugin_options = {"write_page": True}
        self.run_dir = run_dir

    def play(self, stage: str) -> None:
        manager = SimpleNamespace(get_vars=lambda play: {"agentlab_profile": "/x/compact_ipv4.yml"})
        play = SimpleNamespace(get_path=lambda: f"{ROOT}/playbooks/{stage}.yml:3", get_variable_manager=lambda: manager)
        self.callback.v2_playbook_on_play_start(play)
        self.task("plan", run_dir=str(self.run_dir))

    def task(self, action: str, **data: Any) -> None:
        done = result(action, **data)
        role = SimpleNamespace(get_name=lambda: "agentlab.ocp.plan") if action == "plan" else None
        self.callback.v2_playbook_on_task_start(SimpleNamespace(_role=role), False)
        (self.callback.v2_runner_on_failed if "msg" in data else self.callback.v2_runner_on_ok)(done)


def test_a_run_that_fails(tmp_path: Path) -> None:
    """The first stage removes the logs of an older cluster with this name; its own start stays, and a page is left."""
    runs.good(tmp_path)
    run = Run(tmp_path)
    run.play("prepare")
    run.callback.v2_playbook_on_task_start(SimpleNamespace(_role=None), False)
    for name in ("logs", "report"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    run.callback.v2_runner_on_ok(result("lab_state"))
    run.play("boot")
    run.task("lab_boot", changes=["master-0", "master-1"])
    run.play("wait")
    run.task("wait_for", msg="gave up, password=hunter2")
    run.play("gather")
    run.task("gather", causes=[{"text": "VM x is off", "step": "agentlab boot", "grace": 60.0}])
    run.play("validate")
    run.task("cluster_info", checks=[{"name": "pods", "ok": False, "found": "1 of 2"}])
    run.task(
        "cluster_tests", checks=[{"name": "test login", "ok": True, "found": "exit status 0 (0.2 s)", "seconds": 0.2}]
    )
    run.callback.v2_playbook_on_stats(None)
    found = [one for one in read(tmp_path / FILE).events if one["kind"] != "task"]
    assert [(one["kind"], one["subject"], one["state"]) for one in found] == [
        ("run", "compact_ipv4", ""), ("stage", "prepare", "started"), ("stage", "prepare", "ok"), ("stage", "boot", "started"),
        ("machine", "master-0", "booted"), ("machine", "master-1", "booted"), ("stage", "boot", "ok"), ("stage", "wait", "started"),
        ("stage", "wait", "failed"), ("stage", "gather", "started"), ("cause", "", ""), ("stage", "gather", "ok"),
        ("stage", "validate", "started"), ("check", "pods", "failed"), ("check", "test login", "ok"),
        ("stage", "validate", "ok"),
    ]  # fmt: skip
    assert [one["seconds"] for one in found if one["kind"] == "check"] == [0, 1]
    assert found[8]["text"] == "Do: gave up, password=REDACTED" and found[10]["next"] == "agentlab boot"
    stages = state.load(tmp_path)["stages"]
    assert {name: stage["result"] for name, stage in stages.items()} == {
        "prepare": "ok",
        "boot": "ok",
        "wait": "failed",
        "validate": "ok",
    }
    assert (tmp_path / "report/index.html").exists()


def test_stages_that_are_not_selected_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--stop-after boot` selects stages by tags; Ansible still checks the arguments of the other stages' roles."""
    monkeypatch.setattr(run_state.context, "CLIARGS", {"tags": ["plan", "prepare", "boot"]})
    run = Run(tmp_path)
    for stage in ("prepare", "boot", "wait", "add_nodes"):
        run.play(stage)
        run.task("lab_state")
    run.callback.v2_playbook_on_stats(None)
    assert list(state.load(tmp_path)["stages"]) == ["prepare", "boot"]
