"""Types of requests and of agents' reports: the definitions of `data/swagger.yaml`."""

from __future__ import annotations

from . import data
from .json_text import parse_json, read_json
from .schema import UUID, Invalid, Models

__all__ = ["DOCUMENT", "MODELS", "STEP_OUTPUTS", "UUID", "Invalid", "parse_json", "read_json"]

#: The description of the API that the service serves.
DOCUMENT = data.read("swagger").value
MODELS = Models(DOCUMENT["definitions"])

#: Output of a step -> its definition; types that are not here have no output the service keeps.
STEP_OUTPUTS: dict[str, str] = {
    "inventory": "inventory",
    "connectivity-check": "connectivity-report",
    "free-network-addresses": "free-network-addresses",
    "verify-vips": "verified-vips",
    "ntp-synchronizer": "ntp-response",
    "domain-resolution": "domain-resolution",
    "dhcp-lease-allocate": "dhcp-response",
    "installation-disk-speed-check": "disk-speed-response",
    "container-image-availability": "image-availability",
    "tang-connectivity-check": "tang-response",
    "api-vip-connectivity-check": "api-vip-response",
    "upgrade-agent": "upgrade-agent-response",
}
