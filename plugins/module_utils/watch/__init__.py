"""What all waits for an installation share: messages, what a wait has seen, causes, and the end of a wait without progress."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol

from ..errors import FatalError


class Message(NamedTuple):
    """One line for users; level is a logging level's name in lower case."""

    level: str
    text: str


class Clock(Protocol):
    def time(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class Cause(Protocol):
    """What keeps an installation from going on, and for how many seconds that may last without progress (None: as long as any wait).

    The text is the same as long as the cause is.
    """

    @property
    def text(self) -> str: ...
    @property
    def patience(self) -> float | None: ...


class Seen(NamedTuple):
    """What a wait knows: cluster and its events as the service reported them last, whether the OpenShift API has answered, what the
    service said to the wait's token if it refused it, and pods of the cluster."""

    cluster: dict[str, Any] | None = None
    events: Sequence[dict[str, Any]] = ()
    kube: bool = False
    refusal: str = ""
    pods: Sequence[dict[str, Any]] = ()


Diagnose = Callable[[Seen], Sequence[Cause]]
"""Tells the causes that can be seen, those that explain others first."""


def no_diagnosis(__: Seen) -> Sequence[Cause]:
    return ()


class Stall:
    """Bounds a wait by progress: `check` raises when nothing was new for `seconds` (0: never), or for the patience with a known cause.

    What comes again is not new: a service that tries and fails for ever makes no progress.
    """

    def __init__(self, seconds: float, clock: Clock) -> None:
        self.seconds, self.clock = seconds, clock
        self.seen: set[Hashable] = set()
        self.since = clock.time()
        self.known: dict[str, float] = {}

    def check(self, facts: AbstractSet[Hashable], causes: Sequence[Cause] = ()) -> None:
        """facts: what is so now; one that was never seen before is progress."""
        now = self.clock.time()
        if not facts <= self.seen:
            self.seen |= facts
            self.since = now
        if not self.seconds:
            return
        self.known = {cause.text: self.known.get(cause.text, now) for cause in causes}
        for cause in causes:
            patience = self.seconds if cause.patience is None else min(cause.patience, self.seconds)
            if now - max(self.since, self.known[cause.text]) > patience:
                raise FatalError(cause.text)
        if now - self.since > self.seconds:
            raise FatalError(f"nothing new happened for {self.seconds / 60:g} minutes")
