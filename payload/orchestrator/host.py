"""The host that is installed, reached from the installer's container: commands by nsenter, files below the first process's root."""

from __future__ import annotations

import logging
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

NSENTER = "nsenter -t 1 -m -u -i -n -p -C --"
# coreos-installer writes "> Read disk 1.2 GiB/2.3 GiB (52%)" and overwrites the line with carriage returns.
_PERCENT = re.compile(r"\((\d{1,3})%\)")
log = logging.getLogger("host")


class HostError(Exception):
    """A command failed on the host."""


class Host:
    """`enter` is the command prefix that runs something on the host, `root` where its files are."""

    def __init__(self, enter: str = NSENTER, root: Path = Path("/proc/1/root")) -> None:
        self._enter = shlex.split(enter)
        self.root = root
        self._running: subprocess.Popen[bytes] | None = None

    def path(self, path: str) -> Path:
        """Return where a file of the host is seen from here."""
        return self.root / path.lstrip("/")

    def run(self, command: Sequence[str], check: bool = True) -> str:
        """Run a command and return its output, both streams; raise HostError when it fails."""
        log.info("running %s", shlex.join(command))
        done = subprocess.run(
            [*self._enter, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if check and done.returncode:
            raise HostError(
                f"failed executing {shlex.join(command)}, code {done.returncode}: {done.stdout.strip()[-1500:]}"
            )
        return done.stdout

    def write_disk(self, command: Sequence[str], progress: Callable[[int], None]) -> None:
        """Run coreos-installer and tell each percentage that it prints; raise HostError when it fails."""
        log.info("running %s", shlex.join(command))
        process = subprocess.Popen([*self._enter, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._running = process
        assert process.stdout is not None
        tail, pending = "", b""
        while chunk := os.read(process.stdout.fileno(), 4096):
            *lines, pending = re.split(rb"[\r\n]", pending + chunk)
            for line in lines:
                text = line.decode(errors="replace").strip()
                found = _PERCENT.search(text)
                if found:
                    progress(int(found[1]))
                elif text:
                    log.info("coreos-installer: %s", text)
                    tail = f"{tail}\n{text}"[-1500:]
        code = process.wait()
        self._running = None
        if code:
            rest = pending.decode(errors="replace").strip()
            raise HostError(f"failed executing {shlex.join(command)}, code {code}: {tail.strip()} {rest}".strip())

    def stop(self) -> None:
        """End the command that is writing the disk."""
        if self._running:
            self._running.terminate()
