"""The fixtures of pytest for a lab, as tests of others use them. The lab is of kind local: commands in its network run on this host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = "ansible_collections.agentlab.ocp.plugins.module_utils.cli.pytest_plugin"
SSH = """#!/bin/sh
# ssh: what it is called with, and the command, which a shell runs on this host
for last; do before=$to; to=$last; done
echo "to $before"
exec sh -c "$last"
"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run directory of cluster `lab`."""
    chosen = profile.load("compact_ipv4", ROOT / "config_examples")
    chosen["hypervisor"] |= {"kind": "local", "state_dir": str(tmp_path / "state")}
    run_dir = tmp_path / "runs/lab"
    (run_dir / "ssh").mkdir(parents=True)
    (run_dir / "ssh/id_ecdsa").write_text("key")
    (run_dir / rundir.PLAN).write_text(rundir.dump(build.build(chosen, "lab")))
    return run_dir.parent


def outcome(runs: Path, text: str, *options: str) -> tuple[dict[str, int], str]:
    """Run tests with the plugin; how many have passed, failed or have an error, and the output."""
    (runs.parent / "bin").mkdir()
    (runs.parent / "bin/ssh").write_text(SSH)
    (runs.parent / "bin/ssh").chmod(0o755)
    file = runs.parent / "test_it.py"
    file.write_text(text)
    environment = {**os.environ, "AGENTLAB_RUNS": str(runs), "PATH": f"{runs.parent / 'bin'}:{os.environ['PATH']}"}
    environment.pop("PYTEST_ADDOPTS", None)
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        PLUGIN,
        "-p",
        "no:cacheprovider",
        "--strict-markers",
        "-q",
        *options,
        str(file),
    ]
    done = subprocess.run(
        words, cwd=runs.parent, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    last = done.stdout.strip().splitlines()[-1]
    parts = [part.split() for part in last.split(" in ")[0].strip("= ").split(", ")]
    return {part[1].rstrip("s"): int(part[0]) for part in parts if part[0].isdigit()}, done.stdout + done.stderr


def test_commands_in_the_network_and_on_nodes(runs: Path) -> None:
    text = """
def test_network(lab):
    done = lab.run("sh", "-c", "echo from the lab; exit 3", status=3)
    assert done.text == "from the lab\\n"

def test_node(lab):
    # One text is the shell's, words are quoted for it.
    assert lab.node("master-1").run("echo $((1 + 2))").text == "to core@192.168.111.21\\n3\\n"
    assert lab.node("master-1").run("echo", "a  $b").text.endswith("\\na  $b\\n")
    assert [node["name"] for node in lab.plan["nodes"]] == ["master-0", "master-1", "master-2"]
"""
    found, printed = outcome(runs, text, "--agentlab-cluster", "lab")
    assert found == {"passed": 2}, printed


def test_failures_have_command_and_output(runs: Path) -> None:
    text = """
def test_status(lab):
    lab.run("sh", "-c", "echo broken; exit 7")

def test_time(lab):
    lab.run("sleep", "60", timeout=1)

def test_name(lab):
    lab.node("worker-9")
"""
    found, printed = outcome(runs, text, "--agentlab-cluster", "lab")
    assert found == {"failed": 3}, printed
    for part in (
        "exit status 7, expected 0",
        "broken",
        "it timed out after 1 s",
        "its nodes are master-0, master-1",
    ):
        assert part in printed, part


def test_a_snapshot_is_restored_before_the_test(runs: Path) -> None:
    """Here it cannot be: the reason of the verb is that of the test, which does not run."""
    text = """
import pytest

@pytest.mark.snapshot("installed")
def test_it():
    raise SystemExit("it ran")
"""
    found, printed = outcome(runs, text, "--agentlab-cluster", "lab")
    assert found == {"error": 1}, printed
    assert "agentlab snapshot restore installed --cluster lab: exit status 1" in printed and "it ran" not in printed


def test_no_such_cluster(runs: Path) -> None:
    found, printed = outcome(runs, "def test_it(lab):\n    pass\n", "--agentlab-cluster", "other")
    assert found == {"error": 1} and "there is no cluster 'other'" in printed
