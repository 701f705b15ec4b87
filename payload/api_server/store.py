"""State of the service: documents in memory, written through to one SQLite file.

Documents are read at the start and changed only in the event loop. A request changes top-level fields of documents;
`commit` writes what changed in one transaction before the answer goes out, so what was acknowledged survives a kill.
"""

from __future__ import annotations

import contextlib
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


class Unwritable(Exception):
    """The state cannot be written to its file now: the disk is full, broken or read-only. Nothing is lost, a later commit has it."""


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
            self._mark()

    def _mark(self) -> None:
        """Part of the next commit, unless it was deleted; another may have its id by now."""
        if self._store.kinds[self.kind].get(self.ident) is self:
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
                self._mark()

    def touch(self, name: str, value: Any) -> None:
        """Sets a field that is not worth a write of its own; it is written with the next change of the document."""
        super().__setitem__(name, value)
        self.changed.add(name)

    def flush(self) -> None:
        """Makes what was touched part of the next commit."""
        if self.changed:
            self._mark()


class Store:
    """Documents by kind and id, events and small files. Not for use from several threads."""

    def __init__(self, path: Path | str) -> None:
        if str(path) != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path = str(path)
        self.dirty: dict[tuple[str, str], Document] = {}
        self.kinds: dict[str, dict[str, Document]] = {"cluster": {}, "infra_env": {}, "host": {}}
        self._gone: list[tuple[str, str]] = []
        self._events: list[tuple[Any, ...]] = []
        self._files: dict[tuple[str, str], bytes | None] = {}
        self._later: list[tuple[str, tuple[Any, ...]]] = []
        try:
            self.db = sqlite3.connect(self.path, isolation_level=None)
            self._load()
        except sqlite3.OperationalError as err:
            hint = "another service has it open" if "locked" in str(err) else str(err)
            raise OSError(f"{self.path}: {hint}") from None
        except (sqlite3.DatabaseError, ValueError, KeyError) as err:
            raise OSError(f"{self.path} is damaged ({' '.join(str(err).split())[:200]}): move it away to begin anew") from None

    def _load(self) -> None:
        if self.path != ":memory:":
            Path(self.path).chmod(0o600)
        # No second service shares the file: each has its documents in memory.
        self.db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self.db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; BEGIN EXCLUSIVE; COMMIT;")
        if (found := self.db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise ValueError(found)
        self.db.executescript(SCHEMA)
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
        if column == "host_id":
            self._later.append(("UPDATE event SET deleted_host = 1 WHERE host_id = ?", (ident,)))
        else:
            self._later.append((f"DELETE FROM event WHERE {column} = ?", (ident,)))

    def put_file(self, owner: str, name: str, content: bytes | None) -> None:
        """Keeps a small file (manifest, ignition, credential); None deletes it."""
        self._files[(owner, name)] = content

    def file(self, owner: str, name: str) -> bytes | None:
        if (owner, name) in self._files:
            return self._files[(owner, name)]
        row = self.db.execute("SELECT content FROM file WHERE owner = ? AND name = ?", (owner, name)).fetchone()
        return row[0] if row else None

    def files(self, owner: str, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        self.try_commit()
        rows = self.db.execute("SELECT name, content FROM file WHERE owner = ? ORDER BY name", (owner,))
        return (row for row in rows.fetchall() if row[0].startswith(prefix))

    def forget_files(self, owner: str) -> None:
        self._later.append(("DELETE FROM file WHERE owner = ?", (owner,)))

    def try_commit(self) -> None:
        """A commit for who only reads: that the file cannot be written now does not keep him from it."""
        with contextlib.suppress(Unwritable):
            self.commit()

    def commit(self) -> None:
        """Writes every change since the last commit in one transaction; Unwritable when that is not possible now."""
        if not (self.dirty or self._gone or self._events or self._files or self._later):
            return
        try:
            self._write()
        except sqlite3.Error as err:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise Unwritable(f"the state cannot be written: {err}") from None
        for document in self.dirty.values():
            document.changed.clear()
        for written in (self.dirty, self._gone, self._events, self._files, self._later):
            written.clear()

    def _write(self) -> None:
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
        for statement, values in self._later:
            run.execute(statement, values)
        run.execute("COMMIT")

    def events(self, where: str, values: list[Any], order: str, limit: int, offset: int) -> list[dict[str, Any]]:
        """Events that match a clause, as the API shows them. `where` and `order` are the service's own text."""
        self.try_commit()
        rows = self.db.execute(
            f"SELECT {', '.join(SHOWN_FIELDS)} FROM event WHERE {where} ORDER BY seq {order} LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [{k: v for k, v in zip(SHOWN_FIELDS, row, strict=True) if v or k == "message"} for row in rows]

    def severities(self, where: str, values: list[Any]) -> dict[str, int]:
        self.try_commit()
        return dict(self.db.execute(f"SELECT severity, count(*) FROM event WHERE {where} GROUP BY severity", values))

    def close(self) -> None:
        """Writes what is left and closes the file; Unwritable when it could not be written."""
        try:
            self.commit()
        finally:
            self.db.close()
