"""Which interface of a node is in which network: NICs, bonds of NICs, and VLANs on either, as a profile wants them.

Each role counts its own NICs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .fields import Role
from .machines import Address, Bond, Link, Network, Nic
from .options import BondOptions, Profile
from .presets import ROLES
from .problems import Path


class NetworkLink(NamedTuple):
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


def roles(profile: Profile) -> list[Role]:
    """Return the roles that a complete profile has nodes of."""
    return [role for role in ROLES if profile[role]["count"]] or [ROLES[0]]


def networks(profile: Profile, role: Role | None = None) -> list[tuple[Path, Mapping[str, Any]]]:
    """Return the networks of a role's nodes with their paths, the machine network first; None: those of all roles.

    A machine of the fault extra_host has those of a master.
    """
    extra: list[tuple[Path, Mapping[str, Any]]] = [
        (("extra_networks", index), network)
        for index, network in enumerate(profile["extra_networks"])
        if role is None or ("master" if role == "extra" else role) in (network.get("roles") or ROLES)
    ]
    return [(("network",), profile["network"]), *extra]


def of_role(profile: Profile, planned: list[Network], role: Role) -> list[Network]:
    """Return the extra networks of a plan that a role's nodes are in; planned: all networks of the plan."""
    names = [network["name"] for __, network in networks(profile, role)[1:]]
    return [network for network in planned if network["purpose"] == "extra" and network["name"] in names]


def bonds(profile: Profile, role: Role) -> dict[str, BondOptions]:
    """Return the bonds of a role's nodes: those that carry a network of theirs. A bond without a network is one of all nodes."""
    own, every = ({network.get("interface") for __, network in networks(profile, one)} for one in (role, None))
    return {name: bond for name, bond in profile["bonds"].items() if name in own or name not in every}


def network_links(profile: Profile, role: Role) -> list[NetworkLink]:
    """Return how a role's nodes are in each of their networks, the machine network first.

    One entry for each of `networks`, in their order. Without `interface` a network gets the next of eth0, eth1, ... that
    no bond or other network of the role has.
    """
    given = [network for __, network in networks(profile, role)]
    taken = {nic for bond in bonds(profile, role).values() for nic in bond["nics"]}
    taken |= {network["interface"] for network in given if network.get("interface")}
    free = (name for name in (f"eth{number}" for number in itertools.count()) if name not in taken)
    return [NetworkLink(network.get("interface") or next(free), network.get("vlan")) for network in given]


def nics(profile: Profile, role: Role) -> list[str]:
    """Return the names of the NICs of a role's nodes: all that a bond or a network names, or gets.

    In the order of their numbers: eth2 before eth10. All nodes of a role have the same ones.
    """
    found = {nic for bond in bonds(profile, role).values() for nic in bond["nics"]}
    found |= {one.parent for one in network_links(profile, role) if not one.parent.startswith("bond")}
    return sorted(found, key=lambda name: (len(name), name))


def switched_links(profile: Profile, role: Role) -> set[str]:
    """Return the NICs and bonds of a role that need a switch which knows link aggregation and VLANs.

    Those are all bonds, and parents of VLANs. Only the sandbox has such a switch; elsewhere a check refuses them.
    """
    return {*bonds(profile, role), *(one.parent for one in network_links(profile, role) if one.vlan is not None)}


def any_switched(profile: Profile) -> bool:
    """Return whether nodes of any role need such a switch."""
    return any(switched_links(profile, role) for role in roles(profile))


def machine_switched(profile: Profile) -> bool:
    """Return whether nodes of any role have the machine network over such a switch."""
    return any(network_links(profile, role)[0].parent in switched_links(profile, role) for role in roles(profile))


def of_node(
    profile: Profile,
    role: Role,
    own_networks: list[Network],
    index: int,
    mac_of: Callable[[str], str],
    addresses_of: Callable[[str, Network], list[Address]],
) -> tuple[list[Nic], list[Link]]:
    """Return NICs and links of the node at `index`, which has this role.

    own_networks: of the node, in the order of `networks`; mac_of: returns the MAC of a NIC; addresses_of: the addresses of an interface in a network.
    """
    ways, bonded, ports = network_links(profile, role), bonds(profile, role), switched_links(profile, role)
    holders = {nic: name for name, bond in bonded.items() for nic in bond["nics"]}
    on: dict[str, list[tuple[NetworkLink, Network]]] = {}
    for way, network in zip(ways, own_networks, strict=True):
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
    for name in nics(profile, role):
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
    for parent in sorted(ports, key=lambda name: (name not in bonded, len(name), name)):
        mac, plain = mac_of(bonded[parent]["nics"][0] if parent in bonded else parent), untagged(parent)
        if parent in bonded:
            bond: Bond = {"mode": bonded[parent]["mode"], "nics": list(bonded[parent]["nics"])}
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
