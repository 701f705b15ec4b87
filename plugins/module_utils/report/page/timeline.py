"""Rows of the timeline, validations and steps, from the events of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...plan.model import Plan
from ...state.events import Event, moment
from ...vocabulary import RUN_STAGES
from ..changes import RENAMED
from .model import Check, Interval, Lane, Mark, Step, Validation

BAD = ("failure", "error")


@dataclass
class Track:
    """States one after the other; what is open ends with the next one."""

    done: list[Interval] = field(default_factory=list)
    state: tuple[str, str] | None = None
    since: int = 0

    def enter(self, at: int, state: str, text: str = "") -> None:
        """Begin a state, or change the text of the open one; an empty one only ends it.

        at: milliseconds since the epoch; text: the message; an empty one keeps that of the open state.
        """
        if self.state and state == self.state[0]:
            self.state = (state, text or self.state[1])
            return
        self.leave(at)
        self.state, self.since = ((state, text) if state else None), at

    def leave(self, at: int) -> None:
        """End the open state. Clocks may jump back: it does not end before it began."""
        if self.state:
            state, text = self.state
            self.done.append({"start": self.since, "end": max(at, self.since), "state": state, "text": text})
        self.state = None


@dataclass
class Row:
    """A lane in the making.

    failing: sets of failed validations over time; bad: those that fail now, identifier -> message.
    """

    states: Track = field(default_factory=Track)
    stages: Track = field(default_factory=Track)
    failing: Track = field(default_factory=Track)
    marks: list[Mark] = field(default_factory=list)
    bad: dict[str, str] = field(default_factory=dict)


class Timeline:
    """What the events of a run say, in the order in which they were written.

    plan: gives the order of the hosts; end: until when the last states last; live: whether an open stage still runs.
    """

    def __init__(self, events: Sequence[Event], plan: Plan | None, end: int, *, live: bool) -> None:
        self.end, self.live = end, live
        self.stages: dict[str, str] = {}
        self.steps: list[Step] = []
        self.checks: dict[str, Check] = {}
        self.faults: list[Mark] = []
        self._stages, self._cluster, self._messages, self._faults = Row(), Row(), Row(), Row()
        self._planned = [node["name"] for node in plan["nodes"]] if plan else []
        self._hosts = {name: Row() for name in self._planned}
        self._operators: dict[str, Row] = {}
        self._validations: dict[tuple[str, str], Validation] = {}
        self._open: tuple[str, int] | None = None
        self._observed = 0
        self._late = {"cluster": 0, "operator": 0}
        self._last = 0
        for one in events:
            at = moment(one["time"]) or self._last
            self._take(one, at)
            self._last = at
        self._close(self._last)

    def lanes(self) -> list[Lane]:
        """Return the rows of the timeline; those in which nothing happened are left out, but for machines of the plan.

        Order: stages, installation, faults and messages; hosts of the plan, then other hosts by name; ClusterOperators
        by name.
        """
        fixed = (
            ("Stages", self._stages),
            ("Installation", self._cluster),
            ("Faults", self._faults),
            ("Messages", self._messages),
        )
        return [
            *(_lane(name, "run", row) for name, row in fixed if row.states.done or row.marks),
            *(_lane(name, "hosts", self._hosts[name]) for name in self._names()),
            *(_lane(name, "operators", row) for name, row in sorted(self._operators.items())),
        ]

    def _names(self) -> list[str]:
        """Return the hosts: machines of the plan in its order, then others by name."""
        return [*self._planned, *sorted(self._hosts.keys() - set(self._planned), key=_natural)]

    def validations(self) -> list[Validation]:
        """Return the validations by host.

        Those of the cluster, whose host is empty, are first; within a host they are sorted by identifier.
        """
        return [found for __, found in sorted(self._validations.items())]

    def last(self, host: str) -> str:
        """Return the last status of a host; empty if it never registered.

        host: its name as in the events, or its short name if it is in the plan.
        """
        row = self._hosts.get(host)
        return row.states.done[-1]["state"] if row and row.states.done else ""

    def polls(self) -> int:
        """Return how long the wait had not noticed yet what it waited for, in milliseconds: states of the cluster, the last operator."""
        return sum(self._late.values())

    def operators(self) -> dict[str, Interval]:
        """Return the last state of each ClusterOperator.

        The keys are the names, sorted; an operator without a complete state is left out.
        """
        return {name: row.states.done[-1] for name, row in sorted(self._operators.items()) if row.states.done}

    def _take(self, one: Event, at: int) -> None:
        kind, name, text = one["kind"], one["subject"], one["text"]
        if kind == "stage":
            self._stage(name, one["state"], text, at)
        elif kind == "task":
            self._task(one, at)
        elif kind == "cluster":
            self._observed = at
            self._late["cluster"] += one.get("late", 0)
            self._cluster.states.enter(at, one["state"], text)
        elif kind == "host" and one["state"] == RENAMED:
            self._rename(name, text)
        elif kind == "host":
            self._observed = at
            row = self._host(name)
            row.states.enter(at, one["state"], "" if one.get("stage") else text)
            share = one.get("percentage", 0)
            detail = ", ".join(part for part in (f"{share}%" if share else "", text) if part)
            row.stages.enter(at, one.get("stage", ""), detail)
        elif kind == "validation":
            self._validation(one, at)
        elif kind == "operator":
            self._late["operator"] = one.get("late", 0)  # the others changed while one was still waited for
            self._operators.setdefault(name, Row()).states.enter(at, one["state"], text)
        elif kind == "machine":
            self._host(name).marks.append(_mark(one, at))
        elif kind == "fault":
            self.faults.append(_mark(one, at))
            self._faults.marks.append(_mark(one, at))
        elif kind == "message" and one["level"] in ("warning", "error"):
            self._messages.marks.append(_mark(one, at))
        elif kind == "check":
            good = one["state"] == "ok"
            self.checks[name] = {"name": name, "ok": good, "found": text, "seconds": one.get("seconds", 0)}
            if not good:
                self._messages.marks.append(_mark({**one, "text": f"{name}: {text}"}, at))

    def _stage(self, name: str, state: str, text: str, at: int) -> None:
        if state == "started":
            self._end_stage(self._last, "interrupted")
            if name == "validate":
                self.checks = {}
            self._open = (name, at)
            self._note(name, "interrupted")
            return
        self._note(name, state)
        self._end_stage(at, state, text)

    def _note(self, name: str, state: str) -> None:
        if name in RUN_STAGES:
            self.stages[name] = state

    def _end_stage(self, at: int, state: str, text: str = "") -> None:
        if not self._open:
            return
        name, since = self._open
        shown: Interval = {"start": since, "end": max(since, at), "state": name, "text": text or state}
        self._stages.states.done.append(shown)
        self.steps.append({"stage": name, "name": "", "start": since, "end": shown["end"], "median": None})
        if state == "failed":
            self._stages.marks.append({"at": shown["end"], "level": "error", "text": f"{name} failed: {text}"})
        self._open = None
        if name == "wait":
            self._leave(shown["end"])

    def _task(self, one: Event, at: int) -> None:
        if seconds := one.get("seconds", 0):  # rounded up: no task begins before its stage
            begun = at - 1000 * seconds
            self.steps.append(
                {
                    "stage": one.get("stage", ""),
                    "name": one["subject"],
                    "start": min(at, max(begun, self._open[1])) if self._open else begun,
                    "end": at,
                    "median": None,
                }
            )

    def _host(self, name: str) -> Row:
        short = name.split(".")[0]  # a host may have its fully qualified name
        return self._hosts.setdefault(short if short in self._hosts else name, Row())

    def _rename(self, old: str, new: str) -> None:
        if row := self._hosts.pop(old, None):
            known = self._hosts.pop(new, Row())
            row.marks = [*known.marks, *row.marks]
            self._hosts[new] = row
        for host, name in [key for key in self._validations if key[0] == old]:
            self._validations[new, name] = {**self._validations.pop((host, name)), "host": new}

    def _validation(self, one: Event, at: int) -> None:
        host, name, state = one.get("host", ""), one["subject"], one["state"]
        found = self._validations.setdefault(
            (host, name),
            {"id": name, "host": host, "now": "", "first_failed": None, "first_passed": None, "message": ""},
        )
        found["now"], found["message"] = state, one["text"]
        if state in BAD and found["first_failed"] is None:
            found["first_failed"] = at
        if state == "success" and found["first_passed"] is None:
            found["first_passed"] = at
        row = self._host(host) if host else self._cluster
        if state in BAD:
            row.bad[name] = one["text"]
        else:
            row.bad.pop(name, None)
        row.failing.enter(at, ", ".join(row.bad), "; ".join(row.bad.values())[:2000])

    def _close(self, last: int) -> None:
        """End what is open: a stage with the run, what the service reported last with the wait."""
        end = self.end if self.live else last
        if self._open:
            name = self._open[0]
            if self.live:
                self._note(name, "running")
            self._end_stage(end, "running" if self.live else "interrupted")
        self._leave(end)
        for row in self._operators.values():
            row.states.leave(end)
        phases = [one for one in self._cluster.states.done if one["end"] - one["start"] >= 1000]
        self.steps += [
            {
                "stage": "wait",
                "name": f"cluster {one['state']}",
                "start": one["start"],
                "end": one["end"],
                "median": None,
            }
            for one in phases
        ]
        self.steps.sort(key=lambda step: (step["start"], step["name"] != ""))

    def _leave(self, at: int) -> None:
        for row in (self._cluster, *self._hosts.values()):
            for track in (row.states, row.stages, row.failing):
                track.leave(at)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts host-9 before host-10."""
    return [
        (int(part), "") if part.isascii() and part.isdecimal() else (-1, part)
        for part in re.split(r"([0-9]{1,9})", name)
    ]


def _lane(name: str, group: str, row: Row) -> Lane:
    return {
        "name": name, "group": group, "states": row.states.done, "stages": row.stages.done, "failing": row.failing.done,  # type: ignore[typeddict-item]
        "marks": row.marks,
    }  # fmt: skip


def _mark(one: Event, at: int) -> Mark:
    return {"at": at, "level": one["level"], "text": one["text"] or one["subject"]}


def first(events: Iterable[Event], cause: str) -> int | None:
    """Return when a cause showed first: with what it quotes or names, else with the first fault or error; None if never.

    events: in the order of the log; cause: its text. The result is in milliseconds since the epoch. Causes, stages,
    tasks and programs are left out: they describe the failure afterwards.
    """
    found: list[int | None] = [None, None, None]
    for one in events:
        quoted = len(one["text"]) > 8 and one["text"] in cause
        if one["kind"] in ("cause", "stage", "task", "run"):
            continue
        named = bool(one["subject"]) and one["subject"] in cause and one["level"] == "error"
        ranks = (quoted and one["level"] != "info", named or one["kind"] == "fault", one["level"] == "error")
        for rank, there in enumerate(ranks):
            if there and found[rank] is None:
                found[rank] = moment(one["time"])
    return next((at for at in found if at is not None), None)
