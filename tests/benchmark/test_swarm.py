"""What one process carries: AGENTLAB_SWARM_AGENTS hosts (5000) that poll every 60 s, on one core and within 1 GiB."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENTS = int(os.environ.get("AGENTLAB_SWARM_AGENTS", "5000"))
HOSTS = 5
FAKE = Path(__file__).parents[1] / "unit/node_agent/fake_assisted.py"


@pytest.fixture
def url() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, FAKE, str(port), "60"], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield process.stdout.readline().strip()
    process.terminate()
    process.wait(10)


def test_agents(url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ansible_collections.agentlab.ocp.plugins.module_utils.cli", "swarm", "--url", url,
               "--clusters", str(AGENTS // HOSTS), "--hosts", str(HOSTS), "--topology", "ha", "--ramp-up", "60", "--think-time", "0.1",
               "--no-install", "--duration", "240", "--report", str(tmp_path)]  # fmt: skip
    if hasattr(os, "sched_setaffinity"):
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]
    started = time.monotonic()
    subprocess.run(command, check=True)
    assert time.monotonic() - started < 600
    report = json.loads((tmp_path / "report.json").read_text())
    used = report["resources"]
    print(json.dumps({"late": report["poll_lateness"], **used}, indent=1))
    assert used["peak_agents"] == AGENTS // HOSTS * HOSTS and not report["errors"]
    assert used["kib_per_agent"] <= 200 and used["peak_rss_mib"] <= 1024
    assert report["poll_lateness"]["p99_ms"] < 1000
