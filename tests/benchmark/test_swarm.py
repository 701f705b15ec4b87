"""What one process carries against our own service, each on a core of its own.

AGENTLAB_SWARM_AGENTS hosts (5000) that poll every 60 s, in clusters of five and with one of AGENTLAB_SWARM_LARGE (150) among them; that
cluster by itself; and AGENTLAB_SWARM_INSTALLS clusters of five (200) to installed. The figures are printed, the reports kept in
AGENTLAB_SWARM_REPORTS. An agent's memory is the peak less what the process has before there is any agent, over their number.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AGENTS = int(os.environ.get("AGENTLAB_SWARM_AGENTS", "5000"))
LARGE = int(os.environ.get("AGENTLAB_SWARM_LARGE", "150"))
INSTALLS = int(os.environ.get("AGENTLAB_SWARM_INSTALLS", "200"))
HOSTS = 5
CLI = [sys.executable, "-m", "ansible_collections.agentlab.ocp.plugins.module_utils.cli"]
VERSION = "4.22.0"
RELEASE = {"openshift_version": VERSION, "version": VERSION, "cpu_architecture": "x86_64", "cpu_architectures": ["x86_64"],
           "url": "registry.example/release", "default": True}  # fmt: skip
SHORT = {"AGENT_NEXT_INSTRUCTION_SECONDS": "10", "HOST_MONITOR_INTERVAL": "2s", "CLUSTER_MONITOR_INTERVAL": "2s"}


def on_core(number: int) -> list[str]:
    """A prefix that ties a command to one of our cores, the first or the last."""
    if not hasattr(os, "sched_setaffinity") or not shutil.which("taskset"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[number])]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    processes = []

    def start(**environment: str) -> str:
        process = subprocess.Popen(
            [*on_core(0), *CLI, "serve", "assisted-service", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")],
            env={**os.environ, "RELEASE_IMAGES": json.dumps([RELEASE]), **environment},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        processes.append(process)
        assert process.stdout
        return process.stdout.readline().split()[-1]

    yield start
    for process in processes:
        process.terminate()
        process.wait(60)


def swarm(url: str, tmp_path: Path, name: str, limit: float, *flags: str) -> dict[str, Any]:
    """Run a swarm on the last core; its report."""
    reports = Path(os.environ.get("AGENTLAB_SWARM_REPORTS") or tmp_path) / name
    started = time.monotonic()
    done = subprocess.run(
        [*on_core(-1), *CLI, "swarm", "--url", url, "--openshift-version", VERSION, "--report", str(reports), *flags],
        check=False,
    )
    assert time.monotonic() - started < limit
    report: dict[str, Any] = json.loads((reports / "report.json").read_text())
    slowest = {operation: row["p99_ms"] for operation, row in report["operations"].items()}
    print(json.dumps({"seconds": report["seconds"], "ends": report["ends"], "late": report["poll_lateness"], **report["resources"],
                      "errors": report["errors"], "p99_ms": slowest}, indent=1))  # fmt: skip
    assert done.returncode == 0
    return report


SMALL = (AGENTS - LARGE) // HOSTS
"""Clusters of five in addition to the one of 150."""


@pytest.mark.parametrize(
    ("name", "clusters", "topology", "agents"),
    [
        ("many", AGENTS // HOSTS, f"ha:{HOSTS}", AGENTS // HOSTS * HOSTS),
        ("mixed", SMALL + 1, f"ha:{HOSTS}={SMALL},ha:{LARGE}=1", SMALL * HOSTS + LARGE),
        ("large", 1, f"ha:{LARGE}", LARGE),
    ],
)
def test_agents(serve: Any, tmp_path: Path, name: str, clusters: int, topology: str, agents: int) -> None:
    report = swarm(
        serve(), tmp_path, name, 900, "--clusters", str(clusters), "--topology", topology, "--ramp-up", "120",
        "--think-time", "0.1", "--watch", "120", "--no-install", "--duration", "360",
    )  # fmt: skip
    used = report["resources"]
    assert used["peak_agents"] == agents and not report["errors"]
    assert used["peak_rss_mib"] <= 1024 and used["kib_per_agent"] <= 200 and report["poll_lateness"]["p99_ms"] < 1000


def test_installs(serve: Any, tmp_path: Path) -> None:
    report = swarm(
        serve(**SHORT), tmp_path, "installs", 1200, "--clusters", str(INSTALLS), "--hosts", str(HOSTS), "--topology", "ha", "--ramp-up", "60",
        "--think-time", "0", "--watch", "10", "--controller-poll", "10", "--installer-poll", "5", "--write-reports", "4", "--logs-kib", "8",
    )  # fmt: skip
    assert report["ends"] == {"installed": INSTALLS} and report["seconds"] < 600
