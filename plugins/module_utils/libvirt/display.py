"""The screen and the keyboard of a domain."""

from __future__ import annotations

import functools
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .._deps import optional
from ..coreos.errors import CoreosError
from ..coreos.iso import LiveIso
from ..errors import LabError
from ..plan.model import Node, Plan
from ..screen.fonts import Font, kernel
from ..screen.picture import MOST_BYTES, Picture, read
from .connection import lookup

if TYPE_CHECKING:
    import libvirt
else:
    libvirt = optional("libvirt", "libvirt-python")

_HOLD_MS = 40
_KERNEL = "images/pxeboot/vmlinuz"
_MOST_KERNEL = 64 << 20


def node_of(plan: Plan, name: str) -> Node:
    """Return the node of that name; `LabError` lists the nodes that there are."""
    for node in plan["nodes"]:
        if node["name"] == name:
            if node.get("bare_metal"):
                raise LabError(f"{name}: an existing machine has no screen here: use the one of its BMC")
            return node
    raise LabError(f"unknown node {name}; nodes: {', '.join(node['name'] for node in plan['nodes'])}")


class Display:
    """A running domain with a video device, as a machine of `screen.steps`. Errors of libvirt are left to `connect`."""

    def __init__(self, connection: libvirt.virConnect, domain: str, name: str, published: Path) -> None:
        """Find the domain; `LabError` if it is off or has no screen.

        name: that of the node, for messages; published: a directory with boot media (`*.iso`), of which one has the
        machine's kernel when it has no medium any more.
        """
        found = lookup(connection, "lookupByName", domain)
        if found is None:
            raise LabError(f"node {name}: libvirt has no domain {domain}; agentlab boot makes and starts it")
        if not found.isActive():
            raise LabError(f"node {name}: it is off, and has nothing on its screen; agentlab power {name} on starts it")
        if "<video>" not in found.XMLDesc():
            raise LabError(f"node {name}: it has no screen; `screen: true` of the machine in the profile gives it one")
        self._connection, self._domain, self._published = connection, found, published

    @functools.cached_property
    def _kernel(self) -> Font | None:
        disks = ET.fromstring(self._domain.XMLDesc()).iterfind("devices/disk/source[@file]")
        for path in (*(Path(disk.get("file", "")) for disk in disks), *sorted(self._published.glob("*.iso"))):
            try:
                with LiveIso(path) as medium:
                    return kernel(medium.fs.read(_KERNEL, _MOST_KERNEL))
            except (CoreosError, OSError):
                continue  # a disk, or a medium of another kind
        return None

    def fonts(self) -> Sequence[Font]:
        """Return the font of the kernel on its medium, or on the first published one, if there is one."""
        return [self._kernel] if self._kernel else []

    def picture(self) -> Picture:
        """Return what the screen shows."""
        stream = self._connection.newStream()
        self._domain.screenshot(stream, 0)
        data = bytearray()
        while part := stream.recv(1 << 18):
            data += part
            if len(data) > MOST_BYTES:
                stream.abort()
                raise LabError(f"the picture of the screen has more than {MOST_BYTES} bytes")
        stream.finish()
        return read(bytes(data))

    def press(self, codes: Sequence[int]) -> None:
        """Press keys together, and release them; the next may follow at once."""
        self._domain.sendKey(libvirt.VIR_KEYCODE_SET_LINUX, _HOLD_MS, list(codes), len(codes), 0)
        time.sleep(2 * _HOLD_MS / 1000)  # libvirt does not wait until they are released
