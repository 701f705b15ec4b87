"""What roles decide by, from a plan."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.run import TARGETS
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.derived import derived
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.modes import MODES


def of(values: dict[str, Any]) -> dict[str, Any]:
    return {**derived(build.build(profile.complete({"topology": "sno", **values}), "ostest"))}


USUAL = {
    "flow": "agent", "host": "localhost", "several": False, "mode": "redfish", "start": "agent.x86_64.iso", "joining": "redfish",
    "faults": False, "ejects": False, "define": False, "targets": ["cluster-manifests", "image"], "policy": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        ({}, {}),
        ({"hypervisor": {"kind": "local"}}, {"host": ""}),
        ({"boot": {"mode": "minimal"}}, {"mode": "minimal"}),
        (
            {"boot": {"mode": "pxe"}},
            {"mode": "pxe", "joining": "pxe", "start": "boot-artifacts/agent.x86_64.ipxe", "targets": ["cluster-manifests", "pxe-files"]},
        ),
        (
            {"boot": {"mode": "interactive"}},
            {"mode": "interactive", "joining": "interactive", "define": True, "targets": ["cluster-manifests", "interactive-image"]},
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
    assert of({"topology": "compact", "hypervisors": [further]})["several"] is True


def test_without_a_plan() -> None:
    assert derived({}) == {**USUAL, "host": "", "mode": "cdrom", "start": "", "joining": "cdrom"}


def test_every_boot_mode_has_targets_that_there_are() -> None:
    assert {target for mode in MODES.values() for target in mode.targets} <= {*TARGETS}
    assert {mode.joining for mode in MODES.values()} - {None} <= {*MODES}
