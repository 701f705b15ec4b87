"""Paths of the checkout for the lab verbs, and their common arguments."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from ..vocabulary import DEFAULT_CLUSTER

ROOT = Path(__file__).resolve().parents[3]
PROFILES = ROOT / "config_examples"
PLAYBOOKS = ROOT / "playbooks"
DEFAULT_PROFILE = "sno_ipv4"


def run_dir(cluster: str) -> Path:
    """Return the run directory of a cluster: `runs/<cluster>` of the checkout, or of `AGENTLAB_RUNS`.

    It is absolute, and need not exist. `AGENTLAB_RUNS` may be relative to the current directory.
    """
    return Path(os.environ.get("AGENTLAB_RUNS") or ROOT / "runs").absolute() / cluster


def cluster_name(text: str) -> str:
    """Return the value of `--cluster`, which names one folder: `argparse` refuses a path.

    Whether a cluster may have the name is checked with its profile.
    """
    if text in ("", ".", "..") or "/" in text or not text.isprintable():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a cluster's name: at most 54 lower-case letters, digits and `-`, such as ostest"
        )
    return text


def program() -> str:
    """Return the command for agentlab in the current directory: a relative path below it, unless that is `/`.

    It is quoted for a shell. In messages it is what the user types next.
    """
    path, here = ROOT / "bin" / "agentlab", Path.cwd()
    return shlex.quote(str(path.relative_to(here) if here != Path("/") and path.is_relative_to(here) else path))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the profile and the cluster, with the environment's `CLUSTER` as default."""
    parser.add_argument(
        "profile",
        nargs="?",
        help="path of a profile, name of one in config_examples/, or a scenario of dev-scripts such as HA_IPV4V6_DHCP; "
        "without it, the plan in the run directory",
    )
    parser.add_argument(
        "--cluster",
        type=cluster_name,
        default=os.environ.get("CLUSTER") or DEFAULT_CLUSTER,
        metavar="NAME",
        help="name of the cluster (default: $CLUSTER, or ostest)",
    )


def add_override(parser: argparse.ArgumentParser) -> None:
    """Add `--override`."""
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="COMPONENT=WHAT",
        help="replace a component of the lab payload (repeatable): a directory with its programs or its files, an OCI layout, "
        "containers-storage:IMAGE, or a pullspec with a digest",
    )
