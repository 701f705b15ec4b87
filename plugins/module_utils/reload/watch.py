"""What a watch looks at: the files that a component is built from, by their times and sizes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

SECONDS = 0.3
"""Between two looks."""

State = Mapping[Path, tuple[int, int]]
"""File -> its modification time in ns and its size in bytes."""


def look(files: Iterable[Path]) -> State:
    """Return the state of files; those that are gone are left out."""
    found = {}
    for path in files:
        try:
            info = path.stat()
        except OSError:
            continue
        found[path] = (info.st_mtime_ns, info.st_size)
    return found


def changed_files(before: State, after: State) -> list[Path]:
    """Return the files that are new, gone or different, sorted."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def wait(before: State, files: Callable[[], Iterable[Path]], sleep: Callable[[float], None] = time.sleep) -> State:
    """Wait until the files differ from `before` and a look later are still the same; return their state."""
    last = before
    while True:
        sleep(SECONDS)
        now = look(files())
        if now == last and changed_files(before, now):
            return now
        last = now
