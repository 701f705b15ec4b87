"""The option `-o json|yaml` of verbs that print a table otherwise."""

from __future__ import annotations

import argparse

from ..plan import rundir
from ..terminal import say


def add_output(parser: argparse._ActionsContainer) -> None:
    """Add -o json|yaml.

    Without the option `output` is None: the verb prints a table. parser: may be a group of options that exclude each
    other.
    """
    parser.add_argument(
        "-o", "--output", choices=("json", "yaml"), help="print all fields as JSON or YAML instead of a table"
    )


def print_output(data: object, form: str) -> None:
    """Print data as `form`, json or yaml."""
    import json

    say(json.dumps(data, indent=2) if form == "json" else rundir.dump(data).rstrip("\n"))
