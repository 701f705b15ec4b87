"""The events of a verb that runs a playbook."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.callback import run_state
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.follow import printed
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
    with printed(tmp_path) as other:
        assert other is sys.stderr
        log.write([event("message", "wait", text="one\u2028"), event("message", "wait", text="two")])
    shown = [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["one", "two"]


def result(action: str, name: str = "Do", **data: Any) -> Any:
    task = SimpleNamespace(action=f"agentlab.ocp.{action}", get_name=lambda: f"agentlab.ocp.role : {name}", _role=None)
    return SimpleNamespace(task=task, result=data)


class Run:
    """A run of playbooks, as Ansible would report it to the callback."""

    def __init__(self, run_dir: Path) -> None:
        self.callback = run_state.CallbackModule()
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
