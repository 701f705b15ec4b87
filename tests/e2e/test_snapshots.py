"""A single node from its snapshots: installed again from `ready`, restored before a test of pytest, and three copies side by side.

The copies are of one snapshot, `ready`, and are installed at the same time. Nothing is left behind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import run_dir

from tests.e2e.conftest import ROOT, host, ports

CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
CLUSTER = "e2es"
COPIES = ("e2ea", "e2eb", "e2ec")
"""The copies of `ready`."""
LIMIT = 40 * 60
"""Seconds of each command; of a wait for one of three installations that share the processors, too."""
TESTS = """
import pytest

def test_a_node(lab):
    assert lab.node("master-0").run("sudo touch /var/mark; hostname").text.split()[-1] == "master-0"
    assert "master-0" in lab.kubectl("get", "nodes").text
    lab.run("ip", "route", "get", "192.168.111.20")

@pytest.mark.snapshot("installed")
def test_a_node_as_it_was(lab):
    lab.node("master-0").run("test", "!", "-e", "/var/mark")
    lab.run("false", status=1)
"""


def agentlab(*argv: str, quiet: bool = False) -> str:
    """Return what a verb prints, with quiet only its result."""
    command = [sys.executable, "-m", CLI, *argv]
    errors = subprocess.PIPE if quiet else subprocess.STDOUT
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=LIMIT, cwd=ROOT, check=False
    )
    text = done.stdout + (done.stderr or "")
    print(text)
    assert done.returncode == 0, text
    return done.stdout


def power(cluster: str) -> str:
    shown = agentlab("power", "master-0", "--cluster", cluster, "-o", "json", quiet=True)
    return str(json.loads(shown)["power"])


def nodes(cluster: str) -> str:
    return agentlab("kubectl", "--cluster", cluster, "get", "nodes", "--no-headers")


@pytest.mark.long
def test_a_single_node_from_its_snapshots(tmp_path: Path, guests: None) -> None:
    before, listening = host(), ports()
    profile = tmp_path / "sno.yml"
    profile.write_text("topology: sno\nsnapshots: [ready, installed]\n")
    try:
        agentlab("deploy", str(profile), "--cluster", CLUSTER)
        assert "installed" in agentlab("snapshot", "list", "--cluster", CLUSTER)

        again = agentlab("deploy", "--from", "ready", "--cluster", CLUSTER)
        assert not re.search(r"^(Prepare|Configure|Image|Boot)$", again, re.MULTILINE)
        assert re.search(r"restored in [0-9.]+ s", again)
        assert "disconnected" not in again
        assert re.search(r"^master-0 +Ready ", nodes(CLUSTER))

        (tmp_path / "test_lab.py").write_text(TESTS)
        command = [sys.executable, "-m", "pytest", "-p", f"{CLI}.pytest_plugin", "-q", "--agentlab-cluster", CLUSTER]
        environment = {**os.environ, "AGENTLAB_RUNS": str(run_dir(CLUSTER).parent)}
        subprocess.run([*command, str(tmp_path)], env=environment, timeout=LIMIT, cwd=tmp_path, check=True)

        agentlab("power", "master-0", "off", "--cluster", CLUSTER)  # the processors are for the copies
        for name in COPIES:
            row = json.loads(
                agentlab("snapshot", "copy", "ready", name, "--cluster", CLUSTER, "-o", "json", quiet=True)
            )
            assert (row["name"], row["cluster"]) == ("ready", name)
        assert [power(name) for name in COPIES] == ["on"] * len(COPIES)
        begin = time.monotonic()
        with ThreadPoolExecutor(len(COPIES)) as executor:
            waits = dict(
                zip(COPIES, executor.map(lambda name: agentlab("wait", "--cluster", name), COPIES), strict=True)
            )
        print(f"three installations of one snapshot, side by side: {time.monotonic() - begin:.0f} s")
        assert [name for name, text in waits.items() if "disconnected" in text] == []
        for name in COPIES:
            assert re.search(r"^master-0 +Ready ", nodes(name))
        agentlab("validate", "--cluster", COPIES[-1])
    finally:
        for name in (*COPIES, CLUSTER):
            subprocess.run([sys.executable, "-m", CLI, "destroy", "--cluster", name], cwd=ROOT, check=False)
            shutil.rmtree(run_dir(name), ignore_errors=True)  # a copy is refused where one exists
    assert host() == before and ports() <= listening
