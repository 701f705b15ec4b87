"""A short run of the fuzzer in this directory; it reports itself what a failure is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzz.py")
NAMES = (
    "yaml", "json", "profile", "plan", "state", "install-config", "agent-config", "manifests", "nmstate", "static-networks", "registries",
    "cpio", "iso", "minimal", "miniso", "ignition", "kargs", "recording",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_damaged_inputs_get_one_clear_error(name: str) -> None:
    assert fuzz("--inputs", "50", name) == 50


@pytest.mark.slow
def test_many_damaged_inputs() -> None:
    assert fuzz("--seconds", "60") > 50 * len(NAMES)


def fuzz(*options: str) -> int:
    """Run the fuzzer; return the number of inputs."""
    done = subprocess.run([sys.executable, FUZZER, *options], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.splitlines()[-1].split()[0])
