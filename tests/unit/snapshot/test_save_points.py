"""Snapshots of a plan: when they are saved, and what happens when they cannot be."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import AssistedError
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import manifest, save_points
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.lab import Lab
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import SnapshotError


class Service:
    """Answers with one status after the other, the last one repeatedly; None: does not answer; empty: no cluster."""

    def __init__(self, *statuses: str | None) -> None:
        self.statuses = list(statuses)

    def clusters(self) -> list[dict[str, Any]]:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status is None:
            raise AssistedError("no answer")
        return [{"status": status}] if status else []


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the saved snapshots."""
    names: list[str] = []

    def save(__: Lab, name: str, note: object) -> object:
        names.append(name)
        return SimpleNamespace(paused=1.25)

    monkeypatch.setattr(save_points.lab, "save", save)
    monkeypatch.setattr(save_points, "POLL_SECONDS", 0.001)
    return names


def watch(
    tmp_path: Path, service: Service, wanted: list[str], seconds: float = 0.2
) -> tuple[save_points.SavePoints, list[str]]:
    reported: list[str] = []
    plan = {"snapshots": wanted, "hypervisor": {"state_dir": str(tmp_path)}}
    of = Lab(cast(Any, plan), tmp_path, cast(Any, None), "1")
    made = save_points.SavePoints(of, service, lambda level, text: reported.append(f"{level}: {text}"))
    with made:
        end = time.monotonic() + seconds
        while made._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.005)
    return made, reported


@pytest.mark.parametrize("status", ["ready", "preparing-for-installation"])
def test_ready_is_saved_once(tmp_path: Path, saved: list[str], status: str) -> None:
    service = Service(None, "", "insufficient", "pending-for-input", status, "installing")
    made, reported = watch(tmp_path, service, ["ready"], 5)
    assert saved == ["ready"] and made.failures == []
    assert reported == ["info: snapshot ready saved; the machines were paused for 1.2 s"]


def test_too_late_is_reported_and_not_saved(tmp_path: Path, saved: list[str]) -> None:
    made, reported = watch(tmp_path, Service("installing"), ["ready"], 5)
    assert saved == []
    assert made.failures == ["snapshot ready was not saved: the cluster is installing already"]
    assert reported == [f"warning: {made.failures[0]}"]


@pytest.mark.parametrize("answer", [["ready"], {"status": "ready"}, [{"status": ["ready"]}], 7])
def test_an_answer_that_is_malformed_is_a_failure(tmp_path: Path, saved: list[str], answer: Any) -> None:
    """Without a failure the wait would succeed, and `ready` would be missing."""
    service = Service("ready")
    service.clusters = lambda: answer
    made, reported = watch(tmp_path, service, ["ready"], 5)
    assert saved == [] and len(made.failures) == 1
    assert made.failures[0].startswith("snapshot ready was not saved: the assisted service gave a malformed answer: ")
    assert reported == [f"warning: {made.failures[0]}"]


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyError("hosts"), TypeError("x")], ids=repr)
def test_any_error_of_a_save_is_a_failure(
    tmp_path: Path, saved: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def save(*__: object) -> object:
        raise error

    monkeypatch.setattr(save_points.lab, "save", save)
    made, __ = watch(tmp_path, Service("ready"), ["ready"], 5)
    assert made.failures == [f"snapshot ready was not saved: {type(error).__name__}: {error}"]


def test_a_wait_that_ends_before_ends_the_watch(tmp_path: Path, saved: list[str]) -> None:
    made, reported = watch(tmp_path, Service(None), ["ready"])
    assert (saved, made.failures, reported) == ([], [], []) and not made._thread.is_alive()


def test_only_what_the_plan_asks_for(tmp_path: Path, saved: list[str]) -> None:
    made, __ = watch(tmp_path, Service("ready"), ["installed"])
    assert saved == []
    made.installed()
    assert saved == ["installed"]
    watch(tmp_path, Service("ready"), [])[0].installed()
    assert saved == ["installed"]


def test_an_existing_snapshot_is_kept(tmp_path: Path, saved: list[str]) -> None:
    place = manifest.place(tmp_path, "ready")
    place.mkdir(parents=True)
    (place / manifest.FILE).write_text("{}")
    made, reported = watch(tmp_path, Service("ready"), ["ready"])
    assert (saved, made.failures, reported) == ([], [], ["info: snapshot ready exists, and is kept"])


def test_a_save_that_fails_does_not_end_the_wait(
    tmp_path: Path, saved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(*__: object) -> object:
        raise SnapshotError("no space left")

    monkeypatch.setattr(save_points.lab, "save", save)
    made, reported = watch(tmp_path, Service("ready"), ["ready", "installed"], 5)
    made.installed()
    assert made.failures == [
        "snapshot ready was not saved: no space left",
        "snapshot installed was not saved: no space left",
    ]
    assert reported == [f"warning: {text}" for text in made.failures]


def test_an_error_of_the_system_has_no_number(
    tmp_path: Path, saved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(*__: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device", "/x")

    monkeypatch.setattr(save_points.lab, "save", save)
    made, __ = watch(tmp_path, Service("ready"), ["installed"])
    made.installed()
    assert made.failures == ["snapshot installed was not saved: /x: No space left on device"]


def test_the_clock_of_the_wait_stands_still_meanwhile(
    tmp_path: Path, saved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that is ready for more than a minute fails: saving it may take as long on a busy host."""
    made, __ = watch(tmp_path, Service("installing"), [])
    now = [1000.0]
    monkeypatch.setattr(save_points.time, "time", lambda: now[0])
    assert made.clock.time() == 1000

    def save(*__: object) -> object:
        before = made.clock.time()
        now[0] += 90
        assert made.clock.time() == before
        raise SnapshotError("no space left")

    monkeypatch.setattr(save_points.lab, "save", save)
    made._save("ready")
    assert made.clock.time() == 1000
    assert made.failures == ["snapshot ready was not saved: no space left"]
    now[0] += 5
    assert made.clock.time() == 1005
    made._save("installed")
    assert made.clock.time() == 1005
