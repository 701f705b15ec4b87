"""Replay of a recording: its answers at any time of it; `server` gives them to clients.

Time is that of the recording: its first change is at 0, and the last answers stay at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ...plan.model import Plan
from ...plan.stored import PlanError
from ...reproduce.evidence import EvidenceError, collect
from ...state.events import Event, EventLog, event, parse
from ...state.recording import Answer, Player, Recording, at_the_end, load
from .. import facts
from ..changes import WaitEvents

SERVICE = "/api/assisted-install/v2"


class Replay(NamedTuple):
    """A recording that can be played.

    name: of its file; plan: of its cluster, None if it has none; events: of the run, in their order; notes: what is missing or damaged.
    """

    name: str
    recording: Recording
    plan: Plan | None
    events: list[Event]
    notes: list[str]


def find(path: Path) -> Replay:
    """Return the recording in a directory or an archive of a run. Raises `EvidenceError` when there is none that can be played.

    path: a run directory, its artifacts, or an archive of these. The run's own events are taken if they are there; else they are
    made from the recording.
    """
    found = collect(path)
    if "recording" not in found:
        raise EvidenceError(f"{path}: has no recording.jsonl: runs of agentlab 1.0 or older left none")
    file = found["recording"]
    try:
        recording = load(file.data, file.name)
    except ValueError as error:
        raise EvidenceError(str(error)) from None
    last = at_the_end(recording)
    notes = list(last.notes)
    try:
        plan = facts.plan_of(last)
    except PlanError as error:
        plan = None
        notes.append(f"{file.name}: the plan cannot be used: {str(error).splitlines()[0]}")
    if "events" in found:
        read = parse(found["events"].data)
        notes += [f"{found['events'].name}: {read.damaged} lines are not events"] if read.damaged else []
        events = sorted(read.events, key=lambda one: one["time"])
    else:
        notes.append("events.jsonl is missing: stages, tasks and faults are not shown")
        events = list(derived_events(recording))
    return Replay(file.name, recording, plan, events, notes)


def derived_events(recording: Recording) -> Iterator[Event]:
    """Yield the events that the answers of a recording make, with the times of the recording."""
    made: list[Event] = []
    watch, player = WaitEvents(EventLog(None), emit=made.append), Player(recording)
    while player.next < len(recording.entries):
        entry = player.step()
        if entry.source == "assisted" and entry.path.startswith("/clusters/") and (cluster := facts.cluster(player)):
            watch.show(cluster, [])
        elif entry.path.endswith("/clusteroperators") and (operators := facts.operators(player)):
            watch.show_operators(operators)
        for one in made:
            yield {**one, "time": event("run", "", at=entry.time)["time"]}
        made.clear()
    for text, step in player.causes():
        yield event("cause", "", text=text, level="error", next=step, at=player.wall())


def openshift(player: Player, path: str) -> Answer | None:
    """Return what the OpenShift API answers now; None if it does not: it is not there yet, or has gone."""
    found = player.get("openshift", path)
    if found is not None and found.status:
        return found
    version = player.get("openshift", "/version")
    return Answer(404, "the recording has no answer") if version and version.status else None


def service_answer(player: Player, path: str) -> Answer | None:
    """Return what the service answers now, also lists of clusters, hosts and events in a form that the run did not ask for.

    path: below `/api/assisted-install/v2`, with its query. None: it does not answer.
    """
    known = player.get("assisted", "/infra-envs")
    if known is None or not known.status:
        return None
    exact = player.get("assisted", path)
    if exact is not None and exact.status:
        return exact
    split = urlsplit(path)
    query = dict(parse_qsl(split.query))
    found = facts.cluster(player)
    clusters = [found] if found else []
    parts = split.path.strip("/").split("/")
    if split.path == "/clusters":
        return Answer(200, clusters)
    if split.path == "/events":
        return Answer(200, _events(facts.events(player), query))
    if len(parts) == 3 and parts[2] == "hosts" and parts[0] in ("clusters", "infra-envs"):
        return Answer(200, (found or {}).get("hosts") or [])
    return Answer(404, f"the recording has no answer of GET {split.path}")


def _events(events: list[dict[str, Any]], query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return events as the service filters them. Events out of order are sorted by their time, as it does."""
    shown = sorted(events, key=lambda one: str(one.get("event_time") or ""))
    for name, field in (("severities", "severity"), ("cluster_id", "cluster_id"), ("host_id", "host_id")):
        if wanted := query.get(name):
            shown = [one for one in shown if str(one.get(field)) in wanted.split(",")]
    if words := query.get("message", "").lower():
        shown = [one for one in shown if words in str(one.get("message")).lower()]
    if query.get("order") == "descending":
        shown.reverse()
    first = int(query["offset"]) if query.get("offset", "").isdecimal() else 0
    limit = int(query["limit"]) if query.get("limit", "").isdecimal() else len(shown)
    return shown[first : first + limit]
