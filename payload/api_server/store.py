"""State of the service: documents in memory, written through to one SQLite file.

Documents are read at the start and changed only in the event loop. A request changes top-level fields of documents;
`commit` writes what changed in one transaction before the answer goes out, so what was acknowledged survives a kill.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS field (kind TEXT, id TEXT, name TEXT, value TEXT, PRIMARY KEY (kind, id, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS event (
  seq INTEGER PRIMARY KEY, name TEXT, cluster_id TEXT, host_id TEXT, infra_env_id TEXT, severity TEXT, category TEXT,
  message TEXT, event_time TEXT, props TEXT, cluster_level INTEGER, deleted_host INTEGER DEFAULT 0);
CREATE INDEX IF NOT EXISTS event_cluster ON event (cluster_id);
CREATE INDEX IF NOT EXISTS event_infra_env ON event (infra_env_id);
CREATE TABLE IF NOT EXISTS file (owner TEXT, name TEXT, content BLOB, PRIMARY KEY (owner, name)) WITHOUT ROWID;
"""

#: Field of a document that keeps the order in which documents were made: two may be made in one millisecond.
NTH = "_nth"
EVENT_FIELDS = (
    "name",
    "cluster_id",
    "host_id",
    "infra_env_id",
    "severity",
    "category",
    "message",
    "event_time",
    "props",
)
#: What of an event the API shows, where it has it: upstream's keeps the category to itself.
SHOWN_FIELDS = tuple(name for name in EVENT_FIELDS if name != "category")


class Document(dict[str, Any]):
    """A dictionary that knows which top-level fields changed since the last commit. Replace values, never mutate them."""

    def __init__(self, store: Store, kind: str, ident: str) -> None:
        super().__init__()
        self.kind, self.ident, self._store = kind, ident, store
        self.changed: set[str] = set()

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self or self[name] != value:
            super().__setitem__(name, value)
            self.changed.add(name)
            self._store.dirty[(self.kind, self.ident)] = self

    def set(self, **fields: Any) -> None:
        """Sets several fields; None removes one."""
        for name, value in fields.items():
            if value is None:
                self.drop(name)
            else:
                self[name] = value

    def drop(self, *names: str) -> None:
        for name in names:
            if name in self:
                super().__delitem__(name)
                self.changed.add(name)
                self._store.dirty[(self.kind, self.ident)] = self

    def touch(self, name: str, value: Any) -> None:
        """Sets a field that is not worth a write of its own; it is written with the next change of the document."""
        super().__setitem__(name, value)
        self.changed.add(name)

    def flush(self) -> None:
        """Makes what was touched part of the next commit."""
        if self.changed:
            self._store.dirty[(self.kind, self.ident)] = self


class Store:
    """Documents by kind and id, events and small files. Not for use from several threads."""

    def __init__(self, path: Path | str) -> None:
        if str(path) != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path = str(path)
        self.db = sqlite3.connect(self.path, isolation_level=None)
        if self.path != ":memory:":
            Path(path).chmod(0o600)
        self.db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
        self.db.executescript(SCHEMA)
        self.dirty: dict[tuple[str, str], Document] = {}
        self.kinds: dict[str, dict[str, Document]] = {"cluster": {}, "infra_env": {}, "host": {}}
        self._gone: list[tuple[str, str]] = []
        self._events: list[tuple[Any, ...]] = []
        self._files: dict[tuple[str, str], bytes | None] = {}
        for kind, ident, name, value in self.db.execute("SELECT kind, id, name, value FROM field"):
            dict.__setitem__(self._document(kind, ident), name, json.loads(value))
        for documents in self.kinds.values():
            order = sorted(documents.items(), key=lambda item: item[1].get(NTH, 0))
            documents.clear()
            documents.update(order)
        self._nth = max((document.get(NTH, 0) for documents in self.kinds.values() for document in documents.values()), default=0)

    def _document(self, kind: str, ident: str) -> Document:
        return self.kinds[kind].setdefault(ident, Document(self, kind, ident))

    def create(self, kind: str, ident: str, fields: Mapping[str, Any]) -> Document:
        """A new document in place of any with the same id."""
        self.delete(kind, ident)
        document = self._document(kind, ident)
        self._nth += 1
        document[NTH] = self._nth
        for name, value in fields.items():
            if value is not None:
                document[name] = value
        return document

    def delete(self, kind: str, ident: str) -> None:
        if self.kinds[kind].pop(ident, None) is not None:
            self.dirty.pop((kind, ident), None)
            self._gone.append((kind, ident))

    def event(self, fields: Mapping[str, Any], cluster_level: bool) -> None:
        self._events.append((*(fields.get(name) for name in EVENT_FIELDS), int(cluster_level)))

    def forget_events(self, column: str, ident: str) -> None:
        """Drops the events of a deleted cluster or infra-env; those of a deleted host are only marked."""
        self.commit()
        if column == "host_id":
            self.db.execute("UPDATE event SET deleted_host = 1 WHERE host_id = ?", (ident,))
        else:
            self.db.execute(f"DELETE FROM event WHERE {column} = ?", (ident,))

    def put_file(self, owner: str, name: str, content: bytes | None) -> None:
        """Keeps a small file (manifest, ignition, credential); None deletes it."""
        self._files[(owner, name)] = content

    def file(self, owner: str, name: str) -> bytes | None:
        if (owner, name) in self._files:
            return self._files[(owner, name)]
        row = self.db.execute("SELECT content FROM file WHERE owner = ? AND name = ?", (owner, name)).fetchone()
        return row[0] if row else None

    def files(self, owner: str, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        self.commit()
        rows = self.db.execute("SELECT name, content FROM file WHERE owner = ? ORDER BY name", (owner,))
        return (row for row in rows.fetchall() if row[0].startswith(prefix))

    def forget_files(self, owner: str) -> None:
        self.commit()
        self.db.execute("DELETE FROM file WHERE owner = ?", (owner,))

    def commit(self) -> None:
        """Writes every change since the last commit in one transaction."""
        if not (self.dirty or self._gone or self._events or self._files):
            return
        upserts, deletes = [], []
        for (kind, ident), document in self.dirty.items():
            if self.kinds[kind].get(ident) is not document:
                continue
            for name in document.changed:
                if name in document:
                    upserts.append((kind, ident, name, json.dumps(document[name], separators=(",", ":"))))
                else:
                    deletes.append((kind, ident, name))
        run = self.db
        run.execute("BEGIN")
        try:
            for statement, rows in (
                ("DELETE FROM field WHERE kind = ? AND id = ?", self._gone),
                ("DELETE FROM field WHERE kind = ? AND id = ? AND name = ?", deletes),
                ("INSERT OR REPLACE INTO field VALUES (?, ?, ?, ?)", upserts),
                (f"INSERT INTO event ({', '.join(EVENT_FIELDS)}, cluster_level) VALUES (?,?,?,?,?,?,?,?,?,?)", self._events),
            ):
                if rows:
                    run.executemany(statement, rows)
            for (owner, name), content in self._files.items():
                if content is None:
                    run.execute("DELETE FROM file WHERE owner = ? AND name = ?", (owner, name))
                else:
                    run.execute("INSERT OR REPLACE INTO file VALUES (?, ?, ?)", (owner, name, content))
            run.execute("COMMIT")
        except BaseException:
            run.execute("ROLLBACK")
            raise
        for document in self.dirty.values():
            document.changed.clear()
        self.dirty.clear()
        self._gone.clear()
        self._events.clear()
        self._files.clear()

    def events(self, where: str, values: list[Any], order: str, limit: int, offset: int) -> list[dict[str, Any]]:
        """Events that match a clause, as the API shows them. `where` and `order` are the service's own text."""
        self.commit()
        rows = self.db.execute(
            f"SELECT {', '.join(SHOWN_FIELDS)} FROM event WHERE {where} ORDER BY seq {order} LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [{k: v for k, v in zip(SHOWN_FIELDS, row, strict=True) if v or k == "message"} for row in rows]

    def severities(self, where: str, values: list[Any]) -> dict[str, int]:
        self.commit()
        return dict(self.db.execute(f"SELECT severity, count(*) FROM event WHERE {where} GROUP BY severity", values))

    def close(self) -> None:
        self.commit()
        self.db.close()
