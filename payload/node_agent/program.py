"""Common code of the small programs: flags, one JSON argument, output on stdout, errors on stderr, exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from . import flags, journal
from .protocol import Result
from .steps import Context

REQUEST = flags.Flag("request", "", "The request, as JSON")
# Go's json.Marshal escapes characters that would end a script in HTML.
ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def dumps(value: object) -> str:
    """JSON, compact."""
    return json.dumps(value, separators=(",", ":"))


def marshal(value: object) -> str:
    """Return JSON as upstream writes a model: keys in order, without false, zero or empty strings; lists stay."""
    return json.dumps(_compact(value), separators=(",", ":"), ensure_ascii=False).translate(ESCAPED)


def _compact(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _compact(value[key]) for key in sorted(value) if value[key] not in ("", 0)}
    if isinstance(value, list):
        return [_compact(entry) for entry in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def main(
    name: str,
    run: Callable[[list[str], Context], Result],
    argv: list[str] | None = None,
    arguments: int | None = 1,
    extra: tuple[flags.Flag, ...] = (),
    misused: int = 255,
) -> int:
    """Run a step function as a program. Returns the process exit code (a step's -1 is a process's 255).

    arguments: number of arguments; None: any; misused: the exit code for a wrong number. With the flag REQUEST the argument
    can be the value of that flag.
    """
    known = (*flags.logging_flags(text=False), *flags.dry_flags(), *extra)
    options = flags.parse(name, known, argv)
    journal.setup(name, options.with_text_logging, options.with_journal_logging, options.with_stdout_logging)
    words = options.args
    if REQUEST in extra:
        words = [options.request] if options.request else words
        if len(words) != 1:
            print(flags.usage(name, known), file=sys.stderr)
            return 1
    if arguments is not None and len(words) != arguments:
        print(f"Expecting exactly {arguments} argument(s) to {name}. Received {len(words)}", file=sys.stderr)
        return misused
    try:
        result = run(words, Context(token=os.environ.get("PULL_SECRET_TOKEN", ""), dry=flags.dry(options)))
    except ValueError as problem:
        result = Result("", str(problem), -1)
    except Exception as problem:
        journal.log.exception("%s failed", name)
        result = Result("", f"{name}: {type(problem).__name__}: {problem}", -1)
    sys.stdout.write(result.output)
    sys.stderr.write(result.error)
    return result.exit_code & 0xFF
