"""Metrics in the text format of Prometheus, with the names, labels and buckets of assisted-service (`internal/metrics`).

Metrics without a counterpart (release cache, blacklist of clusters, scopes of signed URLs) are listed without values.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from . import inventory as inv
from .hardware import Inventory
from .objects import Host

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "service_assisted_installer_"
_SECONDS = (1, 5, 10, 30, 60, 120, 300, 600, 900, 1200, 1800)
_MONITOR = (10, 100, 200, 500, 1000, 10000, 30000)
_CYCLE = (1000, 10000, 30000, *range(60000, 600001, 60000))
_REQUEST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_OPERATION = (*range(100, 1001, 100), 1200, 1400, 1600, 1800, 2000, 2400, 2800, 3200, 3600, 4000, 5000)
_VALIDATION = "{}_validation_failed_after_success_before_installation"
_DELETION = "{}_validation_is_in_failed_status_on_cluster_deletion"


@dataclass
class Metric:
    """One metric with its values by labels. `buckets`: the upper bounds of a histogram, empty for others."""

    kind: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    values: dict[tuple[str, ...], float] = field(default_factory=dict)
    #: Number of values in each bucket of a histogram, by labels.
    counts: dict[tuple[str, ...], list[int]] = field(default_factory=dict)


def _counter(text: str, *labels: str) -> Metric:
    return Metric("counter", text, labels)


def _histogram(text: str, buckets: Iterable[float], *labels: str) -> Metric:
    return Metric("histogram", text, labels, tuple(buckets))


def _table() -> dict[str, Metric]:
    """Full name -> metric; those of HTTP have no prefix upstream either."""
    hosts = "in hosts of completed clusters, by role, result"
    found = {
        "cluster_creations": _counter("Number of cluster resources created"),
        "cluster_installation_started": _counter("Number of clusters that entered installing state"),
        "cluster_installation_seconds": _histogram("Installation time of completed clusters", _SECONDS, "result"),
        "operation_duration_miliseconds": _histogram("Time of operations, by name", _OPERATION, "operation"),
        "host_installation_phase_seconds": _histogram(
            "Time of each phase, by phase and result", _SECONDS, "phase", "result"
        ),
        "cluster_hosts": _counter("Number of hosts of completed clusters, by role, result", "role", "result"),
        "cluster_host_cores": _histogram(f"CPU cores {hosts}", (2**n for n in range(10)), "role", "result"),
        "cluster_host_ram_gb": _histogram(f"Physical RAM {hosts}", (2**n for n in range(3, 12)), "role", "result"),
        "cluster_host_disk_gb": _histogram(
            f"Installation disk {hosts}", (250, 500, 1000, 2000, 4000, 8000, 16000), "diskType", "role", "result"
        ),
        "cluster_host_nic_gb": _histogram(
            f"Speed of the NIC of the machine network {hosts}", (1, 10, 20, 40, 100), "role", "result"
        ),
        "cluster_host_disk_sync_duration_ms": _histogram(
            "Duration of fdatasync on installation disks", (1, 5, 10, 15, 20)
        ),
        "cluster_image_pull_status": _histogram(
            "Download rates of images in MB/s, by image and result",
            (0.1, 0.5, 1, *range(5, 51, 5)),
            "imageName",
            "result",
        ),
        "filesystem_usage_percentage": Metric("gauge", "Used share of the file system with the service's state"),
        "monitored_hosts_duration_ms": _histogram("Time of looking at a host", _MONITOR),
        "monitored_clusters_duration_ms": _histogram("Time of looking at a cluster", _MONITOR),
        "monitored_hosts_cycle_duration_ms": _histogram("Time of looking at all hosts", _CYCLE, "fullscan"),
        "monitored_clusters_cycle_duration_ms": _histogram("Time of looking at all clusters", _CYCLE, "fullscan"),
        "release_cache": _counter("Look-ups in the cache of releases", "releaseId", "hit"),
        "release_cache_eviction": _counter("Evictions from the cache of releases", "success"),
        "cluster_blacklisted_events_total": _counter("Blacklisted clusters"),
        "blacklisted_clusters_current": Metric("gauge", "Clusters that are blacklisted now"),
        "urlauth_scope_checks_total": _counter(
            "Checks of signed URLs, by resource, scope, result", "resource_type", "scope", "result"
        ),
    }
    for kind in ("host", "cluster"):
        label = f"{kind}ValidationType"
        found[_DELETION.format(kind)] = _counter(
            f"Validations of a {kind} that fail when the cluster is deleted", label
        )
        found[_VALIDATION.format(kind)] = _counter(f"Validations of a {kind} that fail after a success", label)
    http = ("service", "handler", "method", "code")
    return {
        **{_PREFIX + name: metric for name, metric in found.items()},
        "http_request_duration_seconds": _histogram("The latency of the HTTP requests.", _REQUEST, *http),
        "http_requests_inflight": Metric("gauge", "The number of inflight requests being handled at the same time."),
    }


class Metrics:
    """All metrics of one service. Names are given without the prefix where they have it."""

    def __init__(self) -> None:
        self.table = _table()

    def _find(self, name: str) -> Metric:
        return self.table.get(_PREFIX + name) or self.table[name]

    def count(self, name: str, *labels: str) -> None:
        """Count one more."""
        values = self._find(name).values
        values[labels] = values.get(labels, 0) + 1

    def set(self, name: str, value: float, *labels: str) -> None:
        self._find(name).values[labels] = value

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        metric = self._find(name)
        counts = metric.counts.get(labels)
        if counts is None:
            counts = metric.counts[labels] = [0] * (len(metric.buckets) + 1)
        counts[bisect.bisect_left(metric.buckets, value)] += 1
        metric.values[labels] = metric.values.get(labels, 0) + value

    def host_done(self, host: Host, inventory: Inventory, role: str, result: str) -> None:
        """Observe the hardware of a host whose installation ended (`Done`, `Failed`)."""
        self.count("cluster_hosts", role, result)
        self.observe("cluster_host_cores", inventory.get("cpu", {}).get("count", 0), role, result)
        self.observe("cluster_host_ram_gb", inventory.get("memory", {}).get("physical_bytes", 0) / 2**30, role, result)
        disk = inv.find_disk(inventory, str(host.get("installation_disk_id", "")))
        if disk is not None:
            kind = str(disk.get("drive_type") or "Unknown")
            self.observe("cluster_host_disk_gb", disk.get("size_bytes", 0) / 2**30, kind, role, result)
        for nic in inventory.get("interfaces", ()):
            if nic.get("ipv4_addresses") or nic.get("ipv6_addresses"):
                self.observe("cluster_host_nic_gb", nic.get("speed_mbps", 0) / 1000, role, result)

    def text(self) -> str:
        """The exposition, all names in order."""
        lines: list[str] = []
        for name, metric in sorted(self.table.items()):
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
            for labels, value in sorted(metric.values.items()):
                pairs = [f'{key}="{_escaped(text)}"' for key, text in zip(metric.labels, labels, strict=True)]
                if metric.kind != "histogram":
                    lines.append(f"{name}{_braced(pairs)} {_number(value)}")
                    continue
                total = 0
                for bound, count in zip((*metric.buckets, math.inf), metric.counts[labels], strict=True):
                    total += count
                    edge = f'le="{_number(bound)}"'
                    lines.append(f"{name}_bucket{_braced([*pairs, edge])} {total}")
                lines += [f"{name}_sum{_braced(pairs)} {_number(value)}", f"{name}_count{_braced(pairs)} {total}"]
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _braced(pairs: list[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else f"{value:g}" if value != int(value) else str(int(value))
