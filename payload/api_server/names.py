"""The host names that the service answers to when it asks for no token.

A page of an attacker whose name was made to lead to this address ("DNS rebinding") may read whatever a service without
authentication says; the browser sends the attacker's name as `Host`. Nobody owns an address or a name of one label.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

_LOCAL = (".localhost", ".localdomain", ".test", ".internal", ".svc", ".cluster.local")


def is_served(host: str, urls: Iterable[str], domains: Iterable[str]) -> bool:
    """Whether the `Host` of a request names this service.

    urls: its own addresses, as it gives them to others; domains: those of its clusters.
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
    return name in own or any(name == domain.lower() or name.endswith(f".{domain.lower()}") for domain in domains if domain)
