"""Libraries that are imported when they are used."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils._deps import MissingLibrary, optional


def test_threads_import_parts_of_one_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread imports a package, another one a module of it, whose imports need the order that the package defines.

    In `gather` each thread imports what it needs first: `kubernetes`, `kubernetes.client`, `requests` and `urllib3`.
    """
    package = tmp_path / "agentlabone"
    package.mkdir()
    (package / "__init__.py").write_text("import time\ntime.sleep(0.5)\nimport agentlabone.first\nvalue = 7\n")
    (package / "first.py").write_text("name = 1\nfrom agentlabone.second import value\n")
    (package / "second.py").write_text("from agentlabone.first import name\nvalue = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def use(name: str) -> object:
        return optional(name).value

    with ThreadPoolExecutor(8) as pool:
        whole = pool.submit(use, "agentlabone")
        while "agentlabone" not in sys.modules and not whole.done():
            time.sleep(0.01)
        parts = [pool.submit(use, "agentlabone.second") for __ in range(4)]
        assert [one.result(20) for one in (whole, *parts)] == [7] * 5


def test_a_missing_library_is_named() -> None:
    with pytest.raises(MissingLibrary, match="pip install Nothing"):
        __ = optional("agentlab_nothing", "Nothing").value
