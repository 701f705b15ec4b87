"""Clocks of machines that stood still: stepped to the host's time, by their guest agents or by ssh.

The time server alone does not: chrony steps a clock in its first updates after boot only.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from .._deps import optional
from ..libvirt.connection import connect
from ..plan.machines import Node
from ..plan.model import Plan
from ..report.ssh import ssh
from ..sandbox import namespaces
from ..vocabulary import RunFile
from . import machines

if TYPE_CHECKING:
    import libvirt
else:
    libvirt = optional("libvirt", "libvirt-python")

STEP_SECONDS = 30.0
AGENT_SECONDS = 10
"""A guest agent answers within this time, or is taken for one that does not run."""


def step(plan: Plan, run_dir: Path, running: namespaces.RunningSandbox, domains: Sequence[str]) -> list[str]:
    """Set the clocks of the nodes with these domains; return why it was not possible, one message each.

    A login to an emulated machine that has just been restored takes many seconds, its guest agent one; ssh is for systems
    without an agent. A node without the run's key, such as one that is still in its firmware, is not an error.
    """
    nodes = [node for node in plan["nodes"] if node["domain"] in domains]
    if not nodes:
        return []
    has_key = (run_dir / RunFile.SSH_KEY).is_file()
    with connect(machines.uri(running.pid)) as connection:

        def one(node: Node) -> str | None:
            if _by_agent(connection.lookupByName(node["domain"])) or not has_key:
                return None
            addresses = node["nics"][0]["addresses"]
            return _by_ssh(node["name"], addresses[0]["ip"], run_dir, running) if addresses else None

        with ThreadPoolExecutor(len(nodes)) as executor:
            return [problem for problem in executor.map(one, nodes) if problem]


def _by_agent(domain: libvirt.virDomain) -> bool:
    """Return whether the guest agent of a machine has set its clock."""
    try:
        domain.agentSetResponseTimeout(AGENT_SECONDS)
        # The first answer of a restored machine takes up to a second, by which the time would be late.
        domain.getTime()
        now = time.time()
        domain.setTime({"seconds": int(now), "nseconds": int(now % 1 * 1e9)})
    except libvirt.libvirtError:
        return False
    return True


def _by_ssh(name: str, address: str, run_dir: Path, running: namespaces.RunningSandbox) -> str | None:
    # The time is sent when the connection is there, which may take seconds.
    script = "echo connected; read now && sudo date -u -s @$now >/dev/null"
    command = [*namespaces.enter(running), *ssh(run_dir, address), script]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
        _killed_after(process, STEP_SECONDS),
    ):
        connected = process.stdout is not None and process.stdout.readline()
        __, errors = process.communicate(f"{time.time():.3f}\n" if connected else None)
    if process.returncode:
        reason = (errors.strip().splitlines() or [f"no answer within {STEP_SECONDS:.0f} s"])[-1]
        return f"{name}: its clock was not set: {reason}"
    return None


@contextlib.contextmanager
def _killed_after(process: subprocess.Popen[str], seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
