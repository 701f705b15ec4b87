"""What the clusters of a host share, which is removed with the last one.

`host.json` next to the state directories lists what the first cluster created for all: directories, and kernel settings with
their original value (`sysctl:PATH=VALUE`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from .. import files
from ..documents import DocumentError, load_json, read_file
from ..errors import LabError
from ..state import owner, write_atomic
from . import keeper

HOST_FILE = "host.json"
NETNS_DIR = Path("/run/netns")
LEASES = Path("/var/lib/libvirt/dnsmasq")
"""libvirt keeps the MACs of each network's machines there. It makes the directory with a dnsmasq, so not for a network without DHCP."""


def claim(state_dir: Path, who: owner.Caller, *others: Path) -> owner.Owner:
    """Create `state_dir` with its marker, after recording which of the shared directories are about to be created.

    Returns the content of the marker; raises as `owner.claim`.
    """
    owner.verify(state_dir, who)
    with _locked(state_dir.parent):
        made = _noted(state_dir.parent)
        _note(state_dir.parent, made | {str(path) for path in others if not path.is_dir()})
        return owner.claim(state_dir, who)


@contextlib.contextmanager
def update_shared(parent: Path) -> Iterator[set[str]]:
    """Update, under a lock, the set of what all clusters of this host share (`host.json`).

    parent: of the state directories. Change the set in the block; it is written at its end. Raises `LabError` for a
    damaged file.
    """
    with _locked(parent):
        made = _noted(parent)
        yield made
        _note(parent, made)


def make_leases(parent: Path, *, check: bool) -> bool:
    """Make `LEASES` if it is missing; return whether it was. `leave_host` removes it; parent: as of `update_shared`."""
    missing = not LEASES.is_dir()
    if missing and not check:
        with update_shared(parent) as made:
            made.add(str(LEASES))
        LEASES.mkdir(parents=True, exist_ok=True)
    return missing


@contextlib.contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Hold the lock of `parent`, which is made if needed, together with its `host.json`."""
    while True:
        if not parent.is_dir():
            _make_parent(parent)
        try:
            handle = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), parent.stat()):
                break
        os.close(handle)  # the last cluster was removed meanwhile
    try:
        yield
    finally:
        os.close(handle)


def _noted(parent: Path) -> set[str]:
    path = parent / HOST_FILE
    try:
        data = load_json(read_file(path), name=str(path))
    except FileNotFoundError:
        return set()
    except DocumentError as error:
        data = error
    if not isinstance(data, list) or not all(isinstance(entry, str) for entry in data):
        raise LabError(
            f"{path}: damaged ({data}): it lists what the clusters of this host share. Restore it; or replace it by "
            f"[], and remove {NETNS_DIR} and {parent} yourself once the last cluster is gone and they are empty"
        )
    return set(data)


def _note(parent: Path, made: set[str]) -> None:
    write_atomic(parent / HOST_FILE, json.dumps(sorted(made)))


def _is_list(name: str) -> bool:
    return name == HOST_FILE or name.startswith(files.PREFIX)


def _make_parent(parent: Path) -> None:
    """Create `parent` and its missing parents, with `host.json` in it, in one step, so that leftovers of a kill are recognized.

    Not when another process makes it at the same time: it may be there or not, then.
    """
    with contextlib.suppress(IndexError):  # it is there meanwhile
        top = _missing(parent)
        handle = os.open(top.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not top.exists():
                _make(parent, top)
        finally:
            os.close(handle)


def _make(parent: Path, top: Path) -> None:
    stage = _staged(top)
    _unstage(stage)
    deep = stage / parent.relative_to(top)
    deep.mkdir(parents=True)
    levels = [str(path) for path in (parent, *parent.parents) if path == top or top in path.parents]
    _note(deep, set(levels))
    stage.rename(top)


def _missing(parent: Path) -> Path:
    """Return the highest directory that is missing above `parent`, which is missing itself."""
    return [path for path in (parent, *parent.parents) if not path.exists()][-1]


def _staged(top: Path) -> Path:
    return top.parent / f".{top.name}.agentlab-host"


def _unstage(stage: Path) -> None:
    """Remove directories that contain only directories and `host.json`."""
    for folder, __, names in os.walk(stage, topdown=False):
        for name in names:
            if _is_list(name):
                os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def refuse_damaged(parent: Path) -> None:
    """Raise `LabError` when the `host.json` of `parent` is there and cannot be read."""
    _noted(parent)


def leave_host(parent: Path) -> None:
    """If no cluster is left below `parent`, remove what the first one created for all.

    Kernel settings get their original values, and directories are removed if they are empty. Repeat it after a kill.
    Raises `LabError` for a damaged `host.json`.
    """
    if not parent.is_dir():
        _unstage(_staged(_missing(parent)))
        return
    if not (parent / HOST_FILE).exists():
        return
    with _locked(parent):
        if any((entry / owner.FILE).exists() for entry in parent.iterdir()):
            return
        made = _noted(parent)
        if str(NETNS_DIR) in made and NETNS_DIR.is_dir() and not any(NETNS_DIR.iterdir()):
            while mount_of(NETNS_DIR) != mount_of(NETNS_DIR.parent):
                keeper.unmount(str(NETNS_DIR))
            NETNS_DIR.rmdir()
        if str(LEASES) in made:
            with contextlib.suppress(OSError):  # a network of the host's own uses it now
                LEASES.rmdir()
        for setting in (name.removeprefix("sysctl:") for name in made if name.startswith("sysctl:")):
            path, __, value = setting.rpartition("=")
            with contextlib.suppress(FileNotFoundError):
                Path(path).write_text(value)
        _leave(parent, made)


def _leave(parent: Path, made: set[str]) -> None:
    """Remove `host.json`, and as many of the directories above it as were made with it and have nothing else in them."""
    own = [name for name in os.listdir(parent) if _is_list(name)]
    top = None
    for path in (parent, *parent.parents):
        if str(path) not in made or len(os.listdir(path)) != (len(own) if path == parent else 1):
            break
        top = path
    if top is None:
        for name in own:
            (parent / name).unlink()
        return
    stage = _staged(top)
    _unstage(stage)
    top.rename(stage)
    _unstage(stage)


def mount_of(path: Path) -> str:
    """Return the id of the mount that `path` is in; os.path.ismount does not see a bind mount within one file system."""
    handle = os.open(path, os.O_PATH)
    try:
        return next(line for line in Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines() if "mnt_id" in line)
    finally:
        os.close(handle)
