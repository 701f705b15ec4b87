"""Clocks of machines that stood still: stepped by ssh to the host's time.

The time server alone does not: chrony steps a clock in its first updates after boot only.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..plan.machines import Node
from ..plan.model import Plan
from ..report import probe
from ..sandbox import namespaces

STEP_SECONDS = 30.0


def step(plan: Plan, run_dir: Path, running: namespaces.Running, domains: Sequence[str]) -> list[str]:
    """Set the clocks of the nodes with these domains; return why it was not possible, one message each.

    A node without the run's key, such as one that is still in its firmware, is not an error.
    """
    if not (run_dir / "ssh/id_ecdsa").is_file():
        return []
    nodes = [node for node in plan["nodes"] if node["domain"] in domains and node["nics"][0]["addresses"]]
    if not nodes:
        return []

    def one(node: Node) -> str | None:
        return _step(node, run_dir, running)

    with ThreadPoolExecutor(len(nodes)) as executor:
        return [problem for problem in executor.map(one, nodes) if problem]


def _step(node: Node, run_dir: Path, running: namespaces.Running) -> str | None:
    address = node["nics"][0]["addresses"][0]["ip"]
    # The time is sent when the connection is there, which may take seconds.
    script = "echo connected; read now && sudo date -u -s @$now >/dev/null"
    command = [*namespaces.enter(running), *probe.ssh(run_dir, address), script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        timer = threading.Timer(STEP_SECONDS, process.kill)
        timer.start()
        try:
            connected = process.stdout is not None and process.stdout.readline()
            __, errors = process.communicate(f"{time.time():.3f}\n" if connected else None)
        finally:
            timer.cancel()
    if process.returncode:
        reason = (errors.strip().splitlines() or [f"no answer within {STEP_SECONDS:.0f} s"])[-1]
        return f"{node['name']}: its clock was not set: {reason}"
    return None
