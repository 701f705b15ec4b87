"""The table of ci/verbs.py: every verb is driven on a running cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.ci import calls, verbs
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import VERBS

ROOT = Path(__file__).resolve().parents[3]


def test_every_verb_has_a_case() -> None:
    assert set(verbs.CASES) == set(VERBS), "add a case to CASES of ci/verbs.py"


def test_a_job_drives_them() -> None:
    jobs = yaml.safe_load((ROOT / "ci/jobs.yml").read_text())["jobs"].values()
    assert any(job.get("verbs") for job in jobs)


def test_what_a_case_finds_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(__: calls.Verbs) -> None:
        calls.expect(False, "no packet")

    monkeypatch.setattr(verbs, "CASES", {"capture": wrong, "list": lambda __: None})
    assert [(name, error) for name, __, error in verbs.drive("x", ["capture", "list"])] == [
        ("capture", "capture: Failed: no packet"),
        ("list", ""),
    ]
