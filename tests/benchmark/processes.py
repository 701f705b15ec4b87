"""Whole processes: how long they take, against others in turns, and where the time goes."""

from __future__ import annotations

import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
AGENTLAB = ROOT / "bin/agentlab"
_CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
# As users have it: with the bytecode of earlier runs.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Ran(NamedTuple):
    """What a process took: seconds, seconds of processor time, peak memory in MiB."""

    seconds: float
    processor: float
    memory: float


def run(*words: object, **environment: str) -> Ran:
    """Run a command that must succeed. environment: variables in addition."""
    start = time.perf_counter()
    child = subprocess.Popen([str(word) for word in words], env=ENVIRONMENT | environment)
    __, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return Ran(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


class Pair(NamedTuple):
    """The median pair: seconds of ours, of the other command, and how much ours is over the limit."""

    ours: float
    other: float
    over: float


def compare(
    ours: Callable[[], object],
    other: Callable[[], object],
    factor: float,
    constant: float,
    clean: Callable[[], object],
    *,
    pairs: int = 15,
) -> Pair:
    """Time two actions in turns, so that the machine's other work weighs on both; return the pair with the median distance to the limit.

    The limit is `factor` times the other command and `constant` seconds. clean: makes room before each of them.
    """
    found = []
    for __ in range(pairs):
        taken = []
        for action in (other, ours):
            clean()
            os.sync()
            start = time.perf_counter()
            action()
            taken.append(time.perf_counter() - start)
        found.append(Pair(taken[1], taken[0], taken[1] - factor * taken[0] - constant))
    clean()
    middle = statistics.median_low(pair.over for pair in found)
    return next(pair for pair in found if pair.over == middle)


def where(*words: object, **environment: str) -> str:
    """Return lines with the seconds that a command of agentlab spends importing and in the functions that take longest.

    Of the main thread, in a run of its own, which the profiler makes slower.
    """
    with tempfile.NamedTemporaryFile() as file:
        command = [sys.executable, "-m", "cProfile", "-o", file.name, "-m", _CLI, *map(str, words)]
        subprocess.run(command, env=ENVIRONMENT | environment, check=True, stdout=subprocess.DEVNULL)
        stats = pstats.Stats(file.name).get_stats_profile()
    longest = sorted(stats.func_profiles.items(), key=lambda one: -one[1].tottime)[:6]
    imports = stats.func_profiles["_find_and_load"].cumtime
    rows = [(imports, "imports"), *((profile.tottime, name) for name, profile in longest)]
    return "\n".join(
        [f"  of {stats.total_tt:.2f} s with a profiler:", *(f"    {row:6.3f} s  {name}" for row, name in rows)]
    )
