"""One action at a time on the snapshots of a lab, also when another process has been killed."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import bundle, copies, locks
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import lab as labs
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.lab import Lab
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import SnapshotError
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

from tests.unit.snapshot.test_identity import prepared, save
from tests.unit.snapshot.test_manifest import MADE

HOLD = f"""
import sys, time
from pathlib import Path
from {locks.__name__} import exclusive
with exclusive(Path(sys.argv[1]), "one"):
    print("held", flush=True)
    time.sleep(60)
"""
WRITING: dict[str, Callable[[Lab, Path], object]] = {
    "save": lambda lab, __: labs.save(lab, "x"),
    "restore": lambda lab, __: labs.restore(lab, "ready"),
    "delete": lambda lab, __: labs.delete(lab, "ready"),
    "import": bundle.import_,
}
READING: dict[str, Callable[[Lab, Path], object]] = {
    "export": lambda lab, path: bundle.export(lab, "ready", path),
    "copy": lambda lab, __: copies.copy(lab, "ready", "two"),
}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with the snapshot `ready`."""
    made = prepared(tmp_path, "runs", "mark")
    save(made, made)
    return made


def files(lab: Lab) -> list[str]:
    """What the state directory has: a lock leaves nothing there."""
    return sorted(str(path.relative_to(lab.state_dir)) for path in lab.state_dir.rglob("*"))


@pytest.mark.parametrize("action", [*WRITING, *READING])
def test_an_action_is_refused_while_another_one_runs(lab: Lab, tmp_path: Path, action: str) -> None:
    before = files(lab)
    refused = rf"another snapshot action runs for cluster one \(process {os.getpid()}\)"
    with locks.exclusive(lab.state_dir, "one"), pytest.raises(SnapshotError, match=refused):
        (WRITING | READING)[action](lab, tmp_path / "x.tar")
    assert files(lab) == before and not (tmp_path / "x.tar").exists() and not lab.state_dir.with_name("two").exists()


@pytest.mark.parametrize("action", WRITING)
def test_a_snapshot_that_is_read_does_not_change(lab: Lab, tmp_path: Path, action: str) -> None:
    with locks.exclusive(lab.state_dir, "one", shared=True):
        with locks.exclusive(lab.state_dir, "one", shared=True):
            bundle.export(lab, "ready", tmp_path / "other.tar")
        with pytest.raises(SnapshotError, match="another snapshot action runs"):
            WRITING[action](lab, tmp_path / "x.tar")


def test_the_lock_of_a_killed_process_is_gone(lab: Lab) -> None:
    command = [sys.executable, "-c", HOLD, str(lab.state_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with pytest.raises(
            SnapshotError, match=rf"runs for cluster one \(process {process.pid}\): wait until it has ended"
        ):
            labs.delete(lab, "ready")
        process.send_signal(signal.SIGKILL)
    labs.delete(lab, "ready")
    assert labs.existing_snapshots(lab.state_dir) == []


def test_what_lets_the_machines_continue_keeps_the_lock(lab: Lab) -> None:
    """The watcher of a save that was killed: before it has ended, no other save may look at the machines."""
    with locks.exclusive(lab.state_dir, "one", inherited=True):
        command = ["sh", "-c", "read done"]
        watcher = subprocess.Popen(command, stdin=subprocess.PIPE, close_fds=False)
        other = subprocess.Popen(["sleep", "60"])
    with pytest.raises(SnapshotError, match="another snapshot action runs for cluster one"):
        labs.delete(lab, "ready")
    watcher.communicate(b"done\n")
    labs.delete(lab, "ready")
    other.kill()
    other.wait()


@pytest.fixture
def copied(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Start a copy of the snapshot as cluster `two`, while `meanwhile` happens after the names were found to be free."""
    monkeypatch.setattr(copies.labs, "usable", lambda *__: dataclasses.replace(MADE, machines=()))
    monkeypatch.setattr(copies.namespaces, "remove", lambda *given: pytest.fail(f"removed: {given}"))

    def act(meanwhile: Callable[[], object]) -> None:
        monkeypatch.setattr(copies.room, "check_memory", lambda *__: meanwhile())
        copies.copy(lab, "ready", "two")

    return act


def test_the_loser_of_two_copies_leaves_the_run_directory_of_the_winner(lab: Lab, copied: Any) -> None:
    won = lab.run_dir.parent / "two"
    with pytest.raises(SnapshotError, match=r"runs/two exists: choose another name"):
        copied(won.mkdir)
    assert won.is_dir()


def test_the_loser_of_two_copies_leaves_the_state_directory_of_the_winner(
    lab: Lab, copied: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From two run directories: the names are free, and one state directory is for both."""
    monkeypatch.setattr(
        copies.labs, "fill_run", lambda new, place: (new.run_dir / "state.json").write_text(_state(place))
    )
    mine = dataclasses.replace(lab.who.owner, cluster="two", run_dir=str(tmp_path / "elsewhere/two"))
    target = lab.state_dir.parent / "two"
    with pytest.raises(owner.OwnerError, match=r"belongs to .*elsewhere/two"):
        copied(lambda: owner.claim(target, owner.Caller(mine)))
    assert owner.read(target) == mine
    assert not (lab.run_dir.parent / "two").exists()


def _state(place: Path) -> str:
    return (place / "run/state.json").read_text()


def test_the_new_lab_is_locked_while_it_is_started(lab: Lab, copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        copies.labs, "fill_run", lambda new, place: (new.run_dir / "state.json").write_text(_state(place))
    )

    def fill(new: Lab, *__: object) -> None:
        for one in (lab, new):
            with pytest.raises(SnapshotError, match="another snapshot action runs for cluster") as refused:
                labs.save(one, "x")
            seen.append(str(refused.value).partition("cluster ")[2][:3])
        raise SnapshotError("enough")

    monkeypatch.setattr(copies.labs, "fill_state", fill)
    monkeypatch.setattr(copies, "claim", lambda path, who, __: owner.claim(path, who))
    monkeypatch.setattr(copies.namespaces, "remove", lambda __, path, who: owner.remove(path, who))
    with pytest.raises(SnapshotError, match="enough"):
        copied(lambda: None)
    assert seen == ["one", "two"]
    assert not (lab.state_dir.parent / "two").exists() and not (lab.run_dir.parent / "two").exists()
