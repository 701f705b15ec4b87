"""How addresses are written, which all others take from one module."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import addresses

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "version", "family", "url"),
    [
        ("192.168.111.20", 4, "ipv4", "192.168.111.20"),
        ("192.168.111.0/24", 4, "ipv4", "192.168.111.0/24"),
        ("fd2e:6f44:5dd8:c956::51", 6, "ipv6", "[fd2e:6f44:5dd8:c956::51]"),
        ("::ffff:192.0.2.1", 6, "ipv6", "[::ffff:192.0.2.1]"),
        ("api.ostest.test.metalkube.org", 4, "ipv4", "api.ostest.test.metalkube.org"),
    ],
)
def test_notation(text: str, version: int, family: str, url: str) -> None:
    assert (addresses.version(text), addresses.family(text), addresses.in_url(text)) == (version, family, url)
    assert addresses.socket_family(text) == (socket.AF_INET6 if version == 6 else socket.AF_INET)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("00:1a:2B:3c:4d:5e", {"MAC", "MAC_OR_HYPHENS", "LINK_LAYER", "GO_MAC"}),
        ("00-1a-2b-3c-4d-5e", {"MAC_OR_HYPHENS", "GO_MAC"}),
        ("001a.2b3c.4d5e", {"GO_MAC"}),
        (":".join(["00"] * 20), {"LINK_LAYER", "GO_MAC"}),
        ("00:1a:2b:3c:4d:5e\n", set()),
        ("00:1a:2b:3c:4d:5g", set()),
        ("٠٠:1a:2b:3c:4d:5e", set()),  # noqa: RUF001 digits of another script
    ],
)
def test_hardware_addresses(text: str, names: set[str]) -> None:
    assert {
        name for name in ("MAC", "MAC_OR_HYPHENS", "LINK_LAYER", "GO_MAC") if getattr(addresses, name).fullmatch(text)
    } == names


UPSTREAM = (
    '_DUAL_MAC = "re(^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$)"',
)  # of the API's description; messages quote it
_AGAIN = re.compile(
    r"""\[\{\w+\}\]["'] if ["']:["'] in|\w if ["']:["'] in \w+ else|(?:2B|4|\\b)?[0-9a-fA-F-]+\]\{2\}\)?(?:\(|\[):"""
)


def test_they_are_not_spelled_elsewhere() -> None:
    """Brackets in a URL, the family of a text, patterns of hardware addresses."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: use module_utils/addresses.py: {line.strip()}"
        for top in ("plugins", "payload")
        for path in sorted((ROOT / top).rglob("*.py"))
        if path.name != "addresses.py" and not re.search("machine_os/files|images/files", str(path))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _AGAIN.search(line) and line not in UPSTREAM
    ]
    assert not found, "\n".join(found)
    for line in ('f"[{a}]" if ":" in a else a', '6 if ":" in text else 4', 'r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}"'):
        assert _AGAIN.search(line)
