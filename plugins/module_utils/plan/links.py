"""Which interface of a node is in which network: NICs, bonds of NICs, and VLANs on either, as a profile wants them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .machines import Address, Bond, Link, Network, Nic
from .options import Profile


class Carried(NamedTuple):
    """How nodes are in a network: by a NIC or a bond (`parent`), untagged or with a VLAN id.

    `vlan` is 1 to 4094, or None for untagged packets. The parent is eth0, eth1, ... or bond0, ...
    """

    parent: str
    vlan: int | None

    @property
    def name(self) -> str:
        """Name of the nodes' interface in the network.

        As Linux names them: `eth0`, `bond0`, or with a VLAN `eth0.100`.
        """
        return self.parent if self.vlan is None else f"{self.parent}.{self.vlan}"


def carried(profile: Profile) -> list[Carried]:
    """Return how nodes are in each network, the machine network first.

    One entry for each network, in the order of the plan. Without `interface` a network gets the next of eth0, eth1, ...
    that no bond or other network has.
    """
    networks: list[Mapping[str, Any]] = [profile["network"], *profile["extra_networks"]]
    taken = {nic for bond in profile["bonds"].values() for nic in bond["nics"]}
    taken |= {network["interface"] for network in networks if network.get("interface")}
    free = (name for name in (f"eth{number}" for number in itertools.count()) if name not in taken)
    return [Carried(network.get("interface") or next(free), network.get("vlan")) for network in networks]


def nics(profile: Profile) -> list[str]:
    """Return the names of a node's NICs: all that a bond or a network names, or gets.

    In the order of their numbers: eth2 before eth10. All nodes have the same ones.
    """
    found = {nic for bond in profile["bonds"].values() for nic in bond["nics"]}
    found |= {one.parent for one in carried(profile) if not one.parent.startswith("bond")}
    return sorted(found, key=lambda name: (len(name), name))


def switched(profile: Profile) -> set[str]:
    """Return the NICs and bonds that need a switch which knows link aggregation and VLANs.

    Those are all bonds, and parents of VLANs. Only the sandbox has such a switch; elsewhere a check refuses them.
    """
    return {*profile["bonds"], *(one.parent for one in carried(profile) if one.vlan is not None)}


def of_node(
    profile: Profile,
    networks: list[Network],
    index: int,
    mac_of: Callable[[str], str],
    addresses_of: Callable[[str, Network], list[Address]],
) -> tuple[list[Nic], list[Link]]:
    """Return NICs and links of the node at `index`.

    mac_of: returns the MAC of a NIC; addresses_of: the addresses of an interface in a network.
    """
    ways, bonds, ports = carried(profile), profile["bonds"], switched(profile)
    holders = {nic: name for name, bond in bonds.items() for nic in bond["nics"]}
    on: dict[str, list[tuple[Carried, Network]]] = {}
    for way, network in zip(ways, networks, strict=True):
        on.setdefault(way.parent, []).append((way, network))

    def untagged(parent: str) -> Network | None:
        return next((network for way, network in on.get(parent, []) if way.vlan is None), None)

    def mtu(parent: str) -> int:
        """The untagged network's MTU; without one the greatest of the VLANs, which have the parent's at most."""
        plain = untagged(parent)
        return plain["mtu"] if plain else max(network["mtu"] for __, network in on[parent])

    def own(name: str, network: Network | None) -> list[Address]:
        return addresses_of(name, network) if network else []

    made: list[Nic] = []
    for name in nics(profile):
        parent = holders.get(name, name)
        nic: Nic = {
            "name": name,
            "network": on[parent][0][1]["name"],
            "mac": mac_of(name),
            "addresses": own(name, untagged(name)),
        }
        if parent in ports:
            nic |= {"port": f"n{index}-{name}", "mtu": mtu(parent)}
        made.append(nic)
    links: list[Link] = []
    for parent in sorted(ports, key=lambda name: (name not in bonds, len(name), name)):
        mac, plain = mac_of(bonds[parent]["nics"][0] if parent in bonds else parent), untagged(parent)
        if parent in bonds:
            bond: Bond = {"mode": bonds[parent]["mode"], "nics": list(bonds[parent]["nics"])}
            links.append({
                "name": parent, "mac": mac, "mtu": mtu(parent), "bond": bond, "vlan": None,
                "network": plain["name"] if plain else None, "addresses": own(parent, plain),
            })  # fmt: skip
        links += [
            {
                "name": way.name, "mac": mac, "mtu": network["mtu"], "bond": None,
                "vlan": {"id": way.vlan, "parent": parent}, "network": network["name"],
                "addresses": own(way.name, network),
            }
            for way, network in on[parent] if way.vlan is not None
        ]  # fmt: skip
    return made, links
