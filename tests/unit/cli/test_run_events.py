"""The events of a verb that runs a playbook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.follow import printed
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, EventLog, event, read

PACKAGE = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"


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
