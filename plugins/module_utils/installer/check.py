"""Small predicates on addresses, names and URLs, with the texts of Go's standard library and Kubernetes."""

from __future__ import annotations

import ipaddress
import re
from typing import Union

from ..addresses import GO_MAC
from .errors import quote

Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]  # noqa: UP007
Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]  # noqa: UP007

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
DNS1123_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def address(text: object) -> Address | None:
    """The IP address that `text` is, without zone, or None.

    text: what the input has, of any type; None also for other types and for a zone (`fe80::1%eth0`).
    """
    try:
        found = ipaddress.ip_address(text) if isinstance(text, str) and "%" not in text else None
    except ValueError:
        return None
    return found


def network(text: object) -> Network | None:
    """The network that `text` names in CIDR form (host bits allowed), or None.

    text: what the input has, of any type; an address without a prefix length is not a network.
    """
    try:
        return ipaddress.ip_network(text, strict=False) if isinstance(text, str) and "/" in text else None
    except ValueError:
        return None


def subdomain(text: str) -> str | None:
    """Why `text` is not a DNS-1123 subdomain, or None.

    The reason is Kubernetes' text (apimachinery `validation.IsDNS1123Subdomain`).
    """
    if len(text) > 253:
        return "must be no more than 253 characters"
    return None if _SUBDOMAIN.fullmatch(text) else DNS1123_SUBDOMAIN_TEXT


def domain_name(text: str) -> str | None:
    """Why `text` is not a domain name (a trailing dot is allowed), or None."""
    return subdomain(text[:-1] if text.endswith(".") else text)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def uri(text: str) -> str | None:
    """Why `text` is not a URI with a scheme, or None.

    The reason is the installer's text (`validate.URI`). Nothing after the scheme is checked.
    """
    if re.search(r"[\x00-\x20\x7f]", text):
        return f"parse {quote(text)}: net/url: invalid control character in URL"
    return None if _SCHEME.match(text) else f'invalid URI "{text}" (no scheme)'


def request_uri(text: str) -> str | None:
    """Why Go's url.ParseRequestURI refuses `text`, or None: it wants an absolute URI or an absolute path.

    The reason has the form of Go's `url.Error`: `parse "TEXT": WHY`.
    """
    if not text:
        return 'parse "": empty url'
    if re.search(r"[\x00-\x20\x7f]", text) or not (_SCHEME.match(text) or text.startswith("/")):
        return f"parse {quote(text)}: invalid URI for request"
    return None


def mac(text: str) -> str | None:
    """Why `text` is not a unicast Ethernet address, or None.

    Go's `net.ParseMAC` takes 6, 8 and 20 bytes, of which only 6 are right here. The reason is the installer's text.
    """
    digits = re.sub(r"[:.-]", "", text)
    if not GO_MAC.fullmatch(text) or len(digits) not in (12, 16, 40):
        return f"address {text}: invalid MAC address"
    if len(digits) != 12:
        return "invalid MAC address"
    return "expected unicast mac address, found multicast" if int(digits[:2], 16) & 1 else None
