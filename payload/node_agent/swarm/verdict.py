"""Whether a run is good: every cluster installed, nothing left behind, and no figure above its threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .settings import THRESHOLDS

Report = Mapping[str, Any]
Figure = Callable[[Report], float | None]


def _summary(table: str, row: str, figure: str) -> Figure:
    def value(report: Report) -> float | None:
        found = report.get(table, {})
        found = found.get(row) if row else found
        return float(found[figure]) if found and found.get("count") else None

    return value


def _errors(report: Report) -> float:
    return float(sum(report["errors"].values()))


def _seconds(report: Report) -> float | None:
    milliseconds = _summary("time_to_cluster_status", "installed", "p95_ms")(report)
    return None if milliseconds is None else milliseconds / 1000


def _memory(report: Report) -> float:
    return float(report["resources"]["kib_per_agent"])


def _error_share(report: Report) -> float:
    tables = ("operations", "program_operations", "program_controller_operations")
    requests = sum(row["count"] for table in tables for row in report.get(table, {}).values())
    return 100 * _errors(report) / requests if requests else 0.0


def _slowest(report: Report) -> float | None:
    rows = [row["p99_ms"] for name, row in report["operations"].items() if not name.startswith("download ")]
    return float(max(rows)) if rows else None


FIGURES: dict[str, Figure] = {
    "errors": _errors,
    "error-share": _error_share,
    "poll-delay": _summary("poll_lateness", "", "p99_ms"),
    "latency": _slowest,
    "installed": _seconds,
    "memory": _memory,
}
"""How each of `THRESHOLDS` is read from a report; None: the run has no such figure."""


def exceeded_thresholds(report: Report) -> list[str]:
    """Return a line for each threshold of the run's settings that its figures exceed."""
    lines = []
    for name, most in report["settings"].get("thresholds", {}).items():
        value = FIGURES[name](report)
        if value is None:
            lines.append(f"threshold {name} ({THRESHOLDS[name]}): the run has no such figure")
        elif value > most:
            lines.append(f"threshold {name} ({THRESHOLDS[name]}): {value:g}, the limit is {most:g}")
    return lines


def problems(report: Report) -> list[str]:
    """Return why a run is not good, a line each: clusters, hosts, what was left, thresholds."""
    settings, ends = report["settings"], dict(report["ends"])
    ends.pop("installed", None)
    if settings.get("allow_unfinished") or not settings.get("install", True):
        ends.pop("unfinished", None)
    lines = [f"{_count(count, 'cluster')} {name}" for name, count in ends.items()]
    gave_up = sum(report["gave_up"].values())
    lines += [f"{_count(gave_up, 'host')} gave up"] * bool(gave_up)
    lines += [f"{_count(len(report['left']), 'cluster')} could not be removed"] * bool(report["left"])
    return lines + exceeded_thresholds(report)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
