"""The machines outside of the cluster and their networks, as a plan has them."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from . import names
from .disks import disks
from .host_network import network_config
from .machines import Address, Network, Nic, Reservation
from .model import Plan, Vips
from .networks import extra_network, given_addresses
from .options import Profile
from .outside import LAB, MACHINE_NETWORK, Machine, complete


def outside_networks(profile: Profile, cluster: str) -> list[Network]:
    """Return the networks of a complete profile that no node is in. They have DHCP."""
    return [
        {**extra_network(given, profile, cluster, dhcp=True), "purpose": "outside"}
        for given in profile["outside_networks"]
    ]


def add(plan: Plan, profile: Profile) -> None:
    """Give a plan the machines of its profile, in the profile's order, and its networks their names and leases."""
    machines = [_machine(plan, profile, index, complete(given)) for index, given in enumerate(profile["machines"])]
    if machines:
        plan["machines"] = machines
        _serve(plan["networks"], machines)


def _machine(plan: Plan, profile: Profile, index: int, given: dict[str, Any]) -> Machine:
    cluster, networks = plan["cluster"]["name"], plan["networks"]
    domain, lab = f"{cluster}_{given['name']}", given["image"] == LAB
    own = [_network(one["name"], networks) for one in given["networks"]]
    nics: list[Nic] = [
        {
            "name": f"eth{number}",
            "network": network["name"],
            "mac": names.mac_address(f"{cluster}/machines", f"eth{number}", index),
            "addresses": given_addresses(one["addresses"], network)
            if one.get("addresses")
            else _addresses(network, profile, index),
        }
        for number, (one, network) in enumerate(zip(given["networks"], own, strict=True))
    ]
    held = _held(nics, own, plan["vips"]) if given["load_balancer"] else nics
    return {
        "name": given["name"],
        "domain": domain,
        "uuid": names.node_uuid(cluster, given["name"]),
        "vcpus": given["vcpus"],
        "memory_mib": given["memory_mib"],
        "firmware": given["firmware"],
        "tpm": False,
        "disks": disks(domain, [{"size_gib": given["disk_gib"]}] if given["disk_gib"] else []),
        "nics": nics,
        "console": names.console(plan["hypervisor"]["state_dir"], domain),
        "image": given["image"],
        "network_config": _network_config(profile, own, held) if lab else None,
        "files": dict(given["files"]),
        "units": dict(given["units"]),
    }


def _network_config(profile: Profile, own: list[Network], nics: list[Nic]) -> dict[str, Any] | None:
    """Return the nmstate of a machine whose NICs have the names that its system gives them: they are known by their MACs."""
    made = network_config(profile, own, nics, [], "static")
    for interface in made["interfaces"] if made else ():
        interface["identifier"] = "mac-address"
    return made


def _network(name: str, networks: Sequence[Network]) -> Network:
    return next(one for one in networks if name in (one["name"], MACHINE_NETWORK))


def _addresses(network: Network, profile: Profile, index: int) -> list[Address]:
    offset = profile["network"]["offsets"]["machines"] + index
    return [
        {
            "family": subnet["family"],
            "ip": str(ipaddress.ip_network(subnet["cidr"])[offset]),
            "prefix": subnet["prefix"],
        }
        for subnet in network["subnets"]
    ]


def _held(nics: list[Nic], own: list[Network], vips: Vips) -> list[Nic]:
    """Return the NICs with the addresses of API and ingress on the one in the machine network."""
    wanted = list(dict.fromkeys([*vips["api"], *vips["ingress"]]))
    first = next(number for number, network in enumerate(own) if network["purpose"] == "machine")
    has = {address["ip"] for address in nics[first]["addresses"]}
    more = given_addresses([ip for ip in wanted if ip not in has], own[first])
    return [
        {**nic, "addresses": [*nic["addresses"], *more]} if number == first else nic for number, nic in enumerate(nics)
    ]


def _serve(networks: Sequence[Network], machines: Sequence[Machine]) -> None:
    """Give the networks of the cluster the machines' names, and those with DHCP their leases; `networks` are changed.

    A machine with the image `lab` has static addresses.
    """
    for machine in machines:
        known = [address["ip"] for nic in machine["nics"] for address in nic["addresses"] if _domain(nic, networks)]
        for network in networks:
            if network["domain"]:
                network["dns"]["hosts"] += [{"ip": ip, "names": [machine["name"]]} for ip in known]
            if machine["image"] != LAB and any(subnet["dhcp"] for subnet in network["subnets"]):
                network["reservations"] += _leases(machine, network)


def _domain(nic: Nic, networks: Sequence[Network]) -> str | None:
    return next(network["domain"] for network in networks if network["name"] == nic["network"])


def _leases(machine: Machine, network: Network) -> list[Reservation]:
    return [
        {
            "mac": nic["mac"] if address["family"] == "ipv4" else None,
            "duid": names.duid_ll(nic["mac"]) if address["family"] == "ipv6" else None,
            "ip": address["ip"],
            "name": machine["name"],
        }
        for nic in machine["nics"]
        if nic["network"] == network["name"]
        for address in nic["addresses"]
    ]
