"""A single node from its snapshots: installed again from `ready`, restored, and three copies side by side. Nothing is left behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, host, ports

CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
CLUSTER = "e2es"
COPIES = ("e2ea", "e2eb", "e2ec")
LIMIT = 40 * 60
SECONDS = 5
"""A single node is restored within this time, on two quiet cores."""


def agentlab(*argv: str, cluster: str = CLUSTER) -> str:
    command = [sys.executable, "-m", CLI, *argv, "--cluster", cluster]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, cwd=ROOT, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    return done.stdout


def nodes(cluster: str) -> str:
    return agentlab("kubectl", "get", "nodes", "--no-headers", cluster=cluster)


@pytest.mark.long
def test_a_single_node_from_its_snapshots(tmp_path: Path, guests: None) -> None:
    before, listening = host(), ports()
    profile = tmp_path / "sno.yml"
    profile.write_text("topology: sno\nsnapshots: [ready, installed]\n")
    try:
        agentlab("deploy", str(profile))
        assert "installed" in agentlab("snapshot", "list")

        again = agentlab("deploy", "--from", "ready")
        assert not re.search(r"^(Prepare|Configure|Image|Boot)$", again, re.MULTILINE)
        restored = re.search(r"restored in ([0-9.]+) s", again)
        assert restored and float(restored[1]) < SECONDS
        assert "disconnected" not in again
        assert re.search(r"^master-0 +Ready ", nodes(CLUSTER))

        for name in COPIES:
            agentlab("snapshot", "copy", "installed", name)
        for name in COPIES:
            assert re.search(r"^master-0 +Ready ", nodes(name))
    finally:
        for name in (*COPIES, CLUSTER):
            subprocess.run([sys.executable, "-m", CLI, "destroy", "--cluster", name], cwd=ROOT, check=False)
    assert host() == before and ports() <= listening
