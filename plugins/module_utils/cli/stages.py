"""Which stages a deploy runs."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..state import load
from ..terminal import write_line
from ..vocabulary import RUN_STAGES, Exit
from . import orphans


def add_stages(parser: argparse.ArgumentParser) -> None:
    """Add `--from` and `--stop-after`."""
    parser.add_argument(
        "--from",
        dest="snapshot",
        metavar="NAME",
        help="restore this snapshot of the cluster, and run the stages that were left when it was saved",
    )
    parser.add_argument("--stop-after", choices=RUN_STAGES, metavar="STAGE", help=f"one of {', '.join(RUN_STAGES)}")


def tags(stages: Sequence[str]) -> list[str]:
    """Return Ansible's options to run these stages: each has its name as a tag.

    Left out by `--skip-tags`: with `--tags` Ansible validates the arguments of the other roles, too, which have no plan then.
    """
    left_out = [stage for stage in RUN_STAGES if stage not in stages]
    return ["--skip-tags", ",".join(left_out)] if left_out else []


def stages_until(last: str | None, first: str = RUN_STAGES[0]) -> tuple[str, ...]:
    """Return the stages from `first` to `last`, or to the end; none if `last` comes before."""
    end = RUN_STAGES.index(last) + 1 if last else len(RUN_STAGES)
    return RUN_STAGES[RUN_STAGES.index(first) : end]


def restore(args: argparse.Namespace, run_dir: Path) -> int:
    """Restore the snapshot of `--from`; return the exit status."""
    if args.profile or args.override or args.adopt or args.check:
        write_line(
            "agentlab: deploy --from takes no profile, --override, --adopt or --check: the plan is the snapshot's",
            sys.stderr,
        )
        return Exit.USAGE
    orphans.end(run_dir)
    verb = [sys.executable, "-m", __package__ or "", "snapshot", "restore"]
    return subprocess.run([*verb, "--cluster", args.cluster, "--", args.snapshot], check=False).returncode


def unfinished_stage(run_dir: Path) -> str:
    """Return the first stage that has not ended well in a run; the last one, when all have. Raises `ValueError`."""
    done = load(run_dir)["stages"]
    return next((name for name in RUN_STAGES if name not in done or done[name]["result"] != "ok"), RUN_STAGES[-1])
