"""Addresses of BMCs with Redfish, as install-config has them."""

from __future__ import annotations

import urllib.parse
from typing import NamedTuple

from ...addresses import in_url
from ...errors import LabError

TRANSPORTS = ("http", "https")
SCHEMES = ("redfish", "redfish-virtualmedia", "idrac-virtualmedia", *TRANSPORTS)
EXAMPLE = "redfish-virtualmedia+https://host/redfish/v1/Systems/1"


class Address(NamedTuple):
    """Where a BMC is: `root` URL of the service, `system` path of the machine (None: the only one).

    `root` has no path. `system` is without a slash at its end.
    """

    root: str
    system: str | None


def parse(address: str) -> Address:
    """Take apart a BMC address as install-config has it, `redfish-virtualmedia+https://host:port/redfish/v1/Systems/1`.

    The scheme is one of the kind with a transport, `+http` or `+https` (https when not given), or plain `http`, `https`.
    Raises `LabError`.
    """
    scheme, separator, rest = address.partition("://")
    driver, __, transport = scheme.rpartition("+")
    if not driver and transport in SCHEMES and transport not in TRANSPORTS:
        transport = "https"
    if transport not in TRANSPORTS:
        raise LabError(f"BMC address {address}: transport {transport!r} is neither http nor https: {EXAMPLE}")
    parts = urllib.parse.urlsplit(f"{transport}://{rest}")
    if not separator or not parts.hostname:
        raise LabError(f"BMC address {address}: it has no host: {EXAMPLE}")
    return Address(f"{transport}://{parts.netloc}", parts.path.rstrip("/") or None)


def systems_url(address: str, port: int) -> str:
    """Return the URL of the systems of the lab's BMCs, each of which is below it by its UUID."""
    return f"https://{in_url(address)}:{port}/redfish/v1/Systems"
