"""Address arithmetic over inventories, with caches: the same few networks are requested repeatedly."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ...plugins.module_utils.addresses import version
from .hardware import Inventory

_ZONE = re.compile(r"[-\w./]*", re.ASCII)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@lru_cache(maxsize=4096)
def network(text: str) -> Network | None:
    """The network of a CIDR or of an address with prefix; None when the text is neither."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


@lru_cache(maxsize=65536)
def address(text: str) -> Address | None:
    """Return the address in a string, without prefix; None if it is not an address."""
    try:
        # Python accepts any text as the zone of an IPv6 address, including line breaks.
        return ipaddress.ip_address(text.partition("/")[0]) if _ZONE.fullmatch(text.partition("%")[2]) else None
    except ValueError:
        return None


@lru_cache(maxsize=65536)
def contains(cidr: str, text: str) -> bool:
    """Return whether the network holds the address (with or without prefix)."""
    net, addr = network(cidr), address(text)
    return net is not None and addr is not None and addr.version == net.version and addr in net


def family(text: str) -> str:
    """Return the family as messages name it."""
    return f"IPv{version(text)}"


def addresses(inventory: Inventory) -> Iterator[tuple[Mapping[str, Any], str]]:
    """(interface, address with prefix) of a host, IPv4 before IPv6 on each interface."""
    for nic in inventory.get("interfaces", ()):
        for text in (*nic.get("ipv4_addresses", ()), *nic.get("ipv6_addresses", ())):
            yield nic, text


def host_networks(inventory: Inventory) -> list[str]:
    """Networks a host is on, in the order of its interfaces."""
    found: dict[str, None] = {}
    for __, text in addresses(inventory):
        net = network(text)
        if net is not None and not net.is_link_local and net.prefixlen < net.max_prefixlen:
            found.setdefault(str(net))
    return list(found)


def in_networks(inventory: Inventory, cidr: str) -> bool:
    return any(contains(cidr, text) for __, text in addresses(inventory))


def overlapping_pairs(cidrs: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of networks that share addresses, equal ones left out."""
    nets = [net for net in {network(text) for text in cidrs} if net is not None]
    nets.sort(key=lambda net: (net.version, net.network_address, net.prefixlen))
    return [
        (str(a), str(b)) for i, a in enumerate(nets) for b in nets[i + 1 :] if a.version == b.version and a.overlaps(b)
    ]
