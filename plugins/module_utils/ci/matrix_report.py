"""The page and the JUnit of a matrix: which job passed, when it ran, how long it took and usually takes, and why it failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .._deps import optional
from ..report.page import junit
from ..webpage import Bar, Cell, Link, Mark, document, table
from .history import Summary
from .matrix import Task
from .records import PASSED, duration

if TYPE_CHECKING:
    import junitparser
else:
    junitparser = optional("junitparser")

PAGE, JUNIT = "index.html", "junit.xml"
RUNNING, WAITING, SKIPPED = "running", "waiting", "skipped"
_RUN_PAGE = "report/index.html"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a job. name: of its task; result: `passed`, `failed`, `running`, `waiting` or `skipped`.

    start, end: seconds since the matrix began, both 0 for one that did not run; why: the first cause of a failure, or why
    it was skipped; folder: its artifacts, relative to those of the matrix; usual: median seconds of former runs.
    """

    name: str
    result: str
    start: float = 0.0
    end: float = 0.0
    why: str = ""
    folder: str = ""
    usual: float | None = None

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return self.end - self.start


def waiting_outcome(task: Task) -> Outcome:
    """Return what a task is before it runs."""
    return Outcome(name=task.name, result=WAITING, usual=task.usual or None)


def page(outcomes: Sequence[Outcome], histories: Mapping[str, Summary], facts: Sequence[tuple[str, str]]) -> str:
    """Return the page. outcomes: of all jobs; histories: by job; facts: names and values at the top of the page."""
    counts = {kind: sum(one.result == kind for one in outcomes) for kind in dict.fromkeys(o.result for o in outcomes)}
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no jobs"
    last = max((one.end for one in outcomes), default=0.0) or 1.0
    body = table(
        "Jobs", ("Job", "Result", "When", "Took", "Usually", "Why", "Artifacts"), (_row(one, last) for one in outcomes)
    ) + table(
        "History",
        ("Job", "Runs", "Passed", "Usually", "Last", "Passed and failed at"),
        (_history(one) for one in histories.values()),
    )
    return document(f"matrix: {summary}", "Matrix of jobs", [("Result", summary), *facts], body)


def _row(one: Outcome, last: float) -> Iterator[Cell]:
    ran = one.end > 0
    bad = one.result not in (PASSED, RUNNING, WAITING, SKIPPED)
    yield Link(one.name, f"{one.folder}/{_RUN_PAGE}") if ran and one.result != RUNNING else one.name
    yield Mark(one.result, "bad" if bad else "good" if one.result == PASSED else "")
    when = f"{one.name}: from {duration(one.start)} to {duration(one.end)}"
    yield Bar(one.start / last, one.end / last, when, bad) if ran else ""
    yield duration(one.seconds) if ran else ""
    yield duration(one.usual) if one.usual else ""
    yield Mark(one.why, "text")
    yield Link("files", f"{one.folder}/") if ran else ""


def _history(one: Summary) -> Iterator[Cell]:
    yield one.job
    yield str(one.runs)
    yield str(one.passed)
    yield duration(one.usual) if one.usual else ""
    yield Mark(one.last, "good" if one.last == PASSED else "bad")
    yield Mark(", ".join(one.flaky), "bad")


def write_junit(outcomes: Iterable[Outcome], folder: Path) -> None:
    """Write the JUnit of a matrix: a case for each job, then the suites of each job's own JUnit, named after it.

    folder: the artifacts of the matrix. A job's JUnit that is missing or damaged is left out: its case has
    failed. Raises `OSError`.
    """
    done = list(outcomes)
    cases = [
        junit.Case(
            name=one.name,
            seconds=one.seconds,
            failure="" if one.result in (PASSED, SKIPPED, WAITING) else one.why or one.result,
            skipped=one.why or one.result if one.result in (SKIPPED, WAITING) else "",
        )
        for one in done
    ]
    whole = junitparser.JUnitXml.fromstring(junit.text([junit.Suite(name="agentlab matrix", cases=cases)]).encode())
    for one in done:
        for suite in _suites(folder / one.folder / JUNIT) if one.folder else ():
            suite.name = f"{one.name}: {suite.name}"
            whole.add_testsuite(suite)
    whole.write(str(folder / JUNIT), pretty=True)


def _suites(path: Path) -> list[junitparser.TestSuite]:
    try:
        return list(junitparser.JUnitXml.fromfile(str(path)))
    except (OSError, junitparser.JUnitXmlError, SyntaxError):
        return []
