"""Whether this host has the memory and the space for machines of a snapshot."""

from __future__ import annotations

import copy
import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import capacity
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox.namespaces import RunningSandbox
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import copies, lab, manifest, room
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import OFF, RUNNING, SnapshotError

from tests.unit.snapshot.test_manifest import MADE

PLAN: Any = yaml.safe_load((Path(__file__).parents[1] / "plan/golden/ha_dualstack_static/plan.yaml").read_text())
SIZES = [node["memory_mib"] for node in PLAN["nodes"]]
OVERHEAD = 150 if PLAN["release"]["payload"] == "lab" else 300


def saved(*states: str) -> manifest.Manifest:
    machines = [manifest.Machine(node["domain"], state, ()) for node, state in zip(PLAN["nodes"], states, strict=True)]
    return dataclasses.replace(MADE, machines=tuple(machines))


def has(monkeypatch: pytest.MonkeyPatch, mib: int) -> None:
    monkeypatch.setattr(capacity, "measure", lambda __: {"memory_mib": mib, "cpus": 1, "disk_free_gib": 0})


def test_the_memory_of_machines_that_will_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `prepare` counts it; those that are off need none."""
    one = saved(RUNNING, *[OFF] * (len(SIZES) - 1))
    has(monkeypatch, SIZES[0] + OVERHEAD)
    room.check_memory(PLAN, one, None)
    has(monkeypatch, SIZES[0] + OVERHEAD - 1)
    with pytest.raises(
        SnapshotError, match=rf"ready needs {SIZES[0] + OVERHEAD} MiB of memory for 1 machine.*available"
    ):
        room.check_memory(PLAN, one, None)
    room.check_memory(PLAN, saved(*[OFF] * len(SIZES)), None)
    with pytest.raises(SnapshotError, match=f"for {len(SIZES)} machine"):
        room.check_memory(PLAN, saved(*[RUNNING] * len(SIZES)), None)


def test_the_sandbox_that_ends_gives_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """This test's own processes play it."""
    has(monkeypatch, 0)
    here = RunningSandbox("one", "x", os.getpid(), 0, "")
    assert room._used(here) > 1
    monkeypatch.setattr(room, "_used", lambda __: sum(SIZES) + len(SIZES) * OVERHEAD)
    room.check_memory(PLAN, saved(*[RUNNING] * len(SIZES)), here)


@pytest.mark.parametrize("verb", ["restore", "copy"])
def test_nothing_changes_without_the_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str) -> None:
    plan = copy.deepcopy(PLAN)
    plan["hypervisor"]["state_dir"] = str(tmp_path / "state/one")
    one = lab.Lab(plan, tmp_path / "runs/one", None, "1")
    one.state_dir.mkdir(parents=True)
    has(monkeypatch, 0)
    monkeypatch.setattr(lab.Lab, "check", lambda __: None)
    monkeypatch.setattr(lab, "usable", lambda *__: saved(*[RUNNING] * len(SIZES)))
    monkeypatch.setattr(lab.identity, "saved_owner", lambda __: None)
    monkeypatch.setattr(lab.identity, "moves", lambda *__: [])
    with pytest.raises(SnapshotError, match="of memory"):
        lab.restore(one, "ready") if verb == "restore" else copies.copy(one, "ready", "two")
    assert list(tmp_path.rglob("*")) == [tmp_path / "state", one.state_dir]


@pytest.mark.parametrize("verb", ["restore", "copy"])
def test_nothing_changes_on_another_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str) -> None:
    """The snapshot is of another plan, QEMU, accelerator, CPU model and version."""
    plan = copy.deepcopy(PLAN)
    plan["hypervisor"]["state_dir"] = str(tmp_path / "state/one")
    one = lab.Lab(plan, tmp_path / "runs/one", None, "2")
    place = manifest.place(one.state_dir, "ready")
    for path in (place, one.run_dir):
        path.mkdir(parents=True)
    manifest.write(place, dataclasses.replace(MADE, host=manifest.Host("QEMU 1", "none", "i386", "1")))
    (one.run_dir / "plan.yaml").write_text("another")
    monkeypatch.setattr(lab.Lab, "check", lambda __: None)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(
        SnapshotError, match=r"QEMU is .*; accelerator is .*; CPU model is .*; agentlab is .*; plan \(SHA-256\) is"
    ):
        lab.restore(one, "ready") if verb == "restore" else copies.copy(one, "ready", "two")
    assert sorted(tmp_path.rglob("*")) == before


def test_the_space_for_the_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    running = {node["domain"]: RUNNING for node in PLAN["nodes"]}
    status = os.statvfs(tmp_path)
    room.check_disk(PLAN, dict.fromkeys(running, OFF), tmp_path)
    fake = os.statvfs_result((*status[:4], 1, *status[5:]))
    monkeypatch.setattr(os, "statvfs", lambda __: fake)
    with pytest.raises(SnapshotError, match="free some space, or delete snapshots"):
        room.check_disk(PLAN, running, tmp_path)
