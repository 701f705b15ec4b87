"""`agentlab --version`, `agentlab version`."""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
from importlib import metadata

from ..documents import load_json, read_file
from ..releases import RELEASES
from ..vocabulary import LAB_VERSION
from .places import ROOT
from .terminal import say


def main(argv: list[str]) -> int:
    """Print the versions of agentlab and its components."""
    parser = argparse.ArgumentParser(
        prog="agentlab version", description="Print the versions of agentlab and its components."
    )
    parser.add_argument("-o", "--output", choices=("json", "yaml"), help="print all fields as JSON or YAML")
    args = parser.parse_args(argv)
    commit = _commit()
    if args.output:
        from .cluster import print_output

        print_output(
            {
                "agentlab": collection(),
                "commit": commit or None,
                "payload": LAB_VERSION,
                "releases": sorted(RELEASES),
                "ansible_core": _installed("ansible-core"),
                "python": platform.python_version(),
            },
            args.output,
        )
        return 0
    say(f"agentlab {collection()}{f' ({commit})' if commit else ''}")
    say(f"lab payload {LAB_VERSION}, releases {', '.join(sorted(RELEASES))}")
    say(f"ansible-core {_installed('ansible-core')}, Python {platform.python_version()}")
    return 0


def collection() -> str:
    """Return the version of the collection, from the file that it is installed or built with."""
    manifest, galaxy = ROOT / "MANIFEST.json", ROOT / "galaxy.yml"
    if manifest.exists():
        return str(load_json(read_file(manifest), name=str(manifest))["collection_info"]["version"])
    found = re.search(r"^version: *(\S+)", galaxy.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "unknown"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """Return the commit of a checkout, marked when files were changed; nothing elsewhere."""
    if not (ROOT / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
