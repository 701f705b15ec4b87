"""The screen and the keyboard of a domain."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._deps import optional
from ..errors import LabError
from ..plan.model import Node, Plan
from ..screen.picture import MOST, Picture, read
from .connection import lookup

if TYPE_CHECKING:
    import libvirt
else:
    libvirt = optional("libvirt", "libvirt-python")

_HOLD_MS = 40
_MOST_BYTES = MOST * MOST * 3 + 64


def node_of(plan: Plan, name: str) -> Node:
    """Return the node of that name; `LabError` lists the nodes that there are."""
    for node in plan["nodes"]:
        if node["name"] == name:
            return node
    raise LabError(f"no node has the name {name}; there are {', '.join(node['name'] for node in plan['nodes'])}")


class Display:
    """A running domain with a video device, as a machine of `screen.steps`. Errors of libvirt are left to `connect`."""

    def __init__(self, connection: libvirt.virConnect, domain: str, name: str) -> None:
        """Find the domain; name: that of the node, for messages. `LabError` if it is off or has no screen."""
        found = lookup(connection, "lookupByName", domain)
        if found is None:
            raise LabError(f"node {name}: libvirt has no domain {domain}; agentlab boot makes and starts it")
        if not found.isActive():
            raise LabError(f"node {name}: it is off, and has nothing on its screen; agentlab power {name} on starts it")
        if "<video>" not in found.XMLDesc():
            raise LabError(f"node {name}: it has no screen; `screen: true` of the machine in the profile gives it one")
        self._connection, self._domain = connection, found

    def picture(self) -> Picture:
        """Return what the screen shows."""
        stream = self._connection.newStream()
        self._domain.screenshot(stream, 0)
        data = bytearray()
        while part := stream.recv(1 << 18):
            data += part
            if len(data) > _MOST_BYTES:
                stream.abort()
                raise LabError(f"the picture of the screen has more than {_MOST_BYTES} bytes")
        stream.finish()
        return read(bytes(data))

    def press(self, codes: Sequence[int]) -> None:
        """Press keys together, and release them; the next may follow at once."""
        self._domain.sendKey(libvirt.VIR_KEYCODE_SET_LINUX, _HOLD_MS, list(codes), len(codes), 0)
        time.sleep(2 * _HOLD_MS / 1000)  # libvirt does not wait until they are released
