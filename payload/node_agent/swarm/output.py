"""What the swarm prints. Its reader may be gone, such as a terminal that was closed: a run continues without it."""

from __future__ import annotations

import sys
from typing import TextIO

from ....plugins.module_utils import terminal
from .settings import SwarmError


def write_line(text: str, end: str = "\n") -> None:
    """Write to standard output, as other verbs do. SwarmError: it cannot be written, as on a full disk."""
    try:
        terminal.write_line(text, end=end)
    except OSError as error:
        terminal.drop(sys.stdout)
        raise SwarmError(f"standard output: {error.strerror}") from None


def write_or_drop(text: str, stream: TextIO, end: str = "\n") -> None:
    """Write to a stream; when that is not possible, for any reason, the text is lost, and the run continues."""
    try:
        terminal.write_or_drop(text, stream, end)
    except OSError:
        terminal.drop(stream)


def problem(error: OSError) -> str:
    """Return the system's text for an error, without its number and path."""
    return error.strerror or str(error)
