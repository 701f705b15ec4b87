"""What a killed run leaves: the next one removes its directory and ends its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import orphans, scratch
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import processes

PACKAGE = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
# A command line whose "Ansible" has a worker in a session of its own that ignores what ends others.
RUN = f"""
import os, signal, subprocess, sys
from pathlib import Path
from {PACKAGE} import lab, orphans, scratch
worker = "import time; print('working', flush=True); time.sleep(60)"
playbook = f"import signal, subprocess, sys; subprocess.Popen([sys.executable, '-c', {{worker!r}}], start_new_session=True).wait()"
with scratch.scratch() as (directory, lock):
    (directory / "inventory.yml").write_text("")
    (directory / "ansible").write_text(playbook)
    sys.exit(lab._ansible([str(directory / "ansible")], Path(sys.argv[1]), directory, lock))
"""


def marked(run_dir: Path) -> list[int]:
    found = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [
        pid
        for pid in found
        if processes.environment_of(pid).get(orphans.RUN, "").startswith(f"{run_dir}:") and processes.start_time(pid)
    ]


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was killed when its worker was at work; returns its run directory."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    run_dir = tmp_path / "runs" / "ostest"
    with subprocess.Popen([sys.executable, "-c", RUN, run_dir], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGKILL)
    return run_dir


def test_the_next_run_ends_the_workers_of_a_killed_one(killed: Path) -> None:
    assert marked(killed)
    assert orphans.end(killed.with_name("other")) == []
    assert orphans.end(killed)
    assert not marked(killed)


def test_a_run_that_continues_is_left_alone(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "60"], env={**os.environ, **orphans.mark(tmp_path)})
    try:
        assert orphans.end(tmp_path) == []
        assert child.poll() is None
        assert orphans.end(tmp_path, own=True) == [child.pid]
    finally:
        child.kill()
        child.wait()


def test_the_next_run_removes_what_a_killed_one_left(killed: Path, tmp_path: Path) -> None:
    orphans.end(killed)
    left = list(tmp_path.glob(f"{scratch.PREFIX}*"))
    assert len(left) == 1
    mine = tmp_path / f"{scratch.PREFIX}of-somebody"
    mine.mkdir()
    (mine / "file").write_text("")
    deadline = time.monotonic() + 10
    while left[0].exists() and time.monotonic() < deadline:
        with scratch.scratch() as (directory, __):
            assert directory.is_dir()
            with scratch.scratch():
                assert directory.is_dir(), "one that is in use stays"
    assert not left[0].exists() and not directory.exists()
    assert (mine / "file").exists()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary ones."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_directory_that_another_run_swept_before_it_was_locked_is_made_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = tempfile.mkdtemp, list[str]()

    def swept(prefix: str) -> str:
        made.append(make(prefix=prefix))
        if len(made) == 1:
            scratch.sweep(here)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    with scratch.scratch() as (directory, __):
        assert (str(directory), directory.is_dir()) == (made[1], True)
    assert list(here.iterdir()) == []


def test_many_runs_at_once_leave_nothing(here: Path) -> None:
    code = f"from {PACKAGE} import scratch\nfor __ in range(300):\n    with scratch.scratch() as (at, __):\n        (at / 'x').mkdir()"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(here)}, stderr=subprocess.PIPE, text=True
        )
        for __ in range(4)
    ]
    assert [run.communicate()[1] for run in runs] == [""] * 4
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("moment", ["before", "while"])
def test_what_an_orphan_writes_while_a_directory_is_removed_is_removed_by_the_next_sweep(
    here: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    real = Path.unlink if moment == "before" else Path.rmdir

    def late(path: Path, *args: Any) -> None:
        if path.name == scratch.MARK or moment == "while":
            (directory / "late").write_text("")
            (directory / "more").mkdir(exist_ok=True)
        real(path, *args)

    with scratch.scratch() as (directory, __):
        monkeypatch.setattr(Path, "unlink" if moment == "before" else "rmdir", late)
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    assert (directory / "late").exists()
    with scratch.scratch():
        pass
    assert list(here.iterdir()) == []


def test_processes_that_outlive_a_run_do_not_carry_its_mark() -> None:
    assert processes.lasting_environment({"TMPDIR": "/x", orphans.RUN: "/r:1:2", "HOME": "/root"}) == {"HOME": "/root"}
