"""Whether a hypervisor has the resources for the machines of a cluster."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from . import ipi
from .build import machine, node_names, state_directory
from .options import Profile
from .outside import complete
from .presets import CAPACITY, OVERCOMMIT
from .problems import Finding


class Facts(TypedDict):
    """Resources of a hypervisor: available memory, processors, free space of its pool.

    `memory_mib` is in MiB, `disk_free_gib` in GiB; `cpus` is a number of logical processors.
    """

    memory_mib: int
    cpus: int
    disk_free_gib: int


def measure(directory: Path) -> Facts:
    """Return what this host has, with the free space where `directory` is or would be made.

    Memory is `MemAvailable` and free swap of /proc/meminfo. Without `directory` its next parent that exists is
    measured.
    """
    fields = (line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    memory = {name: int(value.split()[0]) for name, value in fields}
    there = next(path for path in (directory, *directory.parents) if path.exists())
    return {
        "memory_mib": (memory["MemAvailable"] + memory["SwapFree"]) // 1024,
        "cpus": len(os.sched_getaffinity(0)),
        "disk_free_gib": shutil.disk_usage(there).free >> 30,
    }


class Needs(NamedTuple):
    """What the machines of one cluster take of a hypervisor: memory in MiB, virtual CPUs, disk in GiB."""

    memory_mib: int
    vcpus: int
    disk_gib: int


def needs(nodes: Sequence[Mapping[str, Any]], payload: str) -> Needs:
    """Return what `nodes` take; each has `memory_mib` and `vcpus`.

    payload: installed on them, one of `PAYLOADS`. Memory includes what QEMU itself takes. Disks are sparse, so only what an
    installation writes to them counts, and the payload.
    """
    capacity = CAPACITY[payload]
    return Needs(
        sum(node["memory_mib"] for node in nodes) + len(nodes) * capacity["vm_overhead_mib"],
        sum(node["vcpus"] for node in nodes),
        capacity["shared_gib"] + len(nodes) * capacity["node_gib"],
    )


def needs_of(profile: Profile, *, existing: bool = False) -> Needs:
    """Return what the machines of a complete profile take, those of its faults, of day 2 and outside of the cluster included.

    existing: whether existing machines are VMs of this host, too, as in a second sandbox.
    """
    return needs(_machines(profile, existing=existing), profile["release"]["payload"])


def _machines(profile: Profile, *, existing: bool) -> list[Mapping[str, Any]]:
    found = [machine(profile, name, role) for name, role, __ in node_names(profile)]
    own = [complete(one) for one in profile["machines"]]
    bootstrap = [ipi.size(profile["release"]["payload"])._asdict()] if profile["flow"] == "ipi" else []
    return [*(one for one in found if existing or not one.get("bare_metal")), *own, *bootstrap]


def check(nodes: Sequence[Mapping[str, Any]], payload: str, directory: str, facts: Facts) -> list[Finding]:
    """Return which resources a hypervisor lacks for `nodes`; empty if none.

    nodes, payload: as for `needs`; directory: of their disks, for the message. Memory is not overcommitted; processors
    are, `OVERCOMMIT` to one.
    """
    wanted, count = needs(nodes, payload), len(nodes)
    compared = (
        ("memory_mib", wanted.memory_mib, facts["memory_mib"], "MiB of memory", "available"),
        (
            "vcpus",
            wanted.vcpus,
            facts["cpus"] * OVERCOMMIT,
            "virtual CPUs",
            f"available with {facts['cpus']} processors",
        ),
        ("disks", wanted.disk_gib, facts["disk_free_gib"], "GiB of disk", f"free in {directory}"),
    )
    return [
        (
            ("nodes", "*", field),
            None,
            f"{need} {what} are required for {count} nodes, {has} are {how}; use smaller or fewer nodes",
        )
        for field, need, has, what, how in compared
        if need > has
    ]


def closed_directories(directory: Path) -> list[Finding]:
    """Return the directory that keeps QEMU of a sandbox out of `directory`; empty if it can enter them all.

    It runs as the user of the distribution's package, who owns none of them; a directory that is missing will be open.
    """
    modes = [
        (parent, stat.S_IMODE(parent.stat().st_mode))
        for parent in (*reversed(directory.parents), directory)
        if parent.exists()
    ]
    return [
        (
            ("hypervisor", "state_dir"),
            str(directory),
            f"{parent} has mode {mode:04o}, so QEMU's user cannot open disks below it; run `chmod o+x {parent}`, or use another directory",
        )
        for parent, mode in modes
        if not mode & stat.S_IXOTH
    ][:1]


def check_here(profile: Profile, cluster: str) -> list[Finding]:
    """Return which resources this host lacks for a complete profile; empty for another host, or an existing cluster.

    Another host is `kind: ssh`, which the role `hypervisor` measures. A cluster that exists already has its disks and
    memory.
    """
    directory = Path(state_directory(profile, cluster))
    if profile["hypervisor"]["kind"] == "ssh" or directory.exists():
        return []
    return check(_machines(profile, existing=False), profile["release"]["payload"], str(directory), measure(directory))
