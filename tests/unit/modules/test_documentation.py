"""The documentation of modules and what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

MODULES = sorted((Path(__file__).resolve().parents[3] / "plugins/modules").glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_that_change_nothing_are_those_named_info(path: Path) -> None:
    """`gather` and `wait_for` write files, and were documented as modules that change nothing."""
    assert ("agentlab.ocp.module.reads" in path.read_text()) == path.stem.endswith("_info")
