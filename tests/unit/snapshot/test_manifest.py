"""Names, manifests, and what a restore refuses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import manifest
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import (
    Host,
    Machine,
    Manifest,
    SavedDisk,
    SnapshotError,
)

HERE = Host("QEMU 7.2", "qemu", "Nehalem", "1.0.0")
MADE = Manifest(
    1, "ready", "one", "/state/one", 1.5, "ab" * 32, 2.0, HERE,
    (Machine("one_master_0", "running", (SavedDisk("one_master_0.qcow2", "layer-1.qcow2", 1 << 30),)),),
)  # fmt: skip


def test_what_is_written_is_read(tmp_path: Path) -> None:
    place = manifest.place(tmp_path, "ready")
    place.mkdir(parents=True)
    manifest.write(place, MADE)
    assert (place / manifest.FILE).stat().st_mode & 0o777 == 0o600
    assert manifest.names(tmp_path) == ["ready"]
    assert manifest.read(tmp_path, "ready") == MADE


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "A", "-a", "a\n", "x" * 64, "a b", ".agentlab-temp-1"])
def test_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SnapshotError, match="is not valid: use lower case"):
        manifest.place(tmp_path, name)


def test_unknown_snapshot_names_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"there is no snapshot 'x' in .*; existing snapshots: none"):
        manifest.read(tmp_path, "x")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 2, "format is 2; this version reads format 1"),
        ("name", "../x", "not a file name"),
        ("taken", "now", "taken is 'now'"),
        ("machines", 3, "damaged"),
        ("machines", [{"domain": "../../x", "state": "running", "disks": []}], "not a file name"),
        ("machines", [{"domain": "x", "state": "running", "disks": [{"volume": "a", "layer": "/etc/x", "size": 1}]}], "not a file name"),
        ("machines", [{"domain": "x", "state": "gone", "disks": []}], "state of a machine"),
        ("machines", [{"domain": 3, "state": "off", "disks": []}], "domain is 3"),
        ("host", {}, "expected a mapping of qemu"),
        ("extra", 1, "expected a mapping of format"),
    ],
)  # fmt: skip
def test_damaged_manifest(field: str, value: object, message: str) -> None:
    data = json.dumps(dataclasses.asdict(MADE) | {field: value}).encode()
    with pytest.raises(SnapshotError, match=message):
        manifest.parse(data, Path("snapshot.json"))


@pytest.mark.parametrize(
    ("there", "plan", "message"),
    [
        ({"qemu": "QEMU 9"}, "", "QEMU is 'QEMU 7.2' in the snapshot and 'QEMU 9' here"),
        ({"accelerator": "kvm"}, "", "accelerator is 'qemu' in the snapshot and 'kvm' here"),
        ({"cpu": "other"}, "", "CPU model is 'Nehalem' in the snapshot and 'other' here"),
        ({"agentlab": "2.0.0"}, "", "agentlab is '1.0.0' in the snapshot and '2.0.0' here"),
        ({}, "cd" * 32, r"plan \(SHA-256\) is 'abababababab' in the snapshot and 'cdcdcdcdcdcd' here"),
        ({"qemu": "a", "cpu": "b"}, "", "QEMU is .*; CPU model is "),
    ],
)
def test_another_host_or_plan_is_refused(there: dict[str, str], plan: str, message: str) -> None:
    with pytest.raises(SnapshotError, match=message):
        manifest.refuse_other(MADE, dataclasses.replace(HERE, **there), plan or MADE.plan)


def test_the_same_host_and_plan_are_accepted() -> None:
    manifest.refuse_other(MADE, HERE, MADE.plan)
