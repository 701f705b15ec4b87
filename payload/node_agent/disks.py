"""Disks of the host from sysfs, udev's database and the mount table, as the model `disk` of the inventory."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from . import fields, host

# Name prefix -> (drive type, storage controller), as in the ghw library; others are unknown.
PREFIXES = (("fd", "FDD", "unknown"), ("sd", "HDD", "SCSI"), ("hd", "HDD", "IDE"), ("vd", "HDD", "virtio"),
            ("xvd", "HDD", "SCSI"), ("sr", "ODD", "SCSI"), ("nvme", "SSD", "NVMe"), ("mmc", "SSD", "MMC"))  # fmt: skip
IGNORED = ("loop", "zram", "ram")
APPLIANCE = "agent"


class Disk:
    """One entry of /sys/block. `root` is the parent of /sys, /run, /dev and /proc."""

    def __init__(self, root: Path, name: str, mounted: dict[str, str]) -> None:
        self.root, self.name, self._mounted = root, name, mounted
        self.sys = root / "sys/block" / name
        self.udev = properties(root, host.read(self.sys / "dev"))
        self.path = f"/dev/{name}"
        self.bus_path = self.udev.get("ID_PATH", "")
        self.dm_uuid = host.read(self.sys / "dm/uuid")
        kind = next(((kind, bus) for prefix, kind, bus in PREFIXES if name.startswith(prefix)), ("Unknown", "unknown"))
        self._kind, self._controller = kind

    @property
    def listed(self) -> bool:
        """Return whether it is a disk: hidden, loop, zram and plain device-mapper devices are not."""
        if host.read(self.sys / "hidden") == "1" or self.name.startswith(IGNORED):
            return False
        return not self.name.startswith("dm-") or self.dm_uuid.startswith(("mpath-", "LVM-"))

    @property
    def drive_type(self) -> str:
        if self.name.startswith("dasd"):
            return self._dasd_type()
        if "-iscsi-" in self.bus_path:
            return "iSCSI"
        if "-fc-" in self.bus_path or self.bus_path.startswith("fc-"):
            return "FC"
        for prefix, kind in (("mpath-", "Multipath"), ("LVM-", "LVM")):
            if self.dm_uuid.startswith(prefix):
                return kind
        if self.name.startswith("md"):
            return "RAID"
        if self._kind == "HDD" and host.read(self.sys / "queue/rotational") == "0":
            return "SSD"
        return self._kind

    def _dasd_type(self) -> str:
        channel = self.sys.resolve().parent.parent
        discipline = host.read(channel / "discipline")
        if discipline == "ECKD":
            return "ECKD (ESE)" if host.read(channel / "ese") == "1" else "ECKD"
        return "FBA" if discipline == "FBA" else "Unknown"

    @property
    def wwn(self) -> str:
        return next((self.udev[key] for key in ("ID_WWN_WITH_EXTENSION", "ID_WWN", "DM_WWN") if self.udev.get(key)), "")

    @property
    def serial(self) -> str:
        keys = ("SCSI_IDENT_SERIAL", "ID_SCSI_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL")
        return next((self.udev[key] for key in keys if self.udev.get(key)), "") or host.read(self.sys / "serial")

    def by_id(self) -> str:
        """Return the stable link with the WWN; other links by id have names that may change."""
        folder = self.root / "dev/disk/by-id"
        for link in host.names(folder):
            if link.startswith(("wwn-", "nvme-eui")) and Path(os.path.realpath(folder / link)).name == self.name:
                return f"/dev/disk/by-id/{link}"
        return ""

    def by_path(self) -> str:
        path = f"dev/disk/by-path/{self.bus_path}"
        return f"/{path}" if self.bus_path and (self.root / path).exists() else ""

    def partitions(self) -> list[str]:
        return [
            name for name in host.names(self.sys) if name.startswith(self.name) and (self.sys / name / "dev").exists()
        ]

    def eligibility(self) -> tuple[list[str], bool]:
        """Return why the disk is not eligible for installation, and whether it is the boot medium."""
        reasons: list[str] = []
        known = (
            self._controller != "unknown"
            or self.name.startswith("dasd")
            or self.drive_type in ("Multipath", "LVM", "RAID")
        )
        if not known:
            reasons.append("Disk has unknown storage controller")
        if self.drive_type == "LVM":
            reasons.append("Disk is an LVM logical volume")
        if self.drive_type == "iSCSI":
            if host.read(self.sys / "device/state") != "running":
                reasons.append("iSCSI disk is not in running state")
            reasons += self._not_in_firmware()
        parts = self.partitions()
        for part in parts:
            numbers = host.read(self.sys / part / "dev")
            labels = properties(self.root, numbers)
            if any(labels.get(key, "").startswith(APPLIANCE) for key in ("ID_PART_ENTRY_NAME", "ID_FS_LABEL")):
                return reasons, False
        media = False
        for part in [*parts, self.name]:
            target = self._mounted.get(f"/dev/{part}", "")
            if target.endswith("iso"):
                reasons.append(
                    "Disk appears to be an ISO installation media (has partition with mountpoint suffix iso)"
                )
                media = True
            elif target and not media:
                reasons.append(f"Disk has partition '{part}' mounted on '{target}'")
        return reasons, media or self._kind == "ODD"

    def bootable(self) -> bool:
        """Return whether the first sector ends with the signature of a boot sector."""
        try:
            with open(self.root / self.path.lstrip("/"), "rb") as device:
                return device.read(512)[510:] == b"\x55\xaa"
        except OSError:
            return False

    def inventory(self, shared_bus_path: bool) -> dict[str, Any]:
        reasons, media = self.eligibility()
        by_id, by_path = self.by_id(), "" if shared_bus_path else self.by_path()
        entry: dict[str, Any] = {
            "id": by_id or by_path or self.path,
            "name": self.name,
            "path": self.path,
            "by_id": by_id,
            "by_path": by_path,
            "drive_type": self.drive_type,
            "size_bytes": int(size) * 512 if (size := host.read(self.sys / "size")).isdigit() else 0,
            "model": self.udev.get("ID_MODEL") or host.read(self.sys / "device/model"),
            "vendor": host.read(self.sys / "device/vendor") or self.udev.get("ID_VENDOR", ""),
            "serial": self.serial,
            "wwn": self.wwn or by_id.removeprefix("/dev/disk/by-id/wwn-"),
            "hctl": next(iter(host.names(self.sys / "device/scsi_device")), ""),
            "removable": host.read(self.sys / "removable") == "1",
            "bootable": self.bootable(),
            "is_installation_media": media,
            "smart": "",
            # The kernel caches the page that `sg_inq -p 0x83` requests from the disk.
            "has_uuid": (self.sys / "device/vpd_pg83").exists(),
            "holders": ",".join(host.names(self.sys / "holders")),
            "installation_eligibility": {"eligible": not reasons, "not_eligible_reasons": reasons or None},
        }
        if self.drive_type == "iSCSI":
            entry["iscsi"] = {"host_ip_address": self._iscsi_address()}
        return entry

    def _path_part(self, prefix: str) -> str:
        """Return the part of the device's path in /sys with a prefix, such as host2 and session1 of an iSCSI disk."""
        return next(
            (part for part in self.sys.resolve().parts if part.startswith(prefix) and part[len(prefix) :].isdigit()), ""
        )

    def _not_in_firmware(self) -> list[str]:
        """Return why the firmware could not find the iSCSI disk: its table (iBFT) must have the target."""
        if not (session := self._path_part("session")):
            return ["Cannot find iSCSI session"]
        if not (name := host.read(self.root / "sys/class/iscsi_session" / session / "targetname")):
            return ["Cannot find iSCSI target name"]
        table = self.root / "sys/firmware/ibft"
        if not table.is_dir():
            return ["iBFT firmware is missing"]
        named = {host.read(table / entry / "target-name") for entry in host.names(table) if "target" in entry}
        return [] if name in named else ["iSCSI disk is missing from iBFT"]

    def _iscsi_address(self) -> str:
        adapter = self._path_part("host")
        return host.read(self.root / "sys/class/iscsi_host" / adapter / "ipaddress") if adapter else ""


def properties(root: Path, numbers: str) -> dict[str, str]:
    """udev's properties of the block device `major:minor`."""
    found = {}
    for line in host.read(root / "run/udev/data" / f"b{numbers}").splitlines():
        if line.startswith("E:"):
            key, __, value = line[2:].partition("=")
            found[key] = value
    return found


def paths(root: Path = Path("/")) -> set[str]:
    """Device paths of all disks, as /dev/sda."""
    return {disk.path for name in host.names(root / "sys/block") if (disk := Disk(root, name, {})).listed}


def known_disk(value: object) -> str:
    """Return the real path of a disk of this host, from a step's argument: a device, or any link to it below /dev.

    Raises `ValueError` for everything else, such as a partition, a character device or a path that leaves /dev.
    """
    path = fields.text("disk", value)
    if not path.startswith("/dev/") or ".." in path.split("/"):
        raise ValueError(f"disk {path} should start with /dev/ and not leave it")
    real = os.path.realpath(path)
    try:
        mode = os.stat(real).st_mode
    except OSError:
        raise ValueError(f"disk {path} was not found on the host") from None
    if not stat.S_ISBLK(mode) or real not in paths():
        raise ValueError(f"disk {path} is not in this host's inventory")
    return real


def disks(root: Path = Path("/"), min_bytes: int = 0) -> list[dict[str, Any]]:
    """All disks, sorted by name; `min_bytes` leaves out smaller ones."""
    mounted: dict[str, str] = {}
    for mount in host.mounts(root):
        mounted.setdefault(mount.source, mount.target)
    found = [Disk(root, name, mounted) for name in host.names(root / "sys/block")]
    paths = [disk.bus_path for disk in found]
    rows = [disk.inventory(paths.count(disk.bus_path) > 1) for disk in found if disk.listed]
    return [row for row in rows if row["size_bytes"] >= min_bytes]
