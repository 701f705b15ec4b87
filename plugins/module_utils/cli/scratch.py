"""A temporary directory for one run: the next run removes leftovers of killed ones."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "agentlab-run-"
MARK = ".agentlab-run"


@contextlib.contextmanager
def scratch() -> Iterator[tuple[Path, int]]:
    """Create a directory; yield its path and a descriptor that locks it, which programs that use it inherit (`pass_fds`).

    Other users can enter it: it is the TMPDIR of programs that a run starts as other users. Removes directories of this user that
    are no longer in use.
    """
    sweep()
    while True:
        # Another run's sweep may be faster, before the directory is locked.
        directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if directory.exists():
            break
        os.close(lock)
    try:
        (directory / MARK).touch()
        directory.chmod(0o755)
        yield directory, lock
    finally:
        with contextlib.suppress(OSError):
            _remove(directory)
        os.close(lock)


def _remove(directory: Path) -> None:
    """Remove a directory, its mark last: what a kill leaves of it, or an orphan writes meanwhile, is the next sweep's."""
    for entry in list(directory.iterdir()):
        if entry.name == MARK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if [entry.name for entry in directory.iterdir()] == [MARK]:
        (directory / MARK).unlink()
        try:
            directory.rmdir()
        except OSError:
            (directory / MARK).touch()
            raise


def sweep(parent: Path | None = None) -> None:
    """Remove this user's directories of runs that were killed, below the directory for temporary files.

    parent: None for the directory of `tempfile`. A directory that is locked is in use; one without the mark is removed
    only if it is empty.
    """
    for directory in (parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if (directory / MARK).exists():
                        _remove(directory)
                    else:
                        directory.rmdir()  # only if empty: the run was killed before it was marked
            finally:
                os.close(lock)
