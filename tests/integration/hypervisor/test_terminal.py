"""A terminal that goes away: what runs in it ends at once, leaves no process and no half snapshot, and the lab is unharmed."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces, processes
from small_lab import CLI, environment, press_a_key, snapshot, state, until, wait_for, write

pytestmark = pytest.mark.slow

MARK = "AGENTLAB_TEST_TERMINAL"
SECONDS = 60


class Terminal:
    """A verb that runs in a terminal of its own."""

    def __init__(self, one: Any, *argv: str) -> None:
        prefix = namespaces.enter(one.host, str(Path.cwd()))
        command = [*prefix, sys.executable, "-m", CLI, *argv, "--cluster", one.cluster]
        self.pid, self.screen = pty.fork()
        if not self.pid:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests below nohup inherit that it is ignored
            os.execvpe(command[0], command, {**environment(one), MARK: str(os.getppid())})

    def shows(self, text: str) -> None:
        """Wait until it has printed `text`."""
        seen = b""
        end = time.monotonic() + SECONDS
        while text.encode() not in seen:
            assert time.monotonic() < end, seen
            if select.select([self.screen], [], [], 1)[0]:
                with contextlib.suppress(OSError):  # it has ended
                    seen += os.read(self.screen, 4096)

    def goes_away(self) -> None:
        """Close the terminal; the verb must end, with all that it started."""
        os.close(self.screen)
        until(lambda: os.waitpid(self.pid, os.WNOHANG)[0], 20)
        until(lambda: not left(), 10)


def left() -> list[int]:
    """Processes that a verb in a terminal of this test started."""
    mine = str(os.getpid())
    return [
        int(entry)
        for entry in os.listdir("/proc")
        if entry.isdigit() and processes.environment_of(int(entry)).get(MARK) == mine
    ]


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    for pid in left():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_verbs_in_a_terminal_that_is_closed(booted: Any, base: Path) -> None:
    one = booted
    write(one, "this is the disk", base)
    for argv, text in (
        (["status", "--watch"], "master-0"),
        (["forward"], "for a kubeconfig"),
        (["console", "master-0", "-f"], "this is the image"),
        (["capture", "master-0"], "listening on"),
        (["capture", "master-0", "-w", str(base / "packets")], "listening on"),
        (["logs", "-f"], "master-0/console"),
    ):
        terminal = Terminal(one, *argv)
        terminal.shows(text)
        terminal.goes_away()
        assert state(one) == "running"
    assert not (one.run_dir / "forward.json").exists()

    directory = one.state_dir / "snapshots"
    for delay in (0.0, 0.3, 0.6):
        terminal = Terminal(one, "snapshot", "save", "ready")
        until(lambda: directory.exists() and any(directory.iterdir()))
        time.sleep(delay)
        terminal.goes_away()
        until(lambda: state(one) == "running")
        names = [row["name"] for row in json.loads(snapshot(one, "list", "-o", "json"))]
        assert names in ([], ["ready"]) and [path.name for path in directory.iterdir()] == names
        for name in names:
            snapshot(one, "delete", name)
    changed, output = one.play("prepare", "--diff")
    assert changed == 0, output
    press_a_key(one)
    wait_for(one.state_dir / "console/agtest_master_0.log", "this is the disk")
