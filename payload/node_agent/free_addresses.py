"""`free_addresses`: addresses of IPv4 subnets that nobody answers for."""

from __future__ import annotations

import ipaddress
from typing import Any

from . import network, probes
from .network import Nic
from .program import dumps
from .program import main as program
from .protocol import Result
from .steps import Context, argument

MOST_ADDRESSES = 8000
CHUNK_PREFIX = 22


def taken(subnet: ipaddress.IPv4Network, nics: list[Nic]) -> set[str]:
    """Addresses in use: on the link those that answer ARP, elsewhere those that answer an echo request; and our own."""
    own = {str(address.ip) for nic in nics for address in nic.addresses if address.version == 4}
    targets = [str(address) for address in subnet if str(address) not in own]
    found = {address for address in own if ipaddress.ip_address(address) in subnet}
    for nic in nics:
        source = nic.on_link(str(subnet.network_address))
        if source is not None:
            return found | set(probes.arp(nic.name, nic.mac, str(source.ip), targets, rounds=2, all_replies=False))
    return found | {target for target, echo in probes.ping(targets, 2, 1.0, 1.0).items() if echo.times}


def scan(cidr: str, nics: list[Nic]) -> dict[str, Any]:
    """The model `free_network_addresses`; stops after 8000 free ones, asks at most a /22 at a time."""
    try:
        subnet = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise ValueError(f"Network {cidr} is not a valid CIDR: {error}") from None
    free: list[str] = []
    for chunk in subnet.subnets(new_prefix=CHUNK_PREFIX) if subnet.prefixlen < CHUNK_PREFIX else [subnet]:
        used = taken(chunk, nics)
        free += [text for text in map(str, chunk) if text not in used]
        if len(free) >= MOST_ADDRESSES:
            break
    return {"network": cidr, "free_addresses": free}


def step(args: list[str], context: Context) -> Result:
    nics = network.outgoing_nics()
    return Result(dumps([scan(cidr, nics) for cidr in argument("free-network-addresses", args[0])]))


def main(argv: list[str] | None = None) -> int:
    return program("free_addresses", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
