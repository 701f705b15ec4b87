"""Records of e2e jobs (`results.jsonl`), what CI runs next, and the support matrix in docs/support.md.

Each line of `results.jsonl` is one run: `{"job", "profile", "commit", "date", "seconds", "result", "stages", "host"}`; `profile` is null for a job that
has its profile in jobs.yml, `date` is UTC in ISO 8601, `seconds` are of the whole job, `stages` has those of each stage, `host` names
distribution and accelerator. `commit` ends in `-dirty` when the tree had other changes than records.

    python ci/results.py next [--jobs 2] [--minutes 40]   the jobs to run next, in one line; those of `make test` are left out
    python ci/results.py matrix                           write docs/support.md
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import yaml

ROOT = Path(__file__).resolve().parents[1]
JOBS = ROOT / "ci/jobs.yml"
RESULTS = ROOT / "ci/results.jsonl"
MATRIX = ROOT / "docs/support.md"
STALE_DAYS = 30
# A job may take this much longer than it last did: CI machines are shared.
MARGIN = 1.6
RECORDS = (":!ci/results.jsonl", ":!ci/kills.jsonl", ":!docs/support.md")
HEADING = """# Support matrix

Written by `make matrix` from `ci/results.jsonl`, the records of e2e jobs. A row is the newest run of a job of `ci/jobs.yml` that passed:
an installation to the end, or a fault that ended with the expected first cause. "Stale" marks runs older than 30 days.

| job | profile | passed | commit | time | host | |
|---|---|---|---|---|---|---|
"""


class Record(TypedDict):
    """One line of results.jsonl; see the module's documentation."""

    job: str
    profile: str | None
    commit: str
    date: str
    seconds: float
    result: str
    stages: dict[str, float]
    host: str


def load(path: Path = RESULTS) -> list[Record]:
    """All records, oldest first. ValueError names the line that is not one."""
    records: list[Record] = []
    if not path.exists():
        return records
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            record: Record = json.loads(line)
            datetime.datetime.fromisoformat(record["date"])
            missing = Record.__required_keys__ - record.keys()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path.name}:{number}: is not a record: {error}") from error
        if missing:
            raise ValueError(f"{path.name}:{number}: lacks {', '.join(sorted(missing))}")
        records.append(record)
    return sorted(records, key=lambda record: record["date"])


def append(record: Record, path: Path = RESULTS) -> None:
    """Add a record; the project's own records show in the matrix at once."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(record) + "\n")
    if path == RESULTS:
        write_matrix()


def commit() -> str:
    """The commit that is checked out, `-dirty` when files other than records differ from it."""

    def git(*args: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("-dirty" if git("status", "--porcelain", "--", ".", *RECORDS) else "")


def last_passed(records: Iterable[Record]) -> dict[str, Record]:
    """The newest record of each job that passed."""
    return {record["job"]: record for record in records if record["result"] == "passed"}


def next_jobs(records: Iterable[Record], jobs: Mapping[str, Any], *, most: int, minutes: float, leave: Iterable[str] = ()) -> list[str]:
    """The jobs that passed longest ago and fit into the minutes, judged by how long they took.

    A job without a record is left out: somebody has to see it pass before CI depends on it. leave: jobs that run anyway.
    """
    passed = last_passed(records)
    chosen: list[str] = []
    left = minutes * 60
    for job in sorted(passed.keys() & jobs.keys() - set(leave), key=lambda name: passed[name]["date"]):
        seconds = passed[job]["seconds"] * MARGIN
        if len(chosen) < most and seconds <= left:
            chosen.append(job)
            left -= seconds
    return chosen


def matrix(records: Iterable[Record], jobs: Mapping[str, Any], now: datetime.datetime) -> str:
    """The text of docs/support.md. Jobs that never passed have no row."""
    rows = []
    passed = last_passed(records)
    for job in jobs:
        if job not in passed:
            continue
        record = passed[job]
        date = datetime.datetime.fromisoformat(record["date"])
        minutes, seconds = divmod(round(record["seconds"]), 60)
        stale = "stale" if now - date > datetime.timedelta(days=STALE_DAYS) else ""
        cells = [f"`{job}`", record["profile"] or "in the job", date.date(), record["commit"], f"{minutes}m{seconds:02}s", record["host"], stale]
        rows.append(f"| {' | '.join(map(str, cells))} |\n")
    return HEADING + "".join(rows)


def write_matrix() -> None:
    """Write docs/support.md."""
    MATRIX.write_text(matrix(load(), job_table(), datetime.datetime.now(datetime.UTC)))


def job_table() -> dict[str, Any]:
    """The jobs of jobs.yml by name."""
    jobs: dict[str, Any] = yaml.safe_load(JOBS.read_text())["jobs"]
    return jobs


def every_change() -> list[str]:
    """The jobs that `make test` runs."""
    names: list[str] = yaml.safe_load(JOBS.read_text())["every_change"]
    return names


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/results.py", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    following = commands.add_parser("next", help="print the jobs to run next: those that passed longest ago")
    following.add_argument("--jobs", type=int, default=2, help="at most this many (default: %(default)s)")
    following.add_argument("--minutes", type=float, default=40, help="that fit into this time (default: %(default)s)")
    commands.add_parser("matrix", help="write docs/support.md")
    args = parser.parse_args(argv)
    if args.command == "next":
        print(*next_jobs(load(), job_table(), leave=every_change(), most=args.jobs, minutes=args.minutes))
    else:
        write_matrix()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
