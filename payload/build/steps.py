"""Results of slow steps in the cache: each is built once, whole or not at all, and the least recently used are removed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...plugins.module_utils.files import cache_directory

KEPT = 8  # payloads: run directories refer to the base ISO of their payload

Report = Callable[[str], None]


def cache_root() -> Path:
    """Return the cache of payloads and base ISOs, shared by all checkouts; it need not exist."""
    return cache_directory()


@dataclass(frozen=True)
class Steps:
    """The steps in one cache; `report` gets a line when a step begins and ends, and `force` builds what exists already.

    The directories are `parts/NAME-KEY` and `payload/KEY` in `cache`. `report` gets texts without line breaks.
    """

    cache: Path
    report: Report
    force: bool = False

    def step(self, name: str, key: str, text: str, make: Callable[[Path], None]) -> Path:
        """Return the directory of a step, building it if it does not exist.

        `key` is the hash of its inputs, `text` names the step for users, and `make` fills the directory that it gets.
        """
        target = self.cache / "parts" / f"{name}-{key[:16]}"
        if target.exists() and not self.force:
            os.utime(target)
            return target
        start = time.monotonic()
        self.report(f"{text} ...")
        with self.new_directory(name, target) as out:
            make(out)
        self.report(f"{text}: {time.monotonic() - start:.0f} s")
        return target

    @contextlib.contextmanager
    def new_directory(self, name: str, target: Path) -> Iterator[Path]:
        """Yield a new directory next to `target` that is renamed to it on success; a failed build leaves nothing under that name."""
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.parent / f".{name}.building"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        yield fresh
        os.utime(fresh)  # an unpacked package has set it to its own
        old = target.parent / f".{name}.old"
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.rename(old)
        fresh.rename(target)
        shutil.rmtree(old, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the leftovers of interrupted builds.

        Call it under `lock` only: a build that runs has such a directory, too.
        """
        for folder in ("parts", "payload"):
            for path in (self.cache / folder).glob(".*"):
                shutil.rmtree(path, ignore_errors=True)

    def prune(self) -> None:
        """Remove the least recently used: all but some payloads, and all but two of each step.

        Payloads: the `KEPT` newest by their time of last use stay. A `current` link is not followed.
        """
        kinds: dict[str, list[Path]] = {}
        for path in [*(self.cache / "parts").iterdir(), *(self.cache / "payload").iterdir()]:
            if path.is_dir() and not path.is_symlink():
                kinds.setdefault(path.name.rpartition("-")[0] or "payload", []).append(path)
        for kind, paths in kinds.items():
            paths.sort(key=lambda path: path.stat().st_mtime, reverse=True)
            for path in paths[KEPT if kind == "payload" else 2 :]:
                shutil.rmtree(path)


@contextlib.contextmanager
def lock(path: Path, report: Report) -> Iterator[None]:
    """Hold the lock of a cache, waiting for another build; `report` announces the wait.

    path: of the lock file, which is made and stays. It is released when the block ends or the process does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another build to finish ...")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def point(link: Path, target: Path) -> None:
    """Let a link lead to a directory next to it, atomically."""
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target.name)
    os.replace(fresh, link)
