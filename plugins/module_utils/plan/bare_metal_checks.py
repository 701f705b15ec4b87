"""Checks of existing machines: what a profile must give of them, and what a lab cannot do with them. See `checks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..bmc import kinds
from . import boot_modes, inventory, links
from .build import node_names, node_roles
from .faults import KINDS
from .modes import modes_where
from .options import Profile
from .problems import Finding, Path, duplicates

_MODES = modes_where(lambda mode: mode.configured and (mode.bmc or not mode.boots))
_OF_VMS = (
    "vcpus",
    "memory_mib",
    "disk_gib",
    "disk_bus",
    "extra_disks",
    "uuid",
    "tpm",
    "secure_boot",
    "screen",
    "screen_steps",
)
"""What only a VM can be given."""
_IN_MACHINE = ("clock", "boot_order")
"""Faults of the plan that are values of a VM."""


def names(profile: Profile) -> list[str]:
    """Return the names of the nodes that are existing machines, in the order of the nodes."""
    return [found[0] for found in node_names(profile) if profile["nodes"].get(found[0], {}).get("bare_metal")]


def check_inventory(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with the file that `machines_from` names."""
    if name := profile["machines_from"]:
        for problem in inventory.problems(profile):
            yield ("machines_from",), name, problem


def check_machines(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what existing machines lack, and what they cannot be given."""
    manual = boot_modes.boot_mode(profile) == "manual"
    roles = node_roles(profile)
    addresses: list[tuple[Path, str]] = []
    for name, node in profile["nodes"].items():
        place: Path = ("nodes", name)
        bmc: dict[str, Any] = {**node.get("bmc", {})}
        if not node.get("bare_metal"):
            for field in ("verify_ca", "ca_file", "quirks"):
                if field in bmc:
                    yield (*place, "bmc", field), bmc[field], "requires `bare_metal: true`: BMCs of VMs are the lab's"
            continue
        for nic in links.nics(profile, roles.get(name, "master")):
            if not node.get("nics", {}).get(nic, {}).get("mac"):
                yield (*place, "nics", nic, "mac"), None, "is missing: an existing machine has a MAC of its own"
        for field in () if manual else ("address", "username", "password"):
            if not bmc.get(field):
                yield (
                    (*place, "bmc", field),
                    None,
                    "is missing: an existing machine is booted by its BMC, unless `boot.mode` is manual",
                )
        for field in _OF_VMS:
            if field in node:
                yield (*place, field), None, "is a value of a VM, which an existing machine has already; remove it"
        if address := bmc.get("address"):
            addresses.append(((*place, "bmc", "address"), address))
            if kinds.of_address(address) is None:
                forms = " or ".join(kind.addresses() for kind in kinds.KINDS.values())
                yield (*place, "bmc", "address"), address, f"must be {forms}"
        if bmc.get("ca_file") and bmc.get("verify_ca") is False:
            yield (*place, "bmc", "ca_file"), bmc["ca_file"], "contradicts `verify_ca: false`; remove one"
        if bmc.get("quirks") and "eject_refused_while_on" in bmc["quirks"] and profile["boot"]["eject"] != "never":
            remedy = f"contradicts the quirk eject_refused_while_on of {name}: must be never"
            yield ("boot", "eject"), profile["boot"]["eject"], remedy
    yield from duplicates(iter(addresses))


def check_lab(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what a lab cannot do with existing machines, whatever these are."""
    existing = names(profile)
    if not existing:
        return
    of = f"with existing machines ({', '.join(existing)})"
    mode, eject = boot_modes.boot_mode(profile), profile["boot"]["eject"]
    if mode not in _MODES:
        yield ("boot", "mode"), mode, f"must be one of {', '.join(_MODES)} {of}"
    if eject == "on_rebooting":
        yield ("boot", "eject"), eject, f"must be never or after {of}: only libvirt ejects at that stage"
    if links.any_switched(profile):
        yield (
            ("nodes", existing[0], "bare_metal"),
            True,
            "requires a profile without bonds and VLANs, which end at the lab's switch",
        )
    for index, fault in enumerate(profile["faults"]):
        kind = fault["kind"]
        if fault.get("node") in existing and (kind in _IN_MACHINE or not KINDS[kind].in_plan):
            yield ("faults", index, "node"), fault["node"], f"is an existing machine, to which the lab cannot do {kind}"
