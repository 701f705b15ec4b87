"""Processes that outlive a killed run: Ansible's workers have their own sessions and finish their tasks. The next run stops them.

Every process of a run has `AGENTLAB_RUN=<run directory>:<pid>:<start>` in its environment, with the process of the command line.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ..errors import LabError
from ..sandbox import processes

RUN = "AGENTLAB_RUN"


def mark(run_dir: Path) -> dict[str, str]:
    """Return the environment of child processes for `run_dir`."""
    return {RUN: f"{run_dir}:{os.getpid()}:{processes.start_time(os.getpid())}"}


def end(run_dir: Path, *, own: bool = False) -> list[int]:
    """Kill the processes of runs for `run_dir` whose command line is gone; return their pids. own: also those of this run."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        text = processes.environment_of(int(entry)).get(RUN, "")
        directory, __, rest = text.rpartition(":")
        directory, __, pid = directory.rpartition(":")
        if directory != str(run_dir) or not pid.isdecimal() or not rest.isdecimal():
            continue
        mine = int(pid) == os.getpid()
        if int(entry) == os.getpid() or (processes.runs(int(pid), int(rest)) and not (own and mine)):
            continue
        found.append(int(entry))
    for number in found:
        start = processes.start_time(number)
        if start is not None:
            with contextlib.suppress(PermissionError, LabError):
                processes.end(number, start)
    return found
