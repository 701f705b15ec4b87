"""Copies of directory trees: what does not change is shared by hard links, what stayed the same is left alone."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Rule = Callable[[str], bool]
"""Whether something holds for a path relative to the tree, such as `pool/disk.qcow2`."""


def match_nothing(__: str) -> bool:
    """Hold for no path."""
    return False


def replicate(
    source: Path,
    target: Path,
    *,
    linked: Rule = match_nothing,
    skip: Rule = match_nothing,
    private: bool = False,
    modes: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Make `target` the same as `source`: content, modes, owners and times; return the modes of its files and directories.

    linked: files that are never changed in place, which are shared; skip: paths of either side that are left alone, with all
    below them; private: group and others get no access to the copies (shared files keep their modes); modes: those to use in the
    place of `source`'s, as they were returned when it was made. Sockets, pipes and devices are not copied. A file with the
    same size and modification time is taken for the same.
    """
    given: dict[str, int] = {}
    target.mkdir(parents=True, exist_ok=True)
    wanted = dict(_walk(source, skip))
    for name, status in sorted(_walk(target, skip, special=True), reverse=True):
        other = wanted.get(name)
        if other is None or stat.S_IFMT(other.st_mode) != stat.S_IFMT(status.st_mode):
            path = target / name
            path.rmdir() if stat.S_ISDIR(status.st_mode) and not _has_skipped(path, name, skip) else _unlink(path)
    for name, status in wanted.items():
        path, new = source / name, target / name
        given[name] = (modes or {}).get(name, stat.S_IMODE(status.st_mode))
        mode = given[name] & (0o700 if private else 0o7777)
        if stat.S_ISDIR(status.st_mode):
            new.mkdir(exist_ok=True)
        elif stat.S_ISLNK(status.st_mode):
            new.unlink(missing_ok=True)
            new.symlink_to(os.readlink(path))
        elif linked(name):
            _link(path, new)
            continue
        else:
            _copy(path, new, status, mode)
        os.chown(new, status.st_uid, status.st_gid, follow_symlinks=False)
        if not stat.S_ISLNK(status.st_mode):
            new.chmod(mode)
    for name, status in sorted(wanted.items(), reverse=True):
        if stat.S_ISDIR(status.st_mode):
            os.utime(target / name, ns=(status.st_atime_ns, status.st_mtime_ns))
    return given


def size(top: Path) -> int:
    """Return the bytes on disk of all files in a directory; sparse files count with the blocks that they use."""
    return sum(
        os.lstat(os.path.join(folder, name)).st_blocks * 512 for folder, __, names in os.walk(top) for name in names
    )


def _walk(top: Path, skip: Rule, below: str = "", *, special: bool = False) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is below `top`, directories before their content; special: also sockets, pipes and devices."""
    for entry in sorted(os.scandir(top / below), key=lambda one: one.name):
        name = f"{below}{entry.name}"
        if skip(name):
            continue
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            yield name, status
            yield from _walk(top, skip, f"{name}/", special=special)
        elif special or stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            yield name, status


def _has_skipped(path: Path, name: str, skip: Rule) -> bool:
    return any(skip(f"{name}/{entry}") for entry in os.listdir(path))


def _unlink(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink()


def _link(path: Path, new: Path) -> None:
    if new.exists() and os.path.samefile(path, new):
        return
    new.unlink(missing_ok=True)
    try:
        os.link(path, new)
    except OSError:  # another file system
        shutil.copy2(path, new)


def _copy(path: Path, new: Path, status: os.stat_result, mode: int) -> None:
    if new.is_file() and not new.is_symlink():
        there = new.stat()
        if (there.st_size, there.st_mtime_ns) == (status.st_size, status.st_mtime_ns):
            return
    # A new file, because the old one may be shared or open. Created without access for others.
    new.unlink(missing_ok=True)
    with open(path, "rb") as reader, open(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
        os.fchmod(writer.fileno(), mode)
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
