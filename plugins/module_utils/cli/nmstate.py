"""`agentlab nmstate gc`: what `nmstatectl gc` does."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from .._deps import MissingLibrary
from ..coreos.errors import CoreosError
from ..coreos.image import new_file
from ..documents import DocumentError, decode_text, read_file
from ..files import explain
from ..nmstate import LIMITS, NmstateError, external, generate, load
from ..terminal import write_line
from ..vocabulary import Exit


def main(argv: list[str]) -> int:
    """Run `agentlab nmstate gc [-o DIR] FILE...`.

    Without `-o` it prints `{"NetworkManager": [[name, text], ...]}`, as `nmstatectl gc`. `Exit.FAILED` with a message
    for a state that is not valid.
    """
    parser = argparse.ArgumentParser(prog="agentlab nmstate", allow_abbrev=False)
    words = parser.add_subparsers(required=True, metavar="COMMAND")
    gc = words.add_parser("gc", help="print the NetworkManager keyfiles of a network state", allow_abbrev=False)
    gc.add_argument("-o", "--output-dir", metavar="DIR", help="write the keyfiles to a directory")
    gc.add_argument("--nmstatectl", action="store_true", help="use the installed nmstatectl")
    gc.add_argument("files", nargs="+", metavar="FILE", help="YAML or JSON; - for stdin")
    args = parser.parse_args(argv)
    try:
        found: list[tuple[str, str]] = []
        for path in args.files:
            name = "stdin" if path == "-" else path
            data = sys.stdin.buffer.read(LIMITS.size + 1) if path == "-" else read_file(Path(path), limits=LIMITS)
            found += (
                external.generate(decode_text(data, name=name)) if args.nmstatectl else generate(load(data, name=name))
            )
        if args.output_dir is None:
            write_line(json.dumps({"NetworkManager": found}, indent=1, ensure_ascii=False))
            return Exit.OK
        os.makedirs(args.output_dir, exist_ok=True)
        for name, keyfile in found:
            target = os.path.join(args.output_dir, name)
            with new_file(target, overwrite=True) as out:
                out.write(keyfile.encode())
            write_line(target)
    except (NmstateError, CoreosError, MissingLibrary) as error:
        write_line(error, sys.stderr)
        return Exit.FAILED
    except OSError as error:
        write_line(f"Error: {explain(error)}", sys.stderr)
        return Exit.FAILED
    except DocumentError as error:
        write_line(f"Error: {error}", sys.stderr)
        return Exit.FAILED
    return Exit.OK
