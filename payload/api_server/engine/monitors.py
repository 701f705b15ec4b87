"""Passes over all hosts and clusters, which move what time or a change moves."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from ....plugins.module_utils.vocabulary import ClusterStatus, Status
from ..config import Config
from ..document import tracked_document
from ..prepare import Render
from ..store import Store, Unwritable
from .index import LOG
from .preparation import Preparation

#: Host statuses that a timeout may change.
_TIMED = frozenset(
    {
        Status.PREPARING,
        Status.PREPARING_FAILED,
        Status.PREPARED,
        Status.INSTALLING,
        Status.IN_PROGRESS,
        Status.PENDING_USER_ACTION,
        Status.ERROR,
        Status.CANCELLED,
        Status.INSTALLED,
        Status.KNOWN,
    }
)
#: How long a chunk of a monitor pass may hold the event loop, in seconds.
_SLICE = 0.005
#: A clock that changes by more than these seconds between two passes was set; less is the work of a time server.
_STEP = 5.0
#: Fields from which timeouts are measured.
_STARTS = ("_checked_in", "_status_at", "_stage_at", "_stage_info_at", "_install_at", "_installing_at", "_logs_at")


class Monitors(Preparation):
    """Runs the monitors.

    One of the layers of `Engine`: `HOST_MONITOR_INTERVAL` and `CLUSTER_MONITOR_INTERVAL` are the pauses between passes,
    as upstream's. `stopped` ends the loops.
    """

    def __init__(
        self, config: Config, store: Store, render: Render | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(config, store, render, clock)
        self.stopped = asyncio.Event()
        self._ahead: float | None = None

    async def monitor_hosts(self) -> None:
        """Make one pass over all hosts, in slices, so that requests are answered in between.

        A host is evaluated if it is marked, if its connection changed, or if a timeout may move it. Slices are 5 ms,
        after each of which the changes are committed; hosts and clusters can disappear in between. Raises Unwritable.
        """
        for host in [host for host in self.hosts.values() if not host.get("cluster_id")]:
            if host["id"] in self.dirty or self.connected(host) != self._was_connected.get(host["id"]):
                self.refresh_unbound(host)
        for cluster in list(self.clusters.values()):
            if cluster["id"] in self.dirty_roles:
                self.dirty_roles.discard(cluster["id"])
                self.refresh_roles(cluster)
            members = self.hosts_of(cluster["id"])
            due = [
                host
                for ident, host in list(members.items())
                if ident in self.dirty
                or host["status"] in _TIMED
                or self.connected(host) != self._was_connected.get(ident)
            ]
            if not due:
                continue
            view, started = self.view(cluster), time.monotonic()
            for host in due:
                if host["id"] not in self.hosts:
                    continue
                if (
                    host["status"] == Status.KNOWN
                    and host["id"] not in self.dirty
                    and cluster["status"] != Status.PREPARING
                    and self.connected(host) == self._was_connected.get(host["id"])
                ):
                    continue
                began = time.perf_counter()
                self.refresh_host(host, view)
                self.metrics.observe("monitored_hosts_duration_ms", (time.perf_counter() - began) * 1000)
                if time.monotonic() - started > _SLICE:
                    self.store.commit()
                    await asyncio.sleep(0)
                    if cluster["id"] not in self.clusters:
                        break
                    view, started = self.view(cluster), time.monotonic()
        for number, host in enumerate(list(self.hosts.values())):
            tracked_document(host).flush()
            if number % 50 == 49:
                self.store.commit()
                await asyncio.sleep(0)
        self.store.commit()

    async def monitor_clusters(self) -> None:
        """Make one pass over all clusters, with a commit and a pause after each.

        Clusters at rest (before the installation, installed, adding hosts) are skipped unless they are marked. Raises
        Unwritable.
        """
        for cluster in list(self.clusters.values()):
            if cluster["id"] in self.dirty or cluster["status"] not in (
                Status.INSUFFICIENT,
                Status.PENDING_FOR_INPUT,
                Status.READY,
                Status.INSTALLED,
                ClusterStatus.ADDING_HOSTS,
            ):
                began = time.perf_counter()
                self.refresh_cluster(cluster)
                self.metrics.observe("monitored_clusters_duration_ms", (time.perf_counter() - began) * 1000)
                self.store.commit()
                await asyncio.sleep(0)

    async def run(self) -> None:
        """Run the monitors until `stopped`. An error in a pass is logged, and the next pass retries.

        First it resumes the preparation of clusters that the previous run of the service left in
        `preparing-for-installation`. Runs as a task of the service from start to stop.
        """
        for cluster in self.clusters.values():
            self.start_release(cluster)
            if cluster["status"] == Status.PREPARING:
                self.start_preparation(cluster)
        await asyncio.gather(
            *(
                self._loop(name, work)
                for name, work in (
                    ("HOST_MONITOR_INTERVAL", self.monitor_hosts),
                    ("CLUSTER_MONITOR_INTERVAL", self.monitor_clusters),
                    ("CLUSTER_MONITOR_INTERVAL", self.sweep),
                )
            )
        )

    async def sweep(self) -> None:
        """Remove the events of deleted objects, a few at a time."""
        while not self.stopped.is_set() and self.store.sweep():
            await asyncio.sleep(0)

    def notice_step(self, ahead: float) -> None:
        """Move the starts of timeouts along when the clock was stepped: a machine that stood still has lost no host.

        ahead: seconds by which the clock is ahead of one that is never set.
        """
        before, self._ahead = self._ahead, ahead
        if before is None or abs(step := ahead - before) < _STEP:
            return
        LOG.warning("the clock was set by %.0f s: timeouts continue", step)
        for document in (*map(tracked_document, self.hosts.values()), *map(tracked_document, self.clusters.values())):
            for name in _STARTS:
                if document.get(name):
                    document.touch(name, float(document[name]) + step)

    async def _loop(self, setting: str, work: Callable[[], Awaitable[None]]) -> None:
        while not self.stopped.is_set():
            try:
                if self.clock is time.time:
                    self.notice_step(time.time() - time.monotonic())
                began = time.perf_counter()
                await work()
                kind = "hosts" if work == self.monitor_hosts else "clusters"
                self.metrics.observe(
                    f"monitored_{kind}_cycle_duration_ms", (time.perf_counter() - began) * 1000, "false"
                )
            except Unwritable as err:
                LOG.error("monitor: %s", err)
            except Exception:
                LOG.exception("monitor pass failed")
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.stopped.wait(), self.interval(setting))

    async def stop(self) -> None:
        """End the loops and cancel preparations in the background; wait until these have ended.

        A cancelled preparation leaves nothing half-written, and `run` starts it again.
        """
        self.stopped.set()
        tasks = [*self._preparing.values(), *self._releases.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
