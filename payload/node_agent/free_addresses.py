"""`free_addresses`: unused addresses of IPv4 subnets."""

from __future__ import annotations

import ipaddress
from typing import Any

from . import network, probes
from .network import Nic
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context, arguments

MOST_ADDRESSES = 8000
CHUNK_PREFIX, SHORTEST_PREFIX = 22, 16
MOST_NETWORKS = 64


def taken_addresses(subnet: ipaddress.IPv4Network, nics: list[Nic]) -> set[str]:
    """Return addresses in use: on the link those that answer ARP, elsewhere those that answer an echo request; and our own."""
    found = {
        str(address.ip) for nic in nics for address in nic.addresses if address.version == 4 and address.ip in subnet
    }
    elsewhere = {str(address) for address in subnet} - found
    for nic in nics:
        by_source: dict[str, list[str]] = {}
        for target in elsewhere:
            if source := nic.on_link(target):
                by_source.setdefault(str(source.ip), []).append(target)
        for own, group in by_source.items():
            elsewhere -= set(group)
            found |= set(probes.arp(nic.name, nic.mac, own, sorted(group), rounds=2, all_replies=False))
    return found | {target for target, echo in probes.ping(sorted(elsewhere), 2, 1.0, 1.0).items() if echo.times}


def scan(cidr: str, nics: list[Nic]) -> dict[str, Any]:
    """The model `free_network_addresses`; stops after 8000 free ones, probes at most a /22 at a time."""
    try:
        subnet = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise ValueError(f"Network {cidr} is not a valid CIDR: {error}") from None
    free: list[str] = []
    if subnet.prefixlen < SHORTEST_PREFIX or subnet.is_loopback or subnet.is_multicast:
        raise ValueError(
            f"Network {cidr} is not scanned: it is not a host network, or larger than a /{SHORTEST_PREFIX}"
        )
    for chunk in subnet.subnets(new_prefix=CHUNK_PREFIX) if subnet.prefixlen < CHUNK_PREFIX else [subnet]:
        used = taken_addresses(chunk, nics)
        free += [text for text in map(str, chunk) if text not in used]
        if len(free) >= MOST_ADDRESSES:
            break
    return {"network": cidr, "free_addresses": free or None}


def step(args: list[str], context: Context) -> Result:
    nics = network.outgoing_nics()
    return Result(
        marshal([scan(cidr, nics) for cidr in arguments("free-network-addresses", args[0], str, MOST_NETWORKS)])
    )


def main(argv: list[str] | None = None) -> int:
    return program("free_addresses", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
