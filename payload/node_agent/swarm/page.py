"""The HTML page of a report: self-contained, with plots."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ....plugins.module_utils.vocabulary import Status
from .operations import OF_INSTALLERS, shown_name
from .stats import WHOLE
from .verdict import problems

# By meaning, so that plots of the same thing look the same; other series take the remaining colours in turn.
COLOURS = {
    Status.INSTALLED: "#2e8b57", Status.ERROR: "#d1352b", "stalled": "#a3123a", "refused": "#7a1020", Status.CANCELLED: "#8c564b", "deleted": "#5b5b5b",
    "broken": "#7a1020", Status.DISCONNECTED: "#b07aa1", Status.PREPARING_FAILED: "#c2543d",
    Status.DISCOVERING: "#9aa7b5", Status.INSUFFICIENT: "#e0a63a", Status.PENDING_FOR_INPUT: "#c98a1b", Status.KNOWN: "#6baed6", Status.READY: "#6baed6",
    Status.PREPARING: "#4a86c5", Status.PREPARED: "#3a6db0", Status.INSTALLING: "#5e60b8", Status.IN_PROGRESS: "#7d55c7",
    Status.FINALIZING: "#2aa198", "errors": "#d1352b", "99th percentile": "#e07b39",
}  # fmt: skip
OTHERS = ("#3a78b5", "#e07b39", "#2aa198", "#b07aa1", "#8c564b", "#7f7f7f")
WIDTH, HEIGHT = 1000, 200
TIMES = (
    (1, "s", (1, 2, 5, 10, 15, 30)),
    (60, "min", (1, 2, 5, 10, 15, 30)),
    (3600, "h", (1, 2, 4, 6, 12, 24, 48, 120, 240)),
)
STYLE = """:root{color-scheme:light dark;--back:#fff;--text:#151515;--dim:#4d4d4d;--line:#c7c7c7;--bad:#a3000d;--good:#3d7317}
@media(prefers-color-scheme:dark){:root{--back:#151515;--text:#fff;--dim:#c7c7c7;--line:#5c5c5c;--bad:#f9a8a8;--good:#afdc8f}}
body{background:var(--back);color:var(--text);font:14px/1.5 "Red Hat Text",RedHatText,"Noto Sans",system-ui,sans-serif;
margin:1rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin:2rem 0 .3rem}.bad{color:var(--bad)}.good{color:var(--good)}.dim{color:var(--dim)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}
.wide{overflow-x:auto}.tall{max-height:30rem;overflow-y:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
td:first-child,th:first-child,.text td,.text th{text-align:left;unicode-bidi:isolate}.text td{overflow-wrap:anywhere;min-width:5rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(34rem,100%),1fr));gap:1.2rem 2rem}
figure{margin:0}figcaption{margin-bottom:.3rem}.key{display:inline-block;margin-right:.9rem;white-space:nowrap}
.key i{display:inline-block;width:.8em;height:.8em;margin-right:.3em;border-radius:2px}
.plot{display:grid;grid-template-columns:max-content 1fr;gap:0 .4rem;font-size:12px;color:var(--dim)}
.plot svg{width:100%;height:12rem;border:1px solid var(--line);box-sizing:border-box;display:block}
.plot div{position:relative}.plot .y{text-align:right}.plot .x{grid-column:2;height:1.4em}
.plot span{position:absolute;white-space:nowrap}.y span{right:0;transform:translateY(-50%)}.x span{transform:translateX(-50%)}
.x span:first-child{transform:none}.x span:last-child{transform:translateX(-100%)}
.y b{visibility:hidden;font-weight:normal}line{stroke:var(--line)}line,polyline{vector-effect:non-scaling-stroke}"""


def ticks(top: float, least: float = 0.0) -> list[float]:
    """Four or five round values from 0 to at least `top`, or fewer that are no less than `least` apart."""
    raw = max(top / 4, least)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    return [step * number for number in range(math.ceil(top / step * 0.999) + 1)]


def time_ticks(span: float) -> list[tuple[float, str]]:
    """Round times within so many seconds, and what they are called."""
    scale, unit, steps = next((one for one in TIMES if span <= one[0] * one[2][-1] * 6), TIMES[-1])
    step = next((step for step in steps if span <= step * scale * 6), steps[-1])
    return [(number * step * scale, f"{number * step:g} {unit}") for number in range(int(span // (step * scale)) + 1)]


def figure(
    title: str,
    unit: str,
    times: list[float],
    lines: dict[str, list[float]],
    stacked: bool = False,
    logarithmic: bool = False,
) -> str:
    """A plot over time: SVG that stretches, with its labels as text next to it. `stacked`: areas on top of each other; `logarithmic`: from 1 up."""
    head = f"<figure><figcaption><b>{html.escape(title)}</b>, {html.escape(unit)}"
    if not times or not any(any(values) for values in lines.values()):
        return f'{head}</figcaption><p class="dim">Nothing to show.</p></figure>'
    sums = [0.0] * len(times)
    drawn: list[tuple[str, list[float], list[float]]] = []
    for name, values in lines.items():
        below = sums
        sums = [low + value for low, value in zip(below, values, strict=True)] if stacked else sums
        drawn.append((name, sums if stacked else values, below))
    most = max(max(values) for name, values, below in drawn)
    if logarithmic:
        marks = [10.0**power for power in range(max(math.ceil(math.log10(most)), 1) + 1)]
    else:
        marks = ticks(most, 1.0 if stacked else 0.0)
    span = max(times[-1], 1.0)

    def height(value: float) -> float:
        share = math.log10(max(value, 1.0)) / math.log10(marks[-1]) if logarithmic else value / marks[-1]
        return HEIGHT * (1 - share)

    def points(values: list[float]) -> list[str]:
        # Nothing was measured in a second with 0 ms.
        return [
            f"{at / span * WIDTH:.1f},{height(value):.1f}"
            for at, value in zip(times, values, strict=True)
            if value or not logarithmic
        ]

    others = iter(OTHERS * len(drawn))
    colours = {name: COLOURS.get(name) or next(others) for name, __, __ in drawn}
    shapes = [f'<line x1="0" x2="{WIDTH}" y1="{height(mark):.1f}" y2="{height(mark):.1f}"/>' for mark in marks]
    for name, values, below in drawn:
        if stacked:
            shapes.append(
                f'<polygon points="{" ".join(points(values) + points(below)[::-1])}" fill="{colours[name]}"/>'
            )
        else:
            shapes.append(
                f'<polyline points="{" ".join(points(values))}" fill="none" stroke="{colours[name]}" stroke-width="2"/>'
            )
    shown = [f"{'≤ ' if logarithmic and mark == 1 else ''}{mark:,g}" for mark in marks]
    y = "".join(
        f'<span style="top:{height(mark) / HEIGHT:.1%}">{text}</span>' for mark, text in zip(marks, shown, strict=True)
    )
    x = "".join(f'<span style="left:{at / span:.1%}">{text}</span>' for at, text in time_ticks(span))
    keys = "".join(
        f'<span class="key"><i style="background:{colour}"></i>{html.escape(name)}</span>'
        for name, colour in colours.items()
    )
    summary = "; ".join(f"{name} at most {max(lines[name]):g}, at the end {lines[name][-1]:g}" for name in lines)
    return (
        f'{head}<br>{keys}</figcaption><div class="plot"><div class="y"><b>{max(shown, key=len)}</b>{y}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{html.escape(f"{title}: {summary}")}">{"".join(shapes)}</svg>'
        f'<div class="x">{x}</div></div></figure>'
    )


def grid(title: str, first: str, rows: Iterable[tuple[str, dict[str, Any]]], seconds: bool = False) -> str:
    """A table of summaries; empty when there are none. Milliseconds, or all in `seconds`."""
    listed = list(rows)
    if not listed:
        return ""
    columns = list(dict.fromkeys(key for __, row in listed for key in row))
    head = "".join(f'<th scope="col">{html.escape(column.removesuffix("_ms"))}</th>' for column in columns)

    def cell(column: str, value: float) -> str:
        if not column.endswith("_ms"):
            return f"{value:,}"
        return f"{value / 1000:,.1f}" if seconds else f"{value:,.1f}"

    body = "".join(
        f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{cell(column, row.get(column, 0))}</td>' for column in columns)}</tr>"
        for name, row in listed
    )
    return (
        f'<h2>{html.escape(title)}</h2><div class="wide"><table><thead><tr><th scope="col">{html.escape(first)}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def comparison_tables(report: dict[str, Any]) -> str:
    """Tables that set programs next to simulated hosts and controllers; empty without programs."""
    kinds = {
        name: report.get("kinds", {}).get(name, 0) for name in ("simulated", "program", "installers", "controllers")
    }
    if not kinds["program"]:
        return ""
    others = kinds["simulated"] + kinds["program"] - kinds["installers"]
    of_controllers = report.get("controller_operations", {})

    def row(summaries: dict[str, dict[str, Any]], counts: dict[str, float], each: str) -> dict[str, Any]:
        """One row of a table. `summaries`, `counts`: of both kinds."""
        found: dict[str, Any] = {}
        for kind, summary in summaries.items():
            if each:
                found[f"{kind}: per {each}"] = round(counts[kind], 1)
            found |= {f"{kind}: {key}_ms": summary.get(f"{key}_ms", 0) for key in ("p50", "p99")}
        return found

    def requests() -> Iterable[tuple[str, dict[str, Any]]]:
        for name, program in report["program_operations"].items():
            simulated = report["operations"].get(name, {})
            count = simulated.get("count", 0) - of_controllers.get(name, {}).get("count", 0)
            those, these = (
                (others, kinds["installers"]) if name in OF_INSTALLERS else (kinds["simulated"], kinds["program"])
            )
            counts = {"simulated": count / max(those, 1), "program": program["count"] / max(these, 1)}
            yield shown_name(name), row({"simulated": simulated, "program": program}, counts, "host")

    def control() -> Iterable[tuple[str, dict[str, Any]]]:
        for name, program in report.get("program_controller_operations", {}).items():
            simulated, clusters = of_controllers.get(name, {}), report["clusters"] - kinds["controllers"]
            counts = {
                "simulated": simulated.get("count", 0) / max(clusters, 1),
                "program": program["count"] / max(kinds["controllers"], 1),
            }
            yield shown_name(name), row({"simulated": simulated, "program": program}, counts, "cluster")

    def times(whole: bool) -> Iterable[tuple[str, dict[str, Any]]]:
        for name, program in report["program_time_to_reply"].items():
            if (name in WHOLE) == whole:
                yield name, row({"simulated": report["time_to_reply"].get(name, {}), "program": program}, {}, "")

    return (
        grid(f"Requests of {kinds['program']:,} hosts that programs run, next to simulated ones, milliseconds", "Operation", requests())
        + grid(
            f"Requests of {kinds['controllers']:,} controllers that are programs, next to simulated ones, milliseconds",
            "Operation", control(),
        )
        + grid("From a step's arrival to its reply, and between two polls, milliseconds", "Step", times(whole=False))
        + grid("Installers and controllers, seconds", "Part", times(whole=True), seconds=True)
    )  # fmt: skip


def texts(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]], none: str) -> str:
    """A table of messages; `none` replaces an empty one."""
    if not rows:
        return f'<h2>{html.escape(title)}</h2><p class="dim">{html.escape(none)}</p>'
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(str(value))}</td>' for value in row)}</tr>" for row in rows)
    return f'<h2>{html.escape(title)}</h2><div class="wide"><table class="text"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def failures(report: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Rows for each cluster that was not installed: itself, then its hosts that are not well or were to fail."""
    rows: list[tuple[Any, ...]] = []
    for cluster in report["failed"]:
        rows.append((cluster["cluster"], "", f"{cluster['end']}: {cluster['status']}", "", reason_of(cluster)))
        for host in cluster["hosts"]:
            rows.append(("", host["name"], host["status"], host["simulated"], reason_of(host)))
    return rows


def reason_of(thing: dict[str, Any]) -> str:
    """What is known about a cluster or host: a program that ended, what the service reports, and failing validations that this does not name."""
    more = [text for text in thing.get("validations") or () if text not in thing["info"]]
    return "; ".join(filter(None, [thing.get("program"), thing["info"], *more]))


def outcomes(report: dict[str, Any]) -> str:
    """Return a table of all clusters, those that were not installed first; empty for a report of an earlier release."""
    if not (rows := report.get("outcomes")):
        return ""
    body = "".join(
        f'<tr><td>{html.escape(row["cluster"])}</td><td class="{"good" if row["end"] == "installed" else "bad"}">{html.escape(row["end"])}</td>'
        f"<td>{row['hosts']:,}</td><td>{row['seconds']:,.1f}</td></tr>"
        for row in sorted(rows, key=lambda row: (row["end"] == "installed", -row["seconds"]))
    )
    left = report["clusters"] - len(rows)
    more = f'<p class="dim">{left:,} more are not listed.</p>' if left > 0 else ""
    return (
        '<h2>Clusters</h2><div class="wide tall" tabindex="0" role="region" aria-label="Clusters"><table><thead><tr><th scope="col">Cluster</th>'
        '<th scope="col">Result</th><th scope="col">Hosts</th><th scope="col">Ended after, s</th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>{more}"
    )


def setting(value: object) -> str:
    """Return a setting as the command line takes it."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={setting(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(setting, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def page(report: dict[str, Any]) -> str:
    samples = report["samples"]
    times = [sample["t"] for sample in samples]

    def plot(title: str, unit: str, names: dict[str, str], logarithmic: bool = False) -> str:
        return figure(
            title,
            unit,
            times,
            {text: [sample[name] for sample in samples] for name, text in names.items()},
            logarithmic=logarithmic,
        )

    def states(title: str, group: str) -> str:
        names = sorted(
            {name for sample in samples for name in sample[group]},
            key=lambda name: ([*COLOURS, name].index(name), name),
        )
        return figure(
            title,
            group,
            times,
            {name: [sample[group].get(name, 0) for sample in samples] for name in names},
            stacked=True,
        )

    settings, used, late = report["settings"], report["resources"], report["poll_lateness"]
    shapes = ", ".join(f"{name} {share:g}" for name, share in settings["topology"].items())
    began = datetime.fromtimestamp(report["began"], UTC)
    machines = f" from {report['machines']} machines" if "machines" in report else ""
    ends = [f"{report['ends'].get('installed', 0)} of {report['clusters']} clusters installed"]
    ends += [f"{count} {name}" for name, count in report["ends"].items() if name != "installed"]
    ends += [f"{count} hosts gave up: {reason}" for reason, count in report["gave_up"].items()]
    ends += ["stopped early"] * report["stopped"] + [f"could not be removed: {name}" for name in report["left"]]
    well = len(ends) == 1 and not report["errors"]
    kinds = report.get("kinds", {})
    bad = problems(report)
    facts = [
        ("Verdict", "; ".join(bad) or "passed", "bad" if bad else ""),
        ("Against", f"{settings['url']}{machines}", ""),
        ("What", f"{used['peak_agents']:,} hosts at a time, clusters: {report['clusters']:,} ({shapes})", ""),
        *([("Agent program", f"{settings['agent']} runs {kinds['program']:,} of the hosts", "")] if kinds.get("program") else []),
        *([("Installer program", f"{settings['installer']} runs on {kinds['installers']:,} of the hosts", "")] if kinds.get("installers") else []),
        *([("Controller program", f"{settings['controller']} runs for {kinds['controllers']:,} of the clusters", "")] if kinds.get("controllers") else []),
        ("When", f"{began:%Y-%m-%d %H:%M:%S} UTC, for {report['seconds']:,} s", ""),
        ("Result", "; ".join(ends), "" if len(ends) == 1 else "bad"),
        ("Errors", f"{sum(report['errors'].values()):,}" + f"; {report['lost_on_purpose']:,} requests lost on purpose" * bool(report["lost_on_purpose"]),
         "bad" if report["errors"] else ""),
        ("Polls", f"delay {late['p99_ms']:,.0f} ms at the 99th percentile, {late['max_ms']:,.0f} ms at most", ""),
        ("Memory", f"{used['peak_rss_mib']:,} MiB at most: {used['baseline_mib']:,} MiB of the program, {used['kib_per_agent']:,} KiB per agent, "
         f"which would be {used['agents_per_gib']:,} agents per GiB", ""),
        *(
            (f"Downloads of {kind}", f"{size / 2**20:,.0f} MiB, {size / 2**20 / report['seconds']:,.1f} MiB/s", "")
            for kind, size in report.get("downloaded_bytes", {}).items()
        ),
        ("CPU", f"{used['cpu_seconds']:,} s, which would be {used['agents_per_core']:,} agents per core", ""),
    ]  # fmt: skip
    parts = [
        '<div class="plots">',
        states("Hosts by status", "hosts"),
        states("Clusters by status", "clusters"),
        plot("Requests", "per second", {"requests_per_s": "requests", "errors_per_s": "errors"}),
        plot("Latency of requests", "milliseconds, logarithmic", {"p50_ms": "median", "p99_ms": "99th percentile"}, logarithmic=True),
        plot("Poll delay", "milliseconds, logarithmic", {"late_p99_ms": "99th percentile"}, logarithmic=True),
        plot("Memory of the swarm", "MiB", {"rss_mib": "resident"}),
        plot("CPU of the swarm", "percent of a core", {"cpu_percent": "used"}),
        "</div>",
        outcomes(report),
        texts("Clusters that were not installed", ("Cluster", "Host", "Status", "Injected failure", "Reason reported by the service"), failures(report),
              "None."),
        texts("Errors", ("Operation", "Message", "Count"),
              [(shown_name(row["operation"]), row["message"], row["count"]) for row in report["messages"]], "None."),
        grid("Operations, milliseconds", "Operation", sorted((shown_name(name), row) for name, row in report["operations"].items())),
        comparison_tables(report),
        grid("Time to download a file, seconds", "File", report.get("time_to_download", {}).items(), seconds=True),
        grid("Time from registration to a host's status, seconds", "Status", report["time_to_host_status"].items(), seconds=True),
        grid("Time from registration to a host's stage, seconds", "Stage", report["time_to_host_stage"].items(), seconds=True),
        grid("Time from the start to a cluster's status, seconds", "Status", report["time_to_cluster_status"].items(), seconds=True),
        "<h2>Settings</h2><dl>" + "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(setting(value))}</dd>" for name, value in settings.items() if value)
        + "</dl>",
    ]  # fmt: skip
    head = "".join(f'<dt>{name}</dt><dd class="{look}">{html.escape(text)}</dd>' for name, text, look in facts)
    others = "".join(f", {count} {name}" for name, count in report["ends"].items() if name != "installed")
    title = f"Swarm: {ends[0]}{others}{', with errors' if report['errors'] or not (well or others) else ''}"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style><h1>{html.escape(title)}</h1><dl>{head}</dl>{''.join(parts)}</html>\n"
    )
