"""Events: an append-only table. Queries run in windows, between which the event loop continues.

Counts are kept in memory for every filter except a text in the message. Events of deleted objects are hidden at
once and removed, or marked, a window at a time.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, TypeVar

SCHEMA = """
CREATE TABLE IF NOT EXISTS event (
  seq INTEGER PRIMARY KEY, name TEXT, cluster_id TEXT, host_id TEXT, infra_env_id TEXT, severity TEXT, category TEXT,
  message TEXT, event_time TEXT, props TEXT, deleted_host INTEGER DEFAULT 0);
CREATE INDEX IF NOT EXISTS event_cluster ON event (cluster_id);
CREATE INDEX IF NOT EXISTS event_infra_env ON event (infra_env_id);
CREATE INDEX IF NOT EXISTS event_host ON event (host_id);
CREATE TABLE IF NOT EXISTS forgotten (owner TEXT, id TEXT, upto INTEGER, PRIMARY KEY (owner, id)) WITHOUT ROWID;
"""
FIELDS = ("name", "cluster_id", "host_id", "infra_env_id", "severity", "category", "message", "event_time", "props")
#: Fields of an event in the API, if set; upstream does not show the category.
SHOWN = tuple(name for name in FIELDS if name != "category")
T = TypeVar("T")
#: Values of the columns SHOWN.
Row = tuple[str | None, ...]
#: Number of events processed without a pause, and of counts: some milliseconds each.
WINDOW, COUNTS = 1000, 10_000
#: Columns by which events are deleted; those of a host are only marked.
OWNERS = ("cluster_id", "infra_env_id", "host_id")
_DELETED = "EXISTS (SELECT 1 FROM forgotten f WHERE f.owner = '{0}' AND f.id = event.{0} AND event.seq <= f.upto)"


class Order(TypedDict, total=False):
    """Which of the filtered events, and in which order; `limit` -1: all.

    Of `v2ListEvents`: `offset` events are passed over after filtering; the order is that of the numbers in which the
    events were written, not of `event_time`. Missing keys mean ascending, all, from the first.
    """

    descending: bool
    limit: int
    offset: int


class Key(NamedTuple):
    """Key of an event counter.

    One counter exists for each combination of values that occurs. The fields are columns of the table; the last one is
    0 or 1. `count` adds up the counters that a filter takes, so that a query of counts reads no events.
    """

    cluster_id: str | None
    infra_env_id: str | None
    host_id: str | None
    severity: str | None
    category: str | None
    deleted_host: int


@dataclass(frozen=True)
class Filter:
    """Filter of events. `hosts`, `cluster_level` and `deleted_hosts` are combined by OR; empty fields do not filter.

    The fields are combined by AND otherwise, and several values of one field by OR. `message` is looked for anywhere in
    the text, regardless of case; it is the one field that counters cannot answer.
    """

    cluster_id: str = ""
    infra_env_id: str = ""
    hosts: tuple[str, ...] = ()
    #: Events of no host, those of infra-envs included.
    cluster_level: bool = False
    deleted_hosts: bool = False
    message: str = ""
    categories: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()

    def takes(self, key: Key) -> bool:
        """Return whether the filter includes the events of a counter, ignoring their messages.

        Must agree with `where`, which selects the same events in SQL.
        """
        return (
            (not self.cluster_id or key.cluster_id == self.cluster_id)
            and (not self.infra_env_id or key.infra_env_id == self.infra_env_id)
            and (
                not (self.hosts or self.cluster_level or self.deleted_hosts)
                or key.host_id in self.hosts
                or (self.cluster_level and key.host_id is None)
                or (self.deleted_hosts and bool(key.deleted_host))
            )
            and (not self.categories or key.category in self.categories)
            and (not self.severities or key.severity in self.severities)
        )

    def index(self) -> tuple[str, str, list[str]]:
        """Return the table for FROM with the index that serves the filter, its part of the WHERE clause, and its value.

        `1` and no value if no index serves. Windows of a query are measured with it: fewer rows are read than with the
        number alone. The index is named, because the rows of a window are few in this one only: SQLite might choose
        another, and read all events of no host for the few of one cluster.
        """
        column = "cluster_id" if self.cluster_id else "infra_env_id" if self.infra_env_id else ""
        if not column and len(self.hosts) == 1 and not (self.cluster_level or self.deleted_hosts):
            return "event INDEXED BY event_host", "host_id = ?", [self.hosts[0]]
        if not column:
            return "event NOT INDEXED", "1", []
        return f"event INDEXED BY event_{column.removesuffix('_id')}", f"{column} = ?", [getattr(self, column)]

    def where_clause(self, deleted: str) -> tuple[str, list[Any]]:
        """Return the whole WHERE clause, and the values of its question marks.

        `1` if nothing is filtered. Values are never part of the text. `deleted` is the expression for "of a deleted
        host". Deleted events that are not removed yet are left to the caller.
        """
        clauses, values = list[str](), list[Any]()

        def add(clause: str, *more: object) -> None:
            clauses.append(clause)
            values.extend(more)

        if self.cluster_id:
            add("cluster_id = ?", self.cluster_id)
        if self.infra_env_id:
            add("infra_env_id = ?", self.infra_env_id)
        who = [f"host_id IN ({_marks(self.hosts)})"] if self.hosts else []
        who += ["host_id IS NULL"] if self.cluster_level else []
        who += [deleted] if self.deleted_hosts else []
        if who:
            add(f"({' OR '.join(who)})", *self.hosts)
        if self.message:
            add("instr(lower(message), ?) > 0", self.message.lower())
        for name, wanted in (("category", self.categories), ("severity", self.severities)):
            if wanted:
                add(f"{name} IN ({_marks(wanted)})", *wanted)
        return " AND ".join(clauses) or "1", values


def as_document(row: Row) -> dict[str, Any]:
    """An event as the API shows it.

    `row` has the columns SHOWN. Columns that are NULL or empty are left out, except for the message. `props` stays JSON
    in a string, as in upstream's model `event`.
    """
    return {name: value for name, value in zip(SHOWN, row, strict=True) if value or name == "message"}


_encoded = json.JSONEncoder(ensure_ascii=False).encode
_NAMES = tuple((name, f'"{name}":') for name in SHOWN)


def as_text(row: Row) -> str:
    """An event as the API shows it, as JSON.

    For lists of any length: it leaves no containers behind. A million of them make Python's garbage collector walk all
    objects of the process repeatedly, which holds the event loop for tens of milliseconds each time.
    """
    pairs = [
        name + _encoded(value) for (key, name), value in zip(_NAMES, row, strict=True) if value or key == "message"
    ]
    return f"{{{','.join(pairs)}}}"


def _marks(values: Iterable[object]) -> str:
    return ",".join("?" for __ in values)


class Events:
    """The events in a database that belongs to one thread. Changes take part in the transaction of the caller.

    Another thread must not use it. `new` and `leaving` are pending changes: `write` puts them into the caller's
    transaction, then `written` (committed) or `clear` (rolled back) must follow, so that the counters stay true.
    Opening it counts all events once, by a query over the whole table.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.new: list[tuple[Any, ...]] = []
        #: Owners whose events are to be deleted with the next commit.
        self.leaving: list[tuple[str, str]] = []
        self._pending = bool(db.execute("SELECT 1 FROM forgotten LIMIT 1").fetchone())
        self.counts: Counter[Key] = Counter()
        columns = "cluster_id, infra_env_id, host_id, severity, category"
        for *key, count in db.execute(
            f"SELECT {columns}, {self._deleted_host()} AS gone, count(*) FROM event WHERE {self._present()} GROUP BY {columns}, gone"
        ):
            self.counts[Key(*key)] = count

    def add(self, fields: Mapping[str, object]) -> None:
        """Add an event with the next commit.

        `fields` may have any of FIELDS; a missing one becomes NULL. It is not visible before the commit.
        """
        self.new.append(tuple(fields.get(name) for name in FIELDS))

    def drop(self, owner: str, ident: str) -> None:
        """Drops the events of a deleted cluster or infra-env, marks those of a deleted host, with the next commit.

        `owner` is a column of OWNERS, `ident` its value. Only events up to the commit are affected: an object that gets
        the same id later keeps its own. `sweep` does the work.
        """
        self.leaving.append((owner, ident))

    def clear(self) -> None:
        """Drop the pending events of the next commit."""
        self.new.clear()
        self.leaving.clear()

    def write(self) -> None:
        """Write pending events, inside a transaction.

        Only a mark is written per deleted object in a table of its own, so deletion takes the same time for any number
        of events. Raises sqlite3.Error; the counters are untouched until `written`.
        """
        if self.new:
            self.db.executemany(f"INSERT INTO event ({', '.join(FIELDS)}) VALUES ({_marks(FIELDS)})", self.new)
        for owner, ident in self.leaving:
            self.db.execute(
                "INSERT OR REPLACE INTO forgotten SELECT ?, ?, coalesce(max(seq), 0) FROM event", (owner, ident)
            )

    def written(self) -> None:
        """Count what was written, and drop it from the pending changes; call it after the commit.

        Counters of a deleted cluster or infra-env disappear, those of a deleted host move to `deleted_host` 1.
        """
        names = {name: at for at, name in enumerate(FIELDS)}
        for event in self.new:
            self.counts[Key._make((*(event[names[name]] for name in Key._fields[:-1]), 0))] += 1
        for owner, ident in self.leaving:
            self._pending = True
            for key in [key for key in self.counts if getattr(key, owner) == ident]:
                count = self.counts.pop(key)
                if owner == "host_id":
                    self.counts[key._replace(deleted_host=1)] += count
        self.clear()

    def _deleted_host(self) -> str:
        """Expression for "of a deleted host", 0 or 1; includes events that are not marked yet."""
        return f"max(deleted_host, {_DELETED.format('host_id')})" if self._pending else "deleted_host"

    def _present(self) -> str:
        """Exclude events that are deleted but not removed yet."""
        if not self._pending:
            return "1"
        return " AND ".join(f"NOT {_DELETED.format(owner)}" for owner in OWNERS if owner != "host_id")

    def sweep(self) -> bool:
        """Remove or mark a window of deleted events. Return whether more are left. sqlite3.Error: try again later.

        A window has WINDOW / 4 events, of one deleted object. It runs inside the caller's transaction. The deletion is
        finished, and its mark removed, with the first window that finds nothing.
        """
        found = self.db.execute("SELECT owner, id, upto FROM forgotten LIMIT 1").fetchone()
        if found is None:
            self._pending = False
            return False
        owner, ident, upto = found
        change, still = (
            ("UPDATE event SET deleted_host = 1", "AND deleted_host = 0")
            if owner == "host_id"
            else ("DELETE FROM event", "")
        )
        done = self.db.execute(
            f"{change} WHERE seq IN (SELECT seq FROM event WHERE {owner} = ? AND seq <= ? {still} LIMIT ?)",
            (ident, upto, WINDOW // 4),
        )
        if done.rowcount == 0:
            self.db.execute("DELETE FROM forgotten WHERE owner = ? AND id = ? AND upto = ?", (owner, ident, upto))
        return True

    async def count(self, wanted: Filter) -> Counter[str]:
        """Return the number of events per severity.

        Keys: `info`, `warning`, `error`, `critical`, as far as there are any. From the counters, or by reading if the
        filter has a message. It pauses for other requests, so events that arrive meanwhile may or may not be included.
        """
        found: Counter[str] = Counter()
        if not wanted.message:
            for at, (key, count) in enumerate(list(self.counts.items())):
                if wanted.takes(key):
                    found[str(key.severity)] += count
                if at % COUNTS == COUNTS - 1:
                    await asyncio.sleep(0)
            return found
        table, where, values = self._query(wanted)
        async for low, high in self._windows(wanted, False):
            found.update(
                dict(
                    self.db.execute(
                        f"SELECT severity, count(*) FROM {table} WHERE {where} AND seq BETWEEN ? AND ? GROUP BY severity",
                        [*values, low, high],
                    )
                )
            )
        return found

    async def pages(
        self, wanted: Filter, shape: Callable[[Row], T], *, descending: bool = False, limit: int = -1, offset: int = 0
    ) -> AsyncIterator[list[T]]:
        """The events in order, each as `shape` makes it of a row; `limit` -1: all.

        Yields lists of at most WINDOW results, never an empty one, with a pause after each window; `offset` counts
        filtered events. Events that are added after the start are not included. `shape` is `as_document` or `as_text`.
        """
        table, where, values = self._query(wanted)
        order = "DESC" if descending else "ASC"
        async for low, high in self._windows(wanted, descending):
            if limit == 0:
                return
            if offset:
                (count,) = self.db.execute(
                    f"SELECT count(*) FROM {table} WHERE {where} AND seq BETWEEN ? AND ?", [*values, low, high]
                ).fetchone()
                if count <= offset:
                    offset -= count
                    continue
            cursor = self.db.execute(
                f"SELECT {', '.join(SHOWN)} FROM {table} WHERE {where} AND seq BETWEEN ? AND ? ORDER BY seq {order} LIMIT ? OFFSET ?",
                [*values, low, high, limit, offset],
            )
            rows = [shape(row) for row in cursor]
            offset, limit = 0, limit - len(rows) if limit > 0 else limit
            if rows:
                yield rows

    def _query(self, wanted: Filter) -> tuple[str, str, list[Any]]:
        """Return what FROM and WHERE of a query say, and the values of its question marks."""
        where, values = wanted.where_clause(self._deleted_host())
        return wanted.index()[0], f"{where} AND {self._present()}", values

    async def _windows(self, wanted: Filter, descending: bool) -> AsyncIterator[tuple[int, int]]:
        """Yield the first and last number of windows of at most WINDOW events, up to the current end, with a pause between them."""
        table, index, values = wanted.index()
        (end,) = self.db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
        low, high = 1, end
        order = "DESC" if descending else "ASC"
        while low <= high:
            found = self.db.execute(
                f"SELECT seq FROM {table} WHERE {index} AND seq BETWEEN ? AND ? ORDER BY seq {order} LIMIT 1 OFFSET ?",
                [*values, low, high, WINDOW - 1],
            ).fetchone()
            edge = found[0] if found else low if descending else high
            yield (edge, high) if descending else (low, edge)
            low, high = (low, edge - 1) if descending else (edge + 1, high)
            await asyncio.sleep(0)
