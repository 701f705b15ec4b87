"""What the records of jobs show: how long a job usually takes, how often it passes, and whether it is flaky."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .records import DIRTY, PASSED, UNKNOWN, Record


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The runs of one job. usual: median seconds of those that passed, None without one; last: the result of the newest one.

    flaky: commits at which it passed and failed, in the order of the records. A commit with other changes does not count: what
    was run is not known.
    """

    job: str
    runs: int
    passed: int
    usual: float | None
    last: str
    flaky: tuple[str, ...]


def summaries(records: Iterable[Record]) -> dict[str, Summary]:
    """Return a summary of each job, in the order of their names.

    records: oldest first, as `records.load` returns them.
    """
    by_job: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_job[record["job"]].append(record)
    return {job: _summary(job, by_job[job]) for job in sorted(by_job)}


def _summary(job: str, runs: list[Record]) -> Summary:
    good = [one["seconds"] for one in runs if one["result"] == PASSED]
    results: defaultdict[str, set[bool]] = defaultdict(set)
    for one in runs:
        if not one["commit"].endswith(DIRTY) and one["commit"] != UNKNOWN:
            results[one["commit"]].add(one["result"] == PASSED)
    return Summary(
        job=job,
        runs=len(runs),
        passed=len(good),
        usual=statistics.median(good) if good else None,
        last=runs[-1]["result"],
        flaky=tuple(commit for commit, found in results.items() if len(found) > 1),
    )
