"""The report of a run: JSON with everything, CSV tables, an HTML page with plots that needs nothing else."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .settings import SwarmError
from .stats import Histogram, density, summaries

COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f", "#ff9da7", "#bab0ac")
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 220, 56, 24
STYLE = """body{font:14px system-ui,sans-serif;margin:2rem auto;max-width:1000px;color:#222}h2{margin-top:2rem}
table{border-collapse:collapse}td,th{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}svg{background:#fafafa;border:1px solid #ddd}figure{margin:1rem 0}
.key{display:inline-block;margin-right:1rem}.key i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}"""


def save(report: dict[str, Any], folder: Path) -> list[Path]:
    """Write `report.json`, `operations.csv`, `samples.csv` and `report.html`. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"operation": name, **summary} for name, summary in report["operations"].items()]
    texts = {
        "report.json": json.dumps(report, indent=1) + "\n",
        "operations.csv": table(rows),
        "samples.csv": table([flat(sample) for sample in report["samples"]]),
        "report.html": page(report),
    }
    for name, text in texts.items():
        temporary = folder / f".{name}.{os.getpid()}"
        temporary.write_text(text)
        temporary.replace(folder / name)
    return [folder / name for name in texts]


def load(folder: Path) -> dict[str, Any]:
    """The report in a folder of `save`. SwarmError names the file and what is wrong with it."""
    path = folder / "report.json"
    try:
        report: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SwarmError(f"{path}: {error}") from None
    if not isinstance(report, dict) or "histograms" not in report:
        raise SwarmError(f"{path}: is not the report of a swarm")
    return report


def merged(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """One report of what several machines did at the same time to one service.

    Percentiles are those of all values together; in the samples, which have none to add, they are the worst machine's.
    """
    began = min(report["began"] for report in reports)
    tables: dict[str, dict[str, Histogram]] = {}
    for report in reports:
        for table, named in report["histograms"].items():
            for name, raw in named.items():
                tables.setdefault(table, {}).setdefault(name, Histogram()).take(raw)
    messages: Counter[tuple[str, str]] = Counter()
    for report in reports:
        messages.update({(row["operation"], row["message"]): row["count"] for row in report["messages"]})
    used = [report["resources"] for report in reports]
    totals = {key: sum(one[key] for one in used) for key in ("peak_agents", "agent_seconds", "cpu_seconds", "peak_rss_mib", "baseline_mib")}
    each = density(
        totals["peak_agents"], totals["agent_seconds"], totals["cpu_seconds"], totals["peak_rss_mib"] * 2**20, totals["baseline_mib"] * 2**20
    )
    return {
        "settings": reports[0]["settings"] | {"part": [1, 1]},
        "machines": len(reports),
        "began": began,
        "seconds": round(max(report["began"] + report["seconds"] for report in reports) - began, 1),
        "ends": summed(report["ends"] for report in reports),
        **summaries(tables),
        "errors": summed(report["errors"] for report in reports),
        "messages": [
            {"operation": operation, "message": message, "count": count} for (operation, message), count in messages.most_common(50)
        ],
        "resources": {key: round(value, 2) for key, value in totals.items()} | each,
        "samples": aligned([[{**sample, "t": sample["t"] + report["began"] - began} for sample in report["samples"]] for report in reports]),
        "histograms": {table: {name: one.raw() for name, one in named.items()} for table, named in tables.items()},
    }


def summed(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def aligned(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One time series of several: for each second what every machine had said last; rates only while it ran."""
    seconds = [{math.ceil(sample["t"]): sample for sample in run} for run in runs if run]
    ends = [max(run) for run in seconds]
    latest: list[dict[str, Any] | None] = [None] * len(seconds)
    samples = []
    for second in range(max(ends, default=-1) + 1):
        latest = [run.get(second, before) for run, before in zip(seconds, latest, strict=True)]
        told = [sample for sample in latest if sample]
        if not told:
            continue
        running = [sample for sample, end in zip(latest, ends, strict=True) if sample and second <= end]
        entry: dict[str, Any] = {"t": second, "active": sum(sample["active"] for sample in running)}
        entry |= {key: round(sum(sample[key] for sample in running), 1) for key in ("requests_per_s", "errors_per_s", "cpu_percent")}
        entry |= {key: max(sample[key] for sample in running) for key in ("p50_ms", "p99_ms", "late_p99_ms")}
        entry["rss_mib"] = round(sum(sample["rss_mib"] for sample in running), 1)
        entry |= {key: summed(sample[key] for sample in told) for key in ("hosts", "clusters")}
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


def figure(title: str, times: list[float], lines: dict[str, list[float]], unit: str, stacked: bool = False) -> str:
    """A plot over time as SVG; `stacked`: areas on top of each other."""
    if not times or not lines:
        return ""
    sums = [0.0] * len(times)
    drawn: list[tuple[str, list[float], list[float]]] = []
    for name, values in lines.items():
        below = list(sums) if stacked else []
        sums = [low + value for low, value in zip(sums, values, strict=True)] if stacked else sums
        drawn.append((name, list(sums) if stacked else values, below))
    top = max((max(line[1]) for line in drawn), default=0) or 1.0
    span = (times[-1] - times[0]) or 1.0

    def point(time: float, value: float) -> str:
        x = LEFT + (time - times[0]) / span * (WIDTH - LEFT - 8)
        return f"{x:.1f},{(HEIGHT - BOTTOM) - value / top * (HEIGHT - BOTTOM - 8):.1f}"

    parts = []
    for number, (__, values, below) in enumerate(drawn):
        colour = COLOURS[number % len(COLOURS)]
        points = [point(at, value) for at, value in zip(times, values, strict=True)]
        if stacked:
            points += [point(at, value) for at, value in reversed(list(zip(times, below, strict=True)))]
            parts.append(f'<polygon points="{" ".join(points)}" fill="{colour}" fill-opacity=".8"/>')
        else:
            parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    for share in (0, 0.5, 1):
        y = (HEIGHT - BOTTOM) - share * (HEIGHT - BOTTOM - 8)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ccc" stroke-dasharray="2"/>')
        parts.append(f'<text x="{LEFT - 4}" y="{y + 4:.0f}" text-anchor="end" font-size="11">{top * share:.4g}</text>')
        x = LEFT + share * (WIDTH - LEFT - 8)
        parts.append(f'<text x="{x:.0f}" y="{HEIGHT - 6}" text-anchor="middle" font-size="11">{times[0] + span * share:.0f} s</text>')
    keys = "".join(
        f'<span class="key"><i style="background:{COLOURS[number % len(COLOURS)]}"></i>{html.escape(name)}</span>'
        for number, (name, __, __) in enumerate(drawn)
    )
    return (
        f"<figure><figcaption><b>{html.escape(title)}</b> ({html.escape(unit)}) {keys}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">{"".join(parts)}</svg></figure>'
    )


def grid(title: str, rows: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """A table of summaries; empty when there are none."""
    listed = list(rows)
    if not listed:
        return ""
    columns = list(dict.fromkeys(key for __, row in listed for key in row))
    head = "".join(f"<th>{html.escape(column.removesuffix('_ms'))}</th>" for column in columns)
    body = "".join(
        f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{row.get(column, 0):,}</td>' for column in columns)}</tr>"
        for name, row in listed
    )
    return f"<h2>{html.escape(title)}</h2><table><tr><th></th>{head}</tr>{body}</table>"


def page(report: dict[str, Any]) -> str:
    samples = report["samples"]
    times = [sample["t"] for sample in samples]

    def lines(*names: str) -> dict[str, list[float]]:
        return {name: [sample[name] for sample in samples] for name in names}

    def states(group: str) -> dict[str, list[float]]:
        names = list(dict.fromkeys(name for sample in samples for name in sample[group]))
        return {name: [sample[group].get(name, 0) for sample in samples] for name in names}

    settings, used = report["settings"], report["resources"]
    shapes = ", ".join(f"{name} {share:g}" for name, share in settings["topology"].items())
    machines = f" from {report['machines']} machines" if "machines" in report else ""
    said = [
        f"{settings['clusters']} clusters ({shapes}) with {used['peak_agents']} hosts against {settings['url']}{machines}",
        f"{report['seconds']} s; ended: " + (", ".join(f"{count} {name}" for name, count in report["ends"].items()) or "stopped"),
        f"{used['agents_per_core']:,} agents per core, {used['agents_per_gib']:,} per GiB; {used['kib_per_agent']} KiB an agent; "
        f"peak {used['peak_rss_mib']} MiB, {used['cpu_seconds']} s of processor time",
        f"polls late by p99 {report['poll_lateness']['p99_ms']} ms, at most {report['poll_lateness']['max_ms']} ms",
    ]
    parts = [
        figure("Hosts by status", times, states("hosts"), "hosts", stacked=True),
        figure("Clusters by status", times, states("clusters"), "clusters", stacked=True),
        figure("Requests", times, lines("requests_per_s", "errors_per_s"), "per second"),
        figure("Latency", times, lines("p50_ms", "p99_ms"), "ms"),
        figure("Lateness of polls", times, lines("late_p99_ms"), "ms"),
        figure("Memory", times, lines("rss_mib"), "MiB"),
        figure("Processor", times, lines("cpu_percent"), "percent of a core"),
        grid("Operations, ms", report["operations"].items()),
        grid("Time from registration to host status, ms", report["time_to_host_status"].items()),
        grid("Time from registration to host stage, ms", report["time_to_host_stage"].items()),
        grid("Time from start to cluster status, ms", report["time_to_cluster_status"].items()),
        grid("Errors", ((name, {"count": count}) for name, count in report["errors"].items())),
        grid("Messages", ((f"{row['operation']}: {row['message']}", {"count": row["count"]}) for row in report["messages"])),
    ]
    head = "".join(f"<li>{html.escape(line)}</li>" for line in said)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>agentlab swarm</title><style>{STYLE}</style>'
        f"<h1>Swarm</h1><ul>{head}</ul>{''.join(parts)}</html>\n"
    )
