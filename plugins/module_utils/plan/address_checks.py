"""Checks of the addresses in a profile, against their networks and each other; see `checks`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ..addresses import family as family_of
from ..vocabulary import WITH_VIPS
from . import build, links
from .build import node_names, node_roles
from .fields import Family
from .network_checks import VERSIONS, IpNetwork, lan, misplacement
from .networks import by_slaac
from .options import Profile
from .outside import load_balancer
from .presets import FAMILIES
from .problems import Finding, Path, duplicates

_VIPS: dict[Literal["api", "ingress"], str] = {"api": "the API", "ingress": "ingress"}


def check_addresses(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Addresses in the profile must be in their network and unique."""
    stack = FAMILIES[profile["stack"]]
    machine = {f: ipaddress.ip_network(profile["network"][f]) for f in stack}
    given: list[tuple[Path, str]] = []
    for vip in _VIPS:
        addresses = profile["vips"][vip]
        if addresses is None:
            continue
        path: Path = ("vips", vip)
        yield from _one_of_each(path, addresses, stack)
        for index, text in enumerate(addresses):
            given.append(((*path, index), text))
            yield from _outside_findings((*path, index), text, machine)
    for name, node in profile["nodes"].items():
        role = node_roles(profile).get(name, "master")  # here, as what it reads withholds findings when it is wrong
        there = [network for __, network in links.networks(profile, role)]
        places = {one.name: position for position, one in enumerate(links.network_links(profile, role))}
        for nic, settings in node.get("nics", {}).items():
            position = places.get(nic)
            addresses = settings.get("addresses") or []
            path = ("nodes", name, "nics", nic, "addresses")
            if addresses and position is None and nic in links.nics(profile, role):
                yield path, addresses, f"are those of a bond or a VLAN on it; there are {', '.join(places)}"
            if not addresses or position is None:
                continue
            subnets = _home(profile, name)
            if position:
                subnets = _subnets(there[position])
            else:
                yield from _one_of_each(path, addresses, stack)
            for index, text in enumerate(addresses):
                given.append(((*path, index), text))
                yield from _outside_findings((*path, index), text, subnets)
    yield from duplicates((path, str(ipaddress.ip_address(text))) for path, text in given)
    offsets = profile["network"]["offsets"]
    bridged = [named.network for named in lan(profile)]
    taken = {str(net[offsets["gateway"]]): "gateway" for net in bridged if offsets["gateway"] < net.num_addresses}
    for path, text in given:
        owner = taken.get(str(ipaddress.ip_address(text)))
        if owner:
            yield path, text, f"is the address of the {owner}; choose another"


def _home(profile: Profile, node: str) -> dict[Family, IpNetwork]:
    """Return the subnets of the segment that a node is in, or of the machine network; none of a segment that there is not."""
    role = node_roles(profile).get(node)
    segment = build.machine(profile, node, role)["segment"] if role else None
    given: Mapping[str, Any] = profile["segments"].get(segment, {}) if segment else profile["network"]
    return {f: ipaddress.ip_network(given[f]) for f in FAMILIES[profile["stack"]] if given.get(f)}


def _one_of_each(path: Path, addresses: list[str], stack: tuple[str, ...]) -> Iterator[Finding]:
    if [family_of(text) for text in addresses] != list(stack):
        wanted = " and one ".join("IPv4" if family == "ipv4" else "IPv6" for family in stack)
        yield path, addresses, f"must be one {wanted} address, in this order"


def _outside_findings(path: Path, text: str, subnets: Mapping[Family, IpNetwork]) -> Iterator[Finding]:
    network = subnets.get(family_of(text))
    if network is not None and (wrong := misplacement(text, network)):
        yield path, text, wrong


def check_collisions(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Addresses in the profile must not be those that another node, the API or ingress gets by its offset, nor free for DHCP."""
    offsets = profile["network"]["offsets"]
    given, derived = _given_and_derived(profile)
    roles = node_roles(profile)
    reserved = [name for name, role in roles.items() if build.addressing_of(profile, name, role) != "static"]
    ranges = [
        (named.network[offsets["dhcp_start"]], named.network[offsets["dhcp_end"]])
        for named in lan(profile)
        if reserved
        and offsets["dhcp_end"] < named.network.num_addresses  # else it is too small, which `check_room` finds
    ]
    for path, text in given:
        address = ipaddress.ip_address(text)
        if text in derived:
            yield path, text, f"is the address of {derived[text]}; choose another"
        elif path[1] not in reserved:  # for its nodes the DHCP server reserves them
            for first, last in ranges:
                if first.version == address.version and first <= address <= last:
                    yield path, text, f"is in the DHCP range, {first} to {last}; choose one outside"


def owners(profile: Profile) -> dict[str, str]:
    """Return whose the addresses of nodes, API and ingress are, given or derived."""
    given, derived = _given_and_derived(profile)
    return {**derived, **{text: _VIPS[path[1]] if path[0] == "vips" else f"node {path[1]}" for path, text in given}}


def of_node(profile: Profile, node: str) -> list[str]:
    """Return the addresses by which the cluster knows a node, given or derived; not those of SLAAC."""
    own = [text for text, owner in owners(profile).items() if owner == f"node {node}"]
    return [text for network in _home(profile, node).values() for text in own if ipaddress.ip_address(text) in network]


def _given_and_derived(profile: Profile) -> tuple[list[tuple[Path, str]], dict[str, str]]:
    """Return the addresses that the profile gives to nodes, API and ingress, with their places, and whose those are that follow from offsets."""
    offsets = profile["network"]["offsets"]
    machine = [ipaddress.ip_network(profile["network"][f]) for f in FAMILIES[profile["stack"]]]
    virtual = build.platform_of(profile) in WITH_VIPS or load_balancer(profile)
    given, derived = _of_nodes(profile)
    for vip, label in _VIPS.items() if virtual else ():
        addresses = profile["vips"][vip]
        if addresses is None:
            derived |= {str(net[offsets[vip]]): label for net in machine if offsets[vip] < net.num_addresses}
        else:
            given += [(("vips", vip, index), str(ipaddress.ip_address(text))) for index, text in enumerate(addresses)]
    return given, derived


def _of_nodes(profile: Profile) -> tuple[list[tuple[Path, str]], dict[str, str]]:
    """Return the addresses that the profile gives to nodes, with their places, and whose those are that follow from offsets."""
    given: list[tuple[Path, str]] = []
    derived: dict[str, str] = {}
    for number, (name, role, __) in enumerate(node_names(profile)):
        static = build.addressing_of(profile, name, role) == "static"
        offset = profile["network"]["offsets"]["static_nodes" if static else "dhcp_nodes"] + number
        nics = profile["nodes"].get(name, {}).get("nics", {})
        networks = [network for __, network in links.networks(profile, role)]
        for position, (one, network) in enumerate(zip(links.network_links(profile, role), networks, strict=True)):
            if addresses := nics.get(one.name, {}).get("addresses"):
                path = ("nodes", name, "nics", one.name, "addresses")
                given += [((*path, index), str(ipaddress.ip_address(text))) for index, text in enumerate(addresses)]
                continue
            subnets = _subnets(network) if position else _home(profile, name)
            for family, subnet in subnets.items():
                if (static or not by_slaac(profile, family)) and offset < subnet.num_addresses:
                    derived[str(subnet[offset])] = f"node {name}"
    return given, derived


def _subnets(network: Mapping[str, Any]) -> dict[Family, IpNetwork]:
    return {family: ipaddress.ip_network(network[family]) for family in VERSIONS if network.get(family)}
