"""Checks of bonds, VLANs and MTUs of a profile; see `checks`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from .boot_modes import boot_mode, mode_of
from .faults import ON_BRIDGE
from .fields import Role
from .links import any_switched, bonds, machine_switched, network_links, networks, nics, roles, switched_links
from .modes import modes_where
from .options import Profile
from .problems import Finding, Path

# Boot modes whose images have all that they need, the networks of the hosts included.
_LOAD_NOTHING = modes_where(lambda mode: mode.folder is None and (mode.configured or mode.second is not None))


def check_links(profile: Profile, cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with bonds, VLANs and MTUs.

    Bonds, VLANs and what needs the sandbox's switch. The profile is complete; `cluster` is not used, it is there for
    `checks.Check`.
    """
    yield from _roles(profile)
    for check in (_bonds, _parents, _numbers):
        yield from _of_each_role(profile, check)
    yield from _shared(profile)
    if not any_switched(profile):
        return
    field, value, what = _first(profile)
    if profile["hypervisor"]["kind"] != "sandbox":
        kind = profile["hypervisor"]["kind"]
        yield field, value, f"{what} require `hypervisor: {{kind: sandbox}}`, whose switch knows them, not {kind}"
    mode = boot_mode(profile)
    if mode_of(profile).folder is not None and machine_switched(profile):
        remedy = f"loads files before the network is configured, and {what} are below the machine network: must be"
        if mode == profile["boot"]["mode"]:
            yield ("boot", "mode"), mode, f"{remedy} one of {', '.join(_LOAD_NOTHING)}"
        else:
            yield ("platform",), profile["platform"], f"has a minimal image, which {remedy} another one"
    for index, fault in enumerate(profile["faults"]):
        if fault["kind"] in ON_BRIDGE:
            yield ("faults", index, "kind"), fault["kind"], f"requires NICs without {what}: it acts at the bridge"


def _first(profile: Profile) -> tuple[Path, Any, str]:
    """Return the first field that needs the switch, its value, and what bonds and VLANs there are."""
    what = "bonds" if profile["bonds"] else "VLANs"
    if profile["bonds"]:
        return ("bonds",), None, what
    return next(((*path, "vlan"), network["vlan"], what) for path, network in networks(profile) if network.get("vlan"))


def _of_each_role(profile: Profile, check: Callable[[Profile, Role], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield the findings of a check of one role; one that not all roles have names those that do."""
    found: dict[str, tuple[Finding, list[Role]]] = {}
    known = roles(profile)
    for role in known:
        for finding in check(profile, role):
            found.setdefault(repr(finding), (finding, []))[1].append(role)
    for (path, value, remedy), having in found.values():
        yield path, value, remedy if having == known else f"{remedy} (role {', '.join(having)})"


def _roles(profile: Profile) -> Iterator[Finding]:
    """An extra network is of one role or more, each of which has nodes."""
    known = roles(profile)
    for path, network in networks(profile)[1:]:
        if network.get("roles") == []:
            yield (*path, "roles"), [], f"must name a role; leave it out for all of {', '.join(known)}"
        given: list[Role] = network.get("roles") or []
        for index, role in enumerate(given):
            if role not in known:
                yield (*path, "roles", index), role, f"no node has this role; there is {', '.join(known)}"
            elif role in given[:index]:
                yield (*path, "roles", index), role, "is a duplicate; remove one"


def _shared(profile: Profile) -> Iterator[Finding]:
    """A NIC or a bond that needs the switch carries one network with a VLAN id, or untagged, for all roles: it is one port there."""
    seen: dict[str, tuple[Path, Role]] = {}
    for role in roles(profile):
        for (path, network), way in zip(networks(profile, role), network_links(profile, role), strict=True):
            if way.parent not in switched_links(profile, role):
                continue
            first, other = seen.setdefault(way.name, (path, role))
            if first != path and other != role:
                field = "interface" if way.vlan is None else "vlan"
                what = f"{way.parent} untagged" if way.vlan is None else f"VLAN {way.vlan} of {way.parent}"
                yield (
                    (*path, field),
                    network.get(field),
                    f"{what} is {_text(first)} for role {other}: the switch has one network there; choose another",
                )


def _bonds(profile: Profile, role: Role) -> Iterator[Finding]:
    """A bond has two NICs or more that are nothing else's, and carries a network."""
    holders: dict[str, str] = {}
    used = {one.parent for one in network_links(profile, role)}
    own = bonds(profile, role)
    for name, bond in own.items():
        if len(bond["nics"]) < 2:
            yield ("bonds", name, "nics"), bond["nics"], "must be at least two NICs, such as [eth0, eth1]"
        for index, nic in enumerate(bond["nics"]):
            if nic in holders:
                yield ("bonds", name, "nics", index), nic, f"is already in {holders[nic]}; a NIC is in one bond, once"
            holders.setdefault(nic, name)
        if used.isdisjoint({name, *bond["nics"]}):
            yield ("bonds", name), None, f"no network is on it; set `network.interface: {name}`"
    there = nics(profile, role)
    for number in itertools.count():
        if len(there) <= number or f"eth{number}" != there[number]:
            break
    for name, bond in own.items():
        for index, nic in enumerate(bond["nics"]):
            if nic not in there[:number]:
                yield ("bonds", name, "nics", index), nic, _missing(number)
    for path, network in networks(profile, role):
        parent = network.get("interface")
        if parent in holders:
            yield (
                (*path, "interface"),
                parent,
                f"is a NIC of {holders[parent]}: must be {holders[parent]}, or another NIC",
            )
        elif parent in there and parent not in there[:number]:
            yield (*path, "interface"), parent, _missing(number)


def _missing(number: int) -> str:
    return f"there is no such NIC: NICs are numbered without a gap, and no network or bond has eth{number}"


def _parents(profile: Profile, role: Role) -> Iterator[Finding]:
    """What carries a network exists, and carries each VLAN, and one untagged network, once."""
    seen: dict[str, Path] = {}
    for (path, network), way in zip(networks(profile, role), network_links(profile, role), strict=True):
        if way.parent.startswith("bond") and way.parent not in profile["bonds"]:
            there = ", ".join(profile["bonds"]) or "none; define it in `bonds`"
            yield (*path, "interface"), way.parent, f"there is no such bond; there is {there}"
        if way.name in seen:
            first = _text(seen[way.name])
            if way.vlan is None:
                yield (*path, "interface"), network.get("interface"), f"already carries {first} untagged; set `vlan`"
            else:
                yield (
                    (*path, "vlan"),
                    way.vlan,
                    f"is already the VLAN id of {first} on {way.parent}; each on one parent must be unique",
                )
        seen.setdefault(way.name, path)


def _numbers(profile: Profile, role: Role) -> Iterator[Finding]:
    """The MTU of a VLAN is its parent's at most; that is the untagged network's."""
    machine = profile["network"]["mtu"]
    ways = list(zip(networks(profile, role), network_links(profile, role), strict=True))
    plain = {way.parent: network.get("mtu", machine) for (__, network), way in ways if way.vlan is None}
    for (path, network), way in ways:
        mtu, most = network.get("mtu", machine), plain.get(way.parent)
        if way.vlan is not None and most is not None and mtu > most:
            yield (*path, "mtu"), mtu, f"must be at most {most}, the MTU of {way.parent}, on which {way.name} is"


def _text(path: Path) -> str:
    return ".".join(str(part) for part in path)
