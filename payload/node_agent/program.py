"""What the small programs have in common: flags, one JSON argument, output on stdout, errors on stderr, exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from . import flags, journal
from .protocol import Result
from .steps import Context


def dumps(value: Any) -> str:
    """JSON as the programs write it: compact."""
    return json.dumps(value, separators=(",", ":"))


def main(
    name: str,
    run: Callable[[list[str], Context], Result],
    argv: list[str] | None = None,
    arguments: int = 1,
    extra: tuple[flags.Flag, ...] = (),
) -> int:
    """Run a step function as a program. Returns the process exit code (a step's -1 is a process's 255)."""
    options = flags.parse(name, (*flags.logging_flags(text=False), *extra), argv)
    journal.setup(name, options.with_text_logging, options.with_journal_logging, options.with_stdout_logging)
    if len(options.args) != arguments:
        print(f"Expecting exactly {arguments} argument(s) to {name}. Received {len(options.args)}", file=sys.stderr)
        return 255
    try:
        result = run(options.args, Context(token=os.environ.get("PULL_SECRET_TOKEN", "")))
    except ValueError as problem:
        result = Result("", str(problem), -1)
    sys.stdout.write(result.output)
    sys.stderr.write(result.error)
    return result.exit_code & 0xFF
