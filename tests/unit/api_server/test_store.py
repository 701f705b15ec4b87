"""What the service's file keeps."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.events import Filter
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


async def test_an_event_without_words_has_a_message(tmp_path: Path) -> None:
    store = Store(tmp_path / "x.db")
    store.event(
        {"severity": "info", "message": "", "event_time": "2026-11-22T01:00:00.000Z", "category": "user", "props": ""}
    )
    pages = [page async for page in store.event_pages(Filter())]
    assert pages == [[{"severity": "info", "message": "", "event_time": "2026-11-22T01:00:00.000Z"}]]


def test_only_one_service_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect: Any = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, timeout=0.1, **kwargs))
    first = Store(tmp_path / "x.db")
    with pytest.raises(OSError, match=r"x\.db: another service has it open"):
        Store(tmp_path / "x.db")
    first.create("host", "a", {"id": "a"})
    first.close()
    assert list(Store(tmp_path / "x.db").kinds["host"]) == ["a"]


@pytest.mark.parametrize("damage", ["text", "page", "value"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.db"
    store = Store(path)
    for number in range(500):
        store.create("host", f"h{number}", {"id": f"h{number}", "text": "x" * 100})
    store.commit()
    if damage == "value":
        store.db.execute("UPDATE field SET value = '{' WHERE id = 'h7'")
    store.close()
    if damage == "text":
        path.write_text("no database at all" * 1000)
    elif damage == "page":
        content = bytearray(path.read_bytes())
        content[4096 * 3 : 4096 * 6] = b"\xa5" * 4096 * 3
        path.write_bytes(content)
    with pytest.raises(OSError, match=r"x\.db is corrupt \(.*\): move it aside to start over"):
        Store(path)


def test_what_was_deleted_does_not_come_back_by_a_late_writer(tmp_path: Path) -> None:
    store = Store(tmp_path / "x.db")
    old = store.create("host", "a", {"id": "a"})
    store.delete("host", "a")
    store.create("host", "a", {"id": "a", "status": "new"})
    old["status"] = "old"
    store.close()
    assert Store(tmp_path / "x.db").kinds["host"]["a"]["status"] == "new"
