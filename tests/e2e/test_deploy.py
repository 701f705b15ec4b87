"""The whole workflow in real virtual machines, with nothing left behind."""

from __future__ import annotations

from collections.abc import Callable


def test_deploy(job: str, run_job: Callable[[str], None]) -> None:
    run_job(job)
