"""Networks and addresses in a plan that was edited, compared with each other. See `stored`."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..addresses import family as family_of
from ..vocabulary import WITH_VIPS
from . import ipi, names
from .machines import Address, Network, Subnet, interfaces
from .model import Plan
from .network_checks import misplacement
from .outside import machines
from .presets import FAMILIES
from .problems import Finding, Path, duplicates
from .stored_names import HOME, every

_TITLES = {"ipv4": "IPv4", "ipv6": "IPv6"}


def findings(plan: Plan) -> Iterator[Finding]:
    """Yield addresses that are not in their networks, or that something else has; nothing of a plan that lacks networks or subnets."""
    networks = plan["networks"]
    if not networks or not all(network["subnets"] for network in networks):
        return
    families = [subnet["family"] for subnet in networks[0]["subnets"]]
    if [*FAMILIES[plan["cluster"]["stack"]]] != families:
        yield (
            ("cluster", "stack"),
            plan["cluster"]["stack"],
            f"must be that of networks.0.subnets: {', '.join(families)}",
        )
    yield from _networks(networks)
    yield from _overlaps(plan)
    yield from _leases(plan)
    yield from _machines(plan)
    yield from _services(plan)
    yield from _vips(plan)
    yield from _further(plan)
    yield from duplicates((path, _plain(ip)) for path, ip in _taken(plan))


def _plain(ip: str) -> str:
    """Return an address in the one spelling that all that mean the same have."""
    return str(ipaddress.ip_address(ip))


def _misplaced(path: Path, ip: str, subnets: Sequence[Subnet]) -> Iterator[Finding]:
    """Yield an address that no machine in one of these subnets can have."""
    own = [subnet["cidr"] for subnet in subnets if family_of(subnet["cidr"]) == family_of(ip)]
    wrong = [misplacement(ip, ipaddress.ip_network(cidr)) for cidr in own]
    if len(wrong) == 1 and wrong[0]:
        yield path, ip, wrong[0]
    elif all(wrong):
        yield path, ip, f"must be an address in {' or '.join(subnet['cidr'] for subnet in subnets)}"


def _networks(networks: Sequence[Network]) -> Iterator[Finding]:
    everywhere = [subnet for network in networks for subnet in network["subnets"]]
    for index, network in enumerate(networks):
        place: Path = ("networks", index)
        if index == 0 and network["purpose"] != "machine":
            yield (*place, "purpose"), network["purpose"], "must be machine: the first network is the machine network"
        if index and network["purpose"] == "machine":
            yield (
                (*place, "purpose"),
                "machine",
                "must be extra, segment or outside: the first network is the machine network",
            )
        subnets = [((*place, "subnets", number), subnet) for number, subnet in enumerate(network["subnets"])]
        yield from duplicates(((*path, "family"), subnet["family"]) for path, subnet in subnets)
        for path, subnet in subnets:
            yield from _subnet(path, subnet)
        for kind, entries in (("hosts", network["dns"]["hosts"]), ("wildcards", network["dns"]["wildcards"])):
            for number, entry in enumerate(entries):
                yield from _misplaced((*place, "dns", kind, number, "ip"), entry["ip"], everywhere)
        for number, route in enumerate(network.get("routes") or []):
            path, family = (*place, "routes", number, "next_hop"), family_of(route["destination"])
            if family_of(route["next_hop"]) != family:
                yield path, route["next_hop"], f"must be of the family of {route['destination']}, {family}"
            else:
                yield from _misplaced(path, route["next_hop"], network["subnets"])


def _overlaps(plan: Plan) -> Iterator[Finding]:
    """Yield ranges of networks, pods and services that have addresses of another one."""
    given: list[tuple[Path, str]] = [
        (("networks", index, "subnets", number, "cidr"), subnet["cidr"])
        for index, network in enumerate(plan["networks"])
        for number, subnet in enumerate(network["subnets"])
    ]
    installer = plan["installer"]
    pods = enumerate(installer["cluster_network"])
    given += [(("installer", "cluster_network", index, "cidr"), entry["cidr"]) for index, entry in pods]
    given += [
        (("installer", "service_network", index), cidr) for index, cidr in enumerate(installer["service_network"])
    ]
    ranges: list[tuple[Path, Any]] = [(path, ipaddress.ip_network(cidr)) for path, cidr in given]
    for (first, one), (path, other) in itertools.combinations(ranges, 2):
        if one.version == other.version and one.overlaps(other):
            yield path, str(other), f"overlaps with {'.'.join(map(str, first))} ({one}); choose another range"


def _subnet(place: Path, subnet: Subnet) -> Iterator[Finding]:
    cidr, dhcp = ipaddress.ip_network(subnet["cidr"]), subnet["dhcp"]
    if subnet["family"] != (family := family_of(subnet["cidr"])):
        yield (*place, "family"), subnet["family"], f"must be {family}, the family of {cidr}"
    if subnet["prefix"] != cidr.prefixlen:
        yield (*place, "prefix"), subnet["prefix"], f"must be {cidr.prefixlen}, as in {cidr}"
    yield from _misplaced((*place, "gateway"), subnet["gateway"], [subnet])
    if not dhcp:
        return
    wrong = [
        *_misplaced((*place, "dhcp", "start"), dhcp["start"], [subnet]),
        *_misplaced((*place, "dhcp", "end"), dhcp["end"], [subnet]),
    ]
    yield from wrong
    if not wrong and int(ipaddress.ip_address(dhcp["start"])) > int(ipaddress.ip_address(dhcp["end"])):
        yield (*place, "dhcp", "start"), dhcp["start"], f"must not be greater than dhcp.end, {dhcp['end']}"


def _addresses_of(machine: Mapping[str, Any]) -> list[str]:
    """Return the addresses of a machine of `every`."""
    given = [*(machine.get("links") or []), *(machine.get("nics") or [])]
    return [_plain(ip) for ip in machine.get("addresses") or [one["ip"] for nic in given for one in nic["addresses"]]]


def _leases(plan: Plan) -> Iterator[Finding]:
    """Yield leases that no NIC gets, and those of a machine with another MAC or address."""
    known = {
        one["name"]: ([nic["mac"].lower() for nic in one.get("nics", [one])], _addresses_of(one))
        for __, one in every(plan)
    }
    for index, network in enumerate(plan["networks"]):
        for number, lease in enumerate(network["reservations"]):
            place: Path = ("networks", index, "reservations", number)
            family, name = family_of(lease["ip"]), lease["name"]
            mac, duid = lease["mac"], lease["duid"]
            by, own, other, without = ("mac", mac, "duid", duid) if family == "ipv4" else ("duid", duid, "mac", mac)
            reason = f"a lease of an {_TITLES[family]} address is by {by.upper()}"
            if own is None:
                yield (*place, by), None, f"must be the {by.upper()} of a NIC: {reason}"
            if without is not None:
                yield (*place, other), without, f"must be null: {reason}"
            wrong = list(_misplaced((*place, "ip"), lease["ip"], network["subnets"]))
            yield from wrong
            if name not in known:
                continue
            macs, ips = known[name]
            if not wrong and _plain(lease["ip"]) not in ips:
                yield (*place, "ip"), lease["ip"], f"must be an address of {name}: {', '.join(ips)}"
            ids = macs if family == "ipv4" else [names.duid_ll(one) for one in macs]
            if own is not None and own.lower() not in ids:
                yield (*place, by), own, f"must be the {by.upper()} of a NIC of {name}: {', '.join(ids)}"


def _machines(plan: Plan) -> Iterator[Finding]:
    known = {network["name"]: network for network in plan["networks"]}
    for path, one in every(plan):
        for kind in ("links", "nics"):
            for position, nic in enumerate(one.get(kind) or []):
                for number, address in enumerate(nic["addresses"]):
                    if network := known.get(nic["network"]):
                        yield from _address((*path, kind, position, "addresses", number), address, network)
    homes = [network["name"] for network in plan["networks"] if network["purpose"] in HOME]
    for index, node in enumerate(plan["nodes"]):
        there = interfaces(node)
        if any(one["network"] in homes and one["addresses"] for one in there) or not node["nics"]:
            continue
        if all(one["network"] is None or one["network"] in known for one in there):
            remedy = "must have one with an address in the machine network or a segment of it"
            yield ("nodes", index, "nics"), None, f"{remedy}: {', '.join(homes)}"


def _address(place: Path, address: Address, network: Network) -> Iterator[Finding]:
    if address["family"] != (family := family_of(address["ip"])):
        yield (*place, "family"), address["family"], f"must be {family}, the family of {address['ip']}"
    yield from _misplaced((*place, "ip"), address["ip"], network["subnets"])
    for subnet in network["subnets"]:
        if family_of(subnet["cidr"]) == family and address["prefix"] != subnet["prefix"]:
            yield (*place, "prefix"), address["prefix"], f"must be {subnet['prefix']}, as in {subnet['cidr']}"


def _services(plan: Plan) -> Iterator[Finding]:
    """Yield addresses of services that are not those of gateways and nodes."""
    networks, services = plan["networks"], plan["services"]
    gateway = networks[0]["subnets"][0]["gateway"]
    if _plain(services["address"]) != _plain(gateway):
        yield ("services", "address"), services["address"], f"must be {gateway}, the gateway of {networks[0]['name']}"
    gateways = _gateways(networks)
    iscsi: Mapping[str, Any] = {**(services.get("iscsi") or {})}
    for field in ("address", "second"):
        if iscsi.get(field) and iscsi[field] not in gateways:
            yield ("services", "iscsi", field), iscsi[field], f"must be a gateway: one of {', '.join(gateways)}"
    if not (balancer := services.get("balancer")):
        return
    place: Path = ("services", "balancer")
    for index, ip in enumerate(balancer["addresses"]):
        yield from _misplaced((*place, "addresses", index), ip, _home(networks))
    known = [one["name"] for one in machines(plan)]
    if (machine := balancer.get("machine")) and machine not in known:
        remedy = f"must be one of {', '.join(known)}" if known else "must be null: the plan has no `machines`"
        yield (*place, "machine"), machine, remedy
    nodes = {node["name"]: _addresses_of(node) for node in plan["nodes"]}
    for number, front in enumerate(balancer["frontends"]):
        for index, backend in enumerate(front["backends"]):
            name, where = backend["name"], (*place, "frontends", number, "backends", index)
            if name not in nodes:
                yield (*where, "name"), name, f"must be one of {', '.join(nodes)}"
            elif _plain(backend["ip"]) not in nodes[name]:
                yield (*where, "ip"), backend["ip"], f"must be an address of {name}: {', '.join(nodes[name])}"


def _vips(plan: Plan) -> Iterator[Finding]:
    """Yield addresses of API and ingress, and machine networks of the installer, that are not those of the networks."""
    home = _home(plan["networks"])
    # The sandbox's load balancer has the addresses of API and ingress at the gateway.
    balanced = plan["services"].get("balancer")
    taken = {} if balanced else {_plain(ip): "the gateway" for ip in _gateways(plan["networks"])}
    for number, node in enumerate(plan["nodes"]):
        taken |= dict.fromkeys(_addresses_of(node), f"nodes.{number}")
    for name, ips in (("api", plan["vips"]["api"]), ("ingress", plan["vips"]["ingress"])):
        for index, ip in enumerate(ips):
            yield from _misplaced(("vips", name, index), ip, home)
            if plan["cluster"]["platform"] in WITH_VIPS and (owner := taken.get(_plain(ip))):
                yield ("vips", name, index), ip, f"is an address of {owner}; choose another"
    ranges = [subnet["cidr"] for subnet in home]
    for index, cidr in enumerate(plan["installer"]["machine_network"]):
        if cidr not in ranges:
            yield ("installer", "machine_network", index), cidr, f"must be one of {', '.join(ranges)}, as in networks"


def _home(networks: Sequence[Network]) -> list[Subnet]:
    return [subnet for network in networks if network["purpose"] in HOME for subnet in network["subnets"]]


def _gateways(networks: Sequence[Network]) -> list[str]:
    return [subnet["gateway"] for network in networks for subnet in network["subnets"]]


def _further(plan: Plan) -> Iterator[Finding]:
    """Yield addresses of further hypervisors and of the bootstrap machine that are not in their networks."""
    for path, ip in _of_hypervisors(plan):
        name, number = path[-2:]
        subnets = next((one["subnets"] for one in plan["networks"] if one["name"] == name), [])
        if number < len(subnets):
            yield from _misplaced(path, ip, [subnets[number]])
    if bootstrap := ipi.bootstrap(plan):
        place, subnets = ("installer", "bootstrap"), plan["networks"][0]["subnets"]
        for index, ip in enumerate(bootstrap["addresses"]):
            yield from _misplaced((*place, "addresses", index), ip, subnets)
        yield from _misplaced((*place, "provisioning_ip"), bootstrap["provisioning_ip"], subnets)
        yield from _misplaced((*place, "cluster_provisioning_ip"), bootstrap["cluster_provisioning_ip"], subnets)


def _of_hypervisors(plan: Plan) -> Iterator[tuple[Path, str]]:
    for index, one in enumerate(plan.get("hypervisors") or []):
        own = one.get("further")
        for name, ips in own["addresses"].items() if own else ():
            yield from ((("hypervisors", index, "further", "addresses", name, at), ip) for at, ip in enumerate(ips))


def _taken(plan: Plan) -> Iterator[tuple[Path, str]]:
    """Yield all addresses that only one thing can have, with their places."""
    for index, network in enumerate(plan["networks"]):
        for number, subnet in enumerate(network["subnets"]):
            yield ("networks", index, "subnets", number, "gateway"), subnet["gateway"]
    for index, node in enumerate(plan["nodes"]):
        yield from _of_interfaces(("nodes", index, "links"), node.get("links") or [])
        yield from _of_interfaces(("nodes", index, "nics"), node["nics"])
    for index, one in enumerate(machines(plan)):
        yield from _of_interfaces(("machines", index, "nics"), one["nics"])
    yield from _of_hypervisors(plan)
    bootstrap = ipi.bootstrap(plan)
    for index, ip in enumerate(bootstrap["addresses"] if bootstrap else []):
        yield ("installer", "bootstrap", "addresses", index), ip


def _of_interfaces(place: Path, given: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Path, str]]:
    for position, nic in enumerate(given):
        for number, address in enumerate(nic["addresses"]):
            yield (*place, position, "addresses", number, "ip"), address["ip"]
