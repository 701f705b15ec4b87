"""Logs that a host sends: an archive of `agent-gather`, its journal, or an archive of a hypervisor. A host may send anything, so all of it is bounded."""

from __future__ import annotations

import io
import lzma
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

MOST_SENT = 1 << 30
"""Bytes that a host may send."""
MOST_KEPT = 1 << 30
"""Bytes of its files, unpacked."""
MOST_FILES = 10_000
_XZ = b"\xfd7zXZ"
_ERROR = 64 << 10

Keep = Callable[[str, IO[bytes]], None]
"""keep(name, content): `name` is a relative path that stays below a folder."""


def collect(command: Sequence[str], scratch: Path, limit: float, keep: Keep) -> None:
    """Run a command that prints logs, and give each file of them to `keep`; a journal is `journal.log`.

    scratch: folder for what is received; limit: seconds. Raises `OSError`, also for logs that are too large or no archive, and
    `subprocess.SubprocessError` when the command fails.
    """
    with tempfile.TemporaryFile(dir=scratch) as sent:
        _receive(command, sent, limit)
        packed = sent.read(len(_XZ)) == _XZ
        sent.seek(0)
        if not packed:
            keep("journal.log", sent)
            return
        unpack_into(sent, keep)


def unpack_into(sent: IO[bytes], keep: Keep) -> None:
    """Give each file of an archive, a tar.xz, to `keep`. Raises `OSError` for logs that are too large, or no archive."""
    try:
        _unpack(sent, keep)
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError) as error:
        raise OSError(f"its archive of logs cannot be read: {error}") from error


def _receive(command: Sequence[str], sent: IO[bytes], limit: float) -> None:
    # The limit holds for the program that receives, whatever the host sends.
    limited = ["prlimit", f"--fsize={MOST_SENT}", "--", *command]
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(limited, stdout=sent, stderr=errors, timeout=limit, check=False)
        errors.seek(0)
        output = errors.read(_ERROR).decode(errors="replace")
    if done.returncode in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ):
        raise OSError(f"its logs are larger than {MOST_SENT} bytes")
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command[0], stderr=output)
    sent.seek(0)


def _unpack(sent: IO[bytes], keep: Keep) -> None:
    count, errors = 0, list[str]()
    with _unpacked(sent) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            handle = tar.extractfile(member) if member.isfile() else None
            name = _name(member.name)
            if handle is None or not name:
                continue
            count += 1
            if count > MOST_FILES:
                raise OSError(f"its archive of logs has more than {MOST_FILES} files")
            try:
                keep(name, handle)
            except _TooLarge:
                raise
            except OSError as error:  # such as a name that is too long: the other files are kept
                errors.append(f"{name[:100]}: {error.strerror or error}")
    if errors:
        raise OSError("; ".join(errors[:5]))


def _name(given: str) -> str:
    """Return the path of a member below the host's folder, in printable characters."""
    parts = (part for part in PurePosixPath(given).parts if part not in ("/", "..", "//"))
    return "/".join("".join(letter if letter.isprintable() else "_" for letter in part) for part in parts)


class _TooLarge(OSError):
    pass


@contextmanager
def _unpacked(sent: IO[bytes]) -> Iterator[io.RawIOBase]:
    with lzma.open(sent) as packed:
        yield _BoundedReader(packed)


class _BoundedReader(io.RawIOBase):
    """Reads at most MOST_KEPT bytes, headers of the archive included."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self._left = source, MOST_KEPT

    def read(self, size: int = -1) -> bytes:
        piece = self._source.read(min(size, 1 << 20) if size >= 0 else 1 << 20)
        self._left -= len(piece)
        if self._left < 0:
            raise _TooLarge(f"its logs are larger than {MOST_KEPT} bytes")
        return piece
