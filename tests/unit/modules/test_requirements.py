"""Python libraries that modules need: documented, and all named at once when they are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import _ansible, _deps

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py"))
PROGRAMS = {"installer_build": ["git", "Go"]}
"""Programs among the requirements, by module."""
PACKAGE = "ansible_collections.agentlab.ocp.plugins"


@pytest.mark.parametrize("name", MODULES)
def test_every_module_documents_what_it_imports(name: str) -> None:
    """None of 24 had `requirements:`."""
    code = (
        f"import {PACKAGE}.modules.{name} as module, yaml\n"
        f"from {PACKAGE}.module_utils._deps import wanted_distributions\n"
        "print(yaml.safe_dump([wanted_distributions(), yaml.safe_load(module.DOCUMENTATION).get('requirements', [])]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported, documented = yaml.safe_load(done.stdout)
    imported += PROGRAMS.get(name, [])
    assert documented == imported, f"set `requirements:` of plugins/modules/{name}.py to {imported}"


def test_the_fragments_name_the_interpreter() -> None:
    text = (ROOT / "plugins/doc_fragments/module.py").read_text()
    assert text.count("requirements:\n  - python >= 3.11\n") == text.count("attributes:\n") == 3


class Failed(Exception):
    pass


class Module:
    def fail_json(self, msg: str, **more: Any) -> None:
        raise Failed(msg)


def test_all_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was one library at each try, and `read the module documentation`, which named none."""
    monkeypatch.setattr(_deps, "_WANTED", {})
    _deps.optional("yaml", "PyYAML")
    first = _deps.optional("no_such_library.part", "no-such-library")
    _deps.optional("another_one", "another-one")
    assert _deps.wanted_distributions() == ["another-one", "no-such-library", "PyYAML"]
    assert _deps.missing() == ["another-one", "no-such-library"]

    def use() -> dict[str, Any]:
        return {"value": first.thing}

    with pytest.raises(Failed) as caught:
        _ansible.run(Module(), use)
    text = str(caught.value)
    assert "Python library (another-one, no-such-library)" in text
    assert text.endswith("Install them with `agentlab setup`, or: pip install another-one no-such-library")
