"""Snapshots that a plan requests: saved by the program that waits for the installation, when their state is reached."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ..errors import AgentlabError, AssistedError
from ..files import explain
from ..vocabulary import Status
from . import lab, manifest

POLL_SECONDS = 0.5
# From `ready` to the next status are some seconds.
_BEFORE = frozenset({Status.INSUFFICIENT, Status.PENDING_FOR_INPUT})
_READY = frozenset({Status.READY, Status.PREPARING})

Report = Callable[[str, str], None]
"""report(level, text)"""


class Service(Protocol):
    """The part of the assisted service's client that is used here."""

    def clusters(self) -> list[dict[str, Any]]: ...


class PausedClock:
    """The time of an installation, a `watch.Clock`: it does not pass while a snapshot is saved, so no limit is exceeded by that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paused, self._since = 0.0, 0.0

    def time(self) -> float:
        with self._lock:
            return (self._since or time.time()) - self._paused

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock meanwhile; not for use within itself."""
        with self._lock:
            self._since = time.time()
        try:
            yield
        finally:
            with self._lock:
                self._paused += time.time() - self._since
                self._since = 0.0


class SavePoints:
    """Saves the snapshots of a plan. The installation continues when one cannot be saved, by any error; `failures` has the messages.

    As a context manager it watches for `ready` meanwhile; call `installed` when the cluster is. A snapshot that exists is kept, so
    that a run that started from it does not replace it. clock: for the wait.
    """

    def __init__(self, of: lab.Lab, service: Service, report: Report) -> None:
        self.lab, self.service, self.report = of, service, report
        self.failures: list[str] = []
        self.clock = PausedClock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> SavePoints:
        if self._wanted("ready"):
            self._thread.start()
        return self

    def __exit__(self, *__: object) -> None:
        self._end.set()
        if self._thread.ident:
            self._thread.join()

    def installed(self) -> None:
        """Save the snapshot `installed`, if the plan asks for it.

        A failure is in `failures` and a warning; the installation itself has succeeded. An existing snapshot is kept.
        """
        if self._wanted("installed"):
            self._save("installed")

    def _wanted(self, name: str) -> bool:
        if name not in self.lab.plan["snapshots"]:
            return False
        if name in manifest.names(self.lab.state_dir):
            self.report("info", f"snapshot {name} exists, and is kept")
            return False
        return True

    def _watch(self) -> None:
        while not self._end.wait(POLL_SECONDS):
            try:
                status = next((one.get("status") for one in self.service.clusters()), None)
                ready, late = status in _READY, status and status not in _BEFORE
            except AssistedError:
                continue  # not yet, or not any more
            except Exception as error:
                # Without it the thread would end unnoticed.
                reason = f"{type(error).__name__}: {error}"
                self._fail(f"snapshot ready was not saved: the assisted service gave a malformed answer: {reason}")
                return
            if ready:
                self._save("ready")
                return
            if late:
                self._fail(f"snapshot ready was not saved: the cluster is {status} already")
                return

    def _save(self, name: str) -> None:
        try:
            with self.clock.stopped():
                made = lab.save(self.lab, name, lambda text: self.report("warning", text))
        except (AgentlabError, ValueError, OSError) as error:
            self._fail(f"snapshot {name} was not saved: {explain(error) if isinstance(error, OSError) else error}")
            return
        except Exception as error:
            self._fail(f"snapshot {name} was not saved: {type(error).__name__}: {error}")
            return
        self.report("info", f"snapshot {name} saved; the machines were paused for {made.paused:.1f} s")

    def _fail(self, text: str) -> None:
        self.failures.append(text)
        self.report("warning", text)
