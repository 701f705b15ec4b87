"""A test for each scenario in molecule/, of which each role has one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Of each change: the role that all others need. The jobs of tests/e2e play most of the others.
SHORT = ["plan"]
SLOW = ["add_nodes", "configure", "devscripts", "devscripts_config", "ipi", "setup", "swarm", "validate", "wait_for"]
LONG = ["agent_image", "boot", "destroy", "gather", "hypervisor", "networks", "nodes", "payload", "services"]
LIMIT = 900


def test_every_role_has_a_scenario() -> None:
    scenarios = sorted(path.parent.name for path in ROOT.glob("molecule/*/molecule.yml"))
    assert sorted(SHORT + SLOW + LONG) == scenarios == sorted(path.name for path in ROOT.glob("roles/*"))


@pytest.mark.parametrize("scenario", SHORT)
def test_scenario(scenario: str, tmp_path: Path) -> None:
    play(scenario, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SLOW)
def test_slow_scenario(scenario: str, tmp_path: Path) -> None:
    play(scenario, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("scenario", LONG)
def test_scenario_with_a_lab(scenario: str, tmp_path: Path, guests: None) -> None:
    play(scenario, tmp_path)


def play(scenario: str, folder: Path) -> None:
    """Run a scenario: converge, idempotence, check mode, verify, destroy."""
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "NO_COLOR": "1"}
    log = folder / "molecule.log"
    with log.open("w") as out:
        done = subprocess.run(
            [binaries / "molecule", "test", "--scenario-name", scenario],
            cwd=ROOT,
            env=environment,
            timeout=LIMIT,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert done.returncode == 0, log.read_text()[-12000:]
