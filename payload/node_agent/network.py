"""Network interfaces, addresses and routes of the host, read with iproute2's JSON and sysfs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...plugins.module_utils.addresses import LINK_LAYER
from ...plugins.module_utils.bounded import load_json
from . import host

SYS = Path("/sys/class/net")
# Names of net.Flags in Go, in its order; its "running" is the kernel's LOWER_UP/RUNNING.
GO_FLAGS = (("UP", "up"), ("BROADCAST", "broadcast"), ("LOOPBACK", "loopback"), ("POINTOPOINT", "pointtopoint"),
            ("MULTICAST", "multicast"), ("RUNNING", "running"))  # fmt: skip
# Kinds whose name in the inventory differs from the kernel's.
KINDS = {"tun": "tuntap"}
INT32 = 1 << 32


Address = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(slots=True)
class Nic:
    """One interface.

    mac: the permanent one, also while enslaved to a bond; addresses: all of them, with prefix; flags: names as of Go's
    net.Flags; mtu in bytes.
    """

    name: str
    mac: str
    kind: str
    mtu: int
    flags: list[str]
    addresses: list[Address] = field(default_factory=list)
    index: int = 0
    carrier: bool = False

    @property
    def outgoing(self) -> list[Address]:
        """Return addresses that other hosts can use: not link-local."""
        return [address for address in self.addresses if not address.is_link_local]

    def on_link(self, target: str) -> Address | None:
        """Our address in the subnet of `target`, if there is one."""
        other = ipaddress.ip_address(target)
        for address in self.addresses:
            if address.version == other.version and other in address.network:
                return address
        return None


def ip(*args: str) -> list[dict[str, Any]]:
    """Return the rows of `ip -j ...`; none when it fails.

    Empty objects, which `ip -j` writes for filtered rows, are dropped.
    """
    result = host.run(["ip", "-j", *args])
    try:
        return [row for row in load_json(result.output or "[]", name="ip") if row]
    except ValueError:
        return []


def kind_of(link: dict[str, Any], sys: Path = SYS) -> str:
    """Return the kind of an interface: `physical`, or the kernel's name: bond, vlan, bridge, veth, ...

    link: a row of `ip -d -j address`; sys: /sys/class/net, by which a card on a bus is told from a virtual one.
    `device` is one without a kind, as the loopback.
    """
    path = sys / link["ifname"]
    if path.exists() and "/virtual/" not in str(path.resolve()):
        return "physical"
    kind = str(link.get("linkinfo", {}).get("info_kind", "device"))
    return KINDS.get(kind, kind)


def permanent_mac(link: dict[str, Any]) -> str:
    """Return the MAC address in lower case; empty for interfaces without one.

    link: a row of `ip -d -j address`. The loopback's is all zero, and a tunnel's is an IP address: these count as none.
    """
    slave = link.get("linkinfo", {}).get("info_slave_data", {})
    mac = str(slave.get("perm_hwaddr") or link.get("address") or "").lower()
    return mac if LINK_LAYER.fullmatch(mac) and mac.strip("0:") else ""


def nics(sys: Path = SYS) -> list[Nic]:
    """Return all interfaces, in the kernel's order.

    They are those of this process's network namespace; none if `ip` fails. A DHCPv6 address, which is a /128, has the
    length of the prefix that routers advertise for it.
    """
    found = []
    advertised: dict[str, list[ipaddress.IPv6Network]] | None = None
    for link in ip("-d", "address", "show"):
        has = set(link.get("flags", ()))
        has |= {"RUNNING"} if "UP" in has and "NO-CARRIER" not in has else set()
        addresses: list[Address] = [
            ipaddress.ip_interface(f"{entry['local']}/{entry['prefixlen']}")
            for entry in link.get("addr_info", ())
            if "local" in entry
        ]
        name = link["ifname"]
        if "LOOPBACK" not in has and any(address.version == 6 and not address.is_link_local for address in addresses):
            advertised = advertised_prefixes() if advertised is None else advertised
            addresses = [on_prefix(address, advertised.get(name, [])) for address in addresses]
        found.append(
            Nic(
                name=name,
                mac=permanent_mac(link),
                kind=kind_of(link, sys),
                mtu=link.get("mtu", 0),
                flags=[name for kernel, name in GO_FLAGS if kernel in has],
                addresses=addresses,
                index=link.get("ifindex", 0),
                carrier="LOWER_UP" in has,
            )
        )
    return found


def outgoing_nics() -> list[Nic]:
    """Return interfaces for probes: physical, bond or VLAN, with at least one address that is not link-local.

    Inside a network namespace there is no hardware but veth pairs, so `veth` counts as physical.
    """
    return [nic for nic in nics() if nic.kind in ("physical", "bond", "vlan", "veth") and nic.outgoing]


def routes() -> list[dict[str, Any]]:
    """Routes of the main table as the model `route`; the default destination is 0.0.0.0 or ::. Those without an interface (blackhole...) are omitted.

    The model's metric is a signed number of 32 bits, the kernel's an unsigned one: 4294967295 is reported as -1.
    """
    found = []
    for family, number, zero in (("-4", 2, "0.0.0.0"), ("-6", 10, "::")):
        for route in ip(family, "route", "show"):
            hop = (route.get("nexthops") or [{}])[0]
            target = route.get("dst", "default")
            device = route.get("dev") or hop.get("dev") or ""
            if not device:
                continue
            metric = route.get("metric", 0)
            found.append(
                {
                    "interface": device,
                    "gateway": route.get("gateway") or hop.get("gateway") or (route.get("via") or {}).get("host", ""),
                    "destination": zero if target == "default" else target.partition("/")[0],
                    "family": number,
                    "metric": metric - INT32 if metric >= INT32 // 2 else metric,
                }
            )
    return found


def on_prefix(address: Address, prefixes: list[ipaddress.IPv6Network]) -> Address:
    """Return the address with the length of its advertised prefix, or unchanged."""
    for prefix in prefixes:
        if address.version == 6 and address.ip in prefix:
            return ipaddress.IPv6Interface(f"{address.ip}/{prefix.prefixlen}")
    return address


def advertised_prefixes() -> dict[str, list[ipaddress.IPv6Network]]:
    """Return the on-link prefixes that routers advertise, by interface.

    A DHCPv6 address itself is a /128: these have the length of its subnet.
    """
    found: dict[str, list[ipaddress.IPv6Network]] = {}
    for route in ip("-6", "-d", "route", "show", "proto", "ra"):
        if route.get("dst", "default") != "default" and "dev" in route:
            found.setdefault(route["dev"], []).append(ipaddress.IPv6Network(route["dst"]))
    return found
