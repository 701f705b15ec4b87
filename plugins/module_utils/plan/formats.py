"""The formats of strings in a profile and in a plan: what reaches a shell, a path, XML or a unit file has a pattern.

`FORMATS` is a table: name -> test and what would be right. All code validates by these rules.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
import uuid
import warnings
from collections.abc import Callable
from typing import NamedTuple

from ..addresses import LINK_LAYER, MAC

LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""A label of a DNS name (RFC 1123), in lower case."""


class Format(NamedTuple):
    """What a text must be (to follow "must be"), and its pattern, its test, or both.

    The pattern is a regular expression for the whole text, which the JSON schema has too; a test is for what no pattern
    can express. lines: it may have several lines, and tabs.
    """

    meaning: str
    pattern: str = ""
    test: Callable[[str], bool] | None = None
    lines: bool = False


def fits(name: str, text: str) -> bool:
    """Return whether `text` has the format `name`. None allows control characters; only one with `lines` has a second line.

    `name` is a key of `FORMATS`, such as `cidr`. An unknown one is a KeyError: names come from annotations, not from
    users.
    """
    rule = FORMATS[name]
    # Not `$`, which also matches before a line break at the end.
    return (
        (text.translate(_LAYOUT) if rule.lines else text).isprintable()
        and (not rule.pattern or re.fullmatch(rule.pattern, text) is not None)
        and (rule.test is None or rule.test(text))
    )


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


def _is_unicast(text: str) -> bool:
    return not int(text[:2], 16) & 1


def _has_no_dots(text: str) -> bool:
    return not {".", ".."} & set(text.split("/"))


_HOST = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?"


def _is_host(text: str) -> bool:
    return re.fullmatch(_HOST, text) is not None or _is_ip(text)


def _is_regex(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return 0 < len(text) <= 1000


def _is_target(text: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(text)
        return text.startswith("/") or (bool(parts.hostname) and parts.port != 0)
    except ValueError:
        return False


def _is_name_format(text: str) -> bool:
    return text.count("%") == text.count("%d") == 1 and re.fullmatch(LABEL, text.replace("%d", "100")) is not None


_LAYOUT = dict.fromkeys(map(ord, "\n\t"))


FORMATS: dict[str, Format] = {
    "cidr": Format("a network in CIDR form without host bits, such as 192.168.111.0/24", test=_is_cidr),
    "ip": Format("an IPv4 or IPv6 address, such as 192.168.111.20", test=_is_ip),
    "mac": Format("a unicast MAC, such as 00:1a:2b:3c:4d:5e", MAC.pattern, _is_unicast),
    # libvirt writes it into a line of dnsmasq's hosts.
    "duid": Format("a DUID, such as 00:03:00:01:00:1a:2b:3c:4d:5e", LINK_LAYER.pattern),
    "uuid": Format("a UUID, such as 123e4567-e89b-42d3-a456-426614174000", test=_is_uuid),
    "bridge": Format(
        "the name of a bridge: at most 15 characters of letters, digits, `_`, `.` and `-`",
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}",
    ),
    "nic": Format("the name of a NIC: eth0, eth1, ...", r"eth[0-9]{1,3}"),
    "bond": Format("the name of a bond: bond0, bond1, ...", r"bond[0-9]{1,3}"),
    "parent": Format("the name of a NIC or a bond: eth0, bond0, ...", r"(eth|bond)[0-9]{1,3}"),
    "interface": Format(
        "the name of an interface: eth0, bond0, or with a VLAN eth0.100, ...",
        r"(eth|bond)[0-9]{1,3}(\.[1-9][0-9]{0,3})?",
    ),
    "file": Format("a path from the root or from home, such as ~/.ssh/id_rsa.pub", r"~?/.*"),
    "own_file": Format(
        "a path from the root, from home or from the folder of the profile, such as ~/.ssh/id_rsa.pub or manifests",
        r"~?/.*|[^/~].*",
    ),
    "image": Format("`lab`, or the path of an image from the root or from home", r"lab|~?/.*"),
    "own_image": Format(
        "`lab`, or the path of an image from the root, from home or from the folder of the profile", r"~?/.*|[^/~].*"
    ),
    "unit": Format(
        "the name of a unit of systemd, such as nginx.service",
        r"[A-Za-z0-9_.@-]{1,200}\.(service|socket|timer|path|mount|target)",
    ),
    "source": Format(
        "a git repository: a URL, USER@HOST:PATH, or a path from the root or from home",
        r"(https?|ssh|git|file)://[!-~]+|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[!-~]+|~?/.*",
    ),
    "ref": Format("a branch, tag or commit, such as release-4.22", r"[A-Za-z0-9][A-Za-z0-9._/+-]*", _has_no_dots),
    "directory": Format(
        "an absolute path of letters, digits, `_`, `.`, `+`, `@` and `-`, without `..`, such as /var/lib/agentlab",
        r"(/[\w.+@-]+)+",
        _has_no_dots,
    ),
    "domain": Format("a domain in lower case, such as test.metalkube.org", rf"{LABEL}(\.{LABEL})*"),
    "label": Format("lower-case letters, digits and `-`, such as master-0", LABEL),
    "name": Format("a name of letters, digits, `_`, `.` and `-`", r"[A-Za-z0-9][A-Za-z0-9_.-]*"),
    "host": Format("a host name or an IP address, such as lab1.example.com", test=_is_host),
    "user": Format("the name of a user, such as root", r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}"),
    "login": Format("ASCII characters without blanks and `:`, such as admin", r"[!-9;-~]+"),
    "device": Format("the path of a device, such as /dev/sda", r"/dev/[A-Za-z0-9_][A-Za-z0-9_.:/+@-]*"),
    # These are the field lengths of SCSI's INQUIRY; libvirt writes it into a command line.
    "disk_vendor": Format("1 to 8 letters, digits, `_`, `.` and `-`, such as AGENTLAB", r"[A-Za-z0-9_.-]{1,8}"),
    "disk_model": Format("1 to 16 letters, digits, `_`, `.` and `-`, such as LAB-FAST", r"[A-Za-z0-9_.-]{1,16}"),
    "serial": Format("1 to 20 letters, digits, `_`, `.` and `-`, such as S-0001", r"[A-Za-z0-9_.-]{1,20}"),
    "wwn": Format("0x and 16 hexadecimal digits in lower case, such as 0x5000c50015ea71ac", r"0x[0-9a-f]{16}"),
    "wwn_hint": Format(
        "0x and 16 or 32 hexadecimal digits in lower case, such as 0x5000c50015ea71ac", r"0x[0-9a-f]{16}([0-9a-f]{16})?"
    ),
    "hctl": Format("host, channel, target and LUN, such as 0:0:0:1", r"[0-9]{1,5}(:[0-9]{1,5}){3}"),
    "iqn": Format(
        "an iSCSI qualified name, such as iqn.2024-01.org.example:master-0",
        r"iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+(:[a-z0-9.-]+)?",
    ),
    "name_format": Format("a host name with `%d` for the number, once, such as control-%d", test=_is_name_format),
    "bmc": Format(
        "the URL of a BMC, such as redfish-virtualmedia+https://192.0.2.1/redfish/v1/Systems/1",
        r"[a-z][a-z0-9+.-]*://[A-Za-z0-9\[][A-Za-z0-9\[\]_.:/%@?=&~+-]*",
    ),
    "url": Format("a URL, such as http://192.168.111.1:8089", r"https?://[A-Za-z0-9\[][A-Za-z0-9\[\]_.:/%-]*"),
    "version": Format("a version, such as 4.22.0", r"[0-9][0-9A-Za-z._+-]*"),
    "repository": Format(
        "an image repository, such as registry.example.com:5000/ocp/release", r"[A-Za-z0-9\[][A-Za-z0-9\[\]._:/@-]*"
    ),
    "duration": Format("a number, with or without ms, s, m or h, such as 5 or 30s", r"[0-9]+(ms|s|m|h)?"),
    # bcrypt, with which servers store passwords, has this limit.
    "password": Format(
        "from 1 to 72 bytes of printable characters, in one line", test=lambda text: 0 < len(text.encode()) <= 72
    ),
    "regex": Format("a regular expression of Python, of at most 1000 characters, such as ^active$", test=_is_regex),
    "http": Format("a URL, or a path of the API, such as /readyz", r"(https?://[A-Za-z0-9\[]|/)[!-~]*", _is_target),
    "script": Format(
        "a command for `sh`, or a list with its words, such as [systemctl, is-active, kubelet]",
        test=lambda text: bool(text.strip()),
        lines=True,
    ),
    "word": Format("text of printable characters, tabs and line breaks; quote what YAML takes for no text", lines=True),
    "typed": Format(
        "one line of printable characters and tabs", test=lambda text: text != "" and "\n" not in text, lines=True
    ),
    "line": Format("one line of printable characters", test=lambda text: bool(text.strip())),
}
