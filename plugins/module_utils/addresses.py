"""How IP addresses are written."""

from __future__ import annotations


def in_url(host: str) -> str:
    """Return a host name or address as it stands in a URL: IPv6 in brackets (RFC 3986, 3.2.2)."""
    return f"[{host}]" if ":" in host else host
