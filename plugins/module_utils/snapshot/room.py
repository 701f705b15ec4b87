"""Whether this host has the space to save machines, and the memory to run those that were saved."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from .. import files
from ..plan import capacity
from ..plan.model import Plan
from ..sandbox.namespaces import RunningSandbox
from .manifest import OFF, Manifest, SnapshotError

_MIB = 1 << 20
_OWN = ("RssAnon:", "VmSwap:")
"""Lines of /proc/PID/status: memory that is free again when the process ends, in KiB."""


def check_disk(plan: Plan, before: Mapping[str, str], directory: Path) -> None:
    """Raise `SnapshotError` unless the whole memory of the running machines fits into the file system of `directory`.

    before: the state of each domain, as of `machines.states`. How much of its memory a machine has used is not known.
    """
    needed = sum(node["memory_mib"] for node in plan["nodes"] if before[node["domain"]] != OFF) * _MIB
    status = os.statvfs(directory)
    free = status.f_bavail * status.f_frsize
    if free < needed:
        raise SnapshotError(
            f"{directory}: {files.size_text(free)} free, but the memory of the machines may take {files.size_text(needed)}: "
            "free some space, or delete snapshots"
        )


def check_memory(plan: Plan, saved: Manifest, ends: RunningSandbox | None) -> None:
    """Raise `SnapshotError` unless the machines that a snapshot starts fit into this host's memory, as `prepare` counts it.

    ends: the sandbox that ends before, whose memory they can have. Machines that are off in the snapshot need none.
    """
    domains = {machine.domain for machine in saved.machines if machine.state != OFF}
    nodes = [node for node in plan["nodes"] if node["domain"] in domains]
    need = capacity.needs(nodes, plan["release"]["payload"]).memory_mib
    has = capacity.measure(Path(plan["hypervisor"]["state_dir"]))["memory_mib"] + (_used(ends) if ends else 0)
    if need > has:
        raise SnapshotError(
            f"snapshot {saved.name} needs {need} MiB of memory for {len(nodes)} machine{'s' if len(nodes) > 1 else ''}, "
            f"{has} MiB are available: destroy other clusters, or end other programs"
        )


def _used(sandbox: RunningSandbox) -> int:
    """Return the memory of all processes in a sandbox, in MiB."""
    space, used = os.readlink(f"/proc/{sandbox.pid}/ns/pid"), 0
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            if os.readlink(f"/proc/{entry}/ns/pid") == space:
                lines = Path(f"/proc/{entry}/status").read_text().splitlines()
                used += sum(int(line.split()[1]) for line in lines if line.startswith(_OWN))
    return used // 1024
