"""In which order the processes of `make test` take tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[2] / "conftest.py"
TEST = """
import time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_it(number):
    with Path({log!r}).open("a") as log:
        log.write("{name}\\n")
    time.sleep({seconds})
"""


def test_shares_begin_as_soon_as_the_machine_is_free(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for folder, count, seconds in (
        ("e2e", 1, 1.0), ("integration/hypervisor", 2, 0.01), ("molecule", 2, 0.01), ("unit", 60, 0.05),
    ):  # fmt: skip
        path = tmp_path / "tests" / folder / f"test_{folder.replace('/', '_')}.py"
        path.parent.mkdir(parents=True)
        path.write_text(TEST.format(count=count, log=str(log), name=folder, seconds=seconds))
    shutil.copy(CONFTEST, tmp_path / "tests")
    command = [sys.executable, "-m", "pytest", "-n", "2", "-q", "--import-mode=importlib", "-p", "no:schemathesis"]
    subprocess.run([*command, "tests"], cwd=tmp_path, check=True, timeout=120, stdout=subprocess.DEVNULL)

    ran = log.read_text().split()
    alone = [number for number, folder in enumerate(ran) if folder != "unit"]
    assert len(alone) == 5 and ran[alone[0]] == "e2e" and alone[-1] < 50, ran
