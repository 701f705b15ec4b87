"""Records of e2e jobs: one line of JSON for each, in `ci/results.jsonl`, from which the support matrix is made."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TypedDict, cast

from ..documents import load_json, read_file
from ..plan.profile import Source, own_files
from ..state import write_atomic

# Changes of these do not make a tree dirty.
_RECORDS = (":!ci/results.jsonl", ":!ci/kills.jsonl", ":!docs/support.md", ":!docs/fields.md")


PASSED, FAILED = "passed", "failed"
DIRTY, UNKNOWN = "-dirty", "unknown"
"""End of a commit with other changes than records, and the commit of sources without a repository."""


class _ShownRecord(TypedDict, total=False):
    nodes: int
    checks: int
    shown: list[str]


class Record(_ShownRecord):
    """One job: `profile` is as of `profile_id`, null for a job with real programs; `date` is UTC in ISO 8601, `seconds` are of the whole job.

    stages: the seconds of each; host: distribution and accelerator; commit: ends in `-dirty` when the tree had other changes than records.
    A record of a cluster has also nodes: how many, day-2 nodes included; checks: how many the last `validate` passed; shown: what
    `ci/fencing.py` measured, as it printed it. Older records lack these.
    """

    job: str
    profile: str | None
    commit: str
    date: str
    seconds: float
    result: str
    stages: dict[str, float]
    host: str


_KINDS: dict[str, type | tuple[type, ...]] = {
    "job": str, "profile": (str, type(None)), "commit": str, "date": str, "seconds": (int, float), "result": str, "stages": dict, "host": str,
    "nodes": int, "checks": int, "shown": list,
}  # fmt: skip


def profile_id(source: Source) -> str:
    """Return what a record contains of a profile: the digest of its contents, and of the files next to it that they name.

    It is `sha256:` and 16 digits. Contents are as they are written, without defaults. They can hold passwords, so a record has their digest.
    """
    texts = [json.dumps(source.raw, sort_keys=True), *own_files(source)]
    return f"sha256:{hashlib.sha256(''.join(texts).encode()).hexdigest()[:16]}"


def append(record: Record, path: Path) -> None:
    """Add a line.

    path: made if it is missing. The line is JSON. Raises `OSError`.
    """
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(record) + "\n")


def load(path: Path) -> list[Record]:
    """Return all records, oldest first. ValueError names the line that is not one.

    path: need not exist. A record must have all fields of `Record`, and a date in ISO 8601. Raises `OSError`.
    """
    if not path.exists():
        return []
    found: list[Record] = []
    for number, line in enumerate(read_file(path).splitlines(), 1):
        where = f"{path.name}:{number}"
        given = load_json(line, name=where)
        if not isinstance(given, dict):
            raise ValueError(f"{where}: is not a record: it must be a JSON object")
        if missing := Record.__required_keys__ - given.keys():
            raise ValueError(f"{where}: lacks {', '.join(sorted(missing))}")
        for name, kinds in _KINDS.items():
            if name in given and (not isinstance(given[name], kinds) or isinstance(given[name], bool)):
                raise ValueError(f"{where}: is not a record: {name} is {given[name]!r}")
        try:
            aware = datetime.fromisoformat(given["date"]).tzinfo is not None
        except ValueError:
            aware = False
        if not aware:
            raise ValueError(f"{where}: is not a record: date is {given['date']!r}, not ISO 8601 with a time zone")
        found.append(cast(Record, given))
    return sorted(found, key=_date)


def merge_records(histories: Iterable[Iterable[Record]]) -> list[Record]:
    """Return the records of several files as one history, oldest first; a run that is in more than one of them is there once.

    histories: as `load` returns them. Two runs of a job may begin in the same second, so all fields are compared.
    """
    runs = {tuple(str(one.get(name)) for name in Record.__annotations__): one for each in histories for one in each}
    return sorted(runs.values(), key=_date)


def write(records: Iterable[Record], path: Path) -> None:
    """Write a whole history, which replaces the file at once. Raises `OSError`."""
    write_atomic(path, "".join(f"{json.dumps(record)}\n" for record in records))


def _date(record: Record) -> datetime:
    return datetime.fromisoformat(record["date"])


def duration(seconds: float) -> str:
    """Return seconds for a table: `5m03s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s"


def commit(root: Path) -> str:
    """The commit that is checked out in `root`; `unknown` outside of a repository, as in a copy of the sources.

    The hash is abbreviated as git does; `-dirty` is added when files other than records differ.
    """

    def git(*args: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *args], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + (
            DIRTY if git("status", "--porcelain", "--", ".", *_RECORDS) else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
