"""How long a single node and a lab of five machines take to be restored, with the snapshot in the page cache and on the disk alone.

The machines run the agent ISO, and all hosts are known: the state that installations are started from. Not part of the unit suite:
`pytest -s tests/benchmark/test_snapshots.py`, as root on a host that is set up.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.ci.calls import VerbFailed, Verbs
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.names import STATE_DIR

CLUSTER = "benchs"
ROUNDS = 3
# Profile -> longest seconds from the page cache, and from the disk, on two quiet cores.
LIMITS = {"sno_ipv4": (5.0, 5.0), "ha_dualstack": (15.0, 40.0)}
BOOT_SECONDS = 1200
NAME = "known"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a sandbox needs root")


def until(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(2)


def drop_cached(directory: Path) -> int:
    """Drop the files of a directory from the page cache; return their bytes."""
    size = 0
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size += path.stat().st_blocks * 512
    return size


@pytest.mark.parametrize("profile", LIMITS)
def test_restore(profile: str, tmp_path: Path) -> None:
    verbs = Verbs(CLUSTER, tmp_path)

    def held() -> bool:
        try:
            verbs.call("ssh", "master-0", "--", "sudo", "systemctl", "stop", "start-cluster-installation")
        except VerbFailed:
            return False
        return True

    def known() -> bool:
        return {host["status"] for host in verbs.json("status")["hosts"]} == {"known"}

    def restored() -> float:
        shown = verbs.call("snapshot", "restore", NAME)
        took = re.search(r"restored in ([0-9.]+) s", shown)
        assert took and known(), shown
        return float(took[1])

    try:
        verbs.call("deploy", profile, "--stop-after", "boot")
        until(held, BOOT_SECONDS)
        until(known, BOOT_SECONDS)
        saved = verbs.call("snapshot", "save", NAME)
        cached = [restored() for __ in range(ROUNDS)]
        cold = []
        for __ in range(ROUNDS):
            size = drop_cached(Path(STATE_DIR, CLUSTER, "snapshots", NAME))
            cold.append(restored())
        print(f"\n{profile}, {size / 2**30:.1f} GiB: {saved.strip()}; restored {cached}, cold {cold}")
    finally:
        verbs.call("destroy")
    assert statistics.median(cached) <= LIMITS[profile][0]
    assert statistics.median(cold) <= LIMITS[profile][1]
