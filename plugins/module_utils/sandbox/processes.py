"""Processes that the lab starts, watches and stops itself, on hosts with and without systemd.

Each has a file `<directory>/<name>.json` with `{"pid", "start", "digest"}`: `start` is the kernel's start time of the
process (proc(5), /proc/PID/stat, field 22), so a reused pid is not mistaken for ours;
`digest` covers the command line, the environment and the content of its files, so a change of any means a restart.
A process also has `AGENTLAB_PROCESS=<directory>/<name>` in its environment, by which it is found after an interruption
between its start and the creation of its file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..documents import load_json, read_file
from ..errors import LabError
from ..state import write_atomic

TERM_SECONDS = 5.0
EXEC_SECONDS = 1.0
_EXITING = 0x4  # PF_EXITING of linux/sched.h, in the flags of /proc/PID/stat
MARK = "AGENTLAB_PROCESS"


@dataclass(frozen=True)
class Program:
    """What to run: `files` are read by it, and their content is part of its identity; output goes to `log`.

    name: also of its file; environment: in addition to that of this process.
    """

    name: str
    argv: list[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    def digest(self) -> str:
        """Return a hash of everything that identifies the program."""
        total = hashlib.sha256(json.dumps([self.argv, dict(self.environment)]).encode())
        for path in self.files:
            total.update(path.read_bytes())
        return total.hexdigest()


@dataclass(frozen=True)
class RunningProcess:
    """A process that was started for a service: its start in clock ticks distinguishes it from a later one with the same pid."""

    pid: int
    start: int
    digest: str


def start_time(pid: int) -> int | None:
    """Return when process `pid` started, in clock ticks since boot; None when there is no such process, or it has ended.

    A zombie has ended, unless it has other threads: these still hold its ports and files. So has the first process of a PID namespace
    that exits and has released its namespaces: it stays as long as there is a zombie in it (pid_namespaces(7)), which lasts where nothing
    reaps orphans, as in a container without init.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        alone = int(fields[17]) < 2
        if alone and fields[0] in "ZX":
            return None
        if alone and int(fields[6]) & _EXITING:
            os.readlink(f"/proc/{pid}/ns/net")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(fields[19])


def find(directory: Path, name: str) -> RunningProcess | None:
    """Return the running process `name` of ours, or None.

    directory: with the files. One that lost its file is found by the mark in its environment; its digest is then empty.
    """
    try:
        found = RunningProcess(**load_json(read_file(directory / f"{name}.json"), name=f"{name}.json"))
    except (FileNotFoundError, ValueError, TypeError):
        return _marked(directory, name)
    if not isinstance(found.digest, str) or not runs(found.pid, found.start):
        return _marked(directory, name)  # killed after a new one was started and before its file was written
    # A file that was damaged may name any process; ours has the mark in its environment.
    return found if _carries(_laid_out(found), directory, name) else _marked(directory, name)


def runs(pid: object, start: object) -> bool:
    """Return whether process `pid` exists and started at `start`; False for invalid values such as -1 or null."""
    numbers = isinstance(pid, int) and isinstance(start, int) and not isinstance(pid, bool)
    return numbers and pid > 1 and start_time(pid) == start  # type: ignore[operator,arg-type]


def is_ours(pid: int, directory: Path, name: str) -> bool:
    """Return whether process `pid` was started as `name`, according to its environment."""
    return _carries(_environment(pid), directory, name)


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that process `pid` was started with; empty if it does not exist, or belongs to another user."""
    text = _environment(pid).decode(errors="replace")
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def _carries(environment: bytes, directory: Path, name: str) -> bool:
    return f"{MARK}={directory}/{name}".encode() in environment.split(b"\0")


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _laid_out(process: RunningProcess) -> bytes:
    """Return the environment of a process that may just have started: the kernel lays it out a moment after execve(2) has succeeded."""
    deadline = time.monotonic() + EXEC_SECONDS
    while (
        not (environment := _environment(process.pid))
        and runs(process.pid, process.start)
        and time.monotonic() < deadline
    ):
        time.sleep(0.005)
    return environment


def lasting_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a process that outlives its run: without variables of the run.

    TMPDIR is removed at the end of a run, and `AGENTLAB_RUN` would let the next run end it.
    """
    return {name: value for name, value in environment.items() if name not in ("TMPDIR", "AGENTLAB_RUN")}


def mark(directory: Path, name: str) -> dict[str, str]:
    """Return the environment that identifies process `name`."""
    return {MARK: f"{directory}/{name}"}


def _marked(directory: Path, name: str) -> RunningProcess | None:
    for entry in filter(str.isdigit, os.listdir("/proc")):
        if is_ours(int(entry), directory, name):
            started = start_time(int(entry))
            if started is not None:
                return RunningProcess(int(entry), started, "")
    return None


def launch(directory: Path, program: Program) -> RunningProcess:
    """Start `program` in a session of its own and write its file.

    directory: for `NAME.json`. Output is appended to `log` (0600). Raises `LabError` when the program cannot be
    started.
    """
    program.log.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(program.log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "ab") as log:
        try:
            process = subprocess.Popen(
                program.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                env={**lasting_environment(os.environ), **program.environment, **mark(directory, program.name)},
            )
        except OSError as error:
            raise LabError(f"{program.name}: cannot start {program.argv[0]}: {error.strerror}") from error
    running = RunningProcess(process.pid, start_time(process.pid) or 0, program.digest())
    write_atomic(directory / f"{program.name}.json", json.dumps(running.__dict__))
    _laid_out(running)  # from here on `find` finds the process without its file, too
    return running


def stop(directory: Path, name: str) -> bool:
    """End process `name` if it is ours: SIGTERM, after `TERM_SECONDS` SIGKILL. Return whether it ran.

    directory: with its file, which is removed, too. Raises `LabError` as `end`.
    """
    running = find(directory, name)
    if running:
        end(running.pid, running.start)
    with contextlib.suppress(FileNotFoundError):
        (directory / f"{name}.json").unlink()
    return running is not None


def end(pid: int, start: int) -> None:
    """End the session of process `pid`, if that is still the process that started at `start`.

    SIGTERM, then SIGKILL after `TERM_SECONDS`. Raises `LabError` if it is still there as long after that.
    """
    if not runs(pid, start):
        return
    for number, grace in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, TERM_SECONDS)):
        deadline = time.monotonic() + grace
        if start_time(pid) != start:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            if start_time(pid) != start:
                return
            time.sleep(0.02)
    raise LabError(f"process {pid} did not end {TERM_SECONDS:.0f} s after SIGKILL")


def log_tail(path: Path, lines: int = 5) -> str:
    """Return the last lines of a log, for a message."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


def names(directory: Path) -> Iterable[str]:
    """Return the names of the processes that have a file in `directory`."""
    return sorted(path.stem for path in directory.glob("*.json"))
