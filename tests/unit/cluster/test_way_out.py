"""The check of what the nodes reach outside of their lab."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import machine, way_out
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


def plan(name: str, **fields: Any) -> Any:
    given: Any = profile.load(name, PROFILES)
    for path, value in fields.items():
        section, field = path.split("__")
        given[section][field] = value
    return build.build(given, "ostest")


ALL = ("master-0", "master-1", "master-2")


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
    made = plan("compact_ipv4", network__connection=connection)
    assert f"ping -c 1 -W 5 {made['hypervisor']['uplink']['host_address']} " in way_out.question(made)
    (seen,) = way_out.findings(made, {name: "yes" if name in reaching else "no" for name in ALL})
    assert (seen.ok, seen.found) == (ok, found)


def test_a_node_prints_the_answer_with_what_else_it_is_asked() -> None:
    """As sh(1) does it; a node that cannot be asked is a finding of its machine alone."""
    made = plan("sno_ipv4")

    def ask(address: str, command: str) -> str:
        question = command.replace("ping -c 1 -W 5 ", "test 192.0.2.1 = ").partition("; echo name")[0]
        out = subprocess.run(["sh", "-c", question], capture_output=True, text=True, check=True).stdout
        return f'{out}name master-0\nfirmware uefi\nsecure\ntpm\n{{"blockdevices": []}}'

    seen = machine.look(made, made["nodes"][0], ask)
    assert (seen.problem, seen.out) == ("", "no")
    assert [one.ok for one in way_out.findings(made, {})] == [True]


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
    made = plan(name, **fields)
    assert way_out.question(made) == "" and list(way_out.findings(made, {"master-0": "yes"})) == []
