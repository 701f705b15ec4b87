"""Logins to nodes ahead of the commands that need them: an emulated node takes seconds for one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..report.ssh import LOGIN_SECONDS, ssh

# A node that stops answers no more: without these, ssh would wait for it.
ALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=4")
LONGEST = 80
"""Characters of a directory in which a socket of ssh has its place: 108 with its name and what ssh appends."""
END_SECONDS = 5.0
_PAUSE = 0.05


class Logins:
    """Connections of ssh to nodes, by address, which later commands share: `ControlMaster` in ssh_config(5).

    run_dir: with the key of the run; prefix: the command that enters the lab's network. Use `open_logins`.
    """

    def __init__(self, run_dir: Path, prefix: Sequence[str], folder: Path) -> None:
        self._run_dir, self._prefix, self._folder = run_dir, prefix, folder
        self._masters: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self, addresses: Iterable[str]) -> None:
        """Log in to nodes, in the background; a connection that has ended is made again."""
        if len(str(self._folder)) > LONGEST:
            return
        for address in addresses:
            if address not in self._masters or self._masters[address].poll() is not None:
                target = ssh(self._run_dir, address)
                # `cat` ends with its input, so with this process, however that ends.
                words = [*target[:-1], *ALIVE, "-M", "-S", str(self._socket(address)), target[-1], "cat"]
                self._masters[address] = subprocess.Popen(
                    [*self._prefix, *words],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )

    def command(self, address: str) -> tuple[str, ...]:
        """Return the ssh command prefix for a node, by the connection that was begun; it waits for its login.

        Without a connection the command logs in by itself, and prints why it cannot.
        """
        target = ssh(self._run_dir, address)
        master = self._masters.get(address)
        end = time.monotonic() + LOGIN_SECONDS
        while master and master.poll() is None and not self._socket(address).exists() and time.monotonic() < end:
            time.sleep(_PAUSE)
        shared = ("-S", str(self._socket(address))) if master and master.poll() is None else ()
        return (*target[:-1], *ALIVE, *shared, target[-1])

    def close(self) -> None:
        """End all connections; one that does not end by itself is killed."""
        for master in self._masters.values():
            if master.stdin:
                master.stdin.close()
        for master in self._masters.values():
            try:
                master.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(master.pid, signal.SIGKILL)
                master.wait()

    def _socket(self, address: str) -> Path:
        return self._folder / address


@contextlib.contextmanager
def open_logins(run_dir: Path, prefix: Sequence[str]) -> Iterator[Logins]:
    """Yield logins without a connection; at the end all are closed. The arguments are those of `Logins`."""
    with tempfile.TemporaryDirectory(prefix="agentlab-ssh-") as folder:
        logins = Logins(run_dir, prefix, Path(folder))
        try:
            yield logins
        finally:
            logins.close()
