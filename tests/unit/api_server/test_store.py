"""What the service's file keeps."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.agentlab.ocp.payload.api_server.store import Store


def test_documents_come_back_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    """Though all were made in one millisecond, and one of them was replaced."""
    names = ["c", "a", "d", "b"]
    store = Store(tmp_path / "x.db")
    for name in names:
        store.create("host", name, {"id": name, "created_at": "2026-11-22T01:00:00.000Z"})
    store.create("host", "a", {"id": "a"})
    store.close()
    store = Store(tmp_path / "x.db")
    assert list(store.kinds["host"]) == ["c", "d", "b", "a"]
    store.create("host", "0", {"id": "0"})
    store.close()
    assert list(Store(tmp_path / "x.db").kinds["host"]) == ["c", "d", "b", "a", "0"]


def test_an_event_without_words_has_a_message(tmp_path: Path) -> None:
    store = Store(tmp_path / "x.db")
    store.event({"severity": "info", "message": "", "event_time": "2026-11-22T01:00:00.000Z", "category": "user", "props": ""}, True)
    assert store.events("1", [], "ASC", -1, 0) == [{"severity": "info", "message": "", "event_time": "2026-11-22T01:00:00.000Z"}]
