"""Checks of a profile with several hypervisors: what each must have, where machines fit, and what such a lab cannot do. See `checks`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from ..addresses import family
from . import boot_modes, hypervisors, links
from .build import machine, node_names
from .faults import KINDS
from .modes import modes_where
from .options import Profile
from .problems import Finding, Path, duplicates

_MOST = 16
"""Further hypervisors: the links between sandboxes are numbered in one byte, and each has an address in every network."""
_MODES = modes_where(lambda mode: mode.bmc and mode.configured)
_RESERVED = (hypervisors.FIRST, "observer", "localhost")
"""Names that the inventory has, or Ansible."""


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with the further hypervisors themselves."""
    given, first = profile["hypervisors"], profile["hypervisor"]
    if not given:
        for field in ("address", "memory_mib"):
            if first.get(field):
                yield ("hypervisor", field), first[field], "requires `hypervisors`: it is about several"
        return
    if len(given) > _MOST:
        yield ("hypervisors",), None, f"must be at most {_MOST}, not {len(given)}"
    for index, one in enumerate(given):
        place: Path = ("hypervisors", index)
        kind = one.get("kind", "sandbox")
        if one["name"] in _RESERVED:
            yield (*place, "name"), one["name"], f"must not be one of {', '.join(_RESERVED)}"
        yield from _reached(place, kind, one)
        if kind == "sandbox" and first["kind"] != "sandbox":
            yield (
                (*place, "kind"),
                kind,
                f"requires `hypervisor: {{kind: sandbox}}`, not {first['kind']}: sandboxes are joined on this host",
            )
        if kind == "local" and first["kind"] != "ssh":
            yield (*place, "kind"), kind, "is the host of the first hypervisor: must be sandbox or ssh"
    yield from duplicates((("hypervisors", index, "name"), one["name"]) for index, one in enumerate(given))
    yield from duplicates(_places(profile, "host"))
    yield from duplicates(_places(profile, "address"))
    yield from _ends(profile)


def _reached(place: Path, kind: str, one: Mapping[str, Any]) -> Iterator[Finding]:
    if kind == "ssh" and not one.get("host"):
        yield (*place, "host"), None, "a hypervisor of `kind: ssh` requires its name or address"
    for field in ("host", "user"):
        if kind != "ssh" and one.get(field):
            yield (*place, field), one[field], f"requires `kind: ssh`, not {kind}"


def _places(profile: Profile, field: str) -> Iterator[tuple[Path, str]]:
    if value := profile["hypervisor"].get(field):
        yield ("hypervisor", field), _one_spelling(str(value))
    for index, one in enumerate(profile["hypervisors"]):
        if value := one.get(field):
            yield ("hypervisors", index, field), _one_spelling(str(value))


def _one_spelling(host: str) -> str:
    """Return the name or address of a host in the spelling that all that mean the same have."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower()


def _ends(profile: Profile) -> Iterator[Finding]:
    """Yield the ends of VXLANs that lack an address, or have one of another family."""
    first, given = profile["hypervisor"].get("address"), profile["hypervisors"]
    apart = [index for index, one in enumerate(given) if one.get("kind", "sandbox") != "sandbox"]
    if apart and not first:
        name = given[apart[0]]["name"]
        yield (
            ("hypervisor", "address"),
            None,
            f"is missing: it is the end of the VXLAN to {name}, on the host of the first",
        )
    if first and not apart:
        yield ("hypervisor", "address"), first, "is not needed: all hypervisors are sandboxes of this host; remove it"
    for index, one in enumerate(given):
        place: Path = ("hypervisors", index, "address")
        address = one.get("address")
        if index not in apart:
            if address:
                yield place, address, "is not needed by a sandbox of this host; remove it"
        elif not address:
            yield place, None, "is missing: it is the end of the VXLAN from the first hypervisor"
        elif first and family(address) != family(first):
            yield place, address, f"must be of the family of hypervisor.address, {family(first)}"


def check_placement(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield the machines without a hypervisor, or do not fit on theirs."""
    known = list(hypervisors.memory_of(profile))
    unknown = False
    for name, node in profile["nodes"].items():
        wanted = node.get("hypervisor")
        if wanted is None:
            continue
        place: Path = ("nodes", name, "hypervisor")
        if wanted not in known:
            unknown = True
            yield place, wanted, f"must be one of {', '.join(known)}"
        elif node.get("bare_metal"):
            yield place, wanted, "is a value of a VM, and this is an existing machine; remove it"
    memory = hypervisors.memory_of(profile)
    lacking = [name for name, size in memory.items() if size is None]
    if unknown or not profile["hypervisors"] or len(lacking) == len(memory):
        return
    fields: dict[str, Path] = {hypervisors.FIRST: ("hypervisor", "memory_mib")}
    fields |= {one["name"]: ("hypervisors", index, "memory_mib") for index, one in enumerate(profile["hypervisors"])}
    for name in lacking:
        yield fields[name], None, "is missing: give it for all hypervisors, or for none"
    if lacking:
        return
    placed, sizes = placement(profile), {name: size for name, size, __ in machines(profile)}
    for name, has in memory.items():
        there = [node for node, where in placed.items() if where == name]
        need = sum(sizes[node] for node in there)
        if need > (has or 0):
            remedy = f"{', '.join(there)} need {need} MiB: give it more, use smaller machines, or place them by nodes.NAME.hypervisor"
            yield fields[name], has, remedy


def machines(profile: Profile) -> list[tuple[str, int, str | None]]:
    """Return name, memory in MiB and the named hypervisor of each VM of a complete profile, in the order of the nodes."""
    found = ((name, machine(profile, name, role)) for name, role, __ in node_names(profile))
    return [(name, one["memory_mib"], one.get("hypervisor")) for name, one in found if not one.get("bare_metal")]


def placement(profile: Profile) -> dict[str, str]:
    """Return on which hypervisor each VM of a complete profile is, by their names."""
    return hypervisors.place(machines(profile), hypervisors.memory_of(profile))


def check_lab(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what a lab cannot do with machines on further hypervisors."""
    if not profile["hypervisors"]:
        return
    known = hypervisors.memory_of(profile)
    if any(node.get("hypervisor", hypervisors.FIRST) not in known for node in profile["nodes"].values()):
        return
    of = "with several hypervisors"
    mode, eject = boot_modes.boot_mode(profile), profile["boot"]["eject"]
    if mode not in _MODES:
        yield ("boot", "mode"), mode, f"must be one of {', '.join(_MODES)} {of}: their machines are booted by BMCs"
    if eject == "on_rebooting":
        yield ("boot", "eject"), eject, f"must be never or after {of}: only libvirt ejects at that stage"
    if links.any_switched(profile):
        yield (
            ("hypervisors",),
            None,
            "requires a profile without bonds and VLANs, which end at the switch of one sandbox",
        )
    placed = placement(profile)
    for name, node in profile["nodes"].items():
        if node.get("day2"):
            yield ("nodes", name, "day2"), True, f"is not supported {of}: must be one of the installation"
    for name, role, __ in node_names(profile):
        if placed.get(name, hypervisors.FIRST) != hypervisors.FIRST and machine(profile, name, role)["screen_steps"]:
            yield ("nodes", name, "screen_steps"), None, f"requires `hypervisor: {hypervisors.FIRST}` for {name}"
    for index, fault in enumerate(profile["faults"]):
        kind, where = fault["kind"], placed.get(str(fault.get("node")), hypervisors.FIRST)
        if where != hypervisors.FIRST and not KINDS[kind].in_plan:
            remedy = f"is on hypervisor {where}, where the lab cannot do {kind}: choose a node of the first, or place it there"
            yield ("faults", index, "node"), fault["node"], remedy
