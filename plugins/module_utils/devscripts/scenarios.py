"""What a scenario of dev-scripts sets (`common.sh`): counts, sizes and stacks."""

from __future__ import annotations

from collections.abc import Mapping

from ..plan.topologies import TOPOLOGIES, Size, Topology

Sizes = Mapping[str, Size]

STACKS = {"v4": "ipv4", "v6": "ipv6", "v4v6": "dualstack", "v6v4": "v6v4"}
"""IP_STACK -> stack."""
PLAIN: Sizes = {"master": Size(8, 16384, 60), "arbiter": Size(4, 8192, 50), "worker": Size(4, 8192, 60)}
"""Sizes without a scenario."""
# TNA and TNF have workers if the configuration asks for them; HA alone has a preset for them.
_OPTIONAL_WORKER = Size(4, 8192, 100)


def sizes(row: Topology | None) -> Sizes:
    """Return the sizes of machines in the scenario of a topology, or without a scenario.

    By role. Without a scenario (`row` None) they are those of dev-scripts' IPI flow, `PLAIN`.
    """
    if row is None:
        return PLAIN
    worker = row.worker.real if row.worker.number else _OPTIONAL_WORKER if optional_workers(row) else PLAIN["worker"]
    return {
        "master": row.master.real,
        "arbiter": row.arbiter.real if row.arbiter.number else PLAIN["arbiter"],
        "worker": worker,
    }


def optional_workers(row: Topology) -> bool:
    """Return whether a configuration may say how many workers the scenario has: those with two masters.

    Those are TNA and TNF, which have no workers unless NUM_WORKERS is set.
    """
    return row.master.number == 2


def forced_roles(topology: str) -> tuple[str, ...]:
    """Return the roles whose count the scenario of a topology sets.

    dev-scripts overwrites NUM_MASTERS and so on for these roles; the configuration's own value has no effect.
    """
    return ("master", "arbiter") if optional_workers(TOPOLOGIES[topology]) else ("master", "arbiter", "worker")


def topology_of(*, master: int, arbiter: int, worker: int) -> str:
    """Return the topology of a number of machines of each role, for a configuration without a scenario.

    With two masters an arbiter makes it `tna`, none `tnf`. A number that no topology has gives `ha`, in which counts
    can be changed.
    """
    if master == 2:
        return next(name for name, row in TOPOLOGIES.items() if row.master.number == 2 and row.fencing != bool(arbiter))
    same = {
        row.master.number: name
        for name, row in reversed(TOPOLOGIES.items())
        if not row.worker.number and row.master.number != 2
    }
    if master == TOPOLOGIES["ha"].master.number and worker:
        return "ha"
    return same.get(master, "ha")
