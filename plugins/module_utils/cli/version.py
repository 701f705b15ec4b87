"""`agentlab --version`, `agentlab version`."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata

from ..releases import RELEASES
from ..terminal import write_line
from ..version import VERSION, commit
from ..vocabulary import LAB_VERSION


def main(argv: list[str]) -> int:
    """Print the versions of agentlab and its components."""
    parser = argparse.ArgumentParser(
        prog="agentlab version", description="Print the versions of agentlab and its components."
    )
    parser.add_argument("-o", "--output", choices=("json", "yaml"), help="print all fields as JSON or YAML")
    args = parser.parse_args(argv)
    build = commit()
    if args.output:
        from .output import print_output

        print_output(
            {
                "agentlab": VERSION,
                "commit": build or None,
                "payload": LAB_VERSION,
                "releases": sorted(RELEASES),
                "ansible_core": _installed("ansible-core"),
                "python": platform.python_version(),
            },
            args.output,
        )
        return 0
    write_line(f"agentlab {VERSION}{f' ({build})' if build else ''}")
    write_line(f"lab payload {LAB_VERSION}, releases {', '.join(sorted(RELEASES))}")
    write_line(f"ansible-core {_installed('ansible-core')}, Python {platform.python_version()}")
    return 0


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
