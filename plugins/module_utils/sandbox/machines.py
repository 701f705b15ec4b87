"""Machines in libvirt: the storage pool of a cluster, disks, and domains, which stay off."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..libvirt import domain, storage
from ..plan import faults
from ..plan.machines import Node, own_machines
from ..plan.model import Plan
from ..plan.modes import MODES
from ..plan.outside import Machine
from ..plan.outside_checks import disk_image
from ..state.owner import Owner
from . import one_thread

if TYPE_CHECKING:
    import libvirt


def apply(
    connection: libvirt.virConnect, plan: Plan, owner: Owner, domain_type: str, *, check: bool = False
) -> list[dict[str, Any]]:
    """Create the nodes of a plan that its hypervisor carries; return what changed (`name`, `before`, `after`).

    domain_type: kvm or qemu. Raises what `create` does.
    """
    hypervisor, nodes = plan["hypervisor"], own_machines(plan["nodes"])
    wanted = [
        domain.render(
            node,
            owner,
            pool=hypervisor["pool"],
            domain_type=domain_type,
            console=Path(node["console"]),
            emulator=one_thread.emulator(plan, node, domain_type),
            medium=MODES[plan["boot"]["mode"]].medium,
            medium_first=any(faults.of_kind(plan, "boot_order", node["name"])),
            clock_offset=sum(fault["offset"] for fault in faults.of_kind(plan, "clock", node["name"])),
        )
        for node in nodes
    ]
    if not check:
        Path(hypervisor["console_dir"]).mkdir(parents=True, exist_ok=True)
    return create(connection, plan, owner, nodes, wanted, check=check)


def create(
    connection: libvirt.virConnect,
    plan: Plan,
    owner: Owner,
    machines: Sequence[Node | Machine],
    wanted: Sequence[ET.Element],
    images: Mapping[str, str] = MappingProxyType({}),
    *,
    check: bool = False,
) -> list[dict[str, Any]]:
    """Create the pool, the disks of machines that are missing, and their domains; return what changed (`name`, `before`, `after`).

    wanted: definitions of the domains; images: name of a disk -> path of the image whose content it begins with. Raises `LabError`
    for an object of another cluster, a disk of another size, a change of a running machine, and `FileError` for a wrong image.
    """
    hypervisor = plan["hypervisor"]
    pool, made = storage.pool(connection, hypervisor["pool"], hypervisor["pool_dir"], owner.mark, check=check)
    changes = [(hypervisor["pool"], f"pool {hypervisor['pool_dir']}\n")] if made else []
    for disk in storage.missing(pool, [disk for machine in machines for disk in machine["disks"]]):
        image = images.get(disk["name"])
        changes.append((disk["name"], f"disk of {disk['size_gib']} GiB{f' over {image}' if image else ''}\n"))
        if not check:
            storage.create(pool, disk, _backing(image) if image else None)
    return [
        *({"name": name, "before": "", "after": text} for name, text in changes),
        *domain.apply(connection, wanted, check=check),
    ]


def _backing(image: str) -> storage.Backing:
    path = Path(image).expanduser().absolute()
    return storage.Backing(str(path), disk_image(str(path))[0])
