"""The nmstate of a node, for agent-config.yaml."""

from __future__ import annotations

from typing import Any

from .machines import Network, Nic
from .options import Profile
from .presets import FAMILIES


def network_config(profile: Profile, networks: list[Network], nics: list[Nic]) -> dict[str, Any] | None:
    """Return the nmstate of a node: all of it when static; with DHCPv6 the identifier that the reservation is made for."""
    if profile["addressing"] == "dhcp":
        if "ipv6" not in FAMILIES[profile["stack"]]:
            return None
        return {"interfaces": [_dhcp_interface(nic) for nic in nics]}
    subnets = networks[0]["subnets"]
    return {
        "interfaces": [_static_interface(nic) for nic in nics],
        "dns-resolver": {"config": {"server": [subnet["gateway"] for subnet in subnets]}},
        "routes": {
            "config": [
                {
                    "destination": "::/0" if subnet["family"] == "ipv6" else "0.0.0.0/0",
                    "next-hop-address": subnet["gateway"],
                    "next-hop-interface": nics[0]["name"],
                    "table-id": 254,
                }
                for subnet in subnets
            ]
        },
    }


def _interface(nic: Nic) -> dict[str, Any]:
    return {"name": nic["name"], "type": "ethernet", "state": "up", "mac-address": nic["mac"]}


def _dhcp_interface(nic: Nic) -> dict[str, Any]:
    interface = _interface(nic)
    auto = {"enabled": True, "dhcp": True, "auto-dns": True, "auto-gateway": True, "auto-routes": True}
    for family in ("ipv4", "ipv6"):
        has = any(address["family"] == family for address in nic["addresses"])
        interface[family] = {**auto} if has else {"enabled": False}
    if interface["ipv6"]["enabled"]:
        interface["ipv6"] |= {"autoconf": True, "dhcp-duid": "ll"}
    return interface


def _static_interface(nic: Nic) -> dict[str, Any]:
    interface = _interface(nic)
    for family in ("ipv4", "ipv6"):
        own = [address for address in nic["addresses"] if address["family"] == family]
        interface[family] = (
            {
                "enabled": True,
                "address": [{"ip": a["ip"], "prefix-length": a["prefix"]} for a in own],
                "dhcp": False,
            }
            if own
            else {"enabled": False}
        )
    return interface
