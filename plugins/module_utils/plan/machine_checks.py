"""Checks of a profile's machines: host names, disks, the disk to install to, and media. See `checks`."""

from __future__ import annotations

from collections.abc import Iterator

from . import disks, screens
from .boot_modes import boot_mode, mode_of, node_disks
from .build import machine, node_names
from .faults import EXTRA, MEDIA
from .fields import Role
from .options import Profile
from .problems import Finding, Path

_NOT_SUPPORTED = {
    "wwn_with_extension": "WWN extensions are not supported in root device hints",
    "wwn_vendor_extension": "WWN vendor extensions are not supported in root device hints",
}


def check_names(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Refuse formats that give two nodes the same host name.

    The second role is reported, with the name that it has in common with another one.
    """
    seen: dict[str, Role] = {}
    reported = set()
    for name, role, _number in node_names(profile):
        other = seen.setdefault(name, role)
        if other != role and role not in reported:
            reported.add(role)
            of = other if role == "extra" or not profile[role].get("name_format") else role
            format_ = profile[of]["name_format"] if of != "extra" else None
            yield (of, "name_format"), format_, f"{name} is a name of role {other} and of {role}"


def check_disks(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Refuse what a disk cannot report on its bus, and serial numbers and names of two disks of a machine."""
    for path, name, role in _machines(profile):
        size = machine(profile, name, role)
        given: dict[tuple[str, str], int] = {}
        for index, disk in enumerate(size["extra_disks"]):
            place = (*_place(profile, path, name, "extra_disks"), "extra_disks", index)
            bus = disk.get("bus", size["disk_bus"])
            for key, buses in disks.REPORTED.items():
                if key in disk and bus not in buses:
                    yield (*place, key), disk[key], f"requires the bus {' or '.join(buses)}, not {bus}"
            for key in ("serial", "wwn"):
                if key in disk and given.setdefault((key, disk[key]), index) != index:
                    yield (*place, key), disk[key], "is a duplicate; remove one"


def check_hints(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Refuse hints that openshift-install refuses, in its words, and hints that match no disk of the machine."""
    for path, name, role in _machines(profile):
        size = machine(profile, name, role)
        hints = size["root_device_hints"]
        place: Path = (*_place(profile, path, name, "root_device_hints"), "root_device_hints")
        refused = [key for key in hints if key in _NOT_SUPPORTED]
        for key in refused:
            yield (*place, key), hints[key], _NOT_SUPPORTED[key]
        if refused or size.get("bare_metal"):
            continue  # the disks of an existing machine are not known
        there = node_disks(profile, size, name)
        if disks.matching_disks(there, size["root_device"], hints) == []:
            remedy = f"matches no disk of {name}, which has {'; '.join(map(disks.disk_text, there))}"
            if not hints:
                yield (*_place(profile, path, name, "root_device"), "root_device"), size["root_device"], remedy
                continue
            wanted = {**({"root_device": size["root_device"]} if size["root_device"] else {}), **hints}
            yield place, ", ".join(f"{key} {value}" for key, value in wanted.items()), remedy


def check_firmware(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Refuse secure boot without UEFI, and of programs without a signature."""
    for path, name, role in _machines(profile):
        size = machine(profile, name, role)
        if not size["secure_boot"]:
            continue
        place = (*_place(profile, path, name, "secure_boot"), "secure_boot")
        if size["firmware"] != "uefi":
            yield place, True, f"requires `firmware: uefi`, not {size['firmware']}"
        elif mode_of(profile).medium == "network":
            yield place, True, "requires a medium: the program that boots from the network, iPXE, is not signed"


def check_screens(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Refuse steps that are not valid, and those on a machine without a screen."""
    for path, name, role in _machines(profile):
        size = machine(profile, name, role)
        place = (*_place(profile, path, name, "screen_steps"), "screen_steps")
        shown = size["screen"] or mode_of(profile).dialog
        yield from screens.findings(size["screen_steps"], place, screen=shown)


def check_boot(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Refuse to eject what a boot mode does not insert, and what cannot be ejected."""
    mode, kind, eject = boot_mode(profile), mode_of(profile), profile["boot"]["eject"]
    if not kind.removable and eject != "never":
        yield ("boot", "eject"), eject, f"boot mode {mode} has no medium; must be `never`"
    if kind.medium == "usb" and eject == "on_rebooting":
        yield ("boot", "eject"), eject, "requires a CD: a USB stick is removed after the installation, or never"
    for index, fault in enumerate(profile["faults"]):
        if fault["kind"] in MEDIA and not kind.removable:
            yield ("faults", index, "kind"), fault["kind"], f"requires a medium: boot mode {mode} has none"
        if fault["kind"] == "eject" and kind.medium == "usb":
            yield ("faults", index, "kind"), "eject", f"requires a CD: boot mode {mode} has none"


def _machines(profile: Profile) -> Iterator[tuple[Path, str, Role]]:
    """Yield where its values are in the profile, name and role of one machine for each place: a role's first, and those with values of their own."""
    seen: set[Path] = set()
    for name, role, _number in node_names(profile):
        path: Path = ("nodes", name) if profile["nodes"].get(name) else (role,)
        if role != EXTRA and path not in seen:
            seen.add(path)
            yield path, name, role


def _place(profile: Profile, path: Path, name: str, field: str) -> Path:
    """Return where the value of a field is: of the node, or of its role."""
    if path[0] == "nodes" and field not in profile["nodes"][name]:
        return next((role,) for other, role, _number in node_names(profile) if other == name)
    return path
