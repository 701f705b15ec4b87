"""BMCs with Redfish: `address` is the form of their addresses, `client` a client on top of sushy, `replies` how it reads replies."""

from __future__ import annotations

from ..kind import Connect, Kind
from .address import EXAMPLE, SCHEMES, TRANSPORTS


def _client() -> Connect:
    from .client import Bmc

    return Bmc


KIND = Kind(
    title="Redfish",
    schemes=SCHEMES,
    transports=TRANSPORTS,
    example=EXAMPLE,
    drivers=("redfish", "idrac", "idrac-redfish", "redfish-virtualmedia", "idrac-virtualmedia"),
    ca_key="redfish_verify_ca",
    client=_client,
)
