"""The kinds of BMCs, a row each, and which of them an address or a driver belongs to."""

from __future__ import annotations

from . import redfish
from .kind import Kind

KINDS: dict[str, Kind] = {"redfish": redfish.KIND}
"""The kinds. An inventory's machine without a driver is of the first one."""


def of_address(address: str) -> Kind | None:
    """Return the kind of the BMC at `address`, by its scheme; None if it is unknown."""
    name = scheme(address)
    return next((kind for kind in KINDS.values() if name in kind.schemes), None)


def of_driver(driver: object) -> Kind | None:
    """Return the kind that Ironic drives by `driver`; None if it is unknown."""
    return next((kind for kind in KINDS.values() if driver in kind.drivers), None)


def default() -> Kind:
    """Return the kind of a BMC of which nothing else is known."""
    return next(iter(KINDS.values()))


def scheme(address: str) -> str:
    """Return the scheme of an address without its transport: `redfish` of `redfish+https://host/`."""
    return address.partition("://")[0].partition("+")[0]


def schemes() -> list[str]:
    """Return the schemes of all kinds."""
    return [name for kind in KINDS.values() for name in kind.schemes]


def drivers() -> list[str]:
    """Return Ironic's drivers of all kinds."""
    return [name for kind in KINDS.values() for name in kind.drivers]
