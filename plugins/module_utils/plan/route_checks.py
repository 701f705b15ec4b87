"""Checks of the static routes of a profile; see `checks`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from ..addresses import family as family_of
from .address_checks import owners
from .fields import Family
from .links import networks
from .network_checks import cluster_ranges, lan, misplacement
from .options import Profile
from .presets import FAMILIES
from .problems import Finding, Path

_TITLES: dict[Family, str] = {"ipv4": "IPv4", "ipv6": "IPv6"}


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with static routes: their families, where they lead to, and their next hops."""
    seen: dict[str, Path] = {}
    for path, network in networks(profile):
        subnets = _subnets(profile, path, network)
        for index, route in enumerate(network.get("routes") or []):
            here, destination = (*path, "routes", index), ipaddress.ip_network(route["destination"])
            shown, family = str(destination), family_of(str(destination))
            if family not in subnets:
                remedy = f"is {_TITLES[family]}, and this network has no {_TITLES[family]} addresses"
                yield (*here, "destination"), shown, remedy
            elif wrong := _next_hop(profile, route.get("next_hop"), subnets[family], shown):
                yield (*here, "next_hop"), route["next_hop"], wrong
            for wrong in _destination(profile, destination, seen):
                yield (*here, "destination"), shown, wrong
            seen.setdefault(shown, here)


def _next_hop(profile: Profile, hop: str | None, subnet: Any, destination: str) -> str:
    """Return what is wrong with the next hop of a route in a network with this `subnet`; "" if nothing is, or it is the gateway."""
    if hop is None:
        return ""
    family = family_of(destination)
    if family_of(hop) != family:
        return f"must be an {_TITLES[family]} address, as the destination {destination}"
    if wrong := misplacement(hop, subnet):
        return wrong
    owner = owners(profile).get(str(ipaddress.ip_address(hop)))
    return f"is the address of {owner}, which routes nothing; choose a router's" if owner else ""


def _destination(profile: Profile, destination: Any, seen: Mapping[str, Path]) -> Iterator[str]:
    """Yield what is wrong with a destination; seen: the other ones, with their places.

    A route to more than a network of the nodes does it no harm: they prefer the network, which is smaller.
    """
    if not destination.prefixlen:
        yield "is a second default gateway: the machine network's gateway is the default one; choose a smaller network"
        return
    own = [one for one in lan(profile) if one.network.version == destination.version]
    inside = next((one for one in own if _of_nodes(one.path) and destination.subnet_of(one.network)), None)
    segment = next((one for one in own if one.path[0] == "segments" and destination.overlaps(one.network)), None)
    if inside:
        part = "" if destination == inside.network else "a part of "
        yield f"is {part}{_text(inside.path[:-1])}, in which the nodes are themselves"
    elif segment:
        yield f"overlaps with {_text(segment.path)} ({segment.network}), to which the gateway routes; choose another range"
    elif first := seen.get(str(destination)):
        yield f"is already a destination of {_text(first)}; remove one"
    for inner, __, pods in cluster_ranges(profile):
        if pods.version == destination.version and pods.overlaps(destination):
            yield f"overlaps with {_text(inner)} ({pods}), which the cluster keeps inside; choose another range"


def _of_nodes(path: Path) -> bool:
    return path[0] in ("network", "extra_networks")


def _subnets(profile: Profile, path: Path, network: Mapping[str, Any]) -> dict[Family, Any]:
    families = FAMILIES[profile["stack"]] if path == ("network",) else ("ipv4", "ipv6")
    return {family: ipaddress.ip_network(network[family]) for family in families if network.get(family)}


def _text(path: Path) -> str:
    return ".".join(str(part) for part in path)
