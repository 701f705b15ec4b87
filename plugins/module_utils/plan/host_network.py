"""The nmstate of a node, for agent-config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .fields import Addressing
from .machines import Address, Link, Network, Nic
from .options import Profile
from .presets import FAMILIES, MTU

_MAIN_TABLE = 254
# The switch sends LACPDUs at the fast rate, too, so that a port which lost its partner is noticed within 3 s.
_BOND_OPTIONS = {
    "active-backup": {"miimon": "100"},
    "balance-xor": {"miimon": "100", "xmit_hash_policy": "layer2+3"},
    "802.3ad": {"miimon": "100", "xmit_hash_policy": "layer2+3", "lacp_rate": "fast"},
}


def network_config(
    profile: Profile, networks: list[Network], nics: list[Nic], links: list[Link], way: Addressing
) -> dict[str, Any] | None:
    """Return the nmstate of a node, which gets its addresses by this `way` (`build.addressing_of`); None where NetworkManager's default is right.

    The default is DHCP on each NIC, or SLAAC for IPv6. It is not right with static addresses, bonds, VLANs and routes; nor with
    DHCPv6, where the identifier must be that of the reservation. networks: those of the node, each with its MTU in bytes.
    """
    if way == "slaac":
        return None
    dhcp = way == "dhcp"
    mtus = {network["name"]: network["mtu"] for network in networks if not (dhcp and _leased_mtu(network))}
    routes = [
        _route(route["destination"], route["next_hop"], interface["name"])
        for network in networks
        for interface in [_interface_in(network, nics, links)]
        for route in network.get("routes") or []
    ]
    if dhcp and "ipv6" not in FAMILIES[profile["stack"]] and not links and not routes:
        return None
    interfaces = [
        *(_interface(nic, mtus) | _ip(nic["addresses"], dhcp) for nic in nics),
        *(_link(link) | _ip(link["addresses"], dhcp) for link in links),
    ]
    if dhcp:
        return {"interfaces": interfaces, **({"routes": {"config": routes}} if routes else {})}
    subnets = networks[0]["subnets"]
    first = _interface_in(networks[0], nics, links)["name"]
    return {
        "interfaces": interfaces,
        "dns-resolver": {"config": {"server": [subnet["gateway"] for subnet in subnets]}},
        "routes": {
            "config": [
                *(
                    _route("::/0" if subnet["family"] == "ipv6" else "0.0.0.0/0", subnet["gateway"], first)
                    for subnet in subnets
                ),
                *routes,
            ]
        },
    }


def _interface_in(network: Network, nics: list[Nic], links: list[Link]) -> Nic | Link:
    every: list[Nic | Link] = [*links, *nics]
    return next(one for one in every if one["network"] == network["name"])


def _route(destination: str, next_hop: str, interface: str) -> dict[str, Any]:
    return {
        "destination": destination,
        "next-hop-address": next_hop,
        "next-hop-interface": interface,
        "table-id": _MAIN_TABLE,
    }


def _interface(nic: Nic, mtus: Mapping[str, int]) -> dict[str, Any]:
    """Return the nmstate of a NIC. mtus: network -> MTU in bytes that no lease has."""
    interface = {"name": nic["name"], "type": "ethernet", "state": "up", "mac-address": nic["mac"]}
    mtu = mtus.get(nic["network"], MTU)
    # The MTU of a NIC at the switch is that of all that it carries.
    given = nic.get("mtu") or (mtu if mtu != MTU else None)
    return {**interface, **({"mtu": given} if given else {})}


def _leased_mtu(network: Network) -> bool:
    """Return whether a lease has the network's MTU: DHCPv6 has no such option, and router advertisements cannot raise a NIC's."""
    return any(subnet["family"] == "ipv4" for subnet in network["subnets"])


def _link(link: Link) -> dict[str, Any]:
    bond, vlan = link["bond"], link["vlan"]
    kind = "bond" if bond else "vlan"
    interface: dict[str, Any] = {"name": link["name"], "type": kind, "state": "up", "mtu": link["mtu"]}
    if bond:
        interface["copy-mac-from"] = bond["nics"][0]
        interface["link-aggregation"] = {
            "mode": bond["mode"],
            "options": dict(_BOND_OPTIONS[bond["mode"]]),
            "port": list(bond["nics"]),
        }
    if vlan:
        interface["vlan"] = {"base-iface": vlan["parent"], "id": vlan["id"]}
    return interface


def _ip(addresses: list[Address], dhcp: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for family in ("ipv4", "ipv6"):
        own = [address for address in addresses if address["family"] == family]
        if not own:
            found[family] = {"enabled": False}
        elif dhcp:
            found[family] = {"enabled": True, "dhcp": True, "auto-dns": True, "auto-gateway": True, "auto-routes": True}
        else:
            listed = [{"ip": address["ip"], "prefix-length": address["prefix"]} for address in own]
            found[family] = {"enabled": True, "address": listed, "dhcp": False}
    if dhcp and found["ipv6"]["enabled"]:
        found["ipv6"] |= {"autoconf": True, "dhcp-duid": "ll"}
    return found
