"""Files that are made of types and tables of the code are current, and editors find the schema of every example."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
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


def test_the_page_of_verbs_does_not_depend_on_the_environment(tmp_path: Path) -> None:
    code = "import runpy, sys; sys.stdout.write(runpy.run_path(sys.argv[1])['FILES']['docs/verbs.md']())"
    environment = {**os.environ, "CLUSTER": "other", "HOME": str(tmp_path), "COLUMNS": "40", "AGENTLAB_RUNS": "/r"}
    command = [sys.executable, "-c", code, str(ROOT / "ci/generate.py")]
    shown = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert shown == (ROOT / "docs/verbs.md").read_text(encoding="utf-8")


def test_exit_codes_have_one_table() -> None:
    """A verb returns a member of vocabulary.Exit, or the exit code of what it has run."""
    places = [*(ROOT / "plugins/module_utils/cli").rglob("*.py"), *(ROOT / "payload/node_agent/swarm").glob("*.py")]
    for path in (*places, ROOT / "payload/build/__main__.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.FunctionDef)
                and ast.unparse(node.returns or ast.Constant(None)) == "int"
                and _takes_arguments(node)
            ):
                for end in (end for end in ast.walk(node) if isinstance(end, ast.Return)):
                    number = isinstance(end.value, ast.Constant) and end.value.value
                    assert not number, f"{path.relative_to(ROOT)}:{end.lineno}: return a member of vocabulary.Exit"


def _takes_arguments(function: ast.FunctionDef) -> bool:
    return any(argument.arg == "argv" for argument in function.args.args)
