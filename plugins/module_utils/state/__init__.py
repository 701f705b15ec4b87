"""`state.json` of a run: what was created, written down before it is created, and which stages are done.

The file is `{"created": [{"kind", "name", "host"}], "stages": {NAME: {...}}}`. `destroy` removes exactly what `created`
lists; a kind that it does not know is an error, not a guess. Writers lock the run directory, so stages that
run at the same time do not lose each other's lines.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict

from ..documents import load_json
from ..files import new_file

FILE = "state.json"


class Item(TypedDict):
    """One created thing: `kind` (sandbox, network, domain, ...), its `name` there, and the inventory `host` that has it."""

    kind: str
    name: str
    host: str


class State(TypedDict):
    created: list[Item]
    stages: dict[str, Any]


class StateError(ValueError):
    """`state.json` cannot be read."""


def load(run_dir: Path) -> State:
    """Return the state of the run in `run_dir`; an empty one when nothing was created yet."""
    path = run_dir / FILE
    try:
        data = load_json(path.read_bytes(), name=str(path))
        return {"created": list(data["created"]), "stages": dict(data["stages"])}
    except FileNotFoundError:
        return {"created": [], "stages": {}}
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{path}: not a state file ({error}): expected {{\"created\": [...], \"stages\": {{...}}}}"
        ) from error


def record(run_dir: Path, items: Iterable[Item]) -> list[Item]:
    """Add those of `items` that are not listed yet, and return them."""
    with _changing(run_dir) as state:
        new = [item for item in items if item not in state["created"]]
        state["created"].extend(new)
    return new


def forget(run_dir: Path, items: Iterable[Item]) -> None:
    """Take `items` off the list: they are gone."""
    gone = list(items)
    with _changing(run_dir) as state:
        state["created"] = [item for item in state["created"] if item not in gone]


def finish(run_dir: Path, stage: str, facts: dict[str, Any] | None = None) -> None:
    """Note that `stage` is done, with `facts` about it."""
    with _changing(run_dir) as state:
        state["stages"][stage] = facts or {}


def write_atomic(path: Path, content: str | bytes, mode: int = 0o644) -> bool:
    """Write `content` to `path`, which is whole at any moment; return whether anything was different."""
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
