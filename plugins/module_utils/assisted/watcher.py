"""`wait-for bootstrap-complete`: the loop over REST API and OpenShift API, with upstream's intervals and texts."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..documents import load_json
from ..errors import AssistedError, ClusterError, FatalError
from ..watch import Clock, Diagnose, Diagnosis, Message, Stall, WaitState, no_diagnosis
from .monitor import Monitor

INTERVAL = 2.0
LIMIT = 60 * 60.0
INITIALIZE_INTERVAL = 30.0
SSH_AFTER = 120.0


class BootstrapFailed(Exception):
    """The bootstrap did not complete; the message has the reason.

    The texts are those of `openshift-install agent wait-for bootstrap-complete`; for a known cause, the cause follows.
    """


class Rest(Protocol):
    """What a watcher needs of the service's client.

    All methods raise `AssistedError` when the service does not answer or refuses; see `AssistedClient`, which is one.
    """

    def infra_envs(self) -> list[dict[str, Any]]: ...
    def clusters(self) -> list[dict[str, Any]]: ...
    def cluster(self, cluster_id: str) -> dict[str, Any]: ...
    def events(self, infra_env_id: str) -> list[dict[str, Any]]: ...


class Kube(Protocol):
    """What a watcher needs of the cluster's API.

    `live` never raises; `bootstrap_status` raises `ClusterError`. See `ClusterClient`, which is one.
    """

    def live(self) -> bool: ...
    def bootstrap_status(self) -> str | None: ...


@dataclass
class BootstrapWatcher:
    """Follows one installation until its bootstrap is complete.

    report: gets every message; show: gets each cluster with its hosts (for a live view and for records).
    stall: seconds without progress after which to give up; 0: only upstream's limit of 60 minutes; diagnose: returns causes
    with a shorter grace period, and progress that the service does not know.
    """

    rest: Rest
    kube: Kube
    node_zero: str
    report: Callable[[Message], None]
    show: Callable[[dict[str, Any], list[dict[str, Any]]], None] = lambda cluster, events: None
    clock: Clock = time
    stall: float = 0
    diagnose: Diagnose = no_diagnosis
    limit: float = LIMIT
    reachable: Callable[[str], bool] = field(default=lambda host: tcp_open(host, 22))
    monitor: Monitor = field(default_factory=Monitor)

    def run(self) -> None:
        """Return when the bootstrap is complete; BootstrapFailed otherwise.

        Both APIs are queried every `INTERVAL` seconds: the service ends before the bootstrap does, and the OpenShift
        API starts after it.
        """
        start = self.clock.time()
        stall = Stall(self.stall, self.clock)
        self._rest_seen = self._kube_seen = self._complete = False
        self._retryable: str | None = None
        self._cluster: dict[str, Any] | None = None
        self._events: list[dict[str, Any]] = []
        self._refusal = ""
        while True:
            try:
                if self._iterate(self.clock.time() - start):
                    return
                stall.check(self._facts(), self._diagnosis())
            except FatalError as error:
                raise BootstrapFailed(f"bootstrap process returned error: {error}") from error
            if self.clock.time() - start > self.limit:
                raise BootstrapFailed("bootstrap process timed out: context deadline exceeded")
            self.clock.sleep(INTERVAL)

    def _diagnosis(self) -> Diagnosis:
        seen = WaitState(self._cluster, self._events, self._kube_seen, self._refusal)
        return self.diagnose(seen) if self.stall else Diagnosis()

    def _facts(self) -> AbstractSet[Hashable]:
        of_the_service = facts(self._cluster, self._events) if self._cluster else ()
        return {("service", self._rest_seen), ("cluster", self._kube_seen), *of_the_service}

    def _iterate(self, elapsed: float) -> bool:
        if self._complete:
            self.report(Message("info", "Bootstrap is complete"))
            self.report(Message("info", "cluster bootstrap is complete"))
            return True
        kube_live = self.kube.live()
        infra_envs = self._infra_envs()
        if not kube_live and infra_envs is None:
            self._not_answering(elapsed)
            return False
        if kube_live:
            if not self._kube_seen:
                self._kube_seen = True
                self.report(Message("info", "Bootstrap Kube API Initialized"))
            if self._bootstrap_status() == "complete":
                self.report(Message("info", "Bootstrap configMap status is complete"))
                self._complete = True
        if infra_envs is not None:
            self._monitor(infra_envs)
        return False

    def _infra_envs(self) -> list[dict[str, Any]] | None:
        self._refusal = ""
        try:
            return self.rest.infra_envs()
        except AssistedError as error:
            self._refusal = refusal(error)
            return None

    def _bootstrap_status(self) -> str | None:
        try:
            return self.kube.bootstrap_status()
        except ClusterError as error:
            self.report(Message("debug", str(error)))
            return None

    def _not_answering(self, elapsed: float) -> None:
        if self._kube_seen:
            return
        if self._rest_seen:
            self._retry("cluster bootstrap did not complete")
            return
        if elapsed > SSH_AFTER and not self.reachable(self.node_zero):
            self.report(
                Message(
                    "info",
                    "Cannot access Rendezvous Host. There may be a network configuration problem, "
                    "check console for additional info",
                )
            )
        else:
            self.report(Message("info", "Waiting for cluster install to initialize. Sleeping for 30 seconds"))
        self.clock.sleep(INITIALIZE_INTERVAL)

    def _monitor(self, infra_envs: list[dict[str, Any]]) -> None:
        if not self._rest_seen:
            self._rest_seen = True
            self.report(Message("debug", "Agent Rest API Initialized"))
        try:
            clusters = self.rest.clusters()
            if len(clusters) > 1:
                self.report(Message("info", f"found too many clusters. number of clusters found: {len(clusters)}"))
                return
            if not clusters:
                self._retry(
                    "Unable to retrieve cluster metadata from Agent Rest API: no clusterID known for the cluster"
                )
                return
            cluster = self.rest.cluster(clusters[0]["id"])
            events = self.rest.events(infra_envs[0]["id"]) if len(infra_envs) == 1 else []
        except AssistedError as error:
            self._retry(f"Unable to retrieve cluster metadata from Agent Rest API: {error}")
            return
        self._cluster, self._events = cluster, events
        messages = self.monitor.update(cluster, events, self.clock.time())
        for message in messages:
            self.report(message)
        self.show(cluster, events)
        if self.monitor.fatal:
            raise FatalError(self.monitor.fatal)
        if self.monitor.retry:
            self._retry(self.monitor.retry)

    def _retry(self, text: str) -> None:
        if text != self._retryable:
            self._retryable = text
            self.report(Message("info", text))


def facts(cluster: dict[str, Any], events: Sequence[dict[str, Any]]) -> Iterator[Hashable]:
    """Return a service's report without parts that differ in repetitions: numbers in a text, times.

    cluster: with its hosts; events: of its infra-env. Each fact is a tuple that begins with its kind: status,
    validation, host, event.
    """
    yield "status", cluster["status"], cluster.get("status_info")
    for thing in (cluster, *(cluster.get("hosts") or ())):
        for checks in load_json(thing.get("validations_info") or "{}", name="validations_info").values():
            yield from (("validation", thing["id"], check["id"], check["status"]) for check in checks)
    for host in cluster.get("hosts") or ():
        progress = host.get("progress") or {}
        yield "host", host["id"], host["status"], progress.get("current_stage"), progress.get("progress_info")
    yield from (("event", re.sub(r"[0-9.]+", "", event["message"])) for event in events)


def refusal(error: AssistedError) -> str:
    """Return the error message if the service refused the token, else an empty string.

    error: of `AssistedClient`. That is status 401: the token has expired, or is of another run.
    """
    return str(error) if "HTTP 401" in str(error) else ""


def tcp_open(host: str, port: int, timeout: float = 10) -> bool:
    """Return whether a port accepts connections.

    host: name or IP address; timeout: seconds. The connection is closed at once.
    """
    try:
        with socket.create_connection((host, port), timeout):
            return True
    except OSError:
        return False
