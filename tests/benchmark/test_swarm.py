"""What one process carries against our own service, each on a core of its own.

AGENTLAB_SWARM_AGENTS hosts (5000) that poll every 60 s, in clusters of five and with one of AGENTLAB_SWARM_LARGE (150) among them; that
cluster by itself; numbers of hosts in AGENTLAB_SWARM_CURVE ("100 1000 5000 20000"; none by default); BMCs of AGENTLAB_SWARM_BMCS hosts
(3000); and AGENTLAB_SWARM_INSTALLS clusters of five (200) to installed. The figures are printed, the reports kept in
AGENTLAB_SWARM_REPORTS. An agent's memory is the peak less what the process has before there is any agent, over their number.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AGENTS = int(os.environ.get("AGENTLAB_SWARM_AGENTS", "5000"))
LARGE = int(os.environ.get("AGENTLAB_SWARM_LARGE", "150"))
CURVE = [int(number) for number in os.environ.get("AGENTLAB_SWARM_CURVE", "").split()]
BMCS = int(os.environ.get("AGENTLAB_SWARM_BMCS", "3000"))
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


@pytest.mark.parametrize("agents", CURVE)
def test_curve(serve: Any, tmp_path: Path, agents: int) -> None:
    """The service registers 40 hosts in a second; after that each polls three times."""
    begin = max(60, agents // 40)
    report = swarm(
        serve(), tmp_path, f"curve-{agents}", begin + 900, "--clusters", str(agents // HOSTS), "--topology", f"ha:{HOSTS}",
        "--ramp-up", str(begin), "--think-time", "0.1", "--watch", "240", "--no-install", "--duration", str(begin + 240),
    )  # fmt: skip
    used = report["resources"]
    assert used["peak_agents"] == agents and not report["errors"]
    assert used["peak_rss_mib"] <= 1024 and report["poll_lateness"]["p99_ms"] < 1000


def test_bmcs(serve: Any, tmp_path: Path) -> None:
    """A client inserts the image of each host and switches it on; all of them register."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["--url", serve(), "--openshift-version", VERSION, "--report", str(tmp_path), "--bmc", str(port), "--no-install",
             "--clusters", str(BMCS // HOSTS), "--topology", f"ha:{HOSTS}", "--think-time", "0", "--duration", "600"]  # fmt: skip
    process = subprocess.Popen([*on_core(-1), *CLI, "swarm", *words])
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(method: str, path: str, body: dict[str, str] | None = None) -> Any:
        client.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = client.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text) if text else None

    try:
        end = time.monotonic() + 300
        while True:
            assert time.monotonic() < end and process.poll() is None
            try:
                systems = [one["@odata.id"] for one in call("GET", "/redfish/v1/Systems")["Members"]]
                if len(systems) == BMCS:
                    break
            except OSError:
                client.close()
            time.sleep(1)
        started = time.monotonic()
        for system in systems:
            call("GET", system)
        read = time.monotonic() - started
        for system in systems:
            media = system.replace("Systems", "Managers") + "/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
            call("POST", media, {"Image": "http://127.0.0.1:9/full.iso"})
            call("POST", f"{system}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
        on = time.monotonic() - started - read
        time.sleep(30)
        process.send_signal(signal.SIGINT)
        process.wait(300)
    finally:
        process.kill()
        process.wait()
    report = json.loads((tmp_path / "report.json").read_text())
    print(json.dumps({"read_ms": 1000 * read / BMCS, "on_ms": 1000 * on / BMCS, **report["resources"]}, indent=1))
    assert report["operations"]["register"]["count"] == BMCS and not report["errors"]


def test_installs(serve: Any, tmp_path: Path) -> None:
    report = swarm(
        serve(**SHORT), tmp_path, "installs", 1200, "--clusters", str(INSTALLS), "--hosts", str(HOSTS), "--topology", "ha", "--ramp-up", "60",
        "--think-time", "0", "--watch", "10", "--controller-poll", "10", "--installer-poll", "5", "--write-reports", "4", "--logs-kib", "8",
    )  # fmt: skip
    assert report["ends"] == {"installed": INSTALLS} and report["seconds"] < 600
