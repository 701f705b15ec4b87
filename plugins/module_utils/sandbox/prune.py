"""What labs of this host left behind, found and removed by the marker of their state directory alone (`state.owner`)."""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from ..documents import load_json, read_file
from ..errors import LabError
from ..libvirt import domain
from ..libvirt.connection import connect
from ..plan import names, rundir
from ..state import Item, load, owner
from . import namespaces, processes, remove

KILLED_AFTER = datetime.timedelta(minutes=30)
"""A prepare that has begun this long ago and has no end was killed."""


class Leftover(NamedTuple):
    """A state directory: its owner, and why it is pruned (`reason`), or why it stays (`stays`); one of them is empty.

    found: None if the marker is missing or damaged; then it stays.
    """

    state_dir: Path
    found: owner.Owner | None
    reason: str = ""
    stays: str = ""


def leftovers(parent: Path, uid: int, runs: Collection[str]) -> list[Leftover]:
    """Return the state directories below `parent` that are left behind, and those of which this is not known.

    uid: of the calling user, whose labs alone are pruned; runs: run directories in which a verb runs now.
    """
    listed = []
    for path in sorted(parent.iterdir()) if parent.is_dir() else []:
        if not path.is_dir() or path.is_symlink():
            continue
        name = path.name
        if name.startswith(".") and name.endswith(".agentlab") and not (parent / name[1 : -len(".agentlab")]).exists():
            # A directory that was killed while it was made or removed (`owner.leftover`).
            listed.append(_partial(parent / name[1 : -len(".agentlab")], path, uid))
            continue
        try:
            found = owner.read(path)
        except (ValueError, OSError) as error:
            listed.append(Leftover(path, None, stays=str(error)))
            continue
        if found and (one := _leftover(path, found, uid, runs)):
            listed.append(one)
    return listed


def _partial(state_dir: Path, temporary: Path, uid: int) -> Leftover:
    found = None
    with contextlib.suppress(ValueError, OSError):
        found = owner.read(temporary)
    if found is None or found.uid != uid:
        return Leftover(state_dir, None, stays=f"{temporary} has no marker of yours")
    return Leftover(state_dir, found, "it was removed only in part")


def _leftover(path: Path, found: owner.Owner, uid: int, runs: Collection[str]) -> Leftover | None:
    run_dir = Path(found.run_dir)
    # Networks and machines without a cluster have their state directory as run directory (`standalone`).
    if found.run_dir in runs or run_dir == Path(os.path.realpath(path)):
        return None
    reason = f"its run directory {run_dir} is gone"
    if (run_dir / rundir.PLAN).exists():
        if not _killed(run_dir):
            return None
        reason = f"prepare never finished in {run_dir}"
    if found.uid != uid:
        return Leftover(path, found, stays=f"{reason}, but it belongs to {found}")
    if found.host != socket.gethostname():
        return Leftover(path, found, stays=f"its run directory is on {found.host}")
    return Leftover(path, found, reason)


def _killed(run_dir: Path) -> bool:
    """Return whether prepare has begun long ago and has no end; a failed one can be resumed, and is not left behind."""
    try:
        prepared = load(run_dir)["stages"]["prepare"]
        began = datetime.datetime.fromisoformat(prepared["start"])
        return prepared["end"] is None and datetime.datetime.now(datetime.UTC) - began > KILLED_AFTER
    except (OSError, ValueError, KeyError, TypeError):
        return False


def prune(one: Leftover, *, check: bool = False) -> list[Item]:
    """Remove everything with the mark of a leftover lab, its state directory last; return what there was.

    Raises `LabError` and `owner.OwnerError` as `remove.remove`.
    """
    if one.found is None:
        raise LabError(f"{one.state_dir}: {one.stays}")
    created = _created(one.state_dir, one.found)
    return remove.remove(created, owner.Caller(one.found), check=check)


def _created(state_dir: Path, found: owner.Owner) -> list[Item]:
    """Return what a cluster may have created, as its `state.json` listed it: by its names, and by its mark in libvirt."""
    named = [("state_dir", str(state_dir))]
    if (state_dir / "sandbox").is_dir() or namespaces.find(state_dir):
        named.append(("sandbox", _netns(state_dir, found)))
        named.append(("uplink", found.cluster))
    elif (running := Path(names.process_dir(str(state_dir)))).is_dir() or Path(names.pool_dir(str(state_dir))).is_dir():
        named.append(("uplink", found.cluster))
        named += [("service", name) for name in processes.names(running)]
        named += _marked(found.mark)
    return [{"kind": kind, "name": name, "host": "localhost"} for kind, name in named]


def _netns(state_dir: Path, found: owner.Owner) -> str:
    try:
        return str(load_json(read_file(state_dir / namespaces.FILE), name=namespaces.FILE)["netns"])
    except (OSError, ValueError, KeyError, TypeError):
        return names.netns(found.cluster)


def _marked(mark: str) -> list[tuple[str, str]]:
    """Return networks, pools and domains of this host's libvirt that have the mark, in the order of their creation."""
    if not Path("/run/libvirt/libvirt-sock").exists() and not os.environ.get("LIBVIRT_DEFAULT_URI"):
        return []
    with connect() as connection:
        if connection is None:
            return []
        found = [
            (kind, one.name())
            for kind, all_of in (("network", connection.listAllNetworks()), ("pool", connection.listAllStoragePools()))
            for one in all_of
            if one.UUIDString() == owner.identity(mark, kind, one.name())
        ]
        return found + [("domain", one.name()) for one in connection.listAllDomains() if domain.mark_of(one) == mark]
