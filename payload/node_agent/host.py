"""The machine the program runs on: files, mounts and commands of the host, from inside a container or out of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import IO, NamedTuple

from .protocol import Result

IN_CONTAINER = os.path.exists("/run/.containerenv")
TIMED_OUT = 124
NOT_FOUND = 127

# In the host's namespaces, a process behaves as outside of a container.
NSENTER = ("nsenter", "--target", "1", "--cgroup", "--mount", "--ipc", "--pid", "--")


def run(
    argv: list[str], timeout: float | None = 60.0, host: bool = False, stdout: IO[str] | int = subprocess.PIPE
) -> Result:
    """Run a command; never raises. `host`: in the host's namespaces. Exit code 124: timeout, 127: program not found.

    `stdout`: a file for the output, which is then not in the result.
    """
    command = [*(NSENTER if host and IN_CONTAINER else ()), *argv]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return Result(_text(error.stdout), f"{argv[0]} was timed out after {timeout} seconds", TIMED_OUT)
    except OSError as error:
        return Result("", f"{argv[0]}: {error.strerror}", NOT_FOUND)
    return Result(done.stdout or "", done.stderr, done.returncode)


def _text(data: bytes | str | None) -> str:
    return data.decode(errors="replace") if isinstance(data, bytes) else data or ""


def read(path: Path | str) -> str:
    """Return the stripped text of a kernel file; empty if it is missing or unreadable."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def names(path: Path | str) -> list[str]:
    """Sorted names in a folder; empty when there is none."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


class Mount(NamedTuple):
    """A mounted file system, as a line of /proc/mounts has it."""

    source: str
    target: str
    kind: str


def mounts(root: Path = Path("/")) -> list[Mount]:
    """Return the mounts of the host, read from its first process; see proc(5) for the octal escapes."""
    found = []
    text = read(root / "proc/1/mounts") or read(root / "proc/self/mounts")
    for line in text.splitlines():
        fields = [field.encode().decode("unicode_escape") for field in line.split()]
        if len(fields) >= 3:
            found.append(Mount(*fields[:3]))
    return found
