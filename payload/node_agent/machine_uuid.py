"""The identity of a machine: the same for every boot, before anything is installed on it.

The rules are openshift/assisted-installer-agent's (src/scanners/machine_uuid_scanner.go).
"""

from __future__ import annotations

import re
from hashlib import md5
from pathlib import Path

from . import host, network

DMI = Path("/sys/class/dmi/id")
FAILURE = "deaddead-dead-dead-dead-deaddeaddead"
NO_SERIAL = {
    "", "unknown", "none", "(none)", "-", "default string", "not specified", "unspecified base board serial number",
    "unspecified system serial number", "pca_number.acc",
}  # fmt: skip
NO_UUID = {"", "unknown", "00000000-0000-0000-0000-000000000000", "03000200-0400-0500-0006-000700080009"}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def md5_uuid(text: str) -> str:
    """Return MD5 formatted as a UUID; version bits are not set."""
    digest = md5(text.encode(), usedforsecurity=False).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def choose(board_serial: str, product_uuid: str, macs: list[str]) -> str:
    """Board serial (hashed), else product UUID, else the lowest MAC (hashed), else a constant."""
    if board_serial.lower() not in NO_SERIAL:
        return md5_uuid(board_serial)
    product = product_uuid.lower()
    if UUID.fullmatch(product) and product not in NO_UUID:
        return product
    known = sorted(mac for mac in macs if mac)
    return md5_uuid(known[0]) if known else FAILURE


def machine_uuid(dmi: Path = DMI) -> str:
    return choose(host.read(dmi / "board_serial"), host.read(dmi / "product_uuid"), [nic.mac for nic in network.nics()])
