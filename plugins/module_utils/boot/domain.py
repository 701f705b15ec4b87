"""A domain as a machine that boots without a BMC: from a CD (boot mode `cdrom`), a USB stick (`usb`), the network (`pxe`, `iscsi`)."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..libvirt import domain, storage
from ..plan.machines import Node
from ..plan.modes import Medium

if TYPE_CHECKING:
    import libvirt


class Machine:
    """Domain `name`; the methods are those of `machine.Machine`. `insert` takes a path instead of a URL.

    medium: what it boots from; one that boots from the network has nothing inserted, its files are on the lab's file server.
    more: paths of images that are inserted in drives of their own with it.
    """

    def __init__(
        self, connection: libvirt.virConnect, name: str, medium: Medium = "cdrom", more: Sequence[str] = ()
    ) -> None:
        self._connection, self._name, self._medium, self._more = connection, name, medium, more
        self._domain = connection.lookupByName(name)

    def power(self) -> str:
        return "on" if self._domain.isActive() else "off"

    def power_on(self) -> bool:
        if self._domain.isActive():
            return False
        self._domain.create()
        return True

    def power_off(self) -> bool:
        if not self._domain.isActive():
            return False
        self._domain.destroy()
        return True

    def insert(self, url: str) -> bool:
        return self._set([url, *self._more])

    def eject(self) -> bool:
        return self._set([])

    def _set(self, images: Sequence[str]) -> bool:
        return self._medium not in ("network", "lun") and domain.set_media(
            self._connection, self._name, images, self._medium
        )

    def boot_from_cd(self) -> None:
        """Do nothing: an empty disk falls through to the next boot device."""


class LunMachine(Machine):
    """A machine that boots from a LUN, whose file is `lun`: an image is inserted by writing it there, and cannot be ejected."""

    def __init__(self, connection: libvirt.virConnect, name: str, lun: Path) -> None:
        super().__init__(connection, name, "lun")
        self._lun = lun

    def insert(self, url: str) -> bool:
        with open(url, "rb") as image, self._lun.open("r+b") as file:
            shutil.copyfileobj(image, file, 1 << 20)
        return True


def blank(connection: libvirt.virConnect, pool: str, node: Node) -> None:
    """Reset `node`, which is off, to a new machine: empty disks, default firmware variables.

    `pool` is the name of the storage pool. Without its file of variables UEFI starts from the defaults, as on a new
    machine.
    """
    found = connection.storagePoolLookupByName(pool)
    for disk in node["disks"]:
        storage.blank(found, disk)
    variables = ET.fromstring(connection.lookupByName(node["domain"]).XMLDesc(2)).findtext("os/nvram")
    if variables:
        Path(variables).unlink(missing_ok=True)
