"""The disks of a machine: what they report of themselves, and which of them root device hints match."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .machine_options import Bus, DiskBus, DiskOptions
from .machines import Disk, Hints

GIB = 1024**3
MOST = 26
"""Disks of a bus: those after the 26th would have two letters."""
_TARGETS = {"scsi": "sd", "sata": "sd", "virtio": "vd", "iscsi": "sd"}
# What QEMU's disks and tgtd's LUNs report, by bus; a virtio disk has neither.
_VENDORS = {"scsi": "QEMU", "sata": "ATA", "iscsi": "IET"}
_MODELS = {"scsi": "QEMU_HARDDISK", "sata": "QEMU_HARDDISK", "iscsi": "VIRTUAL-DISK"}
HINTS = {
    "hctl": "hctl",
    "model": "model",
    "vendor": "vendor",
    "serial_number": "serialNumber",
    "min_size_gigabytes": "minSizeGigabytes",
    "wwn": "wwn",
    "rotational": "rotational",
}
"""Root device hint of a profile -> that of agent-config.yaml."""
REPORTED: Mapping[str, tuple[Bus, ...]] = {
    "vendor": ("scsi",),
    "model": ("scsi",),
    "wwn": ("scsi", "sata"),
    "rotational": ("scsi", "sata"),
}
"""What a disk can report, and the buses on which libvirt lets it."""


def disks(domain: str, given: Sequence[DiskOptions], default_bus: DiskBus = "virtio", paths: int = 1) -> list[Disk]:
    """Return the disks of a machine; each given one has a size, and may have a bus of its own.

    domain: the machine's libvirt domain, after which the volumes are named; paths: of the first disk, a LUN: with several
    it is a multipath device. The serial number is a hash of the volume's name, so it is the same at each run; targets are
    sda, vda and so on, counted for each bus.
    """
    found: list[Disk] = []
    for position, disk in enumerate(given):
        name = domain if position == 0 else f"{domain}_{position}"
        bus = disk.get("bus", default_bus)
        prefix = _TARGETS[bus]
        letter = sum(other["target"].startswith(prefix) for other in found)
        made: Disk = {
            "name": name,
            "size_gib": disk["size_gib"],
            "bus": bus,
            "target": f"{prefix}{chr(ord('a') + letter)}",
            "serial": disk.get("serial") or hashlib.sha256(name.encode()).hexdigest()[:20],
        }
        for key in ("vendor", "model", "wwn", "rotational"):
            if key in disk:
                made[key] = disk[key]
        if paths > 1 and position == 0:
            made |= {"target": "dm-0", "paths": paths}
        found.append(made)
    return found


def disk_text(disk: Disk) -> str:
    """Return a disk as messages name it: target and what hints can ask for.

    Such as `sdb (vendor AGENTLAB, model LAB-FAST, serial S-0001, 20 GiB, SSD)`.
    """
    parts = [f"{key} {_reported(disk, key)}" for key in ("vendor", "model") if _reported(disk, key)]
    parts += [f"{key} {disk.get(key)}" for key in ("serial", "wwn") if disk.get(key) and not disk.get("paths")]
    kind = "multipath" if disk.get("paths") else "SSD" if disk.get("rotational") is False else "HDD"
    parts += [f"{disk['size_gib']} GiB", kind]
    return f"{disk['target']} ({', '.join(parts)})"


def matching_disks(disks: Sequence[Disk], device: str | None, hints: Hints | None) -> list[Disk] | None:
    """Return the disks of a machine that root device hints match, in the order of `disks`.

    device: of the hint `deviceName`; None: there is none. None is returned where a plan cannot know: without any hint, and for links
    such as /dev/disk/by-path/..., whose names depend on the machine.
    """
    wanted = given_hints(hints)
    if not device and not wanted:
        return None
    if device and device not in _names(disks):
        if not device.startswith(("/dev/sd", "/dev/vd", "/dev/dm-")):
            return None
        return []
    found = [disk for disk in disks if not device or device == f"/dev/{disk['target']}"]
    return [disk for disk in found if all(_TESTS[key](disk, value, disks) for key, value in wanted.items())]


def given_hints(hints: Hints | None) -> dict[str, Any]:
    """Return the hints that a node has: those that are not null, by their names in a profile.

    `hints` is that of a plan, which may be null itself.
    """
    return {key: value for key, value in (hints or {}).items() if value is not None}


def _names(disks: Iterable[Disk]) -> set[str]:
    return {f"/dev/{disk['target']}" for disk in disks}


def _reported(disk: Disk, key: str) -> str:
    if disk.get("paths"):  # udev has neither of a multipath device, nor a serial number
        return ""
    default = {"vendor": _VENDORS, "model": _MODELS}[key].get(disk["bus"], "")
    return str(disk.get(key) or default)


def _address(disk: Disk, hint: str, disks: Sequence[Disk]) -> bool:
    """Compare channel, target and LUN; the kernel numbers the hosts. libvirt's LUNs count the disks on the bus, without the seventh."""
    if disk["bus"] != "scsi":
        return False
    number = [one["name"] for one in disks if one["bus"] == "scsi"].index(disk["name"])
    return hint.split(":")[1:] == ["0", "0", str(number + (number >= 7))]


_TESTS: dict[str, Callable[[Disk, Any, Sequence[Disk]], bool]] = {
    "hctl": _address,
    "model": lambda disk, hint, __: hint in _reported(disk, "model"),
    "vendor": lambda disk, hint, __: hint in _reported(disk, "vendor"),
    "serial_number": lambda disk, hint, __: hint == disk["serial"] and not disk.get("paths"),
    "min_size_gigabytes": lambda disk, hint, __: disk["size_gib"] * GIB >= hint * 10**9,
    # tgtd gives each LUN a WWN, which is not known before: any may be meant.
    "wwn": lambda disk, hint, __: hint == disk.get("wwn") or disk["bus"] == "iscsi",
    "rotational": lambda disk, hint, __: hint == (disk.get("rotational") is not False and not disk.get("paths")),
}
