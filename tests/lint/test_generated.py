"""Files that are made of the types of profile and plan are current, and editors find the schema of every example."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = runpy.run_path(str(ROOT / "ci/generate.py"))["FILES"]


@pytest.mark.parametrize("name", FILES)
def test_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == FILES[name](), f"{name} is not current: run ci/generate.py"


@pytest.mark.parametrize("path", sorted((ROOT / "config_examples").glob("*.yml")), ids=lambda path: path.stem)
def test_examples_name_their_schema(path: Path) -> None:
    assert path.read_text().startswith("# yaml-language-server: $schema=profile.schema.json\n")
