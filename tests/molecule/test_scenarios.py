"""A test for each scenario in molecule/: converge, idempotence, check mode, verify, destroy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ["hypervisor", "networks", "nodes", "image", "boot"]
LIMIT = 900


def test_every_scenario_is_run() -> None:
    assert sorted(SCENARIOS) == sorted(path.parent.name for path in ROOT.glob("molecule/*/molecule.yml"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str, tmp_path: Path, guests: None) -> None:
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "NO_COLOR": "1"}
    log = tmp_path / "molecule.log"
    with log.open("w") as out:
        done = subprocess.run([binaries / "molecule", "test", "--scenario-name", scenario], cwd=ROOT, env=environment, timeout=LIMIT,
                              stdout=out, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, log.read_text()[-12000:]
