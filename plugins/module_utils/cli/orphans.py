"""Processes that outlive a killed run: Ansible's workers have their own sessions and finish their tasks. The next run stops them.

Every process of a run has `AGENTLAB_RUN=<run directory>:<pid>:<start>` in its environment, with the process of the command line.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import LabError
from ..sandbox import processes

RUN = "AGENTLAB_RUN"


def mark(run_dir: Path) -> dict[str, str]:
    """Return the environment of child processes for `run_dir`.

    run_dir: absolute. The mark has the pid and the start time of this process, so that a reused pid is not mistaken for
    it.
    """
    return {RUN: f"{run_dir}:{os.getpid()}:{processes.start_time(os.getpid())}"}


class _Child(NamedTuple):
    """A process of a run: its pid, the run directory, and the command line's pid and start time."""

    pid: int
    run_dir: str
    parent: int
    start: int


def _children() -> Iterator[_Child]:
    for entry in filter(str.isdigit, os.listdir("/proc")):
        text = processes.environment_of(int(entry)).get(RUN, "")
        directory, __, start = text.rpartition(":")
        directory, __, parent = directory.rpartition(":")
        if parent.isdecimal() and start.isdecimal():
            yield _Child(int(entry), directory, int(parent), int(start))


def run_dirs() -> set[str]:
    """Return the run directories for which a command line of this host runs a playbook now.

    They are found by the mark in the environment of processes; those of other users are visible to root only.
    """
    return {child.run_dir for child in _children() if processes.runs(child.parent, child.start)}


def end(run_dir: Path, *, own: bool = False) -> list[int]:
    """Kill the processes of runs for `run_dir` whose command line is gone; return their pids. own: also those of this run.

    The result has all pids that were found, also of processes that could not be ended for lack of permission.
    """
    found = []
    for child in _children():
        alive = processes.runs(child.parent, child.start) and not (own and child.parent == os.getpid())
        if child.run_dir == str(run_dir) and child.pid != os.getpid() and not alive:
            found.append(child.pid)
    for number in found:
        start = processes.start_time(number)
        if start is not None:
            with contextlib.suppress(PermissionError, LabError):
                processes.end(number, start)
    return found
