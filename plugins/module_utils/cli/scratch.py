"""A temporary directory for one run: what a killed run left is removed by the next one."""

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
    """Make a directory; yield its path and a descriptor that locks it, for programs that use it to inherit (`pass_fds`).

    Others may look into it: it is the TMPDIR of programs that a run starts as other users. Removes those of this user that
    nobody uses any more.
    """
    _sweep(Path(tempfile.gettempdir()))
    while True:
        directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if directory.exists():
            break
        os.close(lock)  # another run's sweep was faster
    try:
        (directory / MARK).touch()
        directory.chmod(0o755)
        yield directory, lock
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _sweep(parent: Path) -> None:
    for directory in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if (directory / MARK).exists():
                        shutil.rmtree(directory)
                    else:
                        directory.rmdir()  # only if it is empty: killed before it was marked
            finally:
                os.close(lock)
