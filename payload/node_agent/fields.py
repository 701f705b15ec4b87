"""Validation of fields in step arguments.

An agent is root on its host. Everything that a service sends is data: an identifier is a UUID and never a path, a disk is one of this
host's inventory and never a file, an image is never an option of podman, a URL is followed by HTTP only.
Every function raises ValueError with the step, the field, its value and the valid values.
"""

from __future__ import annotations

import ipaddress
import math
import re
import urllib.parse
from typing import Any

from ...plugins.module_utils.addresses import MAC

_PART = r"[0-9A-Za-z][-0-9A-Za-z._]*"
IMAGE = re.compile(
    r"(?!(?:atomic|containers-storage|dir|docker|docker-archive|docker-daemon|oci|oci-archive|ostree|sif|tarball):)"
    rf"(?:(?:{_PART}|\[[0-9A-Fa-f:]+\])(?::\d{{1,5}})?/)?{_PART}(?:/{_PART})*(?::\w[-\w.]{{0,127}})?(?:@[0-9A-Za-z]+:[0-9A-Fa-f]+)?",
    re.ASCII,
)
"""An image in a registry: neither an option of podman nor a file by a transport of containers-transports(5)."""
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
IDENTIFIER = re.compile(r"[0-9A-Za-z][-0-9A-Za-z._]{0,127}", re.ASCII)
# Linux's rule (dev_valid_name), and not an option for any program.
INTERFACE = re.compile(r"[^\s/:.%-][^\s/:%]{0,14}")
LONGEST = 4096
"""Maximum number of characters of a single value, as of a path in Linux."""


def shown_value(value: object) -> str:
    """Return a value for a message: one line, truncated."""
    return value[:200] if isinstance(value, str) and value[:200].isprintable() else repr(value)[:200]


def text(where: str, value: object, most: int = LONGEST) -> str:
    """One line of text."""
    if not isinstance(value, str):
        raise ValueError(f"{where} should be a string, got {shown_value(value)}")
    if len(value) > most:
        raise ValueError(f"{where} has {len(value)} characters, the limit is {most}")
    if not value.isprintable():
        raise ValueError(f"{where} has control characters: {shown_value(value)}")
    return value


def _matching(where: str, value: object, pattern: re.Pattern[str], what: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST or not pattern.fullmatch(value):
        raise ValueError(f"{where} {shown_value(value)} is not a valid {what}")
    return value


def uuid(where: str, value: object) -> str:
    return _matching(where, value, UUID, "UUID")


def identifier(where: str, value: object) -> str:
    """An identifier of the service: safe in a URL and as an argument, but not as a file name."""
    return _matching(where, value, IDENTIFIER, "identifier")


def image(where: str, value: object) -> str:
    return _matching(where, value, IMAGE, "image")


def mac(where: str, value: object) -> str:
    return _matching(where, value, MAC, "MAC address")


def interface(where: str, value: object) -> str:
    return text(where, _matching(where, value, INTERFACE, "network interface"))


def address(where: str, value: object) -> str:
    """An IPv4 or IPv6 address."""
    found = text(where, value)
    try:
        ipaddress.ip_address(found)
    except ValueError as error:
        raise ValueError(f"{where} {error}") from None
    return found


def entries(where: str, value: object, kind: type, most: int) -> list[Any]:
    """A list of values of one type; None is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, kind) for entry in value):
        raise ValueError(
            f"{where} should be a list of {'objects' if kind is dict else 'strings'}, got {shown_value(value)}"
        )
    if len(value) > most:
        raise ValueError(f"{where} has {len(value)} entries, the limit is {most}")
    return value


def mapping(where: str, value: object) -> dict[str, Any]:
    """An object; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{where} should be an object, got {shown_value(value)}")
    return value


def seconds(where: str, value: object, most: float) -> float:
    """A duration, as a number or string. Values above `most` are limited to `most`."""
    try:
        found = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        found = math.nan
    if math.isnan(found) or found < 0:
        raise ValueError(f"{where} {shown_value(value)} is not a number of seconds")
    return min(found, most)


def url(where: str, value: object) -> str:
    """A URL that HTTP can get."""
    found = text(where, value)
    try:
        parts = urllib.parse.urlsplit(found)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or " " in found:
        raise ValueError(f"{where} {shown_value(value)} is not an http or https URL")
    return found
