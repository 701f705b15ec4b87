"""State of the service: documents in memory, written through to one SQLite file.

Documents are read at the start and changed only in the event loop. A request changes top-level fields of documents;
`commit` writes changes in one transaction, and `durable` waits until they are on disk: acknowledged changes survive a
power loss. Requests that commit while the disk is busy share the next flush (SQLite's WAL is not flushed at each commit
with synchronous=NORMAL, so a commit does not wait). A change that cannot be written is undone: the request was refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack

from .document import Document
from .events import SCHEMA as EVENTS
from .events import Events, Filter, Order, Row, T, as_document, as_text

SCHEMA = """
CREATE TABLE IF NOT EXISTS field (kind TEXT, id TEXT, name TEXT, value TEXT, PRIMARY KEY (kind, id, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS file (owner TEXT, name TEXT, content BLOB, PRIMARY KEY (owner, name)) WITHOUT ROWID;
"""

#: Field with the order in which documents were created: two may be created in the same millisecond.
NTH = "_nth"


class Unwritable(Exception):
    """The state file cannot be written: the disk is full, broken or read-only. The change is undone.

    The HTTP layer returns it with the status 503; monitors log it and try again with their next pass. After a
    failed flush every later commit fails until the service is started again.
    """


class Store:
    """Documents by kind and id, events and small files. Not thread-safe.

    Kinds are `cluster`, `infra_env` and `host`. The file is locked: a second service gets an OSError, as does one that
    finds a corrupt file, each with a hint what to do. `:memory:` as path keeps nothing. `on_undo` rebuilds derived
    data.
    """

    def __init__(self, path: Path | str) -> None:
        if str(path) != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path = str(path)
        self.dirty: dict[tuple[str, str], Document] = {}
        self.kinds: dict[str, dict[str, Document]] = {"cluster": {}, "infra_env": {}, "host": {}}
        self._gone: list[tuple[str, str]] = []
        self._files: dict[tuple[str, str], bytes | None] = {}
        self._later: list[tuple[str, tuple[Any, ...]]] = []
        #: Documents before uncommitted changes: (kind, id) -> document, its fields, touched fields.
        self._before: dict[tuple[str, str], tuple[Document, dict[str, Any], set[str]] | None] = {}
        #: Called with the kinds and ids of documents whose changes were undone.
        self.on_undo: Callable[[set[tuple[str, str]]], None] | None = None
        self._version = self._flushed = 0
        self._flushing: asyncio.Task[None] | None = None
        self._broken = ""
        self._refusal: Unwritable | None = None
        self._wal = -1
        try:
            self.db = sqlite3.connect(self.path, isolation_level=None)
            self._load()
        except sqlite3.OperationalError as err:
            hint = "another service has it open" if "locked" in str(err) else str(err)
            raise OSError(f"{self.path}: {hint}") from None
        except (sqlite3.DatabaseError, ValueError, KeyError) as err:
            raise OSError(
                f"{self.path} is corrupt ({' '.join(str(err).split())[:200]}): move it aside to start over"
            ) from None

    def _load(self) -> None:
        if self.path != ":memory:":
            Path(self.path).chmod(0o600)
        # Services cannot share the file: each has its documents in memory.
        self.db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self.db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; BEGIN EXCLUSIVE; COMMIT;")
        if (found := self.db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise ValueError(found)
        self.db.executescript(SCHEMA + EVENTS)
        self.events = Events(self.db)
        for kind, ident, name, value in self.db.execute("SELECT kind, id, name, value FROM field"):
            dict.__setitem__(self._document(kind, ident), name, json.loads(value))
        for documents in self.kinds.values():
            order = sorted(documents.items(), key=lambda item: item[1].get(NTH, 0))
            documents.clear()
            documents.update(order)
        self._nth = max(
            (document.get(NTH, 0) for documents in self.kinds.values() for document in documents.values()), default=0
        )

    def _document(self, kind: str, ident: str) -> Document:
        return self.kinds[kind].setdefault(ident, Document(self, kind, ident))

    def remember(self, document: Document) -> None:
        """Save a document before its first change since the last commit, so that the change can be undone."""
        key = (document.kind, document.ident)
        if key not in self._before and self.kinds[document.kind].get(document.ident) is document:
            self._before[key] = (document, dict(document), set(document.changed))

    def _undo(self) -> None:
        """Restore everything to the last commit."""
        undone = set(self._before)
        for (kind, ident), state in self._before.items():
            documents = self.kinds[kind]
            if state is None:
                documents.pop(ident, None)
                continue
            document, fields, touched = state
            dict.clear(document)
            dict.update(document, fields)
            document.changed = touched
            if documents.get(ident) is not document:
                documents[ident] = document
                order = sorted(documents.items(), key=lambda item: item[1].get(NTH, 0))
                documents.clear()
                documents.update(order)
        self._clear()
        if self.on_undo is not None:
            self.on_undo(undone)

    def _clear(self) -> None:
        for written in (self.dirty, self._gone, self._files, self._later, self._before):
            written.clear()
        self.events.clear()

    def create(self, kind: str, ident: str, fields: Mapping[str, object]) -> Document:
        """Add a document; it replaces one with the same id.

        Fields with the value None are left out. The document has an additional field NTH, its position among all.
        KeyError for an unknown kind.
        """
        self.delete(kind, ident)
        self._before.setdefault((kind, ident), None)
        document = self._document(kind, ident)
        self._nth += 1
        document[NTH] = self._nth
        for name, value in fields.items():
            if value is not None:
                document[name] = value
        return document

    def delete(self, kind: str, ident: str) -> None:
        """Remove a document with its fields; an unknown id is ignored.

        Its files and events stay: see `delete_files` and `drop_events`.
        """
        if (document := self.kinds[kind].get(ident)) is not None:
            self.remember(document)
            del self.kinds[kind][ident]
            self.dirty.pop((kind, ident), None)
            self._gone.append((kind, ident))

    def event(self, fields: Mapping[str, object]) -> None:
        """Add an event with the next commit; see `Events.add`."""
        self.events.add(fields)

    def drop_events(self, column: str, ident: str) -> None:
        """Drops the events of a deleted cluster or infra-env; those of a deleted host are only marked."""
        self.events.drop(column, ident)

    def put_file(self, owner: str, name: str, content: bytes | None) -> None:
        """Store a small file (manifest, ignition, credential); None deletes it.

        `owner` is an id, usually a cluster's, `name` may have slashes (`manifest/openshift/a.yaml`). It is
        written with the next commit, and undone with it; `file` returns it at once.
        """
        self._files[(owner, name)] = content

    def file(self, owner: str, name: str) -> bytes | None:
        """Return the content of a file, also before its commit; None if there is none."""
        if (owner, name) in self._files:
            return self._files[(owner, name)]
        row = self.db.execute("SELECT content FROM file WHERE owner = ? AND name = ?", (owner, name)).fetchone()
        return row[0] if row else None

    def files(self, owner: str, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """Return names and contents of an owner's files whose name begins with a prefix, sorted by name.

        It commits first, so that it sees what this request has written; a failure is raised by the next `commit`.
        """
        self._settle()
        rows = self.db.execute("SELECT name, content FROM file WHERE owner = ? ORDER BY name", (owner,))
        return (row for row in rows.fetchall() if row[0].startswith(prefix))

    def file_names(self, owner: str, prefix: str = "") -> list[str]:
        """Names of files, sorted, without their content."""
        self._settle()
        rows = self.db.execute("SELECT name FROM file WHERE owner = ? ORDER BY name", (owner,))
        return [name for (name,) in rows if name.startswith(prefix)]

    def files_with(self, owner: str, prefix: str, word: bytes, most: int) -> list[bytes]:
        """Return the contents of files of at most `most` bytes that contain a word.

        `word` is compared by bytes, in SQLite, so that large files are not loaded. Sorted by name. It commits first, as
        `files` does.
        """
        self._settle()
        rows = self.db.execute(
            "SELECT name, content FROM file WHERE owner = ? AND length(content) <= ? AND instr(content, ?) ORDER BY name",
            (owner, most, word),
        )
        return [content for name, content in rows if name.startswith(prefix)]

    def delete_files(self, owner: str) -> None:
        """Remove all files of an owner with the next commit, for example when a cluster is deleted."""
        self._later.append(("DELETE FROM file WHERE owner = ?", (owner,)))

    def try_commit(self) -> None:
        """Commit before a read; a file that cannot be written does not prevent reading.

        What could not be written is undone, and later commits report their own failure.
        """
        with contextlib.suppress(Unwritable):
            self.commit()

    def _settle(self) -> None:
        """Commit before the file is read within a request. A failure is reported at the end of the request."""
        try:
            self.commit()
        except Unwritable as err:
            self._refusal = err

    def begin(self) -> None:
        """Start a request: failed commits of other requests do not affect it."""
        self._refusal = None

    def commit(self) -> None:
        """Write all changes since the last commit in one transaction; raise Unwritable and undo them if that fails.

        A failure that a read within this request met (`_settle`) is raised here, too. Without changes it does nothing.
        It does not wait for the disk: `durable` does.
        """
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            self._undo()
            raise refusal
        if not (self.dirty or self._gone or self.events.new or self.events.leaving or self._files or self._later):
            return
        try:
            if self._broken:
                raise sqlite3.OperationalError(self._broken)
            self._write()
        except sqlite3.Error as err:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            self._undo()
            raise Unwritable(f"the state cannot be written: {err}") from None
        for document in self.dirty.values():
            document.changed.clear()
        self.events.written()
        self._clear()
        self._version += 1

    async def durable(self) -> None:
        """Commit and wait until it is on disk; raise Unwritable likewise. Concurrent callers share a flush.

        Handlers of requests that change something await it before the response. After a failed flush the state on disk
        is unknown: every later commit raises Unwritable until the service is started again.
        """
        self.commit()
        wanted = self._version
        while self._flushed < wanted:
            if self._flushing is None:
                self._flushing = asyncio.get_running_loop().create_task(self._flush())
            await asyncio.shield(self._flushing)

    async def _flush(self) -> None:
        version = self._version
        try:
            if self.path != ":memory:":
                if self._wal < 0:
                    self._wal = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)
                await asyncio.get_running_loop().run_in_executor(None, os.fdatasync, self._wal)
            self._flushed = version
        except OSError as err:
            # After an error the kernel may drop what it could not write: the content of the disk is unknown.
            self._broken = f"the disk failed ({err.strerror}); start the service again"
            raise Unwritable(f"the state cannot be written: {self._broken}") from None
        finally:
            self._flushing = None

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
        ):
            if rows:
                run.executemany(statement, rows)
        self.events.write()
        for (owner, name), content in self._files.items():
            if content is None:
                run.execute("DELETE FROM file WHERE owner = ? AND name = ?", (owner, name))
            else:
                run.execute("INSERT OR REPLACE INTO file VALUES (?, ?, ?)", (owner, name, content))
        for statement, values in self._later:
            run.execute(statement, values)
        run.execute("COMMIT")

    async def count_events(self, wanted: Filter) -> Counter[str]:
        """Events by severity."""
        self._settle()
        return await self.events.count(wanted)

    def event_pages(self, wanted: Filter, **options: Unpack[Order]) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield events in pieces; see `Events.pages`."""
        return self._pages(wanted, as_document, **options)

    def event_texts(self, wanted: Filter, **options: Unpack[Order]) -> AsyncIterator[list[str]]:
        """Events in pieces, each as JSON."""
        return self._pages(wanted, as_text, **options)

    async def _pages(
        self, wanted: Filter, shape: Callable[[Row], T], **options: Unpack[Order]
    ) -> AsyncIterator[list[T]]:
        self._settle()
        async for page in self.events.pages(wanted, shape, **options):
            yield page

    def sweep(self) -> bool:
        """Remove some of the deleted events; return whether more are left. Unwritable: try again later.

        At most a quarter of `events.WINDOW` events per call, so that the event loop is not held up. False as well when
        the file cannot be written any more.
        """
        try:
            return not self._broken and self.events.sweep()
        except sqlite3.Error as err:
            raise Unwritable(f"the state cannot be written: {err}") from None

    def close(self) -> None:
        """Write pending changes and close the file; raise Unwritable if that fails."""
        try:
            self.commit()
        finally:
            self.db.close()  # which flushes
            if self._wal >= 0:
                os.close(self._wal)
                self._wal = -1
