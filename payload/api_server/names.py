"""Host names that the service accepts when it requires no token.

An attacker's page whose name resolves to this address ("DNS rebinding") could read everything that a service without
authentication returns; the browser sends the attacker's name as `Host`. Addresses and single-label names cannot be owned.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

_LOCAL = (".localhost", ".localdomain", ".test", ".internal", ".svc", ".cluster.local")


def is_served(host: str, urls: Iterable[str], domains: Iterable[str]) -> bool:
    """Return whether the `Host` of a request names this service.

    urls: its own URLs, as it gives them to clients; domains: those of its clusters.
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name.partition("%")[0])
        return True
    except ValueError:
        pass
    if not name or "." not in name or name.endswith(_LOCAL):
        return True
    own = {urlsplit(url).hostname for url in urls}
    return name in own or any(
        name == domain.lower() or name.endswith(f".{domain.lower()}") for domain in domains if domain
    )
