"""The owner of a cluster: `owner.json` in its state directory, on the hypervisor.

The file is made with the directory, and is the marker without which nothing is removed: a directory without it was not made by
agentlab. Its `mark`, a random UUID, is in everything else that the cluster has on the host: in the metadata of domains, in
the UUIDs of networks and pools, on the loopback interface of the sandbox. `state.json` of the run directory has the same record
(`owner`), written before anything is created.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
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
    """A cluster or a directory that the caller does not own.

    The message names the directory and its owner, and what to do: another name or directory, or `--adopt`.
    """


@dataclass(frozen=True)
class Owner:
    """Content of `owner.json`: the cluster, who created it and from where, a digest of its plan, and its mark.

    kept: the empty state directory existed before, and stays.
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
    """The caller: `owner` as in `owner.json`, with the mark of `state.json`.

    adopt: take over a cluster of another owner; remote: the hypervisor is another host, so that the host counts, too.
    """

    owner: Owner
    adopt: bool = False
    remote: bool = False

    def fact(self) -> dict[str, Any]:
        """Return it as plain data, for `from_fact`.

        The roles pass it between hosts as the Ansible fact `agentlab_owner`.
        """
        return asdict(self)

    def owns(self, found: Owner) -> bool:
        """Return whether `found` is this caller: the same user, from the same run directory.

        found: of a state directory. With a remote hypervisor the host of the run directory counts, too, since paths and
        uids repeat there.
        """
        mine = self.owner
        here = not self.remote or found.host == mine.host
        return here and (found.cluster, found.run_dir, found.uid) == (mine.cluster, mine.run_dir, mine.uid)


def from_fact(data: Mapping[str, object]) -> Caller:
    """Return the caller that `Caller.fact` gave. Raises `OwnerError` for anything else.

    data: `owner` with exactly the fields of `Owner`; `adopt` and `remote` are optional.
    """
    try:
        return Caller(_owner(data["owner"]), adopt=bool(data.get("adopt")), remote=bool(data.get("remote")))
    except (KeyError, TypeError, ValueError) as error:
        raise OwnerError(
            f"owner: must be the fact agentlab_owner, which the role agentlab.ocp.plan sets ({error})"
        ) from error


def of_cluster(given: Mapping[str, Any], *, check: bool) -> Owner:
    """Return the owner of the cluster of the option `plan`, by its state directory on this host; the option `owner` is the caller.

    Raises `OwnerError` when it is not the caller's, and if it has no owner yet; with `check` it then is the caller's.
    """
    who = from_fact(given["owner"])
    state_dir = Path(given["plan"]["hypervisor"]["state_dir"])
    found = verify(state_dir, who)
    if found is None and not check:
        raise OwnerError(
            f"{state_dir / FILE}: there is no cluster {who.owner.cluster}: agentlab prepare --cluster {who.owner.cluster}"
        )
    return found or who.owner


def caller(plan: Mapping[str, Any], run_dir: Path, *, adopt: bool = False) -> Caller:
    """Return the caller for the cluster of `plan`. With sudo it is the user behind it.

    run_dir: need not exist; its `state.json` gives the mark, empty without one; adopt: see `Caller`. Raises
    `state.StateError` for a damaged `state.json`.
    """
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
    return Caller(
        Owner(name, os.path.realpath(run_dir), uid, user, socket.gethostname(), digest, mark),
        adopt=adopt,
        remote=remote,
    )


def read(state_dir: Path) -> Owner | None:
    """Return the owner of `state_dir`, or None when it has none. Raises `OwnerError` for a file that cannot be read.

    state_dir: on this host. None is also the answer for a directory that does not exist. Raises `OSError` for a file
    without permission.
    """
    path = state_dir / FILE
    try:
        return parse(read_file(path), path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def parse(data: bytes, path: Path) -> Owner:
    """Return the owner that `data`, the text of `path`, names. Raises `OwnerError` for anything else.

    It must be a JSON object with exactly the fields of `Owner`, each of its type; path: for the message only.
    """
    try:
        return _owner(load_json(data, name=str(path)))
    except (KeyError, TypeError, ValueError) as error:
        raise OwnerError(
            f"{path}: damaged ({error}): it is the marker of the directory, without which nothing in it is changed or removed. "
            "Restore it, or run `agentlab destroy --adopt` from the run directory that made the cluster, which has a copy in state.json"
        ) from error


def verify(state_dir: Path, who: Caller) -> Owner | None:
    """Return the owner of `state_dir`, which is `who` or is replaced by it; None if there is none.

    Raises `OwnerError` with both names and the remedy for another owner's cluster.
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
    """Raise `OwnerError` as `verify`, for the owner that was found in `state_dir`.

    Nothing happens when `who` owns it, or has `adopt`. The message names both owners and the remedy.
    """
    if who.adopt or who.owns(found):
        return
    cluster = found.cluster
    raise OwnerError(
        f"cluster {cluster} ({state_dir}) belongs to {found}; you are {who.owner}. Work from there, choose another name "
        f"(CLUSTER=, --cluster), or take it over: agentlab prepare --adopt --cluster {cluster} (or destroy --adopt)"
    )


def refuse_foreign(state_dir: Path) -> None:
    """Raise `OwnerError` for a directory with files that agentlab did not make.

    state_dir: may be missing or empty; it may also have the marker. Symbolic links and files in its place are refused.
    """
    if state_dir.is_symlink() or (state_dir.exists() and not state_dir.is_dir()):
        raise OwnerError(
            f"{state_dir} is not a directory: choose another directory (hypervisor.state_dir) or cluster name"
        )
    if read(state_dir) is None and _entries(state_dir):
        raise OwnerError(
            f"{state_dir} is not empty, and agentlab did not create it ({FILE} is missing in it): "
            "choose another directory (hypervisor.state_dir) or cluster name, or empty it"
        )


def claim(state_dir: Path, who: Caller) -> Owner:
    """Create `state_dir` with its marker, in one step, unless it exists; return the marker's content.

    The caller holds the lock of the parent directory. Raises `OwnerError` as `verify` and `refuse_foreign`.
    """
    found = verify(state_dir, who)
    if found is None:
        refuse_foreign(state_dir)
        made = replace(who.owner, mark=who.owner.mark or str(uuid.uuid4()), kept=state_dir.is_dir())
        if made.kept:
            _write(state_dir, made)
        else:
            new = _temporary_path(state_dir)
            _clear(new)
            new.mkdir()
            new.chmod(0o755)
            _write(new, made)
            new.rename(state_dir)
        return made
    current = replace(who.owner, mark=found.mark, kept=found.kept)
    _write(state_dir, current)
    return current


def marked_owner(state_dir: Path, who: Caller) -> Owner | None:
    """Return the owner of a `state_dir` that may be removed; None when there is nothing of the cluster.

    Raises `OwnerError` for another owner's directory, and for one with files but without the marker.
    """
    found = verify(state_dir, who)
    if found is None and _entries(state_dir):
        if who.adopt and who.owner.mark:
            return who.owner
        raise OwnerError(
            f"{state_dir} is not removed: it has files but no {FILE}, so agentlab did not create it, or the file was lost. If it belongs to cluster "
            f"{who.owner.cluster}, remove it yourself; if not, remove it from the list in {who.owner.run_dir}/state.json"
        )
    return found


def remove(state_dir: Path, found: Owner) -> None:
    """Remove everything in `state_dir`, its marker last, then itself unless it existed before.

    found: its owner, written again if the marker is lost, so that a removal that is killed can be repeated. Raises
    `OSError`.
    """
    _clear(_temporary_path(state_dir))
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
    gone = _temporary_path(state_dir)
    state_dir.rename(gone)
    _clear(gone)


def leftover(state_dir: Path) -> bool:
    """Return whether a killed run left `state_dir` partly created or removed.

    That is the temporary directory `.NAME.agentlab` next to it, which `claim` and `remove` take away when they are
    repeated.
    """
    return _temporary_path(state_dir).is_dir()


def identity(mark: str, kind: str, name: str) -> str:
    """Return the UUID of `name`, a network or a pool of the cluster with `mark`: it distinguishes ours from others with the same name.

    It is uuid5 of `MARK/KIND/NAME`, so it is the same at each call. mark: of `owner.json`; kind: such as `network`.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{mark}/{kind}/{name}"))


def label(mark: str) -> str:
    """Return the text by which links and firewall tables of the host name the cluster with `mark`.

    It is the alias of a link, and the comment of a rule: one line of at most 45 characters.
    """
    return f"agentlab {mark}"


def _temporary_path(state_dir: Path) -> Path:
    """Return the temporary path of a directory before creation or during removal; it never has anything but the marker."""
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


def _owner(data: object) -> Owner:
    names = {field.name for field in fields(Owner)}
    if not isinstance(data, dict) or set(data) != names:
        raise TypeError(f"expected a mapping of {', '.join(sorted(names))}")
    made = Owner(**data)
    for field in fields(Owner):
        wanted = {"int": int, "bool": bool}.get(str(field.type), str)
        if not isinstance(getattr(made, field.name), wanted):
            raise TypeError(f"{field.name} is {getattr(made, field.name)!r}")
    if not re.fullmatch(r"[0-9A-Za-z-]{0,64}", made.mark):  # it becomes a part of firewall rules
        raise ValueError(f"mark is {made.mark!r}")
    return made
