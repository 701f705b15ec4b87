"""Checks of the nodes' networks against a plan, as the kernel of each node has them.

Bonds, VLANs, MTUs, routes, default gateways, the addresses in extra networks, and which NICs there are.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..addresses import family
from ..documents import load_json
from ..plan.machines import Bond, Link, Node, address_of, home, in_network, interfaces
from ..plan.model import Plan
from ..plan.presets import MTU

COMMAND = "ip -json -details address show; echo; ip -json -4 route show; echo; ip -json -6 route show"
Ask = Callable[[str, str], str]
"""Runs a command on the node with an address, and returns its output; raises OSError or ValueError with the reason."""

# OVN-Kubernetes moves a node's addresses and default route to it.
_OVN_BRIDGE = "br-ex"
_NO_PARTNER = "00:00:00:00:00:00"


class NodeLinks(NamedTuple):
    """What a node has: links by name, and routes. problem: why that is not known.

    links: kernel name -> entry of `ip -json -details address show`; routes: of `ip -json route show`, IPv4 and IPv6.
    """

    links: Mapping[str, Mapping[str, Any]]
    routes: list[Mapping[str, Any]]
    problem: str = ""


class Finding(NamedTuple):
    """subject: what was checked; expected and found, as messages.

    Both texts have the same form, so that equal texts mean that it is as planned.
    """

    subject: str
    expected: str
    found: str

    @property
    def ok(self) -> bool:
        """Return whether the node is as planned."""
        return self.expected == self.found


def needs_check(plan: Plan) -> bool:
    """Return whether the plan has more than leases in networks of all nodes, and Ethernet's MTU: then the nodes are queried."""
    return any(
        node.get("links") or is_static(plan, node) or _lacks_networks(plan, node) for node in plan["nodes"]
    ) or any(
        network.get("routes") or network["purpose"] == "segment" or network["mtu"] != MTU
        for network in plan["networks"]
        if network["purpose"] != "outside"
    )


def look(plan: Plan, node: Node, ask: Ask) -> NodeLinks:
    """Return what a node has.

    ask: runs `COMMAND` on the node by its first address in the machine network. An error of it, or output of another
    form, is `problem`.
    """
    address = address_of(node, plan["networks"])
    try:
        links, *routes = (
            load_json(line, name=f"ip on {node['name']}") for line in ask(address, COMMAND).splitlines() if line.strip()
        )
        by_name = {str(link["ifname"]): link for link in links if link}
        return NodeLinks(by_name, [route for some in routes for route in some if route])
    except (OSError, ValueError, TypeError, KeyError) as error:
        return NodeLinks({}, [], f"{error}")


def findings(plan: Plan, node: Node, seen: NodeLinks) -> Iterator[Finding]:
    """Yield bonds, VLANs, MTUs, static routes, addresses in extra networks and default gateways of a node, and what is planned.

    Where other nodes have more networks, its NICs, too.

    seen: of `look`, without a problem. The kernel may have named a NIC otherwise: NICs are known by their MACs.
    """
    macs = {nic["name"]: nic["mac"] for nic in node["nics"]}
    names = _real_names(node, seen)
    for link in node.get("links") or []:
        name = names[link["name"]]
        there = seen.links.get(name, {})
        expected = _bond(link["bond"]) if link["bond"] else _vlan(link, names)
        found = (_seen_bond(name, seen, macs) if link["bond"] else _seen_vlan(there)) if there else "missing"
        yield Finding(link["name"], f"{expected}, MTU {link['mtu']}", f"{found}, MTU {there.get('mtu', 'unknown')}")
    own = {one["network"] for one in interfaces(node)}
    if _lacks_networks(plan, node) and not node.get("bare_metal"):
        yield Finding("NICs", " and ".join(sorted(macs)), " and ".join(_cards(seen, macs)) or "none")
    for network in plan["networks"]:
        if network["name"] not in own:
            continue
        planned = in_network(node, network["name"])
        interface = names[planned["name"]]
        # The MTU of a bond or a VLAN is in its own finding.
        if planned["name"] in macs and network["mtu"] != MTU:
            mtu = seen.links.get(interface, {}).get("mtu", "unknown")
            yield Finding(planned["name"], f"MTU {network['mtu']}", f"MTU {mtu}")
        # A bond or a VLAN that is missing has its own finding.
        if network["purpose"] == "extra" and (interface in seen.links or planned["name"] in macs):
            wanted = [address["ip"] for address in planned["addresses"]]
            on_link = seen.links.get(interface, {}).get("addr_info") or []
            all_held = [str(one.get("local")) for one in on_link if _wide(one)]
            held = wanted if {*wanted} <= {*all_held} else all_held
            yield Finding(network["name"], _address_text(wanted, interface), _address_text(held, interface))
        for route in network.get("routes") or []:
            routes = [one for one in seen.routes if _is_same(one.get("dst"), route["destination"])]
            yield Finding(
                f"route {route['destination']}",
                _gateway_of({"gateway": route["next_hop"], "dev": interface}),
                ", ".join(_gateway_of(one) for one in routes) or "missing",
            )
    yield from _default(plan, node, seen, names)


def _lacks_networks(plan: Plan, node: Node) -> bool:
    """Return whether a plan has extra networks that this node is not in, as those of other roles."""
    own = {one["network"] for one in interfaces(node)}
    return any(network["purpose"] == "extra" and network["name"] not in own for network in plan["networks"])


def _cards(seen: NodeLinks, macs: Mapping[str, str]) -> list[str]:
    """Return the NICs that a node has: the plan's names, or the kernel's of those that are not in the plan."""
    names = {mac: name for name, mac in macs.items()}
    cards = (
        (name, link)
        for name, link in seen.links.items()
        if link.get("link_type") == "ether" and "link" not in link and not _kind(link)
    )
    return sorted(names.get(_own_mac(link), name) for name, link in cards)


def _wide(address: Mapping[str, object]) -> bool:
    return address.get("scope") == "global"


def _address_text(addresses: list[str], interface: str) -> str:
    return f"{', '.join(addresses) or 'no address'} on {interface}"


def _default(plan: Plan, node: Node, seen: NodeLinks, names: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the default gateways: one for each family of the node's segment of the machine network, none elsewhere.

    A static node has those of its nmstate, which a profile may have written; a family without one there is left out.
    """
    machine = home(node, plan["networks"])
    interface = names[in_network(node, machine["name"])["name"]]
    static = is_static(plan, node)
    for subnet in machine["subnets"]:
        six = subnet["family"] == "ipv6"
        wanted = [{"gateway": subnet["gateway"], "dev": interface}]
        if static and not (wanted := list(_written(node, names, "::/0" if six else "0.0.0.0/0"))):
            continue
        there = [
            route
            for route in seen.routes
            if route.get("dst") == "default" and family(str(route.get("gateway"))) == subnet["family"]
        ]
        known = {
            _gateway_of({**route, "dev": wanted[0]["dev"]}) if route.get("dev") == _OVN_BRIDGE else _gateway_of(route)
            for route in there
        }
        if six and not static:
            # A router advertises itself with an address that is not in the plan.
            known = {f"on {route.get('dev')}" for route in there}
            yield Finding("default gateway (IPv6)", f"on {interface}", ", ".join(sorted(known)) or "missing")
            continue
        yield Finding(
            f"default gateway ({'IPv6' if six else 'IPv4'})",
            ", ".join(sorted({_gateway_of(route) for route in wanted})),
            ", ".join(sorted(known)) or "missing",
        )


def is_static(plan: Plan, node: Node) -> bool:
    """Return whether a node has static addresses."""
    return (node.get("addressing") or plan["cluster"]["addressing"]) == "static"


def _written(node: Node, names: Mapping[str, str], destination: str) -> Iterator[dict[str, str]]:
    """Yield the routes to `destination` in the nmstate of a node, with the kernel's names of its interfaces."""
    for route in (((node["network_config"] or {}).get("routes") or {}).get("config")) or []:
        if _is_same(route.get("destination"), destination):
            name = str(route.get("next-hop-interface"))
            yield {"gateway": str(route.get("next-hop-address")), "dev": names.get(name, name)}


def _real_names(node: Node, seen: NodeLinks) -> dict[str, str]:
    """Return the kernel's name of each interface of the plan; NICs are known by their MACs, and VLANs by parent and id."""
    by_mac = {_own_mac(link): name for name, link in seen.links.items() if "link" not in link and not _kind(link)}
    names = {nic["name"]: by_mac.get(nic["mac"], nic["name"]) for nic in node["nics"]}
    for link in node.get("links") or []:
        vlan = link["vlan"]
        names[link["name"]] = link["name"]
        if vlan:
            parent = names[vlan["parent"]]
            names[link["name"]] = next(
                (
                    name
                    for name, one in seen.links.items()
                    if one.get("link") == parent and _data(one).get("id") == vlan["id"]
                ),
                f"{parent}.{vlan['id']}",
            )
    return names


def _own_mac(link: Mapping[str, Any]) -> str:
    """Return the permanent MAC, also of a NIC in a bond."""
    info = link.get("linkinfo") or {}
    return str((info.get("info_slave_data") or {}).get("perm_hwaddr") or link.get("address") or "").lower()


def _kind(link: Mapping[str, Any]) -> str:
    return str((link.get("linkinfo") or {}).get("info_kind") or "")


def _data(link: Mapping[str, Any]) -> Mapping[str, Any]:
    return (link.get("linkinfo") or {}).get("info_data") or {}


def _bond(bond: Bond) -> str:
    return f"{bond['mode']} of {' and '.join(bond['nics'])}" + (", LACP partner" if bond["mode"] == "802.3ad" else "")


def _seen_bond(name: str, seen: NodeLinks, macs: Mapping[str, str]) -> str:
    """Describe a bond as `_bond`; members that are down, or not in the aggregation that has the partner, are marked."""
    data, cards = _data(seen.links[name]), {mac: card for card, mac in macs.items()}
    aggregation = data.get("ad_info") or {}
    members = []
    for port, link in seen.links.items():
        if link.get("master") == name:
            state = (link.get("linkinfo") or {}).get("info_slave_data") or {}
            wrong = [] if state.get("mii_status", "UP") == "UP" else ["down"]
            if aggregation and state.get("ad_aggregator_id") != aggregation.get("aggregator"):
                wrong.append("not aggregated")
            members.append((cards.get(_own_mac(link), port), f" ({', '.join(wrong)})" if wrong else ""))
    shown = " and ".join(card + wrong for card, wrong in sorted(members)) or "no NIC"
    partner = ", LACP partner" if aggregation.get("partner_mac", _NO_PARTNER) != _NO_PARTNER else ", no LACP partner"
    return f"{data.get('mode', 'no bond')} of {shown}" + (partner if data.get("mode") == "802.3ad" else "")


def _vlan(link: Link, names: Mapping[str, str]) -> str:
    vlan = link["vlan"]
    return f"VLAN {vlan['id']} on {names[vlan['parent']]}" if vlan else ""


def _seen_vlan(link: Mapping[str, object]) -> str:
    return f"VLAN {_data(link).get('id')} on {link.get('link')}" if _kind(link) == "vlan" else "no VLAN"


def _is_same(destination: object, network: str) -> bool:
    try:
        return ipaddress.ip_network(str(destination)) == ipaddress.ip_network(network)
    except ValueError:
        return False  # `default`


def _gateway_of(route: Mapping[str, object]) -> str:
    return f"via {route.get('gateway', 'no gateway')} on {route.get('dev')}"
