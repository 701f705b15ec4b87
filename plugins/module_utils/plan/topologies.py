"""The topologies: one row each, which is all that a new one needs.

Schema, presets, checks, install-config, reference page and swarm read this table.
"""

from __future__ import annotations

from typing import NamedTuple

from ..releases.distributions import DISTRIBUTIONS

PAYLOADS = (*DISTRIBUTIONS, "lab")
"""What can be installed: releases of each distribution, and the lab payload."""


class Size(NamedTuple):
    """One machine: virtual CPUs, MiB of memory, GiB of disk.

    A virtual CPU is a thread of the hypervisor; disks are sparse, so their size is the most that they may have.
    """

    vcpus: int
    memory_mib: int
    disk_gib: int


class Group(NamedTuple):
    """The machines of one role: how many by default, and their size with each payload.

    least, most: how many a profile may ask for. The sizes under `real` are those of dev-scripts (`common.sh`), so that
    results compare; with those under `lab`, which are for the lab payload, HA fits into 16 GiB.
    """

    number: int
    real: Size
    lab: Size
    least: int = 0
    most: int = 100


class Topology(NamedTuple):
    """A shape of clusters.

    meaning: for documentation; scenario: what dev-scripts calls it in AGENT_E2E_TEST_SCENARIO; fencing: two masters do
    without an arbiter, because each can switch the other off by its BMC; aliases: other names of it, which the swarm takes.
    """

    meaning: str
    scenario: str
    master: Group
    # What a profile gets that adds a worker to COMPACT, say.
    arbiter: Group = Group(0, Size(2, 8192, 50), Size(1, 2048, 20))
    worker: Group = Group(0, Size(4, 16384, 100), Size(1, 2048, 20))
    fencing: bool = False
    aliases: tuple[str, ...] = ()

    def group(self, role: str) -> Group:
        """Return the machines of a role: master, arbiter or worker.

        A role without machines has a group too, with number 0. Any other name is a KeyError.
        """
        groups = {"master": self.master, "arbiter": self.arbiter, "worker": self.worker}
        return groups[role]


def _masters(count: int, real: Size, lab: Size, *, least: int = 1, most: int = 5) -> Group:
    return Group(count, real, lab, least, most)


TOPOLOGIES: dict[str, Topology] = {
    "sno": Topology("single node", "SNO", _masters(1, Size(8, 32768, 100), Size(2, 4096, 20))),
    "snomin": Topology(
        "single node, as small as it can be", "SNOMIN", _masters(1, Size(4, 32768, 100), Size(1, 4096, 20))
    ),
    "compact": Topology("three control-plane nodes", "COMPACT", _masters(3, Size(4, 32768, 100), Size(2, 3072, 20))),
    "ha": Topology(
        "three control-plane nodes and workers",
        "HA",
        _masters(3, Size(4, 24576, 100), Size(2, 3072, 20)),
        worker=Group(2, Size(4, 16384, 100), Size(1, 2048, 20)),
    ),
    "4control": Topology(
        "four control-plane nodes",
        "4CONTROL",
        _masters(4, Size(4, 24576, 100), Size(1, 3072, 20)),
        aliases=("4_masters",),
    ),
    "5control": Topology(
        "five control-plane nodes",
        "5CONTROL",
        _masters(5, Size(4, 24576, 100), Size(1, 3072, 20)),
        aliases=("5_masters",),
    ),
    "tna": Topology(
        "two control-plane nodes and an arbiter",
        "TNA",
        _masters(2, Size(8, 32768, 100), Size(2, 3072, 20)),
        arbiter=Group(1, Size(2, 8192, 50), Size(1, 2048, 20), most=1),
    ),
    "tnf": Topology(
        "two control-plane nodes that fence each other",
        "TNF",
        _masters(2, Size(8, 32768, 100), Size(2, 3072, 20), least=2, most=2),
        arbiter=Group(0, Size(2, 8192, 50), Size(1, 2048, 20), most=0),
        fencing=True,
    ),
}


def fencing() -> str:
    """Return the names of the topologies whose masters fence each other, for messages."""
    return ", ".join(name for name, row in TOPOLOGIES.items() if row.fencing)


def preset(name: str, payload: str) -> dict[str, dict[str, int]]:
    """Return what a profile starts from for a topology: count and size of each role.

    By role: `count`, `vcpus`, `memory_mib` and `disk_gib`. `payload` is one of `PAYLOADS`; the sizes of real ones and of the
    lab's differ. An unknown topology is a KeyError.
    """
    row = TOPOLOGIES[name]
    return {role: _values(row.group(role), payload) for role in ("master", "arbiter", "worker")}


def _values(group: Group, payload: str) -> dict[str, int]:
    size = group.lab if payload == "lab" else group.real
    return {"count": group.number, **size._asdict()}
