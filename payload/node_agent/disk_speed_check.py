"""`disk_speed_check`: how long the installation disk takes to make a small write durable, as etcd needs it.

The same load as upstream's two `fio --rw=write --ioengine=sync --size=22m -bs=2300 --fdatasync=1` jobs: it writes over
the beginning of the disk, which is about to be installed. A job that has `ENOUGH` times after `BRIEF` seconds ends then:
they suffice for a percentile, and an emulated machine would write for minutes.
"""

from __future__ import annotations

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor

from . import disks, fields
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context, argument

JOBS = 2
SIZE = 22 * 1024 * 1024
BLOCK = 2300
SECONDS = 480.0
MARGIN = 20.0
BRIEF = 10.0
ENOUGH = 1000
LONGEST = 3600.0


def write(device: int, until: float) -> list[float]:
    """Return seconds of each fdatasync, in order. A slow disk is measured by what it completed in time. Raises OSError."""
    data, times, brief = os.urandom(BLOCK), [], time.monotonic() + BRIEF
    for offset in range(0, SIZE - BLOCK + 1, BLOCK):
        os.pwrite(device, data, offset)
        started = time.monotonic()
        os.fdatasync(device)
        now = time.monotonic()
        times.append(now - started)
        if now > until or (now > brief and len(times) >= ENOUGH):
            break
    return times


def p99_ms(times: list[float]) -> int:
    """Return the 99th percentile in milliseconds, rounded down as upstream does."""
    ordered = sorted(times)
    return int(ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)] * 1000)


def open_disk(path: str) -> int:
    """Return a descriptor for writing to a disk. OSError: it is in use, or not a block device."""
    # Exclusive: the kernel refuses a disk that is mounted or otherwise in use. And without O_CREAT: a missing disk
    # must not become a file in /dev.
    device = os.open(path, os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISBLK(os.fstat(device).st_mode):
        os.close(device)
        raise OSError(f"{path} is not a block device")
    return device


def measure(path: str, seconds: float = SECONDS) -> int:
    """Return the worse job's 99th percentile in ms. OSError: no job could write, or the disk is in use."""
    until = time.monotonic() + max(seconds - MARGIN, 1.0)
    device = open_disk(path)
    try:
        with ThreadPoolExecutor(JOBS) as pool:
            jobs = [pool.submit(write, device, until) for __ in range(JOBS)]
    finally:
        os.close(device)
    failed = [error for job in jobs if (error := job.exception())]
    if len(failed) == JOBS:
        raise failed[0]
    return max(p99_ms(job.result()) for job in jobs if not job.exception())


def step(args: list[str], context: Context) -> Result:
    """args: the request, and the limit in seconds."""
    path = fields.text(
        "installation-disk-speed-check: path", argument("installation-disk-speed-check", args[0], "path")["path"]
    )
    if context.dry.enabled:
        return Result(marshal({"path": path, "io_sync_duration": 1}))
    limit = fields.seconds("installation-disk-speed-check: limit", args[1], LONGEST) if len(args) > 1 else SECONDS
    try:
        duration = measure(disks.known_disk(path), limit)
    except (OSError, ValueError) as error:
        answer = marshal({"path": path, "io_sync_duration": 0})
        return Result(answer, f"Could not get I/O performance for path {path}: {error}", -1)
    return Result(marshal({"path": path, "io_sync_duration": duration}))


def main(argv: list[str] | None = None) -> int:
    return program("disk_speed_check", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
