"""What the service reports of a run's clusters and hosts, as figures: how many have each status, and when it was reached."""

from __future__ import annotations

import sys
import time
from typing import Any

from .hardware import Cluster
from .stats import Stats
from .support import moment


class Progress:
    """Records statuses and stages in `stats`: each change once, with the seconds that it took to get there."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._last: dict[str, str] = {}
        self._started: dict[str, float] = {}

    def started(self, ident: str) -> bool:
        """Record that a host has registered; return whether that is the first time.

        ident: of the host. Its times count from here where the service's reports have none.
        """
        if ident in self._started:
            return False
        self._started[ident] = time.monotonic()
        return True

    def ended(self, cluster: Cluster, status: str) -> None:
        """Record the status with which a cluster ended, if it is not the one that the service reported last."""
        if cluster.status != status:
            self._count(self._stats.cluster_status, f"cluster {cluster.id}", status)

    def observe(self, cluster: Cluster, body: dict[str, Any]) -> None:
        """Record the hosts of a cluster's view, with times of the service's clock if it has them."""
        stats = self._stats
        since = time.monotonic() - stats.begin
        if self._count(stats.cluster_status, f"cluster {cluster.id}", cluster.status):
            stats.reached(stats.cluster_times, cluster.status, since)
        for host in body.get("hosts") or ():
            ident, status = host["id"], host.get("status", "")
            begun = moment(host.get("registered_at") or host.get("created_at"))
            local = time.monotonic() - self._started.get(ident, time.monotonic())
            if self._count(stats.host_status, ident, status):
                at = moment(host.get("status_updated_at"))
                stats.reached(stats.host_times, status, at - begun if at and begun else local)
            progress = host.get("progress") or {}
            stage = progress.get("current_stage")
            if stage and self._last.get(f"{ident} stage") != stage:
                self._last[f"{ident} stage"] = sys.intern(stage)
                at = moment(progress.get("stage_started_at"))
                stats.reached(stats.stage_times, stage, at - begun if at and begun else local)

    def _count(self, table: dict[str, int], key: str, status: str) -> bool:
        """Record a status; return whether it has changed."""
        before = self._last.get(key, "")
        if before == status:
            return False
        if before:
            table[before] -= 1
        table[status] += 1
        self._last[key] = sys.intern(status)
        return True
