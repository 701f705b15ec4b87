"""Output of the command line. Libraries must not `print` (ansible-test: it would corrupt a module's result)."""

from __future__ import annotations

import sys
from typing import TextIO


def say(text: object = "", stream: TextIO | None = None) -> None:
    """Write a line to standard output, or to `stream`, at once."""
    out = stream or sys.stdout
    out.write(f"{text}\n")
    out.flush()
