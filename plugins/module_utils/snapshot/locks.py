"""One action at a time on the snapshots of a lab: a lock of its state directory.

The kernel releases it when the process ends, however that is. Processes in the sandbox, such as a wait that saves the snapshots of a
profile, see the same directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .manifest import SnapshotError

_LOCKS = Path("/proc/locks")


@contextlib.contextmanager
def exclusive(state_dir: Path, cluster: str, *, shared: bool = False, inherited: bool = False) -> Iterator[None]:
    """Hold the lock of a lab meanwhile. Raises `SnapshotError` at once when another action has it, and names its process.

    shared: for an action that only reads a snapshot, next to others that do; inherited: a child that is started with
    `close_fds=False` keeps the lock when this process is killed.
    """
    handle = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.set_inheritable(handle, inherited)
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _holder(handle)
            named = f" (process {holder})" if holder else ""
            raise SnapshotError(
                f"another snapshot action runs for cluster {cluster}{named}: wait until it has ended"
            ) from error
        yield
    finally:
        os.close(handle)


def _holder(handle: int) -> int | None:
    """Return the process that has locked a file; None for one that this process cannot see, such as of a host from a sandbox."""
    status = os.fstat(handle)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with contextlib.suppress(OSError):
        for line in _LOCKS.read_text().splitlines():
            # proc_locks(5): number, kind, mode, access, process, file, range.
            fields = line.split()
            if fields[1:2] == ["FLOCK"] and fields[5:6] == [device] and fields[4].isdecimal():
                return int(fields[4])
    return None
