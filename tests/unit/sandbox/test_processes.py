"""Processes are found, watched and ended by their start, not by their number alone."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import processes


@pytest.fixture
def sleeper(tmp_path: Path):
    yield processes.Program("sleeper", ["sleep", "60"], tmp_path / "log")
    processes.stop(tmp_path / "run", "sleeper")


def test_start_find_stop(tmp_path: Path, sleeper: processes.Program) -> None:
    started = processes.launch(tmp_path / "run", sleeper)
    assert processes.find(tmp_path / "run", "sleeper") == started
    assert started.digest == sleeper.digest()
    assert processes.stop(tmp_path / "run", "sleeper")
    assert processes.find(tmp_path / "run", "sleeper") is None
    assert not processes.stop(tmp_path / "run", "sleeper")
    assert processes.start_time(started.pid) is None


def test_another_process_of_that_number_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "sleeper.json").write_text(json.dumps({"pid": other.pid, "start": 1, "digest": ""}))
        assert processes.find(tmp_path, "sleeper") is None
        assert not processes.stop(tmp_path, "sleeper")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_found_without_its_file(tmp_path: Path, sleeper: processes.Program) -> None:
    started = processes.launch(tmp_path / "run", sleeper)
    (tmp_path / "run" / "sleeper.json").unlink()
    found = processes.find(tmp_path / "run", "sleeper")
    assert found is not None and (found.pid, found.start) == (started.pid, started.start)
    assert processes.stop(tmp_path / "run", "sleeper")


def test_found_next_to_the_file_of_an_earlier_one(tmp_path: Path, sleeper: processes.Program) -> None:
    """Killed between the start of a process and its file, when the file of the one before it is still there."""
    started = processes.launch(tmp_path / "run", sleeper)
    (tmp_path / "run" / "sleeper.json").write_text(json.dumps({"pid": 2**22 + 1, "start": 1, "digest": ""}))
    found = processes.find(tmp_path / "run", "sleeper")
    assert found is not None and (found.pid, found.start) == (started.pid, started.start)


def test_one_that_ignores_the_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "TERM_SECONDS", 0.3)
    program = processes.Program(
        "stubborn", ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"], tmp_path / "log"
    )
    started = processes.launch(tmp_path, program)
    deadline = time.monotonic() + 5
    while not (tmp_path / "log").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes.stop(tmp_path, "stubborn")
    assert processes.start_time(started.pid) is None


def test_digest_is_of_the_files_too(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("a")
    program = processes.Program("x", ["x"], tmp_path / "log", files=(config,))
    before = program.digest()
    config.write_text("b")
    assert program.digest() != before


def test_missing_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="x: cannot start /no/such/program: No such file"):
        processes.launch(tmp_path, processes.Program("x", ["/no/such/program"], tmp_path / "log"))


def test_a_zombie_does_not_run() -> None:
    child = os.fork()
    if not child:
        signal.pause()
    assert processes.start_time(child)
    os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while processes.start_time(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes.start_time(child) is None
    os.waitpid(child, 0)


def test_a_process_whose_first_thread_has_ended_runs() -> None:
    """It is a zombie, but its other threads may hold a port, as for a moment after SIGKILL."""
    exit_thread = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); ctypes.CDLL(None).syscall(60, 0)"
    process = subprocess.Popen([sys.executable, "-c", exit_thread])
    try:
        stat, end = Path(f"/proc/{process.pid}/stat"), time.monotonic() + 20
        while stat.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < end:
            time.sleep(0.01)
        assert processes.start_time(process.pid)
        process.kill()
        end = time.monotonic() + 5
        while processes.start_time(process.pid) and time.monotonic() < end:
            time.sleep(0.01)
        assert processes.start_time(process.pid) is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "{}",
        "[]",
        '{"pid": -1, "start": null, "digest": ""}',
        '{"pid": 0, "start": 0, "digest": ""}',
        '{"pid": 1, "start": 1, "digest": ""}',
        '{"pid": "1", "start": 1, "digest": ""}',
        '{"pid": true, "start": 1, "digest": ""}',
        '{"pid": 5e400, "start": 1, "digest": ""}',
    ],
)
def test_a_damaged_file_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    (tmp_path / "sleeper.json").write_text(text)
    assert processes.find(tmp_path, "sleeper") is None
    assert not processes.stop(tmp_path, "sleeper")
    processes.end(-1, None)
    assert not killed


def test_a_process_without_the_mark_is_left_alone(tmp_path: Path) -> None:
    """The file names a process that is not ours, with its right start."""
    other = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "sleeper.json").write_text(
            json.dumps({"pid": other.pid, "start": processes.start_time(other.pid), "digest": ""})
        )
        assert processes.find(tmp_path, "sleeper") is None
        assert not processes.stop(tmp_path, "sleeper")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="creates a PID namespace")
def test_the_first_process_of_a_namespace_ends_though_nothing_reaps_its_orphans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where process 1 does not reap, as in a container without init, an orphan that had entered a sandbox kept destroy from ending."""
    set_subreaper = partial(ctypes.CDLL(None).prctl, 36)  # prctl(2), PR_SET_CHILD_SUBREAPER
    outer = subprocess.Popen(["unshare", "--pid", "--fork", "sleep", "600"])
    entered: subprocess.Popen[bytes] | None = None
    set_subreaper(1, 0, 0, 0)
    monkeypatch.setattr(processes, "TERM_SECONDS", 1.0)  # it ignores SIGTERM
    try:
        first = child_of(outer.pid)
        start = processes.start_time(first)
        assert start is not None
        entered = subprocess.Popen(["nsenter", f"--target={first}", "--pid", "sleep", "600"])
        orphan = child_of(entered.pid)
        entered.kill()
        entered.wait()
        os.kill(orphan, signal.SIGKILL)  # a zombie from now on: this process does not reap it
        processes.end(first, start)
        assert Path(f"/proc/{first}").exists()
        assert not processes.runs(first, start)
        os.waitpid(orphan, 0)
    finally:
        set_subreaper(0, 0, 0, 0)
        for process in filter(None, (entered, outer)):
            process.kill()
            process.wait()


def child_of(pid: int) -> int:
    """The pid of the one child that a process is going to have."""
    path, end = Path(f"/proc/{pid}/task/{pid}/children"), time.monotonic() + 20
    while not (found := path.read_text().split()) and time.monotonic() < end:
        time.sleep(0.01)
    return int(found[0])
