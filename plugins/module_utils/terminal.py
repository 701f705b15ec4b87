"""Output of the command line. Libraries must not `print` (ansible-test: it would corrupt a module's result)."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import TextIO

from .vocabulary import Exit


def write_line(text: object = "", stream: TextIO | None = None, end: str = "\n") -> None:
    """Write a line to standard output, or to `stream`, at once.

    Exits as a program that SIGPIPE ends, when its reader closes the output or its terminal is gone (EIO), instead of an
    `OSError`, which verbs report.
    """
    out = stream or sys.stdout
    try:
        out.write(f"{text}{end}")
        out.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        drop(out)
        raise SystemExit(Exit.PIPE) from None


def write_or_drop(text: object, stream: TextIO | None = None, end: str = "\n") -> None:
    """Write as `write_line`, but without a reader the text is lost, and the verb continues to its end."""
    with contextlib.suppress(SystemExit):
        write_line(text, stream, end)


def drop(stream: TextIO) -> None:
    """Lose what is still written to a stream without a reader: Python flushes it again at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
