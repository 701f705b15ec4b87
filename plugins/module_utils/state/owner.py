"""Whose a cluster is: `owner.json` in its state directory, on the hypervisor.

The file is made with the directory, and is the marker without which nothing is removed: a directory without it was not made by
agentlab. Its `mark`, a random UUID, is in everything else that the cluster has on the host: in the metadata of domains, in
the UUIDs of networks and pools, at the loopback interface of the sandbox. `state.json` of the run directory holds the same record
(`owner`), written before anything is created.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import socket
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from .. import files
from ..documents import load_json, read_file
from . import load, write_atomic

FILE = "owner.json"
_NAMESPACE = uuid.UUID("0f3bd9f6-1f0e-5c55-9d10-7b4de4a3a6f0")


class OwnerError(ValueError):
    """A cluster, or a directory, that is not the caller's."""


@dataclass(frozen=True)
class Owner:
    """What `owner.json` says: the cluster, who made it and from where, a digest of its plan, and its mark.

    kept: the state directory was there before, empty, and stays.
    """

    cluster: str
    run_dir: str
    uid: int
    user: str
    host: str
    plan: str
    mark: str = ""
    kept: bool = False

    def __str__(self) -> str:
        return f"{self.user} (uid {self.uid}), run directory {self.run_dir} on {self.host}"


@dataclass(frozen=True)
class Caller:
    """Who wants in: `owner` as `owner.json` would have it, with the mark that `state.json` has.

    adopt: take over a cluster of another owner; remote: the hypervisor is another host, so that the host counts, too.
    """

    owner: Owner
    adopt: bool = False
    remote: bool = False

    def fact(self) -> dict[str, Any]:
        """Return it as plain data, for `from_fact`."""
        return asdict(self)

    def owns(self, found: Owner) -> bool:
        """Return whether `found` is this caller: the same user, from the same run directory."""
        mine = self.owner
        here = not self.remote or found.host == mine.host
        return here and (found.cluster, found.run_dir, found.uid) == (mine.cluster, mine.run_dir, mine.uid)


def from_fact(data: Mapping[str, Any]) -> Caller:
    """Return the caller that `Caller.fact` gave. Raises `OwnerError` for anything else."""
    try:
        return Caller(_owner(data["owner"]), adopt=bool(data.get("adopt")), remote=bool(data.get("remote")))
    except (KeyError, TypeError, ValueError) as error:
        raise OwnerError(f"owner: not what the role agentlab.ocp.plan sets as agentlab_owner ({error})") from error


def of_cluster(given: Mapping[str, Any], *, check: bool) -> Owner:
    """Return whose the cluster of the option `plan` is, by its state directory on this host; the option `owner` says who asks.

    Raises `OwnerError` when it is not the caller's, and when it is nobody's yet; with `check` it then is the caller's.
    """
    who = from_fact(given["owner"])
    state_dir = Path(given["plan"]["hypervisor"]["state_dir"])
    found = verify(state_dir, who)
    if found is None and not check:
        raise OwnerError(f"{state_dir / FILE}: there is no cluster {who.owner.cluster}: agentlab prepare --cluster {who.owner.cluster}")
    return found or who.owner


def caller(plan: Mapping[str, Any], run_dir: Path, *, adopt: bool = False) -> Caller:
    """Return who runs this, for the cluster of `plan`. Of a user who became root by sudo it is that user."""
    uid = os.getuid()
    if uid == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        uid = int(os.environ["SUDO_UID"])
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    digest = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
    recorded = load(run_dir)["owner"]
    mark = str(recorded["mark"]) if recorded else ""
    remote = plan["hypervisor"]["kind"] == "ssh"
    name = plan["cluster"]["name"]
    return Caller(Owner(name, os.path.realpath(run_dir), uid, user, socket.gethostname(), digest, mark), adopt=adopt, remote=remote)


def read(state_dir: Path) -> Owner | None:
    """Return the owner of `state_dir`, or None when it has none. Raises `OwnerError` for a file that cannot be read."""
    path = state_dir / FILE
    try:
        return parse(read_file(path), path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def parse(data: bytes, path: Path) -> Owner:
    """Return the owner that `data`, the text of `path`, names. Raises `OwnerError` for anything else."""
    try:
        return _owner(load_json(data, name=str(path)))
    except (KeyError, TypeError, ValueError) as error:
        raise OwnerError(
            f"{path}: damaged ({error}): it is the marker of the directory, without which nothing in it is changed or removed. "
            "Restore it, or run `agentlab destroy --adopt` from the run directory that made the cluster, which has a copy in state.json"
        ) from error


def verify(state_dir: Path, who: Caller) -> Owner | None:
    """Return the owner of `state_dir`, who is `who` or is to be replaced by them; None when there is none.

    Raises `OwnerError` with both names and the way out for a cluster of another.
    """
    try:
        found = read(state_dir)
    except OwnerError:
        if who.adopt and who.owner.mark:
            return who.owner
        raise
    if found is not None:
        check(found, state_dir, who)
    return found


def check(found: Owner, state_dir: Path, who: Caller) -> None:
    """Raise `OwnerError` as `verify`, for the owner that was found in `state_dir`."""
    if who.adopt or who.owns(found):
        return
    cluster = found.cluster
    raise OwnerError(
        f"cluster {cluster} ({state_dir}) belongs to {found}; you are {who.owner}. Work from there, choose another name "
        f"(CLUSTER=, --cluster), or take it over: agentlab prepare --adopt --cluster {cluster} (or destroy --adopt)"
    )


def refuse_foreign(state_dir: Path) -> None:
    """Raise `OwnerError` for a directory with files that agentlab did not make."""
    if state_dir.is_symlink() or (state_dir.exists() and not state_dir.is_dir()):
        raise OwnerError(f"{state_dir} is not a directory: choose another place (hypervisor.state_dir) or cluster name")
    if read(state_dir) is None and _entries(state_dir):
        raise OwnerError(
            f"{state_dir} is not empty, and agentlab did not make it ({FILE} is missing in it): "
            "choose another place (hypervisor.state_dir) or cluster name, or empty it"
        )


def claim(state_dir: Path, who: Caller) -> Owner:
    """Make `state_dir` with its marker, in one step, unless it is there; return what the marker says then.

    The caller holds the lock of the parent directory. Raises `OwnerError` as `verify` and `refuse_foreign`.
    """
    found = verify(state_dir, who)
    if found is None:
        refuse_foreign(state_dir)
        made = replace(who.owner, mark=who.owner.mark or str(uuid.uuid4()), kept=state_dir.is_dir())
        if made.kept:
            _write(state_dir, made)
        else:
            new = _beside(state_dir)
            _clear(new)
            new.mkdir()
            new.chmod(0o755)
            _write(new, made)
            new.rename(state_dir)
        return made
    current = replace(who.owner, mark=found.mark, kept=found.kept)
    _write(state_dir, current)
    return current


def marked(state_dir: Path, who: Caller) -> Owner | None:
    """Return the owner of a `state_dir` that may be removed; None when there is nothing of the cluster.

    Raises `OwnerError` for a directory of another, and for one with files but without the marker.
    """
    found = verify(state_dir, who)
    if found is None and _entries(state_dir):
        if who.adopt and who.owner.mark:
            return who.owner
        raise OwnerError(
            f"{state_dir} is not removed: it holds files and no {FILE}, so agentlab did not make it, or the file was lost. If it is of cluster "
            f"{who.owner.cluster}, remove it yourself; if not, take it off the list in {who.owner.run_dir}/state.json"
        )
    return found


def remove(state_dir: Path, found: Owner) -> None:
    """Remove everything in `state_dir`, its marker last, and then itself unless it was there before."""
    _clear(_beside(state_dir))
    if not state_dir.is_dir():
        return
    if not (state_dir / FILE).is_file():
        _write(state_dir, found)
    for entry in state_dir.iterdir():
        if entry.name != FILE:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    if found.kept:
        (state_dir / FILE).unlink()
        return
    gone = _beside(state_dir)
    state_dir.rename(gone)
    _clear(gone)


def leftover(state_dir: Path) -> bool:
    """Return whether a killed run left a part of making or removing `state_dir`."""
    return _beside(state_dir).is_dir()


def identity(mark: str, kind: str, name: str) -> str:
    """Return the UUID of `name`, a network or a pool of the cluster with `mark`: it tells ours from another's of the same name."""
    return str(uuid.uuid5(_NAMESPACE, f"{mark}/{kind}/{name}"))


def _beside(state_dir: Path) -> Path:
    """Where a directory is without having its name, or not any more; never with anything but the marker in it."""
    return state_dir.parent / f".{state_dir.name}.agentlab"


def _clear(directory: Path) -> None:
    if directory.is_dir() and not directory.is_symlink():
        for entry in directory.iterdir():
            if _is_marker(entry.name):
                entry.unlink()
        directory.rmdir()


def _entries(directory: Path) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if not _is_marker(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_marker(name: str) -> bool:
    return name == FILE or name.startswith(files.PREFIX)


def _write(directory: Path, owner: Owner) -> None:
    write_atomic(directory / FILE, json.dumps(asdict(owner), indent=1) + "\n")


def _owner(data: Any) -> Owner:
    names = {field.name for field in fields(Owner)}
    if not isinstance(data, dict) or set(data) != names:
        raise TypeError(f"expected a mapping of {', '.join(sorted(names))}")
    made = Owner(**data)
    for field in fields(Owner):
        wanted = {"int": int, "bool": bool}.get(str(field.type), str)
        if not isinstance(getattr(made, field.name), wanted):
            raise TypeError(f"{field.name} is {getattr(made, field.name)!r}")
    return made
