"""`agentlab import devscripts CONFIG` and `agentlab export devscripts PROFILE`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ..devscripts import configuration, exporter, farm, importer
from ..plan import files, profile, rundir, secrets
from ..redact import redact
from ..state import write_atomic
from ..terminal import write_line
from ..vocabulary import Exit
from .output import message
from .places import PROFILES, add_arguments, run_dir

CONFIG = "DEVSCRIPTS_CONFIG"
"""Environment variable with lines of a configuration, in jobs of OpenShift CI."""
_FORMATS = ("devscripts",)


def import_config(argv: list[str]) -> int:
    """Write the profile that is equivalent to configurations of dev-scripts; report how each variable was handled.

    argv: after `import`. `Exit.USAGE` when a variable is refused (without `--partial`) or a file cannot be read. The
    report is on stderr.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab import",
        description="Write the profile for a configuration of dev-scripts. No command in it is run.",
    )
    parser.add_argument("format", choices=_FORMATS, help="whose configuration it is")
    parser.add_argument(
        "config",
        nargs="*",
        help=f"config_$USER.sh, - for standard input; of several the last wins; without it, the lines in ${CONFIG}",
    )
    _add_output(parser, "profile")
    parser.add_argument(
        "--partial", action="store_true", help="write a profile although variables are refused, with a comment for each"
    )
    args = parser.parse_args(argv)
    if not args.config and CONFIG not in os.environ:
        parser.error(f"a config is required where the environment has no {CONFIG}")
    # A profile may name files below `~`, so that it is the same for every user.
    known = {"HOME": "~", "USER": os.environ.get("USER", "root")}
    folder = next((Path(name).parent for name in args.config if name != "-"), Path())
    try:
        sources = [("stdin" if name == "-" else name, _read(name)) for name in args.config] or [
            (CONFIG, os.environ[CONFIG])
        ]
        result = importer.read(sources, known, folder=folder, partial=args.partial)
        write_line(result.report(), sys.stderr)
        return _write(args.output, result.profile_text(), 0o644)
    except importer.ConfigError as error:
        write_line(error.result.report(), sys.stderr)
        write_line("no profile is written; --partial writes one without what is refused", sys.stderr)
    except (ValueError, OSError) as error:
        write_line(redact(message(error)), sys.stderr)
    return Exit.USAGE


def export_config(argv: list[str]) -> int:
    """Write the configuration of dev-scripts that is equivalent to a profile; report what it cannot express.

    argv: after `export`. `Exit.USAGE` for a profile that is not valid and for a file that agentlab has not written.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab export",
        description="Write the configuration of dev-scripts (config_$USER.sh) for a profile.",
    )
    parser.add_argument("format", choices=_FORMATS, help="whose configuration is written")
    add_arguments(parser)
    _add_output(parser, "configuration")
    parser.add_argument("--force", action="store_true", help="replace a file that agentlab has not written")
    parser.add_argument(
        "--files",
        metavar="DIR",
        help="instead of a configuration, write ocp/<cluster>/ and <cluster>/ironic_nodes.json of an existing run to DIR: "
        "links with the names of dev-scripts",
    )
    args = parser.parse_args(argv)
    if bool(args.profile) == bool(args.files):
        parser.error("either a profile or --files is required")
    try:
        if args.files:
            directory = run_dir(args.cluster)
            plan = rundir.load_plan(directory)
            for path in farm.write(
                secrets.with_passwords(plan, secrets.passwords_of(plan, directory)),
                directory,
                Path(args.files).absolute(),
            ):
                write_line(path)
            return 0
        if args.output and not args.force:
            configuration.check_replaceable(Path(args.output), "--force")
        made = exporter.config(profile.load(args.profile, PROFILES, args.cluster), args.cluster)
        for lost in made.lost:
            write_line(f"no counterpart: {lost}", sys.stderr)
        return _write(args.output, made.text(), 0o600)
    except (ValueError, OSError) as error:
        write_line(message(error), sys.stderr)
    return Exit.USAGE


def _add_output(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help=f"write the {what} to FILE instead of standard output")


def _read(name: str) -> str:
    """Return the text of a configuration. Raises `ValueError` that names it."""
    if name == "-":
        return sys.stdin.read(files.LIMIT)
    try:
        return files.read(name)
    except files.FileError as error:
        raise ValueError(f"{name}: {error}") from None


def _write(output: str | None, text: str, mode: int) -> int:
    if output is None:
        sys.stdout.write(text)
    else:
        write_atomic(Path(output), text, mode)
    return 0
