"""Whether a hypervisor can carry the machines of a plan."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TypedDict

from .model import Plan, Problem
from .presets import CAPACITY, OVERCOMMIT


class Facts(TypedDict):
    """What a hypervisor has: memory that is available, processors, free space where its pool is."""

    memory_mib: int
    cpus: int
    disk_free_gib: int


def measure(directory: Path) -> Facts:
    """Return what this host has, with the free space where `directory` is or would be made."""
    fields = (line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    memory = {name: int(value.split()[0]) for name, value in fields}
    there = next(path for path in (directory, *directory.parents) if path.exists())
    return {
        "memory_mib": (memory["MemAvailable"] + memory["SwapFree"]) // 1024,
        "cpus": len(os.sched_getaffinity(0)),
        "disk_free_gib": shutil.disk_usage(there).free >> 30,
    }


def check(plan: Plan, facts: Facts, hypervisor: str = "hypervisor") -> list[Problem]:
    """Return what a hypervisor lacks to carry the plan; empty when it can.

    Memory is not overcommitted; processors are, `OVERCOMMIT` to one; disks are sparse, so that only what an installation
    writes to them counts.
    """
    capacity = CAPACITY[plan["release"]["payload"]]
    nodes = plan["nodes"]
    memory = sum(node["memory_mib"] for node in nodes) + len(nodes) * capacity["vm_overhead_mib"]
    cpus = sum(node["vcpus"] for node in nodes)
    disk = capacity["shared_gib"] + len(nodes) * capacity["node_gib"]
    needs = (
        ("nodes.*.memory_mib", memory, facts["memory_mib"], "MiB of memory", "available"),
        ("nodes.*.vcpus", cpus, facts["cpus"] * OVERCOMMIT, "virtual CPUs", f"carried by {facts['cpus']} processors"),
        ("nodes.*.disks", disk, facts["disk_free_gib"], "GiB of disk", f"free in {plan['hypervisor']['pool_dir']}"),
    )
    return [
        Problem(
            hypervisor,
            field,
            need,
            f"{need} {what} are needed for {len(nodes)} nodes, {has} are {how}; use smaller or fewer nodes",
        )
        for field, need, has, what, how in needs
        if need > has
    ]
