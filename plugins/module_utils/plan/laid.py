"""What a profile lays over the installer's input files, against the rest of its plan."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..addresses import static_ips
from . import phases
from .machines import Node, interfaces
from .model import Plan
from .problems import Finding, Path


def findings(plan: Plan) -> Iterator[Finding]:
    """Yield what contradicts the plan, with paths in the profile. What is not valid by itself is left to the installer."""
    given = plan["installer"]
    yield from _decided(plan)
    if given.get("hosts_in") == "install-config" and given["agent_config"].get("hosts"):
        remedy = "contradicts `installer.hosts_in: install-config`, whose hosts the installer then ignores: remove one of them"
        yield ("installer", "agent_config", "hosts"), None, remedy
    if ip := given["agent_config"].get("rendezvousIP"):
        yield from _rendezvous(plan, ip)
    networking = given["install_config"].get("networking")
    if isinstance(networking, Mapping) and networking.get("machineNetwork"):
        yield from _machine_network(plan, networking["machineNetwork"])


def _decided(plan: Plan) -> Iterator[Finding]:
    """What the lab has made by a field of its own: nodes, names and keys would not fit another value in install-config.yaml."""
    cluster = plan["cluster"]
    counts = Counter(node["role"] for node in phases.installed_nodes(plan))
    decided: tuple[tuple[Path, Any, str], ...] = (
        (("baseDomain",), cluster["base_domain"], "`base_domain` of the profile"),
        (("metadata", "name"), cluster["name"], "the cluster's name, `--cluster`,"),
        (("controlPlane", "replicas"), counts["master"], "`master.count` of the profile"),
        (("arbiter", "replicas"), counts["arbiter"], "`arbiter.count` of the profile"),
        (("compute", 0, "replicas"), counts["worker"], "`worker.count` of the profile"),
        (("fips",), plan["installer"]["fips"], "`installer.fips` of the profile"),
    )
    for path, planned, field in decided:
        value: Any = plan["installer"]["install_config"]
        for key in path:
            value = _item(value, key)
        if type(value) is type(planned) and value != planned:
            remedy = f"contradicts the plan, which has {_shown(planned)}: set {field} instead"
            yield ("installer", "install_config", *path), value, remedy


def _item(value: Any, key: Any) -> Any:
    """Return what a mapping or a list has there, None where there is nothing."""
    if isinstance(value, Mapping):
        return value.get(key)
    return value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rendezvous(plan: Plan, text: object) -> Iterator[Finding]:
    """The rendezvous host is one of the control plane. An address that none of its nodes has is a fault that the lab shows (docs/faults.md)."""
    address = _address(text)
    if address is None:
        return
    masters = [node for node in phases.installed_nodes(plan) if node["role"] == "master"]
    place: Path = ("installer", "agent_config", "rendezvousIP")
    if other_node := next(
        (node for node in plan["nodes"] if node not in masters and address in _addresses_of([node])), None
    ):
        name, role = other_node["name"], other_node["role"]
        yield (
            place,
            text,
            f"is the address of {name}, role {role}: must be that of a node of the control plane, such as {plan['rendezvous']['ip']}",
        )
        return
    there = {one["network"] for node in masters for one in interfaces(node)}
    subnets = [
        (network["name"], ipaddress.ip_network(subnet["cidr"]))
        for network in plan["networks"]
        for subnet in network["subnets"]
    ]
    if any(address in subnet for name, subnet in subnets if name in there) or address in _addresses_of(masters):
        return
    own = ", ".join(str(subnet) for name, subnet in subnets if name in there)
    other = next((f", but in {name} ({subnet})" for name, subnet in subnets if address in subnet), "")
    node = plan["rendezvous"]["node"]
    remedy = f"is not in a network of {node}, the rendezvous host, which is in {own}{other}: its address is {plan['rendezvous']['ip']}"
    yield place, text, remedy


def _machine_network(plan: Plan, entries: Any) -> Iterator[Finding]:
    named = [entry.get("cidr") for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    networks = []
    for cidr in named:
        try:
            networks.append(ipaddress.ip_network(str(cidr), strict=False))
        except ValueError:
            return
    nodes = phases.installed_nodes(plan)
    if not networks or any(address in network for address in _addresses_of(nodes) for network in networks):
        return
    path: Path = ("installer", "install_config", "networking", "machineNetwork")
    planned = ", ".join(plan["installer"]["machine_network"])
    remedy = f"holds no address of a node, such as {plan['rendezvous']['ip']} of {plan['rendezvous']['node']}: the nodes are in {planned}"
    yield path, named, remedy


def _addresses_of(nodes: Iterable[Node]) -> set[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Return the addresses that nodes have by the plan, and by their nmstate."""
    texts = [
        text
        for node in nodes
        for text in (
            *(address["ip"] for one in interfaces(node) for address in one["addresses"]),
            *static_ips(node["network_config"]),
        )
    ]
    return {address for text in texts if (address := _address(text))}


def _address(text: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(str(text))
    except ValueError:
        return None
