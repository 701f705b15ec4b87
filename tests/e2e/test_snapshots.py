"""A single node from its snapshots: installed again from `ready`, restored before a test of pytest, and three copies side by side.

One of the copies, of `ready`, is installed next to the others. Nothing is left behind.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import run_dir

from tests.e2e.conftest import ROOT, host, ports

CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
CLUSTER = "e2es"
COPIES = {"e2ea": "installed", "e2eb": "installed", "e2ec": "ready"}
"""Their names, and of which snapshot they are."""
LIMIT = 40 * 60
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


def agentlab(*argv: str) -> str:
    command = [sys.executable, "-m", CLI, *argv]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, cwd=ROOT, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    return done.stdout


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

        for name, saved in COPIES.items():
            agentlab("snapshot", "copy", saved, name, "--cluster", CLUSTER)
        for verb in ("wait", "validate"):
            agentlab(verb, "--cluster", "e2ec")
        for name in COPIES:
            assert re.search(r"^master-0 +Ready ", nodes(name))
    finally:
        for name in (*COPIES, CLUSTER):
            subprocess.run([sys.executable, "-m", CLI, "destroy", "--cluster", name], cwd=ROOT, check=False)
            shutil.rmtree(run_dir(name), ignore_errors=True)  # a copy is refused where one exists
    assert host() == before and ports() <= listening
