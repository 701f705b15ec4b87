"""What roles decide by, from a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.run import TARGETS
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, hypervisors, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.created import on_host
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.derived import derived_values
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.modes import MODES
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.openshift_install import program
from ansible_collections.agentlab.ocp.plugins.module_utils.state import Item


def of(values: dict[str, Any]) -> dict[str, Any]:
    return {**derived_values(build.build(profile.complete({"topology": "sno", **values}), "ostest"))}


USUAL = {
    "flow": "agent", "host": "localhost", "sandbox": True, "remote": False, "several": False, "further": False, "machines": False,
    "images": False, "existing": False, "booted": ["master-0"], "screens": [], "mode": "redfish", "start": "agent.x86_64.iso",
    "joining": "redfish", "faults": False, "ejects": False, "define": False, "snapshots": False, "tests": False, "payload": True,
    "targets": ["cluster-manifests", "image"], "policy": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        ({}, {}),
        ({"hypervisor": {"kind": "local"}}, {"host": "", "sandbox": False}),
        ({"hypervisor": {"kind": "ssh", "address": "192.0.2.1"}}, {"host": "", "sandbox": False, "remote": True}),
        ({"machines": [{"name": "client"}]}, {"machines": True, "images": True}),
        ({"machines": [{"name": "client", "image": None}]}, {"machines": True}),
        ({"release": {"payload": "registry.example.com/release:4.20.1", "version": "4.20.1"}}, {"payload": False}),
        ({"tests": [{"name": "DNS", "on": "lab", "run": "true"}]}, {"tests": True}),
        ({"snapshots": [{"name": "ready", "at": "Rebooting"}]}, {"snapshots": True}),
        ({"nodes": {"master-0": {"screen": True, "screen_steps": [{"press": ["enter"]}]}}}, {"screens": ["master-0"]}),
        ({"boot": {"mode": "minimal"}}, {"mode": "minimal"}),
        (
            {"boot": {"mode": "pxe"}},
            {"mode": "pxe", "joining": "pxe", "start": "boot-artifacts/agent.x86_64.ipxe", "targets": ["cluster-manifests", "pxe-files"]},
        ),
        (
            {"boot": {"mode": "interactive"}},
            {"mode": "interactive", "joining": "interactive", "define": True, "screens": ["master-0"], "targets": ["cluster-manifests", "interactive-image"]},
        ),
        ({"boot": {"eject": "on_rebooting"}}, {"faults": True}),
        ({"boot": {"eject": "after"}}, {"ejects": True}),
        ({"faults": [{"kind": "expired_token"}]}, {"faults": True, "token_hours": 0}),
        ({"faults": [{"kind": "unsigned_image"}]}, {"faults": True, "policy": "signed.json"}),
    ],
)  # fmt: skip
def test_what_follows_from_a_plan(values: dict[str, Any], changes: dict[str, Any]) -> None:
    assert of(values) == {**USUAL, **changes}


def test_flow_and_hypervisors() -> None:
    further = {"name": "h2", "kind": "sandbox", "address": "192.0.2.2"}
    assert of({"topology": "compact", "flow": "ipi"})["flow"] == "ipi"
    plan = build.build(profile.complete({"topology": "compact", "hypervisors": [further]}), "ostest")
    for name, wanted in (
        ("hypervisor", {"several": True, "further": False}),
        ("h2", {"several": True, "further": True}),
    ):
        assert {**derived_values(hypervisors.view(plan, name))}.items() >= wanted.items()


def test_machines() -> None:
    """Day-2 nodes and existing machines."""
    machine = {
        "bare_metal": True,
        "bmc": {"address": "redfish+https://192.0.2.7/redfish/v1/Systems/1"},
        "nics": {"eth0": {"mac": "00:1a:2b:3c:4d:5e"}},
    }
    found = of(
        {"topology": "compact", "worker": {"count": 1}, "nodes": {"master-1": machine, "worker-0": {"day2": True}}}
    )
    assert (found["existing"], found["booted"]) == (True, ["master-0", "master-1", "master-2"])


def test_without_a_plan() -> None:
    unknown = {"host": "", "sandbox": False, "booted": [], "mode": "cdrom", "start": "", "joining": "cdrom"}
    assert derived_values({}) == {**USUAL, **unknown}


@pytest.mark.parametrize(
    ("installer", "wanted"),
    [
        ({}, ""),
        ({"binary": None, "git": None, "ref": "HEAD"}, ""),
        ({"binary": "/usr/local/bin/openshift-install"}, "/usr/local/bin/openshift-install"),
        ({"binary": None, "git": "/src/installer"}, "/runs/ostest/openshift-install"),
        ({"git": "", "binary": "/b"}, "/b"),
    ],
)
def test_program_that_installs(installer: dict[str, Any], wanted: str) -> None:
    assert program(installer, "/runs/ostest") == program(installer, Path("/runs/ostest")) == wanted


def test_what_a_list_has_with_a_host() -> None:
    """What is lost is None: then the plan has it."""
    listed = [Item(kind="domain", name=name, host=host) for name, host in (("a", "h1"), ("b", "h2"))]
    assert [on_host(listed, host) for host in (None, "h1", "h3")] == [listed, listed[:1], None]
    assert [on_host(created, host) for created in (None, []) for host in (None, "h1")] == [None, None, [], None]


def test_every_boot_mode_has_targets_that_there_are() -> None:
    assert {target for mode in MODES.values() for target in mode.targets} <= {*TARGETS}
    assert {mode.joining for mode in MODES.values()} - {None} <= {*MODES}
