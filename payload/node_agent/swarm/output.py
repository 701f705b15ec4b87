"""What the swarm prints. Its reader may be gone, such as a terminal that was closed: a run continues without it."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from ....plugins.module_utils.vocabulary import Exit
from .settings import SwarmError


def say(text: str, end: str = "\n") -> None:
    """Write to standard output, at once.

    Exits as a program that SIGPIPE ends, when its reader closed it. SwarmError: it cannot be written, as on a full disk.
    """
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        drop(sys.stdout)
        raise SystemExit(Exit.PIPE) from None
    except OSError as error:
        drop(sys.stdout)
        raise SwarmError(f"standard output: {error.strerror}") from None


def say_or_drop(text: str, stream: TextIO, end: str = "\n") -> None:
    """Write to a stream, at once; when that is not possible, the text is lost, and the run continues."""
    try:
        stream.write(f"{text}{end}")
        stream.flush()
    except OSError:
        drop(stream)


def drop(stream: TextIO) -> None:
    """Lose what is still written to a stream without a reader: Python flushes it again at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def problem(error: OSError) -> str:
    """Return the system's text for an error, without its number and path."""
    return error.strerror or str(error)
