"""Former runs of a profile on this machine: how long their parts took, and what the last good one was given.

The cache has `history/<profile>.json` with the last `KEPT` installed runs of each profile.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import json
import os
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from ...documents import load_json, read_file
from ...errors import AgentlabError
from ...files import cache_directory
from ...redact import redact
from ...state import write_atomic
from ...state.events import printable
from ...vocabulary import RunFile
from .model import Change, Run, Step

KEPT = 20
MOST_LINES = 200
"""Lines of the difference of a file on the page, at most."""
_INPUTS = (
    RunFile.PROFILE,
    RunFile.INSTALL_CONFIG,
    RunFile.AGENT_CONFIG,
    "cluster-manifests/*.yaml",
    "openshift/*.yaml",
)
_SECRET = "pull-secret.yaml"


class Former(TypedDict):
    """An installed run. run: directory and start, by which it is known; seconds: by stage and part; inputs: text by file.

    Only the last but one of the runs that are kept, and the last, have inputs: differences are always from the last
    good run.
    """

    run: str
    seconds: dict[str, float]
    inputs: dict[str, str]


def compare(run_dir: Path, run: Run, secrets: Iterable[str]) -> None:
    """Complete a run's document with medians and changes; remember it once it is installed.

    Raises `OSError` when the cache cannot be written. A damaged file is replaced.
    """
    profile = re.sub(r"[^\w.-]", "_", Path(run["verdict"]["profile"]).stem)
    if not profile:
        return
    name = f"{run_dir.resolve()}:{run['verdict']['start']}"
    path = cache_directory() / "history" / f"{profile}.json"
    inputs = dict(_inputs(run_dir, run["verdict"]["payload"], secrets))
    if run["verdict"]["result"] == "installed" and not run["live"]:
        with _changing(path.parent):
            former = [one for one in _load(path) if one["run"] != name]
            kept = [*former, Former(run=name, seconds=_seconds(run["steps"]), inputs=inputs)][-KEPT:]
            for one in kept[:-1]:
                one["inputs"] = one["inputs"] if one is kept[-2] else {}
            write_atomic(path, json.dumps(kept) + "\n", 0o600)
    else:
        former = [one for one in _load(path) if one["run"] != name]
    for step in run["steps"]:
        times = [one["seconds"][_key(step)] for one in former if _key(step) in one["seconds"]]
        step["median"] = round(1000 * statistics.median(times)) if times else None
    run["former"] = len(former)
    if former and former[-1]["inputs"]:
        run["changes"] = list(_changes(former[-1]["inputs"], inputs))


def _key(step: Step) -> str:
    return f"{step['stage']}: {step['name']}"


def _seconds(steps: Sequence[Step]) -> dict[str, float]:
    """Return how long each part took; the longest of parts with one name, since a second run of a stage does nothing."""
    found: dict[str, float] = {}
    for step in steps:
        found[_key(step)] = max(found.get(_key(step), 0.0), (step["end"] - step["start"]) / 1000)
    return found


def _inputs(run_dir: Path, payload: str, secrets: Iterable[str]) -> Iterator[tuple[str, str]]:
    yield "payload", f"{payload}\n"
    hidden = list(secrets)
    for pattern in _INPUTS:
        for path in sorted(run_dir.glob(pattern)):
            if path.name != _SECRET:
                with contextlib.suppress(OSError, ValueError):
                    yield str(path.relative_to(run_dir)), redact(read_file(path).decode(), hidden)


def _changes(before: dict[str, str], after: dict[str, str]) -> Iterator[Change]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        lines = [printable(line) for line in difflib.unified_diff(old, new, lineterm="", n=2)][2:]
        if lines:
            left = len(lines) - MOST_LINES
            yield {"file": name, "diff": [*lines[:MOST_LINES], *([f"... {left} more lines"] if left > 0 else [])]}


def _load(path: Path) -> list[Former]:
    try:
        found = load_json(read_file(path), name=str(path))
        return [Former(run=str(one["run"]), seconds={str(k): float(v) for k, v in one["seconds"].items()},
                       inputs={str(k): str(v) for k, v in one["inputs"].items()}) for one in found]  # fmt: skip
    except (OSError, AgentlabError, ValueError, TypeError, KeyError, AttributeError):
        return []


@contextlib.contextmanager
def _changing(folder: Path) -> Iterator[None]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
