"""`-o` of verbs that run a playbook: what it found is on standard output, all else on standard error."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from ..state.events import FILE, MAX_BYTES, Event, parse
from . import follow
from .output import add_output, print_output

_RESULTS = {
    "validate": "print the checks as JSON or YAML: name, ok and found of each; all else to stderr",
    "gather": "print the directory, the run page and the causes of a failure as JSON or YAML; all else to stderr",
}


def add(group: argparse._ActionsContainer, verb: str) -> None:
    """Add -o to a verb that has a result; without the option `output` is None.

    group: of options that exclude each other, with --check, which leaves no events.
    """
    if verb == "wait":
        group.add_argument("-o", "--output", choices=("jsonl",), help="print events as JSON lines, all else to stderr")
    elif verb in _RESULTS:
        add_output(group, _RESULTS[verb])


@contextlib.contextmanager
def print_result(verb: str, run_dir: Path, form: str | None) -> Iterator[TextIO | None]:
    """Print the result of the playbook that runs in the block, from the events that it writes; gives the stream for its output.

    form: None: no result, and all output is where it always is. What the block itself prints is on the other stream, too.
    """
    if form is None:
        yield None
        return
    path = run_dir / FILE
    offset = path.stat().st_size if path.exists() else 0
    events = follow.print_events(run_dir) if form == "jsonl" else contextlib.nullcontext()
    with events, contextlib.redirect_stdout(sys.stderr):
        yield sys.stderr
    if form != "jsonl":
        print_output(_result(verb, run_dir, _events_since(path, offset)), form)


def _events_since(path: Path, offset: int) -> list[Event]:
    """Return the events that were written behind `offset`."""
    if not path.exists():
        return []
    with path.open("rb") as stream:
        stream.seek(offset)
        return parse(stream.read(MAX_BYTES)).events


def _result(verb: str, run_dir: Path, events: list[Event]) -> Any:
    if verb == "validate":
        return [
            {"name": one["subject"], "ok": one["state"] == "ok", "found": one["text"]}
            for one in events
            if one["kind"] == "check"
        ]
    from ..report import page

    folder = run_dir / page.REPORT
    there = {"directory": folder, "page": folder / page.PAGE}
    return {
        **{name: str(path) if path.exists() else None for name, path in there.items()},
        "causes": [{"text": one["text"], "next": one.get("next", "")} for one in events if one["kind"] == "cause"],
    }
