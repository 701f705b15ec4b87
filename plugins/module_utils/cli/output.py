"""What verbs print alike: the option `-o json|yaml`, and errors."""

from __future__ import annotations

import argparse
import sys

from ..files import explain
from ..terminal import write_line
from ..vocabulary import Exit


def add_output(
    parser: argparse._ActionsContainer, text: str = "print all fields as JSON or YAML instead of a table"
) -> None:
    """Add -o json|yaml.

    Without the option `output` is None: the verb prints a table. parser: may be a group of options that exclude each
    other; text: for help.
    """
    parser.add_argument("-o", "--output", choices=("json", "yaml"), help=text)


def print_output(data: object, form: str) -> None:
    """Print data as `form`, json or yaml."""
    import json

    from ..plan import rundir

    write_line(json.dumps(data, indent=2) if form == "json" else rundir.dump(data).rstrip("\n"))


def message(error: Exception) -> str:
    """Return the text of an error for users: of one of the system `path: reason`, without Python's number."""
    return explain(error) if isinstance(error, OSError) else str(error)


def print_failure(error: Exception) -> int:
    """Print an error to standard error; return `Exit.FAILED`."""
    write_line(f"agentlab: {message(error)}", sys.stderr)
    return Exit.FAILED
