"""What cannot be saved: a profile with `snapshots` is refused for the same as `agentlab snapshot save` in such a lab."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faults
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import lab as labs
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.lab import Lab
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import SnapshotError
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

PAGE = Path(__file__).parents[3] / "docs/snapshots.md"
EXISTING = {
    "bare_metal": True,
    "nics": {"eth0": {"mac": "00:1a:2b:3c:4d:5e"}},
    "bmc": {"address": "redfish-virtualmedia+https://192.0.2.7/x", "username": "root", "password": "calvin"},
}
ISCSI: dict[str, Any] = {"boot": {"mode": "iscsi"}, "master": {"firmware": "bios"}}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "local": ({"hypervisor": {"kind": "local"}}, "requires `hypervisor: {kind: sandbox}`: only a whole sandbox is saved"),
    "ssh": (
        {"hypervisor": {"kind": "ssh", "host": "192.0.2.1", "user": "root"}},
        "requires `hypervisor: {kind: sandbox}`: only a whole sandbox is saved",
    ),
    "several": ({"hypervisors": [{"name": "b"}]}, "requires one hypervisor: only one sandbox is saved"),
    "existing": ({"nodes": {"master-0": EXISTING}}, "requires nodes that are VMs, not existing machines (master-0)"),
    "outside": ({"machines": [{"name": "a"}]}, "requires a profile without `machines`: only nodes are saved"),
    "ipi": ({"topology": "compact", "flow": "ipi"}, "requires `flow: agent`"),
    "iscsi": (ISCSI, "requires another boot mode than iscsi: LUNs are not saved"),
    "eject": ({"boot": {"eject": "on_rebooting"}}, "requires another `boot.eject` than on_rebooting"),
    "faults": ({"faults": [{"kind": "pause", "node": "master-0"}]}, "requires a profile without faults that the lab injects"),
}  # fmt: skip


def of(tmp_path: Path, fields: dict[str, Any]) -> Lab:
    """A prepared lab of a profile."""
    path = tmp_path / "p.yml"
    path.write_text(json.dumps({"topology": "sno", **fields}))
    chosen = profile.load(path, None, "one")
    chosen["hypervisor"]["state_dir"] = str(tmp_path / "state")
    run_dir = tmp_path / "runs/one"
    who = owner.Caller(owner.Owner("one", str(run_dir), os.getuid(), "me", socket.gethostname(), "", "mark"))
    made = Lab(build.build(chosen, "one"), run_dir, who, "1")
    made.state_dir.parent.mkdir()
    owner.claim(made.state_dir, who)
    return made


@pytest.mark.parametrize("case", REFUSED)
def test_profile_and_verb_refuse_the_same(tmp_path: Path, case: str) -> None:
    fields, message = REFUSED[case]
    path = tmp_path / "with.yml"
    path.write_text(json.dumps({"topology": "sno", **fields, "snapshots": ["ready"]}))
    with pytest.raises(ProfileError) as report:
        profile.load(path, None, "one")
    assert [str(problem.field) for problem in report.value.problems] == ["snapshots"]
    assert message in str(report.value)
    with pytest.raises(SnapshotError) as refused:
        labs.save(of(tmp_path, fields), "ready")
    assert str(refused.value).startswith("a snapshot of cluster one requires ") and message in str(refused.value)
    assert report.value.problems[0].remedy in str(refused.value)


def test_every_reason_is_named(tmp_path: Path) -> None:
    lab = of(tmp_path, ISCSI | {"faults": [{"kind": "pause", "node": "master-0"}]})
    with pytest.raises(SnapshotError, match=r"requires .*LUNs are not saved; it requires .*their state is not saved"):
        labs.save(lab, "ready")


def test_a_pool_elsewhere(tmp_path: Path) -> None:
    lab = of(tmp_path, {})
    lab.plan["hypervisor"]["pool_dir"] = "/srv/pool"
    with pytest.raises(SnapshotError, match="requires a storage pool in the state directory, not in /srv/pool"):
        labs.save(lab, "ready")


def test_faults_that_were_injected_by_hand(tmp_path: Path) -> None:
    lab = of(tmp_path, {})
    now = Path(lab.plan["services"]["directory"]) / faults.NAME / faults.NOW
    now.parent.mkdir(parents=True)
    active = [{"fault": {"kind": "service_down", "service": "registry"}, "at": 1.0, "note": None}]
    now.write_text(json.dumps(active))
    with pytest.raises(
        SnapshotError, match=r"injected by hand are not saved: service_down registry; undo .* --undo .*start over"
    ):
        labs.save(lab, "ready")
    now.write_text("[]")
    with pytest.raises(labs.LabError, match="no running sandbox"):
        labs.save(lab, "ready")


def test_a_lab_on_another_kind_of_hypervisor_has_no_snapshots(tmp_path: Path) -> None:
    lab = of(tmp_path, {})
    plan: Any = {**lab.plan, "hypervisor": {**lab.plan["hypervisor"], "kind": "local"}}
    with pytest.raises(SnapshotError, match=r"a snapshot of cluster one requires `hypervisor: {kind: sandbox}`"):
        dataclasses.replace(lab, plan=plan).check()


def test_the_guide_lists_every_refusal() -> None:
    """The table of docs/snapshots.md names what differs from what can be saved."""
    table = PAGE.read_text().partition("## What is refused")[2]
    words = {
        "local": "`local`", "ssh": "`ssh`", "several": "several hypervisors", "existing": "existing machines",
        "outside": "`machines`", "ipi": "`ipi`", "iscsi": "`iscsi`", "eject": "`on_rebooting`", "faults": "`faults`",
    }  # fmt: skip
    assert set(words) == set(REFUSED)
    assert [case for case, word in words.items() if word not in table] == []
