"""What outlives a run that was killed: Ansible's workers, sessions of their own, end their tasks first. The next run ends them.

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
    """Return the environment of what this process runs for `run_dir`."""
    return {RUN: f"{run_dir}:{os.getpid()}:{processes.start_time(os.getpid())}"}


def end(run_dir: Path, *, own: bool = False) -> list[int]:
    """End the processes of runs for `run_dir` whose command line is gone; return their numbers. own: those of this one, too."""
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
