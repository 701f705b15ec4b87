"""How the machines of a profile boot, and from which files and disks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..vocabulary import boot_file
from .disks import disks
from .machine_options import DiskOptions
from .machines import Disk
from .model import Boot
from .modes import MODES, Mode
from .options import Profile


def boot_mode(profile: Profile) -> str:
    """Return how the machines boot: the installer's image for platform external is a minimal one, which virtual media need the rest of."""
    mode = profile["boot"]["mode"]
    return "minimal" if mode == "redfish" and profile["platform"] == "external" else mode


def mode_of(profile: Profile) -> Mode:
    """Return what follows from how the machines boot."""
    return MODES[boot_mode(profile)]


def boot(profile: Profile, url: str) -> Boot:
    """Return how the machines boot, and from which files; url: of the lab's file server."""
    script = boot_file("agent", profile["arch"], ".ipxe")
    made: Boot = {
        "mode": boot_mode(profile),
        "image": boot_file("agent", profile["arch"], ".iso"),
        "script": script,
        "script_url": f"{url}/{script}",
    }
    if profile["boot"]["eject"] != "never":
        made["eject"] = profile["boot"]["eject"]
    return made


def node_disks(profile: Profile, size: Mapping[str, Any], domain: str) -> list[Disk]:
    """Return the disks of a node whose libvirt domain is `domain`; size: its complete options.

    The first is a LUN where machines boot from one, over as many paths as the profile has.
    """
    lun = mode_of(profile).medium == "lun"
    sizes: list[DiskOptions] = [{"size_gib": size["disk_gib"]}, *size["extra_disks"]]
    return disks(domain, sizes, "iscsi" if lun else size["disk_bus"], profile["boot"]["paths"] if lun else 1)
