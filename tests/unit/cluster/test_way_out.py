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


@pytest.mark.parametrize(
    ("answering", "out", "found"),
    [
        (("192.168.111.1",), "no", "no node reaches the host"),
        (("192.168.111.1", "198."), "yes", "master-0 reach the host"),
        (("198.",), "unknown", "master-0: no answer of the gateway"),
        ((), "unknown", "master-0: no answer of the gateway"),
    ],
)
def test_a_node_prints_the_answer_with_what_else_it_is_asked(
    tmp_path: Path, answering: tuple[str, ...], out: str, found: str
) -> None:
    """As sh(1) does it. A node that cannot ask at all must not count as one that reaches nothing."""
    made = plan("sno_ipv4")
    for name, text in (
        ("sudo", 'exec "$@"'),
        ("ping", f"case $5 in {'|'.join(f'{one}*' for one in answering) or '-'}) ;; *) exit 1 ;; esac"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def ask(address: str, command: str) -> str:
        question = command.partition("; echo name")[0]
        printed = subprocess.run(
            ["sh", "-c", question],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        ).stdout
        return f'{printed}name master-0\nfirmware uefi\nsecure\ntpm\nvcpus\nmemory\nuuid\n{{"blockdevices": []}}'

    seen = machine.look(made, made["nodes"][0], ask)
    assert (seen.problem, seen.out) == ("", out)
    (one,) = way_out.findings(made, {"master-0": seen.out})
    assert (one.found, one.ok) == (found, out == "no")


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
