"""Records of e2e jobs: one line of JSON for each, in `ci/results.jsonl`, from which the support matrix is made."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TypedDict

# Changes of these do not make a tree dirty.
_RECORDS = (":!ci/results.jsonl", ":!ci/kills.jsonl", ":!docs/support.md")


class Record(TypedDict):
    """One job: `profile` is null for a job with a profile of its own, `date` is UTC in ISO 8601, `seconds` are of the whole job.

    stages: the seconds of each; host: distribution and accelerator; commit: ends in `-dirty` when the tree had other changes than records.
    """

    job: str
    profile: str | None
    commit: str
    date: str
    seconds: float
    result: str
    stages: dict[str, float]
    host: str


def append(record: Record, path: Path) -> None:
    """Add a line.

    path: made if it is missing. The line is JSON. Raises `OSError`.
    """
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(record) + "\n")


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
            "-dirty" if git("status", "--porcelain", "--", ".", *_RECORDS) else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
