"""`-o jsonl` of a lab verb: the events of the run on standard output while its playbook runs."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ..state.events import FILE
from ..terminal import write_line

_PACE = 0.5


@contextlib.contextmanager
def print_events(run_dir: Path) -> Iterator[TextIO]:
    """Print the events that are written in the block, a line each; gives the stream for all other output.

    run_dir: its `logs/events.jsonl` may be missing. Only whole lines are printed, about twice a second, the last ones
    when the block ends; all to what is the standard output when it begins.
    """
    path, done = run_dir / FILE, threading.Event()
    offset = path.stat().st_size if path.exists() else 0
    thread = threading.Thread(target=_follow, args=(path, offset, done, sys.stdout), daemon=True)
    thread.start()
    try:
        yield sys.stderr
    finally:
        done.set()
        thread.join()


def _follow(path: Path, offset: int, done: threading.Event, out: TextIO) -> None:
    while True:
        ended = done.wait(_PACE)
        with contextlib.suppress(OSError, SystemExit), path.open("rb") as stream:
            if stream.seek(0, 2) < offset:  # the logs of another cluster with this name were removed
                offset = 0
            stream.seek(offset)
            whole = stream.read().rpartition(b"\n")[0]
            if whole:
                offset += len(whole) + 1
                write_line(whole.decode(errors="replace"), out)
        if ended:
            return
