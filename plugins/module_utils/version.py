"""The version of this collection, and the commit of a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = "1.0.0"
"""That of galaxy.yml, which modules on another host do not have; a test compares them."""


def commit() -> str:
    """Return the commit of a checkout, marked when files were changed; nothing elsewhere.

    It is what `git describe --always --dirty` prints without tags. Empty, too, when git fails or is not installed.
    """
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
