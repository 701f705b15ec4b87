"""Snapshots of a lab with small real guests: saved, restored, refused, killed."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

sys.path.insert(0, str(Path(__file__).parent))
from small_lab import (
    CLI,
    boot,
    command,
    copied,
    domain,
    environment,
    press_a_key,
    snapshot,
    state,
    until,
    wait_for,
    write,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def left(one: Any) -> list[str]:
    """What is in the directory of the snapshots."""
    directory = one.state_dir / "snapshots"
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def assert_unchanged(one: Any) -> None:
    """Prepare has nothing to do, or the assertion lists what."""
    changed, output = one.play("prepare", "--diff")
    assert changed == 0, output


def elsewhere(one: Any, base: Path) -> Any:
    """Return the same cluster in another run directory, with the same profile; it must have been destroyed."""
    other = copy.copy(one)
    other.run_dir = base / "elsewhere" / one.cluster
    other.run_dir.mkdir(parents=True)
    other.plan, changes = rundir.prepare(
        other.run_dir, str(base / f"{one.cluster}.yml"), ROOT / "config_examples", one.cluster
    )
    rundir.write(changes)
    return other


def test_a_lab_goes_back_to_its_snapshot(booted: Any, base: Path) -> None:
    """Memory, disks, run directory and services are as they were; what came later is gone, and again."""
    one = booted
    console = one.state_dir / "console/agtest_master_0.log"
    write(one, "this is the first disk", base)
    (one.run_dir / "note").write_text("before")
    print(snapshot(one, "save", "ready"))
    assert state(one) == "running"
    assert one.play("prepare")[0] == 0
    saved = console.read_text(errors="replace")
    places = [path for path in (one.state_dir / "snapshots").rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in places if path.stat().st_mode & 0o077 and "/blobs/" not in str(path)] == []
    assert (one.state_dir / "snapshots").stat().st_mode & 0o777 == 0o700

    for __ in range(2):
        write(one, "this is the second disk", base)
        (one.run_dir / "note").write_text("after")
        (one.run_dir / "new").write_text("")
        press_a_key(one)
        wait_for(console, "this is the second disk")
        print(snapshot(one, "restore", "ready"))
        assert state(one) == "running"
        assert console.read_text(errors="replace") == saved
        assert (one.run_dir / "note").read_text() == "before" and not (one.run_dir / "new").exists()
        assert one.play("prepare")[0] == 0
    press_a_key(one)
    wait_for(console, "this is the first disk")

    rows = json.loads(snapshot(one, "list", "-o", "json"))
    assert [(row["name"], row["machines"]) for row in rows] == [("ready", {"agtest_master_0": "running"})]
    assert "exists" in snapshot(one, "save", "ready", wrong=True)

    exported = base / "ready.tar"
    assert "holds secrets" in snapshot(one, "export", "ready", str(exported))
    assert exported.stat().st_mode & 0o777 == 0o600
    assert "snapshot ready exists" in snapshot(one, "import", str(exported), wrong=True)
    snapshot(one, "delete", "ready")
    assert left(one) == []
    snapshot(one, "import", str(exported))
    snapshot(one, "restore", "ready")
    assert state(one) == "running" and console.read_text(errors="replace") == saved
    assert one.play("prepare")[0] == 0
    snapshot(one, "delete", "ready")
    assert "there is no snapshot 'ready'" in snapshot(one, "restore", "ready", wrong=True)
    assert state(one) == "running"


@pytest.mark.parametrize(("mode", "moves"), [("redfish", False), ("cdrom", True)])
def test_an_exported_snapshot_outlives_the_cluster(
    lab: Any, guests: None, base: Path, traces: Any, mode: str, moves: bool
) -> None:
    """The cluster is destroyed and prepared again, also in another run directory: it becomes the one that was saved."""
    before = traces()
    one = boot(lab, mode)
    console = one.state_dir / "console/agtest_master_0.log"
    write(one, "this is the first disk", base)
    snapshot(one, "save", "ready")
    saved = console.read_text(errors="replace")
    mark = json.loads((one.state_dir / "owner.json").read_text())["mark"]
    snapshot(one, "export", "ready", str(base / "ready.tar"))
    one.play("destroy")
    again = one
    if moves:
        again = elsewhere(one, base)
        one.run_dir.rename(base / "gone")
    try:
        again.play("prepare")
        assert json.loads((one.state_dir / "owner.json").read_text())["mark"] != mark
        assert "runs what" in snapshot(again, "import", str(base / "ready.tar"))
        for __ in range(2):
            print(snapshot(again, "restore", "ready"))
            assert state(again) == "running" and console.read_text(errors="replace") == saved
            assert json.loads((one.state_dir / "owner.json").read_text())["mark"] == mark
            assert_unchanged(again)
            changed, output = again.play("boot")
            assert changed == 0, output
        if mode == "cdrom":
            assert str(again.run_dir / "agent.x86_64.iso") in again.enter("virsh", "domblklist", domain(again))
        press_a_key(again)
        wait_for(console, "this is the first disk")
    finally:
        again.play("destroy")
        if moves:
            (base / "gone").rename(one.run_dir)
    assert traces() == before and not one.parent.exists()


FULL = f"""
import sys
from {CLI.rpartition(".")[0]}.snapshot import room
from {CLI} import main
room.check_disk = lambda *__: None  # what it allows for is more than a machine needs
sys.exit(main(sys.argv[1:]))
"""


def test_a_save_that_is_killed_leaves_nothing(booted: Any, base: Path) -> None:
    one = booted
    write(one, "this is the disk", base)
    for delay in (0.0, 0.2, 0.4, 0.6):
        process = subprocess.Popen(
            [*namespaces.enter(one.host, str(Path.cwd())), *command(one, "save", "ready")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(one),
            start_new_session=True,
        )
        until(lambda: bool(left(one)))
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        saved = process.wait() == 0
        until(lambda: state(one) == "running", 60)  # libvirt first ends what it has begun
        names = [row["name"] for row in json.loads(snapshot(one, "list", "-o", "json"))]
        # Whole, or nothing.
        assert names in ([], ["ready"]) and (names or not saved)
        if names:
            snapshot(one, "delete", "ready")
        until(lambda: left(one) == [])
    assert "there is no snapshot 'ready'" in snapshot(one, "restore", "ready", wrong=True)

    assert one.play("prepare")[0] == 0
    press_a_key(one)
    wait_for(one.state_dir / "console/agtest_master_0.log", "this is the disk")


@pytest.fixture
def limited(base: Path) -> Iterator[Path]:
    """The labs' state directories are in a file system that can be made smaller. Sandboxes that start later see it, too."""
    parent = base / "state"
    parent.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20g,mode=755", "limited", str(parent)], check=True)
    yield parent
    subprocess.run(["umount", "--lazy", str(parent)], check=True)


def test_a_save_without_enough_space_leaves_nothing(limited: Path, booted: Any, base: Path) -> None:
    one = booted
    write(one, "this is the disk", base)
    status = os.statvfs(limited)
    room = (status.f_blocks - status.f_bfree) * status.f_frsize + (8 << 20)
    subprocess.run(["mount", "-o", f"remount,size={room}", str(limited)], check=True)
    assert "free some space, or delete snapshots" in snapshot(one, "save", "ready", wrong=True)
    full = subprocess.run(
        [*namespaces.enter(one.host, str(Path.cwd())), sys.executable, "-c", FULL, *command(one, "save", "ready")[3:]],
        capture_output=True,
        text=True,
        env=environment(one),
        check=False,
    )
    assert full.returncode == 1 and "No space left on device" in full.stderr, full.stdout + full.stderr
    assert left(one) == [] and state(one) == "running"
    press_a_key(one)
    wait_for(one.state_dir / "console/agtest_master_0.log", "this is the disk")


def test_copies_run_side_by_side(booted: Any, base: Path) -> None:
    """Each has its own name, disks and owner's marker; they keep running when the lab that they were copied from is destroyed."""
    one = booted
    write(one, "this is the disk", base)
    (one.run_dir / "note").write_text("before")
    snapshot(one, "save", "ready")
    print(snapshot(one, "copy", "ready", "agcopy1"), snapshot(one, "copy", "ready", "agcopy2"))
    assert "exists: choose another name" in snapshot(one, "copy", "ready", "agcopy1", wrong=True)
    assert "is not valid" in snapshot(one, "copy", "ready", "../x", wrong=True)
    first, second = copied(one, "agcopy1"), copied(one, "agcopy2")
    try:
        assert [state(lab) for lab in (one, first, second)] == ["running"] * 3
        assert (first.run_dir / "note").read_text() == "before"
        for lab in (first, second):
            changed, output = lab.play("prepare", "--diff")
            assert changed == 0, output
        write(one, "this is another disk", base)
        press_a_key(first)
        wait_for(first.state_dir / "console/agtest_master_0.log", "this is the disk")
        snapshot(second, "save", "again")
        one.play("destroy")
        assert not one.state_dir.exists()
        print(snapshot(second, "restore", "again"))
        for lab in (first, second):
            assert state(lab) == "running"
            lab.enter("virsh", "destroy", domain(lab))
            lab.enter("virsh", "start", domain(lab))
            (lab.state_dir / "console/agtest_master_0.log").write_text("")
            wait_for(lab.state_dir / "console/agtest_master_0.log", "this is the disk")
    finally:
        for lab in (first, second):
            lab.play("destroy")
    assert not first.state_dir.exists() and not second.state_dir.exists()
    assert not one.parent.exists()


def test_a_lab_whose_machines_are_off(lab: Any, traces: Any, base: Path) -> None:
    """Disks, networks, services and the run directory come back, in a sandbox of its own; destroy removes the snapshots."""
    before = traces()
    one = lab("agtest", {"topology": "compact", "stack": "dualstack"})
    one.play("prepare")
    volume = next((one.state_dir / "pool").glob("*master_0*"))
    blob = one.state_dir / "services/registry/storage/docker/registry/v2/blobs/sha256/ab/abcd/data"
    blob.parent.mkdir(parents=True)
    blob.write_text("blob")
    one.enter("qemu-io", "-c", "write -P 1 0 64k", str(volume))
    print(snapshot(one, "save", "off"))
    assert_unchanged(one)
    assert one.enter("qemu-io", "-c", "read -P 1 0 64k", str(volume)).startswith("read 65536/65536")
    shared = one.state_dir / "snapshots/off/state" / blob.relative_to(one.state_dir)
    assert os.path.samefile(blob, shared)

    one.enter("qemu-io", "-c", "write -P 2 0 64k", str(volume))
    one.enter("virsh", "net-destroy", "agtestbm")
    blob.unlink()
    # Killed anywhere, it can be repeated.
    for delay in (0.5, 1.5):
        process = subprocess.Popen(
            [*namespaces.enter(one.host, str(Path.cwd())), *command(one, "restore", "off")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(one),
            start_new_session=True,
        )
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    print(snapshot(one, "restore", "off"))
    assert "Pattern verification failed" not in one.enter("qemu-io", "-c", "read -P 1 0 64k", str(volume))
    assert blob.read_text() == "blob"
    assert_unchanged(one)

    plan = one.run_dir / "plan.yaml"
    text = plan.read_text()
    plan.write_text(text + "# another\n")
    assert "plan (SHA-256) is" in snapshot(one, "restore", "off", wrong=True)
    plan.write_text(text)
    exported = base / "off.tar"
    assert "holds secrets" in snapshot(one, "export", "off", str(exported))
    assert exported.stat().st_mode & 0o777 == 0o600
    # What the lab runs from stays, and a snapshot comes back from its file.
    snapshot(one, "delete", "off")
    assert left(one) == []
    assert_unchanged(one)
    one.enter("qemu-io", "-c", "write -P 3 0 64k", str(volume))
    snapshot(one, "import", str(exported))
    snapshot(one, "restore", "off")
    assert "Pattern verification failed" not in one.enter("qemu-io", "-c", "read -P 1 0 64k", str(volume))
    assert_unchanged(one)
    one.play("destroy")
    assert traces() == before and not one.parent.exists()


def test_another_users_snapshots_are_refused(lab: Any) -> None:
    one = lab("agtest", {"topology": "sno", "stack": "ipv4"})
    one.play("prepare")
    marker = one.state_dir / "owner.json"
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"uid": 4711, "user": "another"}))
    for action in (
        ["save", "x"],
        ["list"],
        ["restore", "x"],
        ["delete", "x"],
        ["export", "x", "/tmp/x"],
        ["import", "x"],
    ):
        assert "belongs to another (uid 4711)" in snapshot(one, *action, wrong=True)
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"uid": os.getuid(), "user": "root"}))
