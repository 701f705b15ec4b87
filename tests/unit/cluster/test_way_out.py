"""The check of what the nodes reach outside of their lab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import way_out
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


def plan(name: str, **fields: Any) -> Any:
    given: Any = profile.load(name, PROFILES)
    for path, value in fields.items():
        section, field = path.split("__")
        given[section][field] = value
    return build.build(given, "ostest")


def answering(*reaching: str) -> Any:
    def ask(address: str, command: str) -> str:
        assert "ping -c 1 -W 5 198.1" in command
        return "yes\n" if address in reaching else "no\n"

    return ask


ALL = ("192.168.111.20", "192.168.111.21", "192.168.111.22")


@pytest.mark.parametrize(
    ("connection", "reaching", "ok", "found"),
    [
        ("connected", ALL, True, "master-0, master-1, master-2 reach the host"),
        ("connected", ALL[1:], False, "master-1, master-2 reach the host"),
        ("disconnected", (), True, "no node reaches the host"),
        ("disconnected", ALL[:1], False, "master-0 reach the host"),
        ("proxied", (), True, "no node reaches the host"),
        ("proxied", ALL[2:], False, "master-2 reach the host"),
        (None, (), True, "no node reaches the host"),
    ],
)
def test_nodes_reach_what_is_planned(connection: str | None, reaching: tuple[str, ...], ok: bool, found: str) -> None:
    (seen,) = way_out.findings(plan("compact_ipv4", network__connection=connection), answering(*reaching))
    assert (seen.ok, seen.found) == (ok, found)


def test_a_node_that_cannot_be_asked_is_a_finding() -> None:
    def ask(address: str, command: str) -> str:
        raise OSError("ssh: Connection refused")

    (seen,) = way_out.findings(plan("sno_ipv4"), ask)
    assert not seen.ok and seen.found == "master-0: ssh: Connection refused"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("sno_ipv6", {}),
        ("sno_ipv4", {"hypervisor__kind": "local"}),
        ("sno_ipv4", {"hypervisor__route": True}),
        ("sno_ipv4", {"network__connection": "connected", "network__nat": False}),
    ],
)
def test_no_finding_without_an_uplink_that_answers(name: str, fields: dict[str, Any]) -> None:
    assert list(way_out.findings(plan(name, **fields), answering())) == []
