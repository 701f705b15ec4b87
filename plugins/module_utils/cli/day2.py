"""The arguments of `agentlab add-nodes`, and what is refused before anything is made."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

from .. import contradictions
from ..errors import LabError
from ..plan import phases, profile, rundir
from ..state import load
from .places import PROFILES, program

Variables: TypeAlias = "dict[str, str | bool | dict[str, str] | list[str]]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the nodes, and `--approve`."""
    parser.add_argument("node", nargs="*", metavar="NODE", help="a day-2 node (default: all)")
    parser.add_argument(
        "--approve",
        action="store_true",
        help="approve the certificate requests of these nodes; without it they are shown, and wait for a user",
    )


def sort_out(args: argparse.Namespace, directory: Path) -> None:
    """Take the first word for a node when it is one of the plan in the run directory, and not the path of a profile."""
    if not args.profile or Path(args.profile).exists() or not (directory / rundir.PLAN).exists():
        return
    if profile.find(args.profile, PROFILES) is None or args.profile in _names(directory):
        args.node, args.profile = [args.profile, *args.node], None


def variables(args: argparse.Namespace, directory: Path) -> Variables:
    """Return the variables of the playbook. Raises `LabError` for a cluster that is not installed, and for other nodes.

    A cluster is installed when its stage `wait` has ended well.
    """
    plan = contradictions.prepare(directory, args.profile, PROFILES, args.cluster, refuse=False)[0]
    later = [node["name"] for node in phases.joining_nodes(plan)]
    if not later:
        raise LabError(f"cluster {args.cluster} has no node to add: give one `day2: true` in the nodes of its profile")
    if unknown := [name for name in args.node if name not in later]:
        raise LabError(
            f"{', '.join(unknown)}: not a day-2 node of cluster {args.cluster}; there are {', '.join(later)}"
        )
    waited = load(directory)["stages"].get("wait")
    if not waited or waited["result"] != "ok":
        raise LabError(
            f"cluster {args.cluster} is not installed, and nodes join an installed cluster: "
            f"{program()} deploy --cluster {args.cluster}"
        )
    found: Variables = {"agentlab_add_nodes_only": list(args.node)}
    if args.approve:
        found["agentlab_add_nodes_approve"] = True
    return found


def _names(directory: Path) -> list[str]:
    return [node["name"] for node in phases.joining_nodes(rundir.load_plan(directory))]
