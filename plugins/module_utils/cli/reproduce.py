"""`agentlab reproduce DIR|ARCHIVE`: a profile for what a run left."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..plan import profile, rundir
from ..plan.profile import ProfileError
from ..redact import redact
from ..reproduce import EvidenceError, reproduce
from ..state import write_atomic
from ..terminal import write_line
from ..vocabulary import DEFAULT_CLUSTER, Exit
from .output import message


def main(argv: list[str]) -> int:
    """Write a profile for what a run of agentlab, dev-scripts or openshift-install left, with the faults that its cause suggests.

    argv: after `reproduce`. `Exit.USAGE` for evidence that cannot be read; `Exit.FAILED` if the profile, which is
    written all the same, needs corrections. What could not be derived is listed on stderr.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab reproduce",
        description="Write a profile for what a run left, with the faults that its first cause suggests.",
        epilog="A run directory of agentlab, artifacts of a CI job, a directory of openshift-install, an archive of these.",
    )
    parser.add_argument("evidence", type=Path, metavar="DIR|ARCHIVE", help="what the run left")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the profile to FILE, and FILE.lock.json, instead of standard output",
    )
    args = parser.parse_args(argv)
    try:
        made = reproduce(args.evidence)
        profile.validated_profile(
            profile.parse(rundir.dump(made.raw), str(args.output or "profile")), made.cluster or DEFAULT_CLUSTER
        )
        problems: list[str] = []
    except ProfileError as error:
        problems = [str(problem) for problem in error.problems]
    except (EvidenceError, OSError) as error:
        write_line(redact(f"agentlab reproduce: {message(error)}"), sys.stderr)
        return Exit.USAGE
    write_line(f"from {made.source}" + (f"; first cause: {redact(made.cause)}" if made.cause else ""), sys.stderr)
    for fault in made.raw.get("faults") or ():
        write_line("fault: " + ", ".join(f"{key} {value}" for key, value in fault.items()), sys.stderr)
    for line in made.unknown:
        write_line(redact(f"unknown: {line}"), sys.stderr)
    for line in problems:
        write_line(redact(f"to be corrected: {line}"), sys.stderr)
    if args.output is None:
        sys.stdout.write(made.text())
    else:
        write_atomic(args.output, made.text(), 0o644)
        lock = args.output.with_name(f"{args.output.name}.lock.json")
        write_atomic(lock, json.dumps(made.lock, indent=2) + "\n", 0o644)
        write_line(f"{args.output}: agentlab deploy {args.output}", sys.stderr)
    return Exit.FAILED if problems else Exit.OK
