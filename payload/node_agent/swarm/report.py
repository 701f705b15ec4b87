"""The report of a run: JSON with everything, CSV tables, the page; merging reports."""

from __future__ import annotations

import base64
import binascii
import csv
import io
import itertools
import json
import math
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ....plugins.module_utils.documents import DocumentError, Limits, load_json, read_file
from .output import problem
from .page import page
from .settings import SwarmError
from .stats import Histogram, density, summaries

LIMITS = Limits(size=256 << 20, nodes=8_000_000)
"""Of a report that is read: 65,000 clusters (`settings.MOST`), none of which was installed, have a quarter."""
LOGGED = "report of the swarm: "
"""Begins the line of a log that has a report: gzip, base64."""


def save(report: dict[str, Any], folder: Path) -> list[Path]:
    """Write `report.json`, `operations.csv`, `samples.csv` and `report.html`. Returns their paths. SwarmError: it cannot."""
    rows = [{"operation": name, **summary} for name, summary in report["operations"].items()]
    # One after the other: with thousands of clusters, each takes as much memory as some of their agents did.
    texts: dict[str, Callable[[], Iterable[str]]] = {
        "report.json": lambda: itertools.chain(json.JSONEncoder(indent=1).iterencode(report), "\n"),
        "operations.csv": lambda: [table(rows)],
        "samples.csv": lambda: [table([flat(sample) for sample in report["samples"]])],
        "report.html": lambda: [page(report)],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            temporary = folder / f".{name}.{os.getpid()}"
            try:
                with temporary.open("w", encoding="utf-8") as file:
                    file.writelines(text())
                temporary.replace(folder / name)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise SwarmError(f"--report {folder}: {problem(error)}") from None
    return [folder / name for name in texts]


def writable(folder: Path) -> None:
    """Create the directory of a report in advance. SwarmError: it is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SwarmError(f"--report {folder}: {problem(error)}; must be a writable directory") from None


def line(report: dict[str, Any]) -> str:
    """Return a report as one line of a log, which `load` finds there."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    packed = packer.compress(json.dumps(report).encode()) + packer.flush()
    return LOGGED + base64.b64encode(packed).decode()


def last_report(path: Path) -> bytes:
    """Return the JSON of the last report in a log. ValueError: it has none, or a damaged or too large one."""
    found = read_file(path, limits=LIMITS).rpartition(LOGGED.encode())
    if not found[1]:
        raise ValueError("has no report of a swarm")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        # One byte more than a document may have, which its reader refuses.
        raw = unpacker.decompress(base64.b64decode(found[2].partition(b"\n")[0], validate=True), LIMITS.size + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"has a damaged report of a swarm: {error}") from None
    if not unpacker.eof and len(raw) <= LIMITS.size:
        raise ValueError("has a damaged report of a swarm: it is cut off")
    return raw


def load(place: Path) -> dict[str, Any]:
    """Return the report in a directory of `save`, or in a log with `line`. SwarmError names the file and the problem."""
    path = place
    try:
        if place.is_dir():
            path = place / "report.json"
        raw = last_report(path) if path == place else read_file(path, limits=LIMITS)
        report: dict[str, Any] = load_json(raw, name=str(path), limits=LIMITS)
    except OSError as error:
        wanted = "must be the directory of a report, or the log of a pod"
        raise SwarmError(f"{path}: {problem(error)}; {wanted}") from None
    except DocumentError as error:  # which names the path
        raise SwarmError(str(error)) from None
    except ValueError as error:
        raise SwarmError(f"{path}: {error}") from None
    if not isinstance(report, dict) or "histograms" not in report:
        raise SwarmError(f"{path}: is not a report of a swarm")
    return report


def merge_reports(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the reports of machines that loaded one service at the same time.

    Percentiles are those of all values together; in samples, which cannot be merged, they are those of the worst machine.
    """
    began = min(report["began"] for report in reports)
    tables: dict[str, dict[str, Histogram]] = {}
    for report in reports:
        for table, named in report["histograms"].items():
            tables.setdefault(table, {})
            for name, raw in named.items():
                tables.setdefault(table, {}).setdefault(name, Histogram()).take(raw)
    messages: Counter[tuple[str, str]] = Counter()
    for report in reports:
        messages.update({(row["operation"], row["message"]): row["count"] for row in report["messages"]})
    used = [report["resources"] for report in reports]
    totals = {
        key: sum(one[key] for one in used)
        for key in ("peak_agents", "agent_seconds", "cpu_seconds", "peak_rss_mib", "baseline_mib")
    }
    each = density(
        totals["peak_agents"],
        totals["agent_seconds"],
        totals["cpu_seconds"],
        totals["peak_rss_mib"] * 2**20,
        totals["baseline_mib"] * 2**20,
    )
    return {
        "settings": reports[0]["settings"] | {"part": [1, 1]},
        "stopped": any(report["stopped"] for report in reports),
        "left": [name for report in reports for name in report["left"]],
        "machines": len(reports),
        "began": began,
        "seconds": round(max(report["began"] + report["seconds"] for report in reports) - began, 1),
        "clusters": sum(report["clusters"] for report in reports),
        "ends": sum_counts(report["ends"] for report in reports),
        "outcomes": [row for report in reports for row in report.get("outcomes", ())],
        "failed": [row for report in reports for row in report["failed"]],
        "gave_up": sum_counts(report["gave_up"] for report in reports),
        "kinds": sum_counts(report.get("kinds", {}) for report in reports),
        "lost_on_purpose": sum(report["lost_on_purpose"] for report in reports),
        "downloaded_bytes": sum_counts(report.get("downloaded_bytes", {}) for report in reports),
        **summaries(tables),
        "errors": sum_counts(report["errors"] for report in reports),
        "messages": [
            {"operation": operation, "message": message, "count": count}
            for (operation, message), count in messages.most_common(50)
        ],
        "resources": {key: round(value, 2) for key, value in totals.items()} | each,
        "samples": align_series(
            [
                [{**sample, "t": sample["t"] + report["began"] - began} for sample in report["samples"]]
                for report in reports
            ]
        ),
        "histograms": {table: {name: one.raw() for name, one in named.items()} for table, named in tables.items()},
    }


def sum_counts(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def align_series(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One time series of several: for each second what every machine had reported last; rates only while it ran."""
    seconds = [{math.ceil(sample["t"]): sample for sample in run} for run in runs if run]
    ends = [max(run) for run in seconds]
    latest: list[dict[str, Any] | None] = [None] * len(seconds)
    samples = []
    for second in range(max(ends, default=-1) + 1):
        latest = [run.get(second, before) for run, before in zip(seconds, latest, strict=True)]
        replies = [sample for sample in latest if sample]
        if not replies:
            continue
        running = [sample for sample, end in zip(latest, ends, strict=True) if sample and second <= end]
        entry: dict[str, Any] = {"t": second, "active": sum(sample["active"] for sample in running)}
        entry |= {
            key: round(sum(sample[key] for sample in running), 1)
            for key in ("requests_per_s", "errors_per_s", "cpu_percent")
        }
        entry |= {key: max(sample[key] for sample in running) for key in ("p50_ms", "p99_ms", "late_p99_ms")}
        entry["rss_mib"] = round(sum(sample["rss_mib"] for sample in running), 1)
        entry |= {key: sum_counts(sample[key] for sample in replies) for key in ("hosts", "clusters")}
        samples.append(entry)
    return samples


def flat(sample: dict[str, Any]) -> dict[str, Any]:
    row = {key: value for key, value in sample.items() if not isinstance(value, dict)}
    for group in ("hosts", "clusters"):
        row |= {f"{group}_{name}": count for name, count in sample[group].items()}
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """CSV with the columns of all rows, in order of appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval=0)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
