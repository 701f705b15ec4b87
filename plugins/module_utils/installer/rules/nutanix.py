"""Rules for `platform.nutanix`: Prism Central, Prism Element and subnets."""

from __future__ import annotations

from .. import check
from ..errors import FieldErrors
from ..models import Section


def check_nutanix(section: Section, errors: FieldErrors) -> None:
    """Check the Prism Central, the one Prism Element, the subnets and the timeout."""
    path = "platform.nutanix"
    central = section.get("prismCentral") or {}
    at = f"{path}.prismCentral"
    _address(f"{at}.endpoint.address", central.get("endpoint") or {}, "Prism Central", "", errors)
    port = (central.get("endpoint") or {}).get("port", 0)
    if not 1 <= port <= 65535:
        errors.invalid(
            f"{at}.endpoint.port",
            port,
            "The Prism Central endpoint port is invalid, must be in the range of 1 to 65535",
        )
    for field in ("username", "password"):
        if not central.get(field):
            errors.required(f"{at}.{field}", f"must specify the Prism Central {field}")
    elements = section.get("prismElements") or []
    if len(elements) != 1:
        errors.required(f"{path}.prismElements", "must specify one Prism Element")
    for element in elements:
        at = f"{path}.prismElements"
        if not element.get("uuid"):
            errors.required(f"{at}.uuid", "must specify the Prism Element UUID")
        endpoint = element.get("endpoint") or {}
        _address(f"{at}.endpoint.address", endpoint, "Prism Element", " (cluster)", errors)
        if not 1 <= endpoint.get("port", 0) <= 65535:
            errors.required(
                f"{at}.endpoint.port", "The Prism Element endpoint port is invalid, must be in the range of 1 to 65535"
            )
    subnets = section.get("subnetUUIDs") or []
    if not subnets or not subnets[0]:
        errors.required(f"{path}.subnetUUIDs", "must specify at least one subnet")
    elif len(subnets) > 32:
        errors.too_many(f"{path}.subnetUUIDs", len(subnets), 32)
    else:
        for index, subnet in enumerate(subnets):
            if subnet in subnets[:index]:
                errors.invalid(f"{path}.subnetUUIDs", subnet, "should not configure duplicate value")
    timeout = section.get("prismAPICallTimeout")
    if timeout is not None and timeout <= 0:
        errors.invalid(f"{path}.prismAPICallTimeout", timeout, "must be a positive integer value")


def _address(path: str, endpoint: Section, what: str, more: str, errors: FieldErrors) -> None:
    address = endpoint.get("address", "")
    if not address:
        errors.required(path, f"must specify the {what} endpoint address")
    elif check.address(address) is None and check.subdomain(address):
        errors.invalid(path, address, f"must be the domain name or IP address of the {what}{more}")
