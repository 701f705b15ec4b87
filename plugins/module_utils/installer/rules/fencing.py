"""Rules for the fencing credentials of a control plane of two nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...releases import ReleaseProfile
from .. import check
from ..errors import FieldErrors, quote
from ..models import InstallConfig, Section


def check_fencing(
    config: InstallConfig, profile: ReleaseProfile, counts: dict[str, int], platform: str, errors: FieldErrors
) -> None:
    """Check the credentials for fencing: two nodes have two of them, other clusters none.

    counts: replicas by role; platform: its name. The texts are upstream's; problems are added to `errors`.
    """
    path = "controlPlane.fencing"
    fencing = config["controlPlane"].get("fencing")
    credentials = (fencing or {}).get("credentials") or []
    if fencing is not None:
        seen: dict[str, set[str]] = {"hostName": set(), "macAddress": set(), "address": set()}
        for index, entry in enumerate(credentials):
            _credential(f"{path}.credentials[{index}]", entry, seen, errors)
        if platform not in ("baremetal", "external", "none"):
            errors.forbidden(
                path,
                f"fencing is only supported on baremetal, external or none platforms, instead {platform} platform was found",
            )
    if counts["arbiter"] or not profile.arbiter:
        return
    if counts["master"] == 2 and len(credentials) != 2:
        errors.forbidden(
            f"{path}.credentials",
            "there should be exactly two fencing credentials to support the two node cluster, instead "
            f"{len(credentials)} credentials were found",
        )
    if counts["master"] != 2 and credentials:
        errors.forbidden(
            f"{path}.credentials",
            "there should not be any fencing credentials configured for a non dual replica control plane (Two Nodes "
            f"Fencing) cluster, instead {len(credentials)} credentials were found",
        )


def _credential(at: str, entry: Section, seen: dict[str, set[str]], errors: FieldErrors) -> None:
    if not entry.get("hostName") and not entry.get("macAddress"):
        errors.required(at, "at least one of hostname or macaddress must be provided")
    mac = entry.get("macAddress", "")
    why = check.mac(mac) if mac else None
    if why:
        errors.invalid(f"{at}.macAddress", mac, why)
    for field in ("username", "password", "address"):
        if not entry.get(field):
            errors.required(f"{at}.{field}", f"missing {field.capitalize()}")
    for field, values in seen.items():
        value = entry.get(field, "")
        if value and value.lower() in values:
            errors.duplicate(f"{at}.{field}", value)
        values.add(value.lower())
    verification = entry.get("certificateVerification", "")
    if verification not in ("", "Enabled", "Disabled"):
        errors.invalid(
            f"{at}[CertificateVerification]", verification,
            f"invalid certificate verification; \"{verification}\" should set to one of the following: ['Enabled' "
            "(default), 'Disabled']",
        )  # fmt: skip
    address = entry.get("address", "")
    if address:
        for why in _redfish(address):
            errors.invalid(f"{at}.address", address, why)


def _redfish(address: str) -> Iterator[str]:
    """Everything that is wrong with the address of a BMC that fences."""
    if re.search(r"[\x00-\x20\x7f]", address):
        yield f"invalid URL format: parse {quote(address)}: net/url: invalid control character in URL"
        return
    if "redfish" not in address:
        yield "fencing only supports redfish-compatible BMC addresses, IPMI is not supported"
    scheme, separator, rest = address.partition("://")
    port = re.search(r":\d+$", rest.partition("/")[0])
    known = separator and any(part in scheme for part in ("http", "redfish"))
    if not port and not known:
        yield "failed to parse redfish address, no port number found"
