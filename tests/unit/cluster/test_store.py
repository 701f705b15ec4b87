"""The store: objects, watches, what a disk keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.cluster import store as module
from ansible_collections.agentlab.ocp.payload.cluster.store import Conflict, ExpiredRevision, NotFound, Store


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def begun(directory: Path | None = None) -> Store:
    store = Store(directory)
    store.begin_epoch(1)
    return store


def test_versions_and_conflicts() -> None:
    store = begun()
    first = store.create("configmaps", config_map("a", x="1"))
    second = store.update("configmaps", {**first, "data": {"x": "2"}})
    assert int(second["metadata"]["resourceVersion"]) == int(first["metadata"]["resourceVersion"]) + 1
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert first["data"] == {"x": "1"}, "objects are never changed in place"
    with pytest.raises(Conflict):
        store.update("configmaps", {**first, "data": {"x": "3"}})
    assert store.update("configmaps", second) is second, "equal content is not a change"
    store.delete("configmaps", "default", "a")
    with pytest.raises(NotFound):
        store.get("configmaps", "default", "a")


def test_disk_keeps_snapshot_and_log_but_not_a_torn_line(tmp_path: Path) -> None:
    store = begun(tmp_path)
    store.create("configmaps", config_map("a"))
    store.create("configmaps", config_map("b"))
    log = tmp_path / "log.jsonl"
    log.write_text(log.read_text() + '{"revision": 9999, "type": "ADD')
    again = Store(tmp_path)
    assert [o["metadata"]["name"] for o in again.items("configmaps")] == ["a", "b"]
    assert (again.uid, again.epoch, again.revision) == (store.uid, store.epoch, store.revision)
    assert (tmp_path / "snapshot.json").stat().st_mode & 0o777 == 0o600


def test_log_is_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPACT_LINES", 3)
    store = begun(tmp_path)
    for name in "abcd":
        store.create("configmaps", config_map(name))
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1
    assert len(Store(tmp_path).items("configmaps")) == 4


def test_a_new_epoch_leaves_a_gap() -> None:
    store = begun()
    before = store.revision
    store.begin_epoch(2)
    assert store.revision - before == module.EPOCH_GAP


def test_old_revisions_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HISTORY", 2)
    store = begun()
    store.history = type(store.history)(maxlen=2)
    first = store.create("configmaps", config_map("a"))
    for name in "bcd":
        store.create("configmaps", config_map(name))
    with pytest.raises(ExpiredRevision):
        store.events_since(int(first["metadata"]["resourceVersion"]))
    assert [e["object"]["metadata"]["name"] for e in store.events_since(store.revision - 1)] == ["d"]


def test_a_follower_has_what_its_leader_has(tmp_path: Path) -> None:
    leader, follower = begun(), Store(tmp_path)
    leader.create("configmaps", config_map("a", x="1"))
    follower.load(leader.snapshot())
    leader.listeners.append(lambda event: follower.apply({**event, "old": None}))
    leader.update("configmaps", {**leader.get("configmaps", "default", "a"), "data": {"x": "2"}})
    leader.delete("configmaps", "default", "a")
    assert follower.snapshot() == leader.snapshot()
    assert follower.history[-1]["old"]["data"] == {"x": "2"}
