"""`domain_resolution`: how this host resolves the cluster's names."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import fields
from .program import REQUEST, marshal
from .program import main as program
from .protocol import Result
from .steps import Context, argument

MOST_DOMAINS = 1000


def resolve(domain: str) -> dict[str, Any]:
    """The model's entry for a name. A name that does not exist has no addresses, which is not an error."""
    found: dict[int, list[str]] = {socket.AF_INET: [], socket.AF_INET6: []}
    canonical = ""
    try:
        for family, _type, _protocol, name, address in socket.getaddrinfo(
            domain, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME
        ):
            canonical = canonical or name
            if family in found and address[0] not in found[family]:
                found[family].append(str(address[0]))
    except (OSError, UnicodeError):
        pass
    return {
        "domain_name": domain,
        "ipv4_addresses": found[socket.AF_INET],
        "ipv6_addresses": found[socket.AF_INET6],
        "cnames": [canonical.rstrip(".") + "."] if canonical else None,
    }


def step(args: list[str], context: Context) -> Result:
    domains = argument("domain-resolution", args[0], "domains")["domains"]
    if not isinstance(domains, list) or not all(
        isinstance(entry, dict) and "domain_name" in entry for entry in domains
    ):
        raise ValueError("Every domain in a domain request must have a domain name field")
    fields.entries("domain-resolution: domains", domains, dict, MOST_DOMAINS)
    names = [fields.text("domain-resolution: domain_name", entry["domain_name"]) for entry in domains]
    with ThreadPoolExecutor(8) as pool:
        return Result(marshal({"resolutions": list(pool.map(resolve, names))}))


def main(argv: list[str] | None = None) -> int:
    return program("domain_resolution", step, argv, extra=(REQUEST,))


if __name__ == "__main__":
    raise SystemExit(main())
