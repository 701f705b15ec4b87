"""Checks of what a profile has written of a node's nmstate by hand (`nodes.NAME.network_config`). See `checks`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..addresses import family as family_of
from ..redact import redact
from . import links
from .address_checks import of_node
from .build import macs, node_roles
from .options import Profile
from .problems import Finding, Path

_OF_LAB = re.compile(r"eth\d+")
_ALL = {"0.0.0.0/0": "IPv4", "::/0": "IPv6"}
# What these are on is known; an interface of another type, such as a bridge, can be on anything.
_PLAIN = ("ethernet", "bond", "vlan")
_MAIN_TABLES = (0, 254)


def check(profile: Profile, cluster: str) -> Iterator[Finding]:
    """Yield what the installer refuses of a node's nmstate, and what its machine or another part of it contradicts."""
    roles = node_roles(profile)
    for name, node in profile["nodes"].items():
        given = node.get("network_config")
        if not given or name not in roles:
            continue
        from ..nmstate import NmstateError, generate  # few profiles have it
        from ..nmstate.schema import parse

        path: Path = ("nodes", name, "network_config")
        state = plain_values(given)
        start = "openshift-install refuses it: "
        try:
            if not generate(state):
                yield path, None, f"{start}nmstate generated an empty NetworkManager config file content"
                continue
        except NmstateError as error:
            yield path, None, redact(f"{start}failed to execute 'nmstatectl gc', error: {error}")
            continue
        interfaces = parse(state).get("interfaces") or []
        wrong = [*vlan_problems(path, interfaces), *default_route_problems(path, state)]
        # An existing machine may have more NICs than those that the lab knows, and by names of its own.
        if not node.get("bare_metal"):
            wrong += nic_problems(path, state, name, links.nics(profile, roles[name]))
            wrong = wrong or [*_bonds(profile, path, name, cluster, interfaces)]
        yield from wrong or _addresses(profile, path, name, interfaces)


def nic_problems(path: Path, state: dict[str, Any], node: str, known: list[str]) -> Iterator[Finding]:
    """Yield Ethernet interfaces without a NIC of the machine: it has the NICs of the plan, which may have other names in the OS."""
    from ..nmstate.schema import parse
    from ..nmstate.state import Network

    parsed = parse(state)
    hops = [route.get("next-hop-interface", "") for route in parsed.get("routes", {}).get("config", [])]
    network = Network(parsed)
    found = [
        one.name
        for one in network.kernel.values()
        if one.type == "ethernet" and one.up and one.conf.get("identifier") != "mac-address" and "veth" not in one.conf
    ]
    others = [one.parent or "" for one in network.kernel.values()] + hops
    found += dict.fromkeys(other for other in others if other and other not in network.kernel and other not in found)
    missing = [one for one in found if _OF_LAB.fullmatch(one) and one not in known]
    if missing:
        place, has = _place_of(missing[0], state), ", ".join(known)
        remedy = f"there is no such NIC: {node} has {has}" + (f", not {', '.join(missing)}" if missing[1:] else "")
        yield (*path, *place), missing[0], remedy
    elif len(found) > len(known):
        yield (
            path,
            None,
            f"has the Ethernet interfaces {', '.join(found)}, and {node} has fewer NICs: {', '.join(known)}",
        )


def vlan_problems(path: Path, given: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield a VLAN that its parent has already under another name: the kernel refuses it."""
    seen: dict[tuple[Any, Any], str] = {}
    for index, one in enumerate(given):
        if _vlan(one) is None:
            continue
        parent = one["vlan"].get("base-iface")
        first = seen.setdefault((parent, _vlan(one)), one["name"])
        if first != one["name"]:
            remedy = f"is already the VLAN id of {first} on {parent}; each on one parent must be unique"
            yield (*path, "interfaces", index, "vlan", "id"), _vlan(one), remedy


def _vlan(interface: Mapping[str, Any]) -> int | None:
    return interface["vlan"].get("id") if interface["type"] == "vlan" and interface.get("vlan") else None


def _addresses(profile: Profile, path: Path, node: str, given: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield what of a node's own addresses, by which the others and the lab know it, is neither given nor leased, or is in another VLAN."""
    planned = links.network_links(profile, node_roles(profile)[node])[0]
    missing, elsewhere = [], []
    for text in of_node(profile, node):
        having = [one for one in given if has_address(one, text)] or [one for one in given if is_leased(one, text)]
        if not having:
            missing.append(text)
        elif all(one["type"] in _PLAIN and _vlan(one) != planned.vlan for one in having):
            elsewhere.append(having[0]["name"])
    if missing:
        own = f"nodes.{node}.nics.{planned.name}.addresses"
        remedy = (
            f"gives {node} neither {' and '.join(missing)}, its address by the plan, nor DHCP: add that, or set `{own}`"
        )
        yield path, None, remedy
    elif elsewhere:
        where = "untagged" if planned.vlan is None else f"as VLAN {planned.vlan}"
        remedy = f"has the address of {node} at {elsewhere[0]}, and the lab has the machine network {where}: see `network.vlan`"
        yield path, None, remedy


def has_address(interface: Mapping[str, Any], text: str) -> bool:
    wanted = ipaddress.ip_address(text)
    entries = _section(interface, text).get("address") or []
    return any(ipaddress.ip_address(one["ip"]) == wanted for one in entries)


def is_leased(interface: Mapping[str, Any], text: str) -> bool:
    section = _section(interface, text)
    return bool(section.get("dhcp") or section.get("autoconf"))


def _section(interface: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    """Return what an interface has for the family of an address; nothing where it is switched off."""
    section = interface.get(family_of(text)) or {}
    return section if section.get("enabled") and interface["state"] == "up" else {}


def _bonds(profile: Profile, path: Path, node: str, cluster: str, given: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield a bond of several NICs that is missing on the switch, or has another mode there."""
    own = {mac: nic for name, nic, mac in macs(profile, cluster) if name == node}
    nics = {nic: nic for nic in own.values()} | {
        one["name"]: own[mac] for one in given if (mac := str(one.get("mac-address")).lower()) in own
    }
    there = links.bonds(profile, node_roles(profile)[node]).values()
    for index, one in enumerate(given):
        settings = one.get("link-aggregation") or {}
        ports = [nics[port] for port in settings.get("port") or [] if port in nics]
        if one["type"] != "bond" or one["state"] != "up" or len(ports) < 2:
            continue
        place, mode = (*path, "interfaces", index), settings.get("mode")
        bond = next((bond for bond in there if {*ports} <= {*bond["nics"]}), None)
        if bond is None:
            remedy = f"is a bond of {', '.join(ports)}, between which the lab has none: see `bonds` of the profile"
            yield (*place, "name"), one["name"], remedy
        elif mode != bond["mode"]:
            yield (*place, "link-aggregation", "mode"), mode, f"must be {bond['mode']}, as in `bonds`"


def default_route_problems(path: Path, state: dict[str, Any]) -> Iterator[Finding]:
    """Yield a default route that contradicts another one: of its family and table, of the same metric, and over another interface."""
    seen: dict[tuple[str, int | None], str] = {}
    for index, route in enumerate((state.get("routes") or {}).get("config") or []):
        family = _ALL.get(str(route.get("destination")))
        hop = str(route.get("next-hop-interface"))
        # Routes with weights share the traffic.
        if not family or route.get("state") == "absent" or route.get("weight") is not None:
            continue
        if int(route.get("table-id") or 0) not in _MAIN_TABLES:
            continue
        metric = route.get("metric")
        first = seen.setdefault((family, None if metric is None else int(metric)), hop)
        if first != hop:
            remedy = f"is a second {family} default route, next to that over {first}: remove one, or give them different metrics"
            yield (*path, "routes", "config", index, "next-hop-interface"), hop, remedy


def plain_values(value: Any) -> Any:
    """Return a copy as nested dictionaries, which nmstate's documents are."""
    if isinstance(value, Mapping):
        return {key: plain_values(item) for key, item in value.items()}
    return [plain_values(item) for item in value] if isinstance(value, list) else value


def _place_of(name: str, state: Any) -> Path:
    """Return where a state has `name` first, other than in a text about it."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(state, dict):
        items = state.items()
    elif isinstance(state, list):
        items = enumerate(state)
    for key, value in items:
        if value == name and key not in ("description", "profile-name"):
            return (key,)
        if inner := _place_of(name, value):
            return (key, *inner)
    return ()
