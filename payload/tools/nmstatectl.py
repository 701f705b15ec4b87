"""`nmstatectl gc` of the lab: what a build of the assisted service without libnmstate creates keyfiles with."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ...plugins.module_utils.documents import read_file
from ...plugins.module_utils.nmstate import LIMITS, NmstateError, generate, load


def main(argv: Sequence[str] | None = None) -> int:
    """Print the NetworkManager keyfiles of a network state, `{"NetworkManager": [[name, text], ...]}`; an error is one line.

    argv: without the program's name. Returns 0, or 1 after the message on stderr.
    """
    parser = argparse.ArgumentParser(prog="nmstatectl", allow_abbrev=False)
    gc = parser.add_subparsers(required=True).add_parser("gc", allow_abbrev=False)
    gc.add_argument("file", help="YAML or JSON; - for stdin")
    path: str = parser.parse_args(argv).file
    try:
        stdin = path == "-"
        data = sys.stdin.buffer.read(LIMITS.size + 1) if stdin else read_file(Path(path), limits=LIMITS)
        print(json.dumps({"NetworkManager": generate(load(data, name="stdin" if stdin else path))}, ensure_ascii=False))
    except (NmstateError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
