"""Quirks of BMCs as a table: name -> what it means, and what is done about it.

A quirk is named in a profile (`nodes.NAME.bmc.quirks`). What a BMC shows by itself needs no name: tasks are followed, and the
transfer protocol is added when it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from ..errors import LabError


class Behavior(NamedTuple):
    """How a BMC is driven.

    busy_seconds: how long a request is repeated that is answered with 503. power_seconds: how long a power state is waited for.
    media_while_off: media are inserted and ejected only while the machine is off. http_only: images are fetched by http only, and the
    request names the protocol. again_while_on: the boot device is set again when the machine is on, and it is restarted.
    """

    busy_seconds: float = 60.0
    power_seconds: float = 120.0
    media_while_off: bool = False
    http_only: bool = False
    again_while_on: bool = False


class Quirk(NamedTuple):
    """meaning: what such a BMC does; remedy: what agentlab does then; changes: of `Behavior`."""

    meaning: str
    remedy: str
    changes: dict[str, Any]


QUIRKS: dict[str, Quirk] = {
    "eject_refused_while_on": Quirk(
        "It refuses to insert and to eject media while the machine is on.",
        "Media are changed only while the machine is off; `boot.eject` must be `never`.",
        {"media_while_off": True},
    ),
    "slow_post": Quirk(
        "It answers 503 for minutes while the machine starts.",
        "A request is repeated, and a power state is waited for, up to 15 minutes.",
        {"busy_seconds": 900.0, "power_seconds": 900.0},
    ),
    "http_only": Quirk(
        "It fetches images over HTTP only, and requires the protocol in the request.",
        "The request has `TransferProtocolType: HTTP`; an image with another URL scheme is refused beforehand.",
        {"http_only": True},
    ),
    "boot_override_lost": Quirk(
        "It discards the boot device when the machine is switched on.",
        "The boot device is set again while the machine is on, and the machine is restarted.",
        {"again_while_on": True},
    ),
}
"""The quirks. Sources: what Ironic's sushy handles for iDRAC, iLO, Supermicro and Lenovo, and reports of their users."""


def behavior(names: Collection[str] = ()) -> Behavior:
    """Return how a BMC with these quirks is driven. Raises `LabError` for an unknown one."""
    changes: dict[str, Any] = {}
    for name in names:
        if name not in QUIRKS:
            raise LabError(f"BMC quirk {name!r} is unknown: known are {', '.join(QUIRKS)}")
        changes |= QUIRKS[name].changes
    return Behavior(**changes)
