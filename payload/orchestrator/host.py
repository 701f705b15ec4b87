"""The host to install, reached from the installer's container: commands through nsenter, files below the first process's root."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

NSENTER = "nsenter --target 1 --cgroup --mount --ipc --pid --"
# coreos-installer writes "> Read disk 1.2 GiB/2.3 GiB (52%)" and overwrites the line with carriage returns.
_PERCENT = re.compile(r"\((\d{1,3})%\)")
LAST_OUTPUT, KEPT_OUTPUT = 200, 8192
log = logging.getLogger("host")


class HostError(Exception):
    """A command failed on the host; the message is upstream's, with the end of the command's output.

    The output begins with the first `Error` in it and is cut to its last `LAST_OUTPUT` characters.
    """

    def __init__(self, command: Sequence[str], code: int, output: str) -> None:
        text = output.strip()
        text = text[max(0, text.find("Error")) :]
        text = text if len(text) <= LAST_OUTPUT else f"... {text[-LAST_OUTPUT:]}"
        status = f"exit status {code}" if code >= 0 else f"signal: {(signal.strsignal(-code) or '').lower()}"
        program = shutil.which(command[0]) or command[0]
        super().__init__(f'failed executing {program} [{" ".join(command[1:])}], Error {status}, LastOutput "{text}"')


class Host:
    """`enter` is the command prefix that runs something on the host, `root` where its files are.

    The defaults are those of a privileged container with the host's PID namespace. One command at a time may write
    the disk.
    """

    def __init__(self, enter: str = NSENTER, root: Path = Path("/proc/1/root")) -> None:
        self._enter = shlex.split(enter)
        self.root = root
        self._running: subprocess.Popen[bytes] | None = None

    def path(self, path: str) -> Path:
        """Return the path of a host's file in this container."""
        return self.root / path.lstrip("/")

    def run(self, command: Sequence[str], check: bool = True) -> str:
        """Run a command and return its output, both streams; raise HostError when it fails.

        command: words, without a shell; check: False returns the output of a failed command, too. There is no time
        limit.
        """
        full = [*self._enter, *command]
        log.debug("Running %s", shlex.join(full))
        done = subprocess.run(
            full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
        )
        if check and done.returncode:
            raise HostError(full, done.returncode, done.stdout)
        return done.stdout

    def write_disk(self, command: Sequence[str], progress: Callable[[int], None]) -> None:
        """Run coreos-installer and report each percentage that it prints; raise HostError if it fails.

        progress: gets integers from 0 to 100, the same one perhaps more than once. Output is passed to the log.
        """
        full = [*self._enter, *command]
        log.info("Writing image and ignition to disk with arguments: [%s]", " ".join(command[1:]))
        process = subprocess.Popen(full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._running = process
        assert process.stdout is not None
        tail = pending = b""
        while chunk := os.read(process.stdout.fileno(), 4096):
            tail = (tail + chunk)[-KEPT_OUTPUT:]
            *lines, pending = re.split(rb"[\r\n]", pending + chunk)
            for line in filter(None, lines):
                text = line.decode(errors="replace").strip()
                log.info("%s", text)
                found = _PERCENT.search(text)
                if found:
                    progress(int(found[1]))
        code = process.wait()
        self._running = None
        if code:
            raise HostError(full, code, tail.decode(errors="replace"))

    def stop(self) -> None:
        """End the command that is writing the disk."""
        if self._running:
            self._running.terminate()
