"""Modules as ansible-core sends them to a host, kept from one run of a playbook to the next.

ansible-core packs each module with all that it imports, at its first task in a run, and keeps that for the run in
`ansiballz_cache` of its temporary directory (`executor/module_common.py`). Packing one of this collection takes half a
second, because every import is looked for in every file: more than most modules need for their work. A version of
ansible-core that keeps them elsewhere packs them as ever.

What is packed are sources, which Python compiles at every task: half of the time that a module takes to start. So a kept module
has its bytecode, too. Another version of Python ignores it, and compiles the sources.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import shutil
import stat
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .bytecode import compile_source

FOLDER = "ansiballz_cache"
OURS = "ansible_collections.agentlab.ocp."
PLAIN = "-none"
"""Ends the names of those that are packed without a debugger or coverage."""
MOST_KEYS = 3
"""So many states of the sources are kept: those of the checkouts that are in use."""

_compiled = functools.cache(compile_source)  # most sources are in most modules


def key(version: str, trees: Iterable[Path]) -> str:
    """Return the key of what is packed now.

    version: of ansible-core; trees: directories of which all Python files may be packed. A file counts with its path, size
    and time of change. Raises `OSError`.
    """
    digest = hashlib.sha256(f"{version} {sys.version}".encode())
    for tree in trees:
        for path, status in sorted(_sources(str(tree))):
            digest.update(f"\0{path} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def fetch(cache: Path, name: str, temporary: Path) -> None:
    """Let a run begin with the modules that an earlier one with the same key has packed.

    cache: directory of all keys; name: the key; temporary: ansible-core's directory of this run. A cache that others may
    write to is not used: what it has is executed. Raises `OSError`.
    """
    kept = cache / name
    if not kept.is_dir() or not _is_own(cache):
        return
    (temporary / FOLDER).mkdir(exist_ok=True)
    for path in kept.iterdir():
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            _share_file(path, temporary / FOLDER / path.name)
    os.utime(kept)


def keep(cache: Path, name: str, temporary: Path, improve: Callable[[Path, Path], None]) -> None:
    """Keep what a run has packed of this collection, and remove the keys that were used least recently.

    improve: writes the file of a kept module (second argument) from that of a packed one (first); another one may have written it
    already. The other arguments are those of `fetch`. Raises `OSError`.
    """
    packed = [path for path in (temporary / FOLDER).glob(f"{OURS}*{PLAIN}") if not (cache / name / path.name).exists()]
    if not packed:
        return
    (cache / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_own(cache):
        return
    for path in packed:
        improve(path, cache / name / path.name)
    used = sorted((path for path in cache.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for old in used[:-MOST_KEYS]:
        shutil.rmtree(old, ignore_errors=True)


def with_bytecode(archive: bytes) -> bytes:
    """Return a zip archive of Python sources with their bytecode next to them, as `zipimport` looks for it.

    A source that this Python cannot compile stays without. Raises `zipfile.BadZipFile`.
    """
    changed = io.BytesIO(archive)
    with zipfile.ZipFile(changed, "a", zipfile.ZIP_DEFLATED) as members:
        for member in members.infolist():
            if member.filename.endswith(".py"):
                with contextlib.suppress(SyntaxError, ValueError):
                    code = _compiled(members.read(member), member.filename)
                    name = zipfile.ZipInfo(f"{member.filename}c", member.date_time)
                    members.writestr(name, code, zipfile.ZIP_DEFLATED)
    return changed.getvalue()


def _share_file(path: Path, there: Path) -> None:
    """Let `there` be the same file, or a copy of it on another file system. ansible-core replaces files, it does not change them."""
    try:
        os.link(path, there)
    except FileExistsError:
        raise
    except OSError:
        part = there.with_name(f".{there.name}.{os.getpid()}")
        shutil.copyfile(path, part)
        part.rename(there)


def _is_own(directory: Path) -> bool:
    status = directory.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _sources(tree: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(tree) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path, entry.stat()
