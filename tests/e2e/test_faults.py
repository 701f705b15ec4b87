"""Faults in real virtual machines: each ends in time, with its exit code, and its cause first in the report."""

from __future__ import annotations

from collections.abc import Callable


def test_fault(fault: str, run_job: Callable[[str], None]) -> None:
    run_job(fault)
