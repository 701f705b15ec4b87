"""Unit tests do not depend on the labs of this machine, nor on former runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import names
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page import history
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


@pytest.fixture(autouse=True)
def no_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of tests name the default state directory, where a developer may have a cluster of the same name."""
    read = owner.read
    monkeypatch.setattr(
        owner, "read", lambda state_dir: None if Path(names.STATE_DIR) in state_dir.parents else read(state_dir)
    )


@pytest.fixture(autouse=True)
def no_history(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr(history, "cache_directory", lambda: tmp_path_factory.getbasetemp() / "history")
