"""Statistics of a running swarm: latencies, errors, statuses, and resource usage."""

from __future__ import annotations

import math
import os
import resource
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import Status

PERCENTILES = (50, 90, 95, 99, 99.9)
SMALLEST, STEP = 1e-5, math.log(1.02)
NOT_WELL = frozenset(
    {
        Status.ERROR,
        Status.INSUFFICIENT,
        Status.DISCONNECTED,
        Status.PREPARING_FAILED,
        Status.PENDING_FOR_INPUT,
        Status.DISCOVERING,
    }
)
MOST_SAMPLES, MOST_DETAILED, MOST_MESSAGES = 3600, 2000, 1000
INSTALLER, CONTROLLER = "installer, until the reboot", "controller, from the first reboot until installed"
WHOLE = (INSTALLER, CONTROLLER)
"""Rows of `step_times` and `program_times` besides those of steps."""
RATES = ("requests_per_s", "errors_per_s", "cpu_percent")
WORST = ("p50_ms", "p99_ms", "late_p99_ms", "rss_mib")


class Histogram:
    """Durations in buckets 2 % apart: percentiles of any number of values in little memory.

    Values are seconds, of SMALLEST at least; total and the largest value are exact.
    """

    __slots__ = ("_buckets", "count", "largest", "total")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count, self.total, self.largest = 0, 0.0, 0.0

    def add(self, seconds: float) -> None:
        self._buckets[int(math.log(max(seconds, SMALLEST) / SMALLEST) / STEP)] += 1
        self.count += 1
        self.total += seconds
        self.largest = max(self.largest, seconds)

    def percentile(self, percent: float) -> float:
        """Return a percentile of the values in seconds (within 2 %).

        percent: from 0 to 100. It is never above the largest value, and 0 without values.
        """
        wanted = math.ceil(self.count * percent / 100)
        for bucket in sorted(self._buckets):
            wanted -= self._buckets[bucket]
            if wanted <= 0:
                return min(SMALLEST * math.exp((bucket + 1) * STEP), self.largest)
        return 0.0

    def raw(self) -> dict[str, Any]:
        """For JSON, and for `take`."""
        return {
            "buckets": {str(at): count for at, count in sorted(self._buckets.items())},
            "total": self.total,
            "largest": self.largest,
        }

    def take(self, raw: dict[str, Any]) -> None:
        """Add the values of another histogram's `raw`."""
        buckets = {int(at): count for at, count in raw["buckets"].items()}
        self._buckets.update(buckets)
        self.count += sum(buckets.values())
        self.total += raw["total"]
        self.largest = max(self.largest, raw["largest"])

    def summary(self) -> dict[str, float]:
        """Return count, mean, percentiles and maximum.

        Times are in milliseconds, with keys that end in `_ms`.
        """
        mean = self.total / self.count if self.count else 0.0
        named = {f"p{percent:g}": self.percentile(percent) for percent in PERCENTILES}
        values = {"mean": mean, **named, "max": self.largest}
        return {"count": self.count} | {f"{name}_ms": round(value * 1000, 3) for name, value in values.items()}


def failing_messages(thing: dict[str, Any], most: int) -> list[str]:
    """Return messages of the validations that a cluster or host fails, as the service has them.

    At most `most`, each cut at 200 characters. Nothing for a `validations_info` that cannot be read: it is for a report,
    not for a decision.
    """
    try:
        groups = load_json(thing.get("validations_info") or "{}", name="validations_info")
        return [
            str(check["message"])[:200]
            for group in groups.values()
            for check in group
            if check["status"] in ("failure", "error")
        ][:most]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Stats:
    """Counters since `begin`. `samples`: the time series of the report, one dictionary a second; after an hour every other goes.

    `ends`: results of clusters; `outcomes`: name, hosts, result and seconds of each; `failed`: the service's view of each
    that was not installed, of the first MOST_DETAILED with all details; `gave_up`: reasons of hosts.
    `lost`: requests that a lossy host never sent. `step_times`: of simulated hosts, from a step's arrival to its reply, and
    between two polls; `program_operations`, `program_times`: the same of hosts that a program runs. `kinds`: hosts of both, and how
    many installers and controllers were programs. `controller_operations`: those of `operations` that controllers sent;
    `program_controller_operations`: of controllers that are programs, which are in no other table.
    """

    begin: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.time)
    operations: dict[str, Histogram] = field(default_factory=dict)
    errors: Counter[tuple[str, int]] = field(default_factory=Counter)
    messages: Counter[tuple[str, str]] = field(default_factory=Counter)
    lateness: Histogram = field(default_factory=Histogram)
    host_status: Counter[str] = field(default_factory=Counter)
    cluster_status: Counter[str] = field(default_factory=Counter)
    host_times: dict[str, Histogram] = field(default_factory=dict)
    cluster_times: dict[str, Histogram] = field(default_factory=dict)
    stage_times: dict[str, Histogram] = field(default_factory=dict)
    step_times: dict[str, Histogram] = field(default_factory=dict)
    program_operations: dict[str, Histogram] = field(default_factory=dict)
    program_times: dict[str, Histogram] = field(default_factory=dict)
    controller_operations: dict[str, Histogram] = field(default_factory=dict)
    program_controller_operations: dict[str, Histogram] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    download_times: dict[str, Histogram] = field(default_factory=dict)
    downloaded_bytes: Counter[str] = field(default_factory=Counter)
    clusters: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    gave_up: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    samples: list[dict[str, Any]] = field(default_factory=list)
    active: int = 0
    peak_active: int = 0
    agent_seconds: float = 0.0
    baseline_bytes: int = field(default_factory=resident_bytes)
    baseline_cpu: float = field(default_factory=time.process_time)
    _recent: Histogram = field(default_factory=Histogram)
    _recent_late: Histogram = field(default_factory=Histogram)
    _errors: int = 0
    _last: tuple[float, float, int, int] = (0.0, 0.0, 0, 0)

    def record(
        self,
        operation: str,
        seconds: float,
        status: int,
        error: str | None = None,
        program: bool = False,
        controller: bool = False,
    ) -> None:
        """Count a request.

        operation: its name; seconds: how long it took; status: of HTTP, 0 without an answer; error: the problem with
        its response, None if it is as it should be; program: whether a program made it, not a simulated host;
        controller: whether a controller did.
        """
        if program:
            self.reached(
                self.program_controller_operations if controller else self.program_operations, operation, seconds
            )
        else:
            self.reached(self.operations, operation, seconds)
            if controller:
                self.reached(self.controller_operations, operation, seconds)
        self._recent.add(seconds)
        if error is not None:
            self.errors[operation, status] += 1
            self._errors += 1
            if len(self.messages) < MOST_MESSAGES:
                self.messages[operation, error[:200]] += 1

    def end(self, name: str, end: str, hosts: int) -> None:
        """Count a cluster that has ended, or whose time is over; its seconds are those since `begin`."""
        self.ends[end] += 1
        seconds = round(time.monotonic() - self.begin, 1)
        self.outcomes.append({"cluster": name, "hosts": hosts, "end": end, "seconds": seconds})

    def fail(self, name: str, end: str, body: dict[str, Any], simulated: dict[str, str], program: str = "") -> None:
        """Store the service's last view of a cluster that was not installed.

        end: how it ended; simulated: id of a host -> its failure; program: why one of it ended too early. Only hosts that are not well are kept; after
        MOST_DETAILED clusters one of each failure, with its first failing validation.
        """
        detailed = len(self.failed) < MOST_DETAILED
        most = 10 if detailed else 1
        hosts = [
            {"name": host.get("requested_hostname") or host["id"], "status": host.get("status", ""), "info": host.get("status_info", "")[:400],
             "simulated": simulated.get(host["id"], ""), "validations": failing_messages(host, most)}
            for host in body.get("hosts") or ()
            if simulated.get(host["id"]) or host.get("status") in NOT_WELL
        ]  # fmt: skip
        hosts.sort(key=lambda host: not (host["simulated"] or host["validations"]))
        if not detailed:
            first: dict[str, dict[str, Any]] = {}
            for host in hosts:
                first.setdefault(host["simulated"], host)
            hosts = list(first.values())
        self.failed.append(
            {
                "cluster": name,
                "end": end,
                "status": body.get("status", ""),
                "info": body.get("status_info", "")[:400],
                "program": program,
                "validations": failing_messages(body, most),
                "hosts": hosts[:20],
            }
        )

    def downloaded(self, kind: str, size: int, seconds: float) -> None:
        """Count a file of `size` bytes that a host downloaded."""
        self.downloaded_bytes[kind] += size
        self.reached(self.download_times, kind, seconds)

    def add_delay(self, seconds: float) -> None:
        self.lateness.add(seconds)
        self._recent_late.add(seconds)

    def reached(self, table: dict[str, Histogram], name: str, seconds: float) -> None:
        table.setdefault(name, Histogram()).add(max(seconds, 0.0))

    def sample(self) -> dict[str, Any]:
        """Close a sample and return it: rates since the last one, and states now.

        `t` is in seconds since the beginning. Old samples are merged, so that their number is bounded.
        """
        now, cpu = time.monotonic() - self.begin, time.process_time()
        requests = sum(
            histogram.count
            for table in (self.operations, self.program_operations, self.program_controller_operations)
            for histogram in table.values()
        )
        then, cpu_then, requests_then, errors_then = self._last
        span = max(now - then, 1e-6)
        self.agent_seconds += self.active * span
        entry = {
            "t": round(now, 1),
            "active": self.active,
            "requests_per_s": round((requests - requests_then) / span, 1),
            "errors_per_s": round((self._errors - errors_then) / span, 1),
            "p50_ms": round(self._recent.percentile(50) * 1000, 2),
            "p99_ms": round(self._recent.percentile(99) * 1000, 2),
            "late_p99_ms": round(self._recent_late.percentile(99) * 1000, 2),
            "cpu_percent": round(100 * (cpu - cpu_then) / span, 1) if then else 0.0,
            "rss_mib": round(resident_bytes() / 2**20, 1),
            "hosts": {name: count for name, count in self.host_status.items() if count},
            "clusters": {name: count for name, count in self.cluster_status.items() if count},
        }
        self._last = (now, cpu, requests, self._errors)
        self._recent, self._recent_late = Histogram(), Histogram()
        self.samples.append(entry)
        if len(self.samples) > MOST_SAMPLES:
            self.samples = [merge_samples(*pair) for pair in zip(self.samples[::2], self.samples[1::2], strict=False)]
        return entry

    def report(self) -> dict[str, Any]:
        """Return all statistics as JSON-compatible data."""
        wall, cpu = time.monotonic() - self.begin, time.process_time() - self.baseline_cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        errors = {
            f"{operation}: {status or 'no answer'}": count for (operation, status), count in sorted(self.errors.items())
        }
        tables = {
            "operations": dict(sorted(self.operations.items())),
            "poll_lateness": {"": self.lateness},
            "time_to_download": self.download_times,
            "time_to_host_status": self.host_times,
            "time_to_host_stage": self.stage_times,
            "time_to_cluster_status": self.cluster_times,
            "time_to_reply": dict(sorted(self.step_times.items())),
            "program_operations": dict(sorted(self.program_operations.items())),
            "program_time_to_reply": dict(sorted(self.program_times.items())),
            "controller_operations": dict(sorted(self.controller_operations.items())),
            "program_controller_operations": dict(sorted(self.program_controller_operations.items())),
        }
        return {
            "began": round(self.began, 1),
            "seconds": round(wall, 1),
            "clusters": self.clusters,
            "ends": dict(self.ends),
            "outcomes": self.outcomes,
            "failed": self.failed,
            "gave_up": dict(self.gave_up),
            "kinds": dict(self.kinds),
            "lost_on_purpose": self.lost,
            "downloaded_bytes": dict(self.downloaded_bytes),
            **summaries(tables),
            "errors": errors,
            "messages": [
                {"operation": operation, "message": message, "count": count}
                for (operation, message), count in self.messages.most_common(50)
            ],
            "resources": {
                "peak_agents": self.peak_active,
                "agent_seconds": round(self.agent_seconds, 1),
                "cpu_seconds": round(cpu, 2),
                "peak_rss_mib": round(peak / 2**20, 1),
                "baseline_mib": round(self.baseline_bytes / 2**20, 1),
                **density(self.peak_active, self.agent_seconds, cpu, peak, self.baseline_bytes),
            },
            "samples": self.samples,
            "histograms": {table: {name: one.raw() for name, one in named.items()} for table, named in tables.items()},
        }


def merge_samples(early: dict[str, Any], late: dict[str, Any]) -> dict[str, Any]:
    """Merge two consecutive samples."""
    means = {key: round((early[key] + late[key]) / 2, 1) for key in RATES}
    return {**late, **means, **{key: max(early[key], late[key]) for key in WORST}}


def summaries(tables: dict[str, dict[str, Histogram]]) -> dict[str, Any]:
    """Return the tables with a histogram's summary in place of each histogram.

    A table whose only histogram has no name becomes its summary.
    """
    found = {table: {name: histogram.summary() for name, histogram in named.items()} for table, named in tables.items()}
    return {table: rows[""] if set(rows) == {""} else rows for table, rows in found.items()}


def density(agents: int, agent_seconds: float, cpu: float, peak: float, baseline: float) -> dict[str, Any]:
    """Return resources per agent.

    agent_seconds: sum over all agents of the seconds that they ran; cpu: seconds of CPU time; peak and baseline: bytes
    of memory, of the program at its largest and without agents. All are 0 without agents.
    """
    if not agents:
        return dict.fromkeys(("kib_per_agent", "agents_per_core", "agents_per_gib"), 0)
    each = max(peak - baseline, 1) / agents
    return {
        "kib_per_agent": round(each / 1024, 1),
        "agents_per_core": round(agent_seconds / max(cpu, 1e-6)),
        "agents_per_gib": round((2**30 - baseline) / each),
    }
