"""`agentlab plan [PROFILE] [--cluster C] [-o json|yaml | --format table|yaml|svg|html|profile|schema|plan-schema]`."""

from __future__ import annotations

import argparse
import shutil
import sys

from .. import contradictions
from ..plan import overrides, profile, rundir
from ..plan.warnings import warnings
from ..terminal import write_line
from ..vocabulary import Exit
from .output import add_output, message, print_output
from .places import DEFAULT_PROFILE, PROFILES, add_arguments, add_override, run_dir


def main(argv: list[str]) -> int:
    """Write the plan to stdout; with `--write` also to the run directory."""
    parser = argparse.ArgumentParser(
        prog="agentlab plan",
        description="Validate a profile and show its plan: as tables, YAML, JSON, a drawing or a page.",
    )
    add_arguments(parser)
    shape = parser.add_mutually_exclusive_group()
    add_output(shape)
    shape.add_argument(
        "--format",
        choices=("table", "yaml", "svg", "html", "profile", "schema", "plan-schema"),
        default="table",
        help="the plan as tables, YAML, a drawing, or a page with both; the profile with every default; the JSON schema of profiles, of plans",
    )
    parser.add_argument(
        "--write", action="store_true", help="write profile.yaml, plan.yaml and inventory.yml to the run directory"
    )
    add_override(parser)
    args = parser.parse_args(argv)
    if args.format.endswith("schema"):
        from ..plan import schema

        sys.stdout.write(schema.text(schema.plan() if args.format == "plan-schema" else schema.profile()))
        return Exit.OK
    directory = run_dir(args.cluster)
    name = args.profile or (None if (directory / rundir.PLAN).exists() else DEFAULT_PROFILE)
    try:
        components = dict(overrides.pair(text) for text in args.override)
        if args.format == "profile":
            given = name or directory / rundir.PROFILE
            complete = profile.load(given, PROFILES, args.cluster, files=True, components=components)
            sys.stdout.write(rundir.dump(complete))
            return Exit.OK
        if components:
            name = name or str(directory / rundir.PROFILE)
        plan, changes = contradictions.prepare(
            directory, name, PROFILES, args.cluster, refuse=args.write, files=True, components=components
        )
        for warning in warnings(plan):
            write_line(f"warning: {warning}", sys.stderr)
        if args.write:
            rundir.write(changes)
    except (ValueError, OSError) as error:
        write_line(message(error), sys.stderr)
        return Exit.USAGE
    if form := args.output or (args.format == "yaml" and "yaml"):
        print_output(plan, form)
        return Exit.OK
    if args.format == "svg":
        from ..plan.drawing import svg

        sys.stdout.write(svg(plan))
        return Exit.OK
    if args.format == "html":
        from ..plan.webpage import page

        sys.stdout.write(page(plan))
        return Exit.OK
    from ..plan.render import WIDE, table

    # In a pipe or a file lines are not wrapped.
    shown = sys.stdout.isatty()
    sys.stdout.write(table(plan, shutil.get_terminal_size().columns if shown else WIDE, colour=shown))
    return Exit.OK
