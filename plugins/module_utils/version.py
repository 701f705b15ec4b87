"""The version of this collection, and the commit of a checkout."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .documents import load_json, read_file

ROOT = Path(__file__).resolve().parents[2]


def collection() -> str:
    """Return the version of the collection, from the file that it is installed or built with."""
    manifest, galaxy = ROOT / "MANIFEST.json", ROOT / "galaxy.yml"
    if manifest.exists():
        return str(load_json(read_file(manifest), name=str(manifest))["collection_info"]["version"])
    found = re.search(r"^version: *(\S+)", galaxy.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "unknown"


def commit() -> str:
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
