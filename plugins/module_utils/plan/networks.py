"""The networks of a plan: subnets, DHCP and DNS, and the addresses of nodes in them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from ..addresses import family as family_of
from ..vocabulary import ClusterNames
from . import names
from .fields import Family
from .machines import Address, Network, Node, Reservation, Route, Subnet, home, in_network, interfaces
from .model import Vips
from .options import Profile, RouteOptions
from .presets import FAMILIES


def _subnet(cidr: str, profile: Profile, settings: Mapping[str, Any], dhcp: bool) -> Subnet:
    network, family = ipaddress.ip_network(cidr), family_of(cidr)
    offsets = settings["offsets"]
    return {
        "family": family,
        "cidr": str(network),
        "prefix": network.prefixlen,
        "gateway": str(network[offsets["gateway"]]),
        "dhcp": {
            "start": str(network[offsets["dhcp_start"]]),
            "end": str(network[offsets["dhcp_end"]]),
            "lease_minutes": settings["lease_minutes"],
        }
        if dhcp and not by_slaac(profile, family)
        else None,
    }


def by_slaac(profile: Profile, family: Family) -> bool:
    """Return whether nodes without static addresses give themselves those of this family, from router advertisements."""
    return profile["addressing"] == "slaac" and family == "ipv6"


def leaves(profile: Profile) -> bool:
    """Return whether the hypervisor of a complete profile reaches outside networks for its machines, routed or by a proxy."""
    connection = profile["network"]["connection"]
    return profile["hypervisor"]["egress"] if connection is None else connection != "disconnected"


def _routed(profile: Profile) -> bool:
    return leaves(profile) and profile["network"]["connection"] != "proxied"


def machine_network(profile: Profile, cluster: str, domain: str, *, dhcp: bool) -> Network:
    """Return the machine network. dhcp: whether a node gets its addresses so."""
    settings = profile["network"]
    bridge = settings["bridge"] or f"{cluster}bm"
    return {
        "name": bridge,
        "bridge": bridge,
        "bridge_mac": names.bridge_mac(cluster, bridge),
        "purpose": "machine",
        "mtu": settings["mtu"],
        "nat": _routed(profile) if settings["nat"] is None else settings["nat"],
        "domain": domain,
        "subnets": [_subnet(settings[family], profile, settings, dhcp) for family in FAMILIES[profile["stack"]]],
        "dns": {"hosts": [], "wildcards": []},
        "reservations": [],
    }


def extra_network(extra: Mapping[str, Any], profile: Profile, cluster: str, *, dhcp: bool) -> Network:
    settings = {**profile["network"], **extra}
    return {
        "name": extra["name"],
        "bridge": extra.get("bridge") or extra["name"],
        "bridge_mac": names.bridge_mac(cluster, extra["name"]),
        "purpose": "extra",
        "mtu": settings["mtu"],
        "nat": bool(extra.get("nat")),
        "domain": None,
        "subnets": [
            _subnet(extra[family], profile, settings, dhcp) for family in ("ipv4", "ipv6") if extra.get(family)
        ],
        "dns": {"hosts": [], "wildcards": []},
        "reservations": [],
    }


def segment(name: str, profile: Profile, cluster: str, machine: Network) -> Network:
    """Return the segment `name` of a profile.

    It is like the `machine` network but for its bridge and its addresses; its DNS is empty until `fill_dns`.
    """
    own, settings = profile["segments"][name], profile["network"]
    dhcp = any(subnet["dhcp"] for subnet in machine["subnets"])
    return {
        **machine,
        "name": name,
        "bridge": own.get("bridge") or name,
        "bridge_mac": names.bridge_mac(cluster, name),
        "purpose": "segment",
        "subnets": [_subnet(own[family], profile, settings, dhcp) for family in FAMILIES[profile["stack"]]],
        "dns": {"hosts": [], "wildcards": []},
        "reservations": [],
    }


def tag(networks: list[Network], profile: Profile) -> None:
    """Give networks their VLAN ids and routes.

    networks: the machine network, then the extra ones, in the profile's order; they are changed.
    """
    given: list[Mapping[str, Any]] = [profile["network"], *profile["extra_networks"]]
    for network, options in zip(networks[: len(given)], given, strict=True):
        if options.get("vlan") is not None:
            network["vlan"] = options["vlan"]
        if options.get("routes"):
            network["routes"] = [_route(route, network) for route in options["routes"]]


def _route(given: RouteOptions, network: Network) -> Route:
    destination = ipaddress.ip_network(given["destination"])
    gateway = next(s["gateway"] for s in network["subnets"] if s["family"] == family_of(str(destination[0])))
    return {"destination": str(destination), "next_hop": str(ipaddress.ip_address(given.get("next_hop") or gateway))}


def addresses_of(network: Network, profile: Profile, index: int, mac: str, *, static: bool) -> list[Address]:
    """Return the addresses of a node, one for each subnet.

    index: of the node in the plan, which is added to the profile's offset for nodes with DHCP or static addresses (`static`);
    mac: of its interface. IndexError outside of the network, which the checks exclude.
    """
    offsets = profile["network"]["offsets"]
    first = offsets["static_nodes" if static else "dhcp_nodes"]
    return [
        {
            "family": subnet["family"],
            "ip": names.slaac(subnet["cidr"], mac)
            if by_slaac(profile, subnet["family"]) and not static
            else str(ipaddress.ip_network(subnet["cidr"])[first + index]),
            "prefix": subnet["prefix"],
        }
        for subnet in network["subnets"]
    ]


def given_addresses(given: list[str], network: Network) -> list[Address]:
    found: list[Address] = []
    for text in given:
        family = family_of(text)
        prefix = next(s["prefix"] for s in network["subnets"] if s["family"] == family)
        found.append({"family": family, "ip": str(ipaddress.ip_address(text)), "prefix": prefix})
    return found


def own_addresses(node: Node, networks: Sequence[Network]) -> list[Address]:
    """Return the addresses by which the cluster knows a node. networks: all of the plan."""
    return in_network(node, home(node, networks)["name"])["addresses"]


def fill_dns(networks: Sequence[Network], nodes: list[Node], vips: Vips, domain: str) -> None:
    """Give the machine network its names, and its other segments the same.

    networks: all of the plan, of which the first one is the machine network; they are changed. Names are short ones,
    without the domain.
    """
    machine = networks[0]
    names: dict[str, list[str]] = {}
    for ip in vips["api"]:
        names.setdefault(ip, []).extend(["api", "api-int"])
    for node in nodes:
        for address in own_addresses(node, networks):
            names.setdefault(address["ip"], []).append(node["name"])
    for subnet in machine["subnets"]:
        names.setdefault(subnet["gateway"], []).append("virthost")
    machine["dns"] = {
        "hosts": [{"ip": ip, "names": found} for ip, found in names.items()],
        "wildcards": [{"domain": ClusterNames.of(domain).apps, "ip": ip} for ip in vips["ingress"]],
    }
    for network in networks:
        if network["purpose"] == "segment":
            network["dns"] = deepcopy(machine["dns"])


def reservations(network: Network, nodes: list[Node], addressing: str) -> list[Reservation]:
    """Return the leases of the nodes with DHCP, in the order of the nodes.

    addressing: of nodes without one of their own. IPv4 is by MAC, IPv6 by DUID; none in a subnet without DHCP.
    """
    leased = {subnet["family"] for subnet in network["subnets"] if subnet["dhcp"]}
    return [
        {
            "mac": nic["mac"] if address["family"] == "ipv4" else None,
            "duid": names.duid_ll(nic["mac"]) if address["family"] == "ipv6" else None,
            "ip": address["ip"],
            "name": node["name"],
        }
        for node in nodes
        if (node.get("addressing") or addressing) != "static"
        for nic in interfaces(node)
        if nic["network"] == network["name"]
        for address in nic["addresses"]
        if address["family"] in leased
    ]


def outside_balancer(profile: Profile) -> bool:
    """Return whether users bring a load balancer for API and ingress (install-config `platform.baremetal.loadBalancer.type`)."""
    section: Any = profile["installer"]["install_config"]
    for key in ("platform", "baremetal", "loadBalancer"):
        section = section.get(key) if isinstance(section, Mapping) else None
    return isinstance(section, Mapping) and section.get("type") == "UserManaged"


def machine_networks(profile: Profile, networks: list[Network]) -> list[Network]:
    """Return the networks whose ranges are machine networks: all segments with an outside load balancer, else the first only.

    The assisted service takes more than one range of a family for a cluster with an outside load balancer only ("Single-stack
    cluster cannot contain multiple Machine Networks"); on platforms none and external it asks no worker for an address in one.
    """
    return [
        network
        for network in networks
        if (network["purpose"] == "segment" and outside_balancer(profile)) or network is networks[0]
    ]
