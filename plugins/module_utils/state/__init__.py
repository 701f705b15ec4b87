"""`state.json` of a run: the cluster's owner, created objects, recorded before they are created, and results of the stages.

The file is `{"owner": {...}, "created": [{"kind", "name", "host"}], "stages": {NAME: {"start", "end", "result"}}}`. `destroy` removes
exactly what `created` lists and has the owner's mark (`owner`); a kind that it does not know is an error, not a guess. Times of
stages are ISO 8601 in UTC; `result` is `ok` or `failed`, and null, like `end`, while a stage runs or after it was killed. Writers
lock the run directory, so stages that run at the same time do not lose each other's lines.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from ..documents import load_json
from ..files import new_file
from ..vocabulary import RunFile

FILE = RunFile.STATE


class Item(TypedDict):
    """One created object: `kind` (sandbox, network, domain, ...), its `name`, and its inventory `host`.

    `kind` decides how `destroy` removes it (`sandbox.remove`); `host` is the inventory host that it was created on.
    """

    kind: str
    name: str
    host: str


class Stage(TypedDict):
    """Start, end and result of a stage: `ok` or `failed`; null while it runs.

    `start` and `end` are ISO 8601 in UTC, to the second. A stage that was killed stays without end and result.
    """

    start: str
    end: str | None
    result: str | None


class State(TypedDict):
    """Content of `state.json`: the owner, what was created, and the stages that ran.

    `owner` is the record of `owner.Owner` as plain data, None before `prepare`; `stages` has the last run of each stage
    by its name.
    """

    owner: dict[str, Any] | None
    created: list[Item]
    stages: dict[str, Stage]


class StateError(ValueError):
    """`state.json` cannot be read.

    The message names the file, what is wrong in it, and the remedy: restore it, or remove the cluster by its mark.
    """


def load(run_dir: Path) -> State:
    """Return the state of the run in `run_dir`; an empty one when nothing was created yet.

    Raises `StateError` for a file of another form, and `OSError` for one that cannot be read. No lock is taken: writers
    replace the file.
    """
    path = run_dir / FILE
    try:
        data = load_json(path.read_bytes(), name=str(path))
        if not isinstance(data, dict):
            raise TypeError("not a mapping")
        created = [_item(item) for item in data["created"]]
        owner = data.get("owner")
        if not isinstance(owner, dict | None) or (owner and not isinstance(owner.get("mark"), str)):
            raise TypeError(f"owner is {owner!r}")
        return {"owner": owner, "created": created, "stages": dict(data["stages"])}
    except FileNotFoundError:
        return {"owner": None, "created": [], "stages": {}}
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f'{path}: not a state file ({error}): expected {{"created": [...], "stages": {{...}}}}. Restore it, or move it aside: '
            "`agentlab destroy PROFILE`, with the profile of the cluster, then removes everything with its mark"
        ) from error


def record(run_dir: Path, items: Iterable[Item], owner: Mapping[str, object] | None = None) -> list[Item]:
    """Add those of `items` that are not listed yet, and return them; note the `owner`, if one is given.

    Call it before the objects are created, so that a killed run leaves nothing unrecorded. Raises `StateError` and
    `OSError` as `load`.
    """
    with _changing(run_dir) as state:
        new = [item for item in items if item not in state["created"]]
        state["created"].extend(new)
        if owner:
            state["owner"] = dict(owner)
    return new


def begin(run_dir: Path, stage: str) -> None:
    """Record the start of `stage`.

    The results of its former run are replaced. Raises `StateError` and `OSError` as `load`.
    """
    with _changing(run_dir) as state:
        state["stages"][stage] = {"start": _timestamp(), "end": None, "result": None}


def finish(run_dir: Path, stage: str, *, failed: bool) -> None:
    """Record the end of `stage`.

    A stage without a recorded start gets the present time as its start. Raises `StateError` and `OSError` as `load`.
    """
    with _changing(run_dir) as state:
        start = state["stages"][stage]["start"] if stage in state["stages"] else _timestamp()
        state["stages"][stage] = {"start": start, "end": _timestamp(), "result": "failed" if failed else "ok"}


def _item(data: Mapping[str, Any]) -> Item:
    item: Item = {"kind": data["kind"], "name": data["name"], "host": data["host"]}
    if not all(isinstance(text, str) for text in item.values()):
        raise TypeError(f"{data!r} is in the list")
    return item


def _timestamp() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def write_atomic(path: Path, content: str | bytes, mode: int = 0o644) -> bool:
    """Write `content` to `path` atomically; return whether anything changed.

    mode: of the new file; one with the same content but another mode is replaced, too. Missing parents are made. Raises
    `OSError`; then the old file is still there.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == data and path.stat().st_mode & 0o777 == mode:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, overwrite=True, mode=mode) as stream:
        stream.write(data)
    return True


@contextlib.contextmanager
def _changing(run_dir: Path) -> Iterator[State]:
    run_dir.mkdir(parents=True, exist_ok=True)
    handle = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        state = load(run_dir)
        before = json.dumps(state)
        yield state
        if json.dumps(state) != before:
            write_atomic(run_dir / FILE, json.dumps(state, indent=1) + "\n")
    finally:
        os.close(handle)
