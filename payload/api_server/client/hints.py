"""Root device hints: which of a host's disks they match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..hardware import Disk

#: Value of the installation disk when no disk matches, so that the host fails visibly instead of using a wrong disk.
NOT_FOUND = "/dev/not-found-by-hints"


def _text(key: str) -> Callable[[Disk, Any], bool]:
    return lambda disk, hint: str(hint) == str(disk.get(key, ""))


def _part(key: str) -> Callable[[Disk, Any], bool]:
    return lambda disk, hint: str(hint) in str(disk.get(key, ""))


def _device(disk: Disk, hint: Any) -> bool:
    return str(hint) in (disk.get("path"), disk.get("by_path"), disk.get("by_id"), f"/dev/{disk.get('name', '')}")


def _rotational(disk: Disk, hint: Any) -> bool:
    return bool(hint) == (disk.get("drive_type") == "HDD")


#: Hint -> test of a disk. `minSizeGigabytes` counts 10^9 bytes.
TESTS: dict[str, Callable[[Disk, Any], bool]] = {
    "deviceName": _device,
    "hctl": _text("hctl"),
    "model": _part("model"),
    "vendor": _part("vendor"),
    "serialNumber": _text("serial"),
    "minSizeGigabytes": lambda disk, hint: int(disk.get("size_bytes", 0)) >= int(hint) * 10**9,
    "wwn": _text("wwn"),
    "wwnWithExtension": _text("wwn"),
    "wwnVendorExtension": lambda disk, hint: str(disk.get("wwn", "")).endswith(str(hint)),
    "rotational": _rotational,
}


def disks_accepted(disks: Sequence[Disk], hints: Mapping[str, Any]) -> list[Disk]:
    """Return the eligible disks that match every hint. ValueError names an unknown hint.

    The order is that of `disks`; without hints all match. Hints are those of the install-config's `rootDeviceHints`;
    null and empty ones are ignored. A path of a multipath device has its WWN and serial number, and is not eligible.
    """
    unknown = [name for name in hints if name not in TESTS]
    if unknown:
        raise ValueError(f"root device hint {unknown[0]!r} is not known: {', '.join(TESTS)}")
    return [
        disk
        for disk in disks
        if disk.get("installation_eligibility", {}).get("eligible")
        and all(TESTS[name](disk, value) for name, value in hints.items() if value not in (None, ""))
    ]
