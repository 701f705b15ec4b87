"""The events of a wait: its messages, and what changes in the answers of the service, in the operators and in the log of faults."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..assisted.monitor import host_name, parse_validations
from ..cluster.client import conditions
from ..state.events import Event, EventLog, Level, RunEvents, event, level_of, moment, read
from ..vocabulary import Status

_BAD = ("failure", "error")
_BROKEN = frozenset(
    {Status.ERROR, Status.CANCELLED, Status.DISCONNECTED, Status.PREPARING_FAILED, Status.PENDING_USER_ACTION}
)
_FAULT = re.compile(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (?P<text>.+)")
_MOST_FAULTS = 1 << 20
_PROVISIONING = re.compile(r"  (?P<host>[\w.-]+): (?P<state>[a-z]+)")


RENAMED = "renamed"
"""State of a host whose text is its new name: before its inventory is known, it has its id as name."""


class WaitEvents:
    """A `report`, a `show` and a `show_operators` of `waitfor.wait_for` that write events.

    log: where to; emit: gets each event as it was written; faults: log of the fault injection. An event that cannot be written
    does not end the wait.
    """

    def __init__(
        self, log: EventLog, *, emit: Callable[[Event], None] = lambda __: None, faults: Path | None = None
    ) -> None:
        self._log, self._emit, self._faults = log, emit, faults
        self._known: dict[tuple[str, ...], object] = {}
        self._queried: dict[str, int] = {}
        self._names: dict[str, str] = {}
        known = read(log.path) if log.path and faults else RunEvents([])
        self._faults_seen = {(one["time"], one["text"]) for one in known.events if one["kind"] == "fault"}

    def report(self, level: str, text: str) -> None:
        """Write a message of the wait.

        level: of a log (`info`, `warning`, ...), translated by `level_of`; text: the message. Faults injected since the
        last call precede it.
        """
        self._write([*self._injected(), event("message", "wait", text=text, level=level_of(level))])

    def provisioning(self, text: str, names: Collection[str]) -> None:
        """Write the state of a host in Ironic, if a message of `openshift-install create cluster` is one.

        text: the message; names: of the hosts.
        """
        if (found := _PROVISIONING.fullmatch(text)) and found["host"] in names:
            self._write([event("host", found["host"], found["state"])])

    def show(self, cluster: dict[str, Any], events: object) -> None:
        """Write what differs from the service's previous answer; its events are messages of the wait already.

        cluster: as the service returns it, with its hosts; at the first call everything in it is new. events: not used.
        Only status, stage, progress and validations of hosts and cluster are compared.
        """
        self._write([*self._injected(), *self._service(cluster)])

    def show_operators(self, operators: Sequence[dict[str, Any]]) -> None:
        """Write what differs in the ClusterOperators.

        operators: the items of the API. An operator that is neither Available nor Progressing is a warning.
        """
        self._write([*self._injected(), *self._operators(operators)])

    def _write(self, events: list[Event]) -> None:
        with contextlib.suppress(OSError):
            for one in self._log.write(events):
                self._emit(one)

    def _is_new(self, what: tuple[str, ...], state: object) -> bool:
        before = self._known.get(what)
        self._known[what] = state
        return before != state

    def _service(self, cluster: dict[str, Any]) -> Iterator[Event]:
        status, info = str(cluster["status"]), str(cluster.get("status_info") or "")
        late = self._delay("service", [cluster.get("status_updated_at")])
        if self._is_new(("cluster",), (status, info)):
            yield event("cluster", str(cluster.get("name") or "cluster"), status, info, level=_level(status), late=late)
        yield from self._validations("", cluster)
        for host in cluster.get("hosts") or []:
            yield from self._host(host)
            yield from self._validations(host_name(host), host)

    def _host(self, host: dict[str, Any]) -> Iterator[Event]:
        progress = host.get("progress") or {}
        name, status, stage = host_name(host), str(host["status"]), str(progress.get("current_stage") or "")
        given = progress.get("installation_percentage")
        percentage = given if isinstance(given, int) else 0
        info = str(progress.get("progress_info") or host.get("status_info") or "")
        before = self._names.get(str(host["id"]), name)
        self._names[str(host["id"])] = name
        if before != name:
            yield event("host", before, RENAMED, name)
        if self._is_new(("host", name), (status, stage, percentage, info)):
            yield event("host", name, status, info, level=_level(status), stage=stage, percentage=percentage)

    def _validations(self, host: str, thing: dict[str, Any]) -> Iterator[Event]:
        for check in parse_validations(thing.get("validations_info")):
            name, state = str(check["id"]), str(check["status"])
            if self._is_new(("validation", host, name), state):
                level: Level = "warning" if state in _BAD else "info"
                yield event("validation", name, state, str(check["message"]), level=level, host=host)

    def _operators(self, operators: Sequence[dict[str, Any]]) -> Iterator[Event]:
        changed = [
            condition.get("lastTransitionTime") for operator in operators for condition in conditions(operator).values()
        ]
        late = self._delay("operators", changed)
        for operator in operators:
            name, (state, text) = str(operator["metadata"]["name"]), operator_state(operator)
            if self._is_new(("operator", name), (state, text)):
                level: Level = "info" if state in ("Available", "Progressing") else "warning"
                yield event("operator", name, state, text, level=level, late=late)

    def _delay(self, source: str, stamps: Iterable[object]) -> int:
        """Return how long ago the last change was, at most since the source was asked before: a clock elsewhere may differ."""
        now = round(time.time() * 1000)
        before = self._queried.get(source, now)
        self._queried[source] = now
        changed = max((at for stamp in stamps if (at := moment(str(stamp))) is not None), default=now)
        return min(max(0, now - max(changed, before)), now - before)

    def _injected(self) -> Iterator[Event]:
        """What the log of faults has in addition to attempts."""
        if self._faults is None:
            return
        try:
            with self._faults.open("rb") as stream:
                lines = stream.read(_MOST_FAULTS).decode(errors="replace").splitlines()
        except OSError:
            return
        for line in lines:
            found = _FAULT.fullmatch(line)
            at = moment(found["time"]) if found else None
            if found is None or at is None or " not yet: " in found["text"] or found["text"] == "no faults are left":
                continue
            one = event("fault", found["text"].split(" ")[0], text=found["text"], level="warning", at=at / 1000)
            if (key := (one["time"], one["text"])) not in self._faults_seen:
                self._faults_seen.add(key)
                yield one


def operator_state(operator: dict[str, Any]) -> tuple[str, str]:
    """Return what `oc get clusteroperators` would show first: Degraded, Unavailable, Progressing or Available; and why.

    operator: the object of the API. The second item is the message of the condition that decides, empty if it has none.
    An operator without conditions is Unavailable.
    """
    found = conditions(operator)
    for kind, bad, name in (
        ("Degraded", "True", "Degraded"),
        ("Available", "False", "Unavailable"),
        ("Progressing", "True", "Progressing"),
    ):
        condition = found.get(kind) or {}
        if condition.get("status") == bad:
            return name, str(condition.get("message") or "")
    available = found.get("Available") or {}
    return ("Available" if available.get("status") == "True" else "Unavailable"), str(available.get("message") or "")


def _level(status: str) -> Level:
    return "error" if status in _BROKEN else "info"
