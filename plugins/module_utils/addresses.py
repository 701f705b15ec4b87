"""How IP and hardware addresses are written. Needs the standard library alone, and is in the bundles of node agent and swarm.

The functions look at the notation of an address or network that is known to be one; `ipaddress` decides whether it is.
"""

from __future__ import annotations

import re
import socket
from typing import Literal

Version = Literal[4, 6]
Family = Literal["ipv4", "ipv6"]

_OCTET = "[0-9A-Fa-f]{2}"
MAC = re.compile(rf"{_OCTET}(:{_OCTET}){{5}}", re.ASCII)
"""An Ethernet address, as Linux and OpenShift write it."""
MAC_OR_HYPHENS = re.compile(rf"{_OCTET}([:-]{_OCTET}){{5}}", re.ASCII)
"""The same, also as Windows writes it."""
LINK_LAYER = re.compile(rf"{_OCTET}(:{_OCTET}){{5,19}}", re.ASCII)
"""An address of six bytes (Ethernet) to twenty (InfiniBand)."""
GO_MAC = re.compile(
    rf"{_OCTET}([:-]){_OCTET}(\1{_OCTET})*|[0-9A-Fa-f]{{4}}\.[0-9A-Fa-f]{{4}}(\.[0-9A-Fa-f]{{4}})*", re.ASCII
)
"""The notations of Go's net.ParseMAC, of any length."""


def version(text: str) -> Version:
    """Return the version of IP that an address or network is of.

    text: in any notation, with a prefix length or without. Only a colon counts.
    """
    return 6 if ":" in text else 4


def family(text: str) -> Family:
    """Return the same as profiles and plans name it.

    That is `ipv4` or `ipv6`; text: as for `version`.
    """
    return "ipv6" if ":" in text else "ipv4"


def socket_family(text: str) -> socket.AddressFamily:
    """Return the same as sockets name it.

    text: an address as for `version`; a host name is AF_INET.
    """
    return socket.AF_INET6 if ":" in text else socket.AF_INET


def in_url(host: str) -> str:
    """Return a host name or address as written in a URL: IPv6 in brackets (RFC 3986, 3.2.2).

    A port may follow it. Addresses in brackets already must not be given.
    """
    return f"[{host}]" if ":" in host else host


def static_ips(state: object) -> list[str]:
    """Every static address of an nmstate document: interfaces in order, IPv4 before IPv6 in each.

    state: the document as parsed, of any type; what is not an nmstate document is skipped.
    """
    found = []
    for nic in (state or {}).get("interfaces") or [] if isinstance(state, dict) else []:
        for family in ("ipv4", "ipv6"):
            section = nic.get(family) if isinstance(nic, dict) else None
            for entry in (section or {}).get("address") or [] if isinstance(section, dict) else []:
                if isinstance(entry, dict) and entry.get("ip"):
                    found.append(str(entry["ip"]))
    return found
