"""Connections that are there before they are needed, with a fake ssh that is one until its input ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.reload import logins

ADDRESS = "192.168.111.20"
SSH = """#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" != -S ] || socket=$2
    shift
done
echo $$ >> "$PIDS"
[ -z "$REFUSED" ] || exit 255
sleep 0.2
touch "$socket"
cat
"""


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the processes of the fake ssh, which comes first in the path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(SSH)
    (tmp_path / "bin/ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    return tmp_path / "pids"


def living(pids: Path) -> list[int]:
    return [int(pid) for pid in pids.read_text().split() if Path("/proc", pid).exists()]


def test_a_command_uses_the_connection_that_was_begun(pids: Path, tmp_path: Path) -> None:
    with logins.open_logins(tmp_path, ["env"]) as found:
        assert "-S" not in found.command(ADDRESS)
        found.begin([ADDRESS])
        command = found.command(ADDRESS)
        assert Path(command[command.index("-S") + 1]).exists() and command[-1] == f"core@{ADDRESS}"
        found.begin([ADDRESS])
        assert len(living(pids)) == 1
    assert not living(pids)


def test_a_node_that_refuses_is_left_to_the_command(
    pids: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFUSED", "1")
    with logins.open_logins(tmp_path, ["env"]) as found:
        found.begin([ADDRESS])
        assert "-S" not in found.command(ADDRESS)


def test_a_connection_ends_with_a_process_that_is_killed(pids: Path, tmp_path: Path) -> None:
    script = (
        "import os, sys, time; from pathlib import Path; "
        f"from {logins.__name__} import Logins; "
        f"found = Logins(Path({str(tmp_path)!r}), ['env'], Path({str(tmp_path)!r})); "
        f"found.begin([{ADDRESS!r}]); found.command({ADDRESS!r}); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    end = time.monotonic() + 10
    while living(pids):
        assert time.monotonic() < end
        time.sleep(0.05)
