"""IP addresses as text: family and form in a URL. The one place for both."""

from __future__ import annotations

import ipaddress


def family(address: str) -> str:
    """Return `ipv4` or `ipv6` of an address; ValueError for other text."""
    return f"ipv{ipaddress.ip_address(address).version}"


def in_url(host: str) -> str:
    """Return a host name or address as it stands in a URL: IPv6 in brackets (RFC 3986, 3.2.2)."""
    return f"[{host}]" if ":" in host else host
