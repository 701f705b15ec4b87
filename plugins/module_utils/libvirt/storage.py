"""The storage pool of a cluster, a directory of its own, and the disks in it."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import LabError
from ..plan.machines import Disk
from ..state.owner import identity
from .connection import lookup
from .xmldiff import element, text

if TYPE_CHECKING:
    import libvirt

GIB = 1024**3


def pool(
    connection: libvirt.virConnect, name: str, directory: str, mark: str, *, check: bool = False
) -> tuple[Any | None, bool]:
    """Return the running pool `name` at `directory`, creating it with `mark` if necessary, and whether it was created or started.

    With `check` nothing is created, and the pool is None if there is none. Raises `LabError` for a pool of that name
    that is of another cluster, or at another path.
    """
    found = lookup(connection, "storagePoolLookupByName", name)
    ours = identity(mark, "pool", name)
    if found is not None:
        if found.UUIDString() != ours:
            raise LabError(
                f"storage pool {name} exists in libvirt and was not made by this cluster: remove it, or choose another CLUSTER"
            )
        path = ET.fromstring(found.XMLDesc()).findtext("target/path")
        if path != directory:
            raise LabError(f"storage pool {name} exists in libvirt at {path}, not at {directory}: remove it first")
        if found.isActive():
            return found, False
    if check:
        return found, True
    if found is None:
        target = element("target", None, element("path", text=directory))
        tree = element("pool", {"type": "dir"}, element("name", text=name), element("uuid", text=ours), target)
        found = connection.storagePoolDefineXML(text(tree))
        found.build()
    found.create()
    return found, True


def missing(pool: libvirt.virStoragePool | None, disks: Sequence[Disk]) -> list[Disk]:
    """Return those of `disks` that are not in `pool`; `LabError` for one with a different size.

    Sizes are compared in bytes. A pool that is None or not running has no disks.
    """
    volumes = (
        {volume.name(): volume for volume in pool.listAllVolumes()} if pool is not None and pool.isActive() else {}
    )
    absent = []
    for disk in disks:
        volume = volumes.get(disk["name"])
        if volume is None:
            absent.append(disk)
        elif volume.info()[1] != disk["size_gib"] * GIB:
            raise LabError(
                f"disk {disk['name']} has {volume.info()[1] / GIB:g} GiB, not {disk['size_gib']}: destroy the cluster first"
            )
    return absent


class Backing(NamedTuple):
    """What is below a disk that begins with the content of an image: its path, and its format, `qcow2` or `raw`."""

    path: str
    format: str


def create(pool: libvirt.virStoragePool, disk: Disk, backing: Backing | None = None) -> None:
    """Create a qcow2 disk: empty, or over `backing`, which must stay as it is. One that is a LUN is a raw file.

    Its size is the most that it may grow to: nothing is allocated. `pool` is libvirt's object, and runs.
    """
    tree = element(
        "volume",
        None,
        element("name", text=disk["name"]),
        element("capacity", {"unit": "GiB"}, text=disk["size_gib"]),
        element("allocation", text=0),
        element("target", None, element("format", {"type": "raw" if disk["bus"] == "iscsi" else "qcow2"})),
        element("backingStore", None, element("path", text=backing.path), element("format", {"type": backing.format}))
        if backing
        else None,
    )
    pool.createXML(text(tree))


def blank(pool: libvirt.virStoragePool, disk: Disk) -> None:
    """Make a disk empty again.

    It is deleted and created again, with its own size. The machine must be off. A LUN stays the file that its target has
    open.
    """
    volume = lookup(pool, "storageVolLookupByName", disk["name"])
    if volume is not None and disk["bus"] == "iscsi":
        for size in (0, disk["size_gib"] * GIB):
            os.truncate(volume.path(), size)
        return
    if volume is not None:
        volume.delete()
    create(pool, disk)


def remove(connection: libvirt.virConnect, name: str, mark: str) -> bool:
    """Remove pool `name` from libvirt if it carries `mark`; return whether it was there.

    Its files are in the cluster's state directory, and are removed with that: a pool without its directory cannot be started,
    and one with other files must not be emptied.
    """
    found = lookup(connection, "storagePoolLookupByName", name)
    if found is None or found.UUIDString() != identity(mark, "pool", name):
        return False
    if found.isActive():
        found.destroy()
    found.undefine()
    return True
