"""The run page: `report/index.html` of a run directory, one file that needs nothing else.

Next to it are its data, `report/run.json`, `report/junit.xml` and the intervals of the timeline. The document is made from the events and
the logs of the run (`document`), and the page is a template with one style sheet and one script, which draws the document.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from ...state import write_atomic
from ..gather import give_to_owner
from . import intervals, junit
from .document import DOCUMENT, JUNIT, LINES, PAGE, REPORT, Collector
from .html import page
from .model import Run

SMALL, LARGE, MANY = 2 << 20, 5 << 20, 20
"""Bytes of a page at most: of up to `MANY` hosts, and of more."""


def collect(run_dir: Path, *, live: bool = False, clock: Callable[[], float] = time.time) -> tuple[Run, str]:
    """Return the document of a run and its page, which is bounded in size: with fewer lines of logs if it must be.

    live: the run is in progress; clock: its time, of a replay another than now. Raises `OSError` when the report directory cannot be written.
    """
    lines = LINES
    while True:
        run = Collector(run_dir, live, lines, clock).run()
        text = page(run)
        hosts = sum(lane["group"] == "hosts" for lane in run["lanes"])
        if len(text) <= (SMALL if hosts <= MANY else LARGE) or not lines:
            return run, text
        lines //= 2


def write(run_dir: Path) -> Run:
    """Write the page of a run, its document and its JUnit, each complete or not at all; return the document.

    run_dir: exists; `report` in it is made. Raises `OSError`.
    """
    folder = run_dir / REPORT
    folder.mkdir(exist_ok=True)
    run, text = collect(run_dir)
    write_atomic(folder / DOCUMENT, json.dumps(run) + "\n", 0o600)
    write_atomic(folder / intervals.FILE, json.dumps(intervals.intervals(run)) + "\n", 0o600)
    write_atomic(folder / JUNIT, junit.text(junit.suites(run)), 0o600)
    write_atomic(folder / PAGE, text, 0o600)
    give_to_owner(folder)
    return run
