"""Which disks of a machine a snapshot keeps, and how machines continue after a save, whatever happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import machines
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import (
    OFF,
    PAUSED,
    RUNNING,
    Machine,
    SnapshotError,
)

VOLUME = (
    '<disk type="volume" device="disk"><source pool="p" volume="master-0-0"/><target dev="vda" bus="virtio"/></disk>'
)
STICK = '<disk type="file" device="disk"><source file="/run/agent.iso"/><target dev="sdx" bus="usb" removable="on"/><readonly/></disk>'
CD = '<disk type="file" device="cdrom"><source file="/run/agent.iso"/><target dev="sdx" bus="sata"/><readonly/></disk>'
OTHER = '<disk type="file" device="disk"><source file="/srv/mine.qcow2"/><target dev="vdb" bus="virtio"/></disk>'


class Domain:
    def __init__(self, disks: str) -> None:
        self.disks = disks

    def XMLDesc(self, __: int) -> str:  # noqa: N802
        return f"<domain><devices>{self.disks}</devices></domain>"

    def name(self) -> str:
        return "one_master_0"


def volumes(disks: str) -> list[str]:
    domain: Any = Domain(disks)
    return machines._volumes(domain)


@pytest.mark.parametrize("medium", ["", STICK, CD])
def test_a_medium_is_not_kept(medium: str) -> None:
    assert volumes(VOLUME + medium) == ["master-0-0"]


def test_a_disk_of_others_is_refused() -> None:
    with pytest.raises(SnapshotError, match="domain one_master_0: disk vdb is not a volume of the lab's pool"):
        volumes(VOLUME + OTHER)


@pytest.mark.parametrize(
    ("moves", "wanted"),
    [([], None), ([("/runs/on", "/other")], None), ([("/runs/one", "/other")], "<source file='/other/agent.iso'/>")],
)
def test_open_files_move_with_the_run_directory(moves: list[tuple[str, str]], wanted: str | None) -> None:
    """libvirt opens a CD in the run directory by the definition that it gets; without one, by that of the file."""
    loaded = []

    class Connection:
        def saveImageGetXMLDesc(self, path: str, flags: int) -> str:  # noqa: N802
            assert (path, flags) == ("/memory/one_master_0", 1)
            return "<source file='/runs/one/agent.iso'/>"

        def restoreFlags(self, *given: object) -> None:  # noqa: N802
            loaded.append(given)

    connection: Any = Connection()
    saved = [Machine("one_master_0", PAUSED, ()), Machine("one_master_1", OFF, ())]
    machines.load(connection, saved, Path("/memory"), moves)
    assert loaded == [("/memory/one_master_0", wanted, 4)]


class Lost(Exception):
    """libvirt's error."""


class Guest:
    """A domain of a libvirt that plays: `stuck` names what fails, with a count of each."""

    def __init__(self, state: int, stuck: dict[str, int]) -> None:
        self.now, self.stuck = state, stuck

    def attempt(self, what: str, then: int) -> None:
        if self.stuck.get(what, 0):
            self.stuck[what] -= 1
            raise Lost(f"cannot {what}")
        self.now = then

    def state(self) -> list[int]:
        return [self.now, 0]

    def isActive(self) -> bool:  # noqa: N802
        return self.now != 5

    def suspend(self) -> None:
        self.attempt("suspend", 3)

    def resume(self) -> None:
        if self.now != 3:
            raise Lost("not paused")
        self.attempt("resume", 1)


class Libvirt:
    def __init__(self, **guests: Guest) -> None:
        self.guests, self.loading = guests, list[str]()

    def lookupByName(self, name: str) -> Guest:  # noqa: N802
        return self.guests[name]

    def restoreFlags(self, path: str, *__: object) -> None:  # noqa: N802
        self.loading.append(Path(path).name)
        signal.raise_signal(signal.SIGINT)  # another Ctrl-C
        self.guests[Path(path).name].attempt("load", 3)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A virsh that notes its arguments; returns its notes."""
    virsh, notes = tmp_path / "bin/virsh", tmp_path / "notes"
    virsh.parent.mkdir()
    virsh.write_text(f'#!/bin/sh\nshift 3; echo "$@" >> {notes}; [ "$1" = restore ]\n')
    virsh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{virsh.parent}:{os.environ['PATH']}")
    notes.touch()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield notes
    signal.signal(signal.SIGINT, handler)


def still(tmp_path: Path, libvirt: Libvirt, act: Callable[[], None]) -> None:
    """Save machines that end meanwhile, and do what `act` does."""
    (tmp_path / "stage/memory").mkdir(parents=True)
    before = {name: {1: RUNNING, 3: PAUSED, 5: OFF}[guest.now] for name, guest in libvirt.guests.items()}
    connection: Any = libvirt
    with machines.standing_still(connection, before, "x:///", tmp_path / "stage/memory", tmp_path / "stage"):
        assert all(guest.now != 1 for guest in libvirt.guests.values())
        for guest in libvirt.guests.values():
            guest.now = 5
        act()


def test_ctrl_c_again_does_not_leave_a_machine_behind(tmp_path: Path, programs: Path) -> None:
    libvirt = Libvirt(a=Guest(1, {}), b=Guest(3, {}), c=Guest(5, {}), d=Guest(1, {}))

    def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)  # while memory is still being written

    with pytest.raises(KeyboardInterrupt):
        still(tmp_path, libvirt, interrupted)
    assert {name: guest.now for name, guest in libvirt.guests.items()} == {"a": 1, "b": 3, "c": 5, "d": 1}
    assert sorted(libvirt.loading) == ["a", "b", "d"] and programs.read_text() == ""


def test_ctrl_c_while_the_machines_continue_ends_the_save(tmp_path: Path, programs: Path) -> None:
    libvirt = Libvirt(a=Guest(1, {}), b=Guest(1, {}))
    with pytest.raises(KeyboardInterrupt):
        still(tmp_path, libvirt, lambda: None)
    assert [guest.now for guest in libvirt.guests.values()] == [1, 1] and programs.read_text() == ""


def test_each_machine_continues_that_can(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher tries the others again, before the memory that was saved is removed."""
    monkeypatch.setattr(signal, "raise_signal", lambda __: None)
    guests = {name: Guest(1, {}) for name in "abcdefg"}
    guests["a"].stuck["load"] = guests["b"].stuck["resume"] = 1
    wrong = r"^disk is full; machine a did not continue: cannot load; machine b did not continue: cannot resume; .*agentlab power NODE on"

    def full() -> None:
        raise SnapshotError("disk is full")

    with pytest.raises(SnapshotError, match=wrong):
        still(tmp_path, Libvirt(**guests), full)
    assert [guest.now for guest in guests.values()] == [5, 3, 1, 1, 1, 1, 1]
    memory = tmp_path / "stage/memory"
    assert [line for line in programs.read_text().splitlines() if line.split()[1] in ("a", f"{memory}/a")] == [
        "resume a",
        f"restore {memory}/a --running",
    ]
    assert not (tmp_path / "stage").exists()


def test_a_machine_that_was_not_paused_needs_no_resume(tmp_path: Path, programs: Path) -> None:
    libvirt = Libvirt(a=Guest(1, {}), b=Guest(1, {"suspend": 1}))
    with pytest.raises(Lost, match="cannot suspend"):
        still(tmp_path, libvirt, lambda: None)
    assert [guest.now for guest in libvirt.guests.values()] == [1, 1]
