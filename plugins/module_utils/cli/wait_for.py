"""`agentlab wait-for bootstrap-complete | install-complete`."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..assisted.view import LiveView
from ..log import LEVELS, Log, level_of
from ..report.changes import WaitEvents
from ..report.secrets import of_run
from ..state import recording
from ..state.events import FILE, Event, EventLog
from ..terminal import write_line
from ..vocabulary import Exit
from ..waitfor import EVENTS, Recorder, wait_for


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="agentlab wait-for", description="Wait for install-time events")
    top.add_argument("event", choices=EVENTS, help="what to wait for")
    top.add_argument("--dir", type=Path, default=Path(), help="assets directory (default .)")
    top.add_argument(
        "--log-level",
        default="info",
        metavar="LEVEL",
        help="minimum level of messages (default info): " + ", ".join(LEVELS),
    )
    top.add_argument("--skip-password-print", action="store_true", help="do not print the kubeadmin password")
    top.add_argument(
        "--stall-timeout",
        type=float,
        default=0,
        metavar="MINUTES",
        help="give up without progress for this time (default: never; upstream's limits apply anyway)",
    )
    top.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        help="record the last state of cluster and events in this directory, as JSON, with events.jsonl and recording.jsonl",
    )
    top.add_argument(
        "-o",
        "--output",
        choices=("jsonl",),
        help="print events as JSON lines to standard output; see docs/events.schema.json",
    )
    return top


def _print(one: Event) -> None:
    write_line(json.dumps(one))


def main(argv: list[str]) -> int:
    args = parser().parse_args(argv)
    try:
        level = level_of(args.log_level)
    except ValueError as error:
        Log(None)("fatal", f"invalid log-level: {error}")
        return Exit.FAILED
    with ExitStack() as stack:
        view = stack.enter_context(LiveView()) if sys.stderr.isatty() and not args.output else None
        log = Log(args.dir if args.dir.is_dir() else None, level, emit=view.print if view else None)
        secrets = of_run(args.dir) if args.output or args.record else []
        events = WaitEvents(
            EventLog(args.record / Path(FILE).name if args.record else None, secrets),
            emit=_print if args.output else lambda __: None,
        )
        tape = (
            recording.Recorder(args.record / Path(recording.FILE).name, secrets) if args.record else recording.no_tape
        )
        watchers = [w for w in (Recorder(args.record) if args.record else None, view and view.show, events.show) if w]

        def message(level: str, text: str) -> None:
            log(level, text)
            events.report(level, text)

        def show(cluster: dict[str, Any], events: list[dict[str, Any]]) -> None:
            for watcher in watchers:
                watcher(cluster, events)

        outcome = wait_for(
            args.event,
            args.dir,
            message,
            show,
            stall=args.stall_timeout * 60,
            skip_password=args.skip_password_print,
            show_operators=events.show_operators,
            tape=tape,
        )
    return outcome.exit_code
