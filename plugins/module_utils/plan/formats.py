"""The formats of texts in a profile and in a plan: what reaches a shell, a path, XML or a unit file has a pattern.

`FORMATS` is a table: name -> (test, what would be right). Nobody tests a text by another rule.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable

from ..addresses import MAC

LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""A label of a DNS name (RFC 1123), in lower case."""

INTEGER = "integer"
"""The format of integers, none of `FORMATS`: 3.0 has it not."""


def fits(name: str, text: str) -> bool:
    """Return whether `text` has the format `name`. No format allows control characters, so none allows a second line."""
    return text.isprintable() and FORMATS[name][0](text)


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    # Not `$`, which also matches before a line break at the end.
    return lambda text: compiled.fullmatch(text) is not None


def _is_cidr(text: str) -> bool:
    if "/" not in text:
        return False
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return "%" not in text


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_mac(text: str) -> bool:
    if not MAC.fullmatch(text):
        return False
    return not int(text[:2], 16) & 1


def _is_directory(text: str) -> bool:
    parts = text.split("/")[1:]
    return text.startswith("/") and all(re.fullmatch(r"[\w.+@-]+", part) and part not in (".", "..") for part in parts)


_HOST = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?"
_is_name = _matches(_HOST)

FORMATS: dict[str, tuple[Callable[[str], bool], str]] = {
    "cidr": (_is_cidr, "a network in CIDR form without host bits, such as 192.168.111.0/24"),
    "ip": (_is_ip, "an IPv4 or IPv6 address, such as 192.168.111.20"),
    "mac": (_is_mac, "a unicast MAC, such as 00:1a:2b:3c:4d:5e"),
    "uuid": (_is_uuid, "a UUID, such as 123e4567-e89b-42d3-a456-426614174000"),
    "bridge": (
        _matches(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}"),
        "the name of a bridge: at most 15 characters of letters, digits, `_`, `.` and `-`",
    ),
    "file": (lambda text: text.startswith(("/", "~/")), "a path from the root or from home, such as ~/.ssh/id_rsa.pub"),
    "directory": (_is_directory, "an absolute path of letters, digits, `_`, `.`, `+`, `@` and `-`, without `..`, such as /var/lib/agentlab"),
    "domain": (_matches(rf"{LABEL}(\.{LABEL})*"), "a domain in lower case, such as test.metalkube.org"),
    "label": (_matches(LABEL), "lower-case letters, digits and `-`, such as master-0"),
    "name": (_matches(r"[A-Za-z0-9][A-Za-z0-9_.-]*"), "a name of letters, digits, `_`, `.` and `-`"),
    "host": (lambda text: _is_name(text) or _is_ip(text), "a host name or an IP address, such as lab1.example.com"),
    "user": (_matches(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}"), "the name of a user, such as root"),
    "login": (_matches(r"[!-9;-~]+"), "ASCII characters without blanks and `:`, such as admin"),
    "device": (_matches(r"/dev/[A-Za-z0-9_][A-Za-z0-9_.:/+@-]*"), "the path of a device, such as /dev/sda"),
    "bmc": (
        _matches(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9\[][A-Za-z0-9\[\]_.:/%@?=&~+-]*"),
        "the URL of a BMC, such as redfish-virtualmedia+https://192.0.2.1/redfish/v1/Systems/1",
    ),
    "url": (_matches(r"https?://[A-Za-z0-9\[][A-Za-z0-9\[\]_.:/%-]*"), "a URL, such as http://192.168.111.1:8089"),
    "version": (_matches(r"[0-9][0-9A-Za-z._+-]*"), "a version, such as 4.22.0"),
    "repository": (
        _matches(r"[A-Za-z0-9\[][A-Za-z0-9\[\]._:/@-]*"),
        "an image repository, such as registry.example.com:5000/ocp/release",
    ),
    "duration": (_matches(r"[0-9]+(ms|s|m|h)?"), "a number, with or without ms, s, m or h, such as 5 or 30s"),
    # bcrypt, with which servers keep passwords, takes no more.
    "password": (lambda text: 0 < len(text.encode()) <= 72, "at most 72 bytes of printable characters, in one line"),
    "line": (lambda text: bool(text.strip()), "one line of printable characters"),
}
