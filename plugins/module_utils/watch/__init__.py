"""What all waits for an installation share: messages, what a wait has seen, causes, and the end of a wait without progress."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol

from ..errors import FatalError


class Message(NamedTuple):
    """One line for users; level is a logging level's name in lower case.

    Levels: debug, info, warning, error. The text has no line breaks and no time.
    """

    level: str
    text: str


class Clock(Protocol):
    """The time, so that tests need not wait."""

    def time(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class Cause(Protocol):
    """Why an installation does not continue, and its grace period without progress in seconds (None: as for any wait).

    The text does not change while the cause stays the same.
    """

    @property
    def text(self) -> str: ...
    @property
    def grace(self) -> float | None: ...


class WaitState(NamedTuple):
    """State of a wait.

    The cluster and its events as last reported by the service, whether the OpenShift API has answered, the service's error if it refused the
    token, and pods of the cluster.
    """

    cluster: dict[str, Any] | None = None
    events: Sequence[dict[str, Any]] = ()
    kube: bool = False
    refusal: str = ""
    pods: Sequence[dict[str, Any]] = ()


class Diagnosis(NamedTuple):
    """What a lab shows of an installation: known causes, those that explain others first, and facts that are new with progress."""

    causes: Sequence[Cause] = ()
    progress: AbstractSet[Hashable] = frozenset()


Diagnose = Callable[[WaitState], Diagnosis]


def no_diagnosis(__: WaitState) -> Diagnosis:
    return Diagnosis()


PAUSE = 30.0
"""Seconds for which a cause may be gone: a container that fails runs briefly after each restart."""


class Stall:
    """Bounds a wait by progress: `check` raises without progress for `seconds` (0: never), or for the grace period of a known cause.

    Repetitions are not progress: a service that retries indefinitely makes none.
    """

    def __init__(self, seconds: float, clock: Clock) -> None:
        self.seconds, self.clock = seconds, clock
        self.seen: set[Hashable] = set()
        self.since = clock.time()
        self.checked = self.since
        self.known: dict[str, tuple[float, float]] = {}

    def check(self, facts: AbstractSet[Hashable], diagnosis: Diagnosis) -> None:
        """facts: the current state; a fact that was never seen before, here or in the diagnosis, is progress.

        A cause counts from when it was first given, without an interruption longer than `PAUSE`, and not before the last
        progress. Raises `FatalError` with the cause's text, or with the minutes without progress.
        """
        now, causes = self.clock.time(), diagnosis.causes
        facts = facts | diagnosis.progress
        if not facts <= self.seen:
            self.seen |= facts
            self.since = now
        if not self.seconds:
            return
        # Checks may be further apart than that: a cause of the last one is not gone.
        self.known = {
            text: (first, last)
            for text, (first, last) in self.known.items()
            if last >= self.checked or now - last <= PAUSE
        }
        self.checked = now
        self.known |= {cause.text: (self.known.get(cause.text, (now, now))[0], now) for cause in causes}
        for cause in causes:
            grace = self.seconds if cause.grace is None else min(cause.grace, self.seconds)
            if now - max(self.since, self.known[cause.text][0]) > grace:
                raise FatalError(cause.text)
        if now - self.since > self.seconds:
            raise FatalError(f"no progress for {self.seconds / 60:g} minutes")
