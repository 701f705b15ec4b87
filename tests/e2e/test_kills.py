"""Ten runs killed at random times, each resumed or removed without a trace; ci/kills does more, and keeps a record."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KILLS = os.environ.get("AGENTLAB_LAB_KILLS", "10")


@pytest.mark.long
def test_ten_kills() -> None:
    command: list[str | Path] = [
        sys.executable,
        ROOT / "ci/kills.py",
        "--kills",
        KILLS,
        "--cluster",
        "e2ekills",
        "--seed",
        os.environ.get("AGENTLAB_SEED", "1"),
    ]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=7200, check=False
    )
    assert done.returncode == 0, done.stdout
