"""The objects of the cluster: in memory, with a revision log for watches, and on disk as a snapshot plus a log.

Objects in the store are never changed in place: a new version replaces the old one, so readers need no copies.
The directory has `snapshot.json` (the whole state) and `log.jsonl` (one event per line since then); an incomplete last line after
a power loss, is ignored. State is ordered by (epoch, revision); an epoch begins when a member becomes leader.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TypedDict

from ...plugins.module_utils.documents import load_json, read_file

Object = dict[str, Any]
Name = tuple[str, str]

# A watch from an older revision must list again (410 Gone).
HISTORY = 4000
# After this many lines the log is compacted into the snapshot.
COMPACT_LINES = 3000
# A new leader skips this many revisions, so that unreplicated writes of its predecessor cannot share a number with its own.
EPOCH_GAP = 1000


class Event(TypedDict):
    """One change of an object.

    type: ADDED, MODIFIED or DELETED; resource: the store's key, as `pods` or `apps/deployments`; old: the version
    before, None for a new object.
    """

    revision: int
    type: str
    resource: str
    object: Object
    old: Object | None


class ExpiredRevision(Exception):
    """The requested revision is no longer in the history."""


class AlreadyExists(Exception):
    """An object with this name exists."""


class Conflict(Exception):
    """The object changed since the caller read it."""


class NotFound(Exception):
    """No such object."""


class Store:
    """All objects by resource key, namespace and name.

    `directory` is where they are stored; None keeps them in memory only.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory
        self.uid = ""
        self.epoch = 0
        self.revision = 0
        self.objects: dict[str, dict[Name, Object]] = {}
        self.history: deque[Event] = deque(maxlen=HISTORY)
        self.listeners: list[Callable[[Event | None], None]] = []
        self._oldest = 0
        self._log: IO[str] | None = None
        self._lines = 0
        self._sync_due = False
        if directory:
            directory.mkdir(parents=True, exist_ok=True)
            self._load_directory(directory)

    # Reading

    def get(self, resource: str, namespace: str, name: str) -> Object:
        """Return one object; raise NotFound."""
        try:
            return self.objects[resource][namespace, name]
        except KeyError:
            raise NotFound(name) from None

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        """Return one object or None."""
        return self.objects.get(resource, {}).get((namespace, name))

    def items(self, resource: str, namespace: str = "") -> list[Object]:
        """Return the objects of a resource, sorted by namespace and name.

        namespace: empty for those of all namespaces. A resource that was never stored has none.
        """
        found = self.objects.get(resource, {})
        return [found[name] for name in sorted(found) if not namespace or name[0] == namespace]

    def items_at(self, resource: str, namespace: str, revision: int) -> list[Object]:
        """Return what `items` returned at an earlier revision.

        It is found by undoing later events: Expired when the history, which is bounded, does not reach back so far.
        """
        found = {
            (o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in self.items(resource, namespace)
        }
        for event in reversed(list(self.events_since(revision))):
            metadata = event["object"]["metadata"]
            name = (metadata.get("namespace", ""), metadata["name"])
            if event["resource"] != resource or (namespace and name[0] != namespace):
                continue
            if event["old"] is None:
                found.pop(name, None)
            else:
                found[name] = event["old"]
        return [found[name] for name in sorted(found)]

    def events_since(self, revision: int) -> Iterator[Event]:
        """Yield the events after `revision`, the oldest first.

        Raises Expired at once when they are no longer known. Events that are stored meanwhile are not part of it.
        """
        if revision < self._oldest:
            raise ExpiredRevision(f"too old resource version: {revision} ({self._oldest})")
        return (event for event in list(self.history) if event["revision"] > revision)

    # Writing

    def create(self, resource: str, obj: Object) -> Object:
        """Store a new object and return it as stored.

        uid, creationTimestamp, generation and resourceVersion are filled in. Raises AlreadyExists.
        """
        metadata = dict(obj["metadata"])
        name = (metadata.get("namespace", ""), metadata["name"])
        if name in self.objects.get(resource, {}):
            raise AlreadyExists(metadata["name"])
        metadata.update(uid=str(uuid.uuid4()), creationTimestamp=timestamp(), generation=1)
        return self._commit("ADDED", resource, {**obj, "metadata": metadata}, None)

    def update(self, resource: str, obj: Object) -> Object:
        """Replace an object; equal content changes nothing.

        A `resourceVersion` in it must be the stored one: Conflict otherwise; without one the last writer wins. uid and
        creation time stay, the generation counts changes of `spec`. Raises NotFound.
        """
        metadata = dict(obj["metadata"])
        old = self.get(resource, metadata.get("namespace", ""), metadata["name"])
        given = metadata.get("resourceVersion")
        if given and given != old["metadata"]["resourceVersion"]:
            raise Conflict(metadata["name"])
        for field in ("uid", "creationTimestamp", "generation", "resourceVersion"):
            metadata[field] = old["metadata"][field]
        new = {**obj, "metadata": metadata}
        if new == old:
            return old
        if new.get("spec") != old.get("spec"):
            metadata["generation"] += 1
        return self._commit("MODIFIED", resource, new, old)

    def delete(self, resource: str, namespace: str, name: str) -> Object:
        """Remove an object and return its last version."""
        old = self.get(resource, namespace, name)
        return self._commit("DELETED", resource, {**old, "metadata": dict(old["metadata"])}, old)

    def put(self, resource: str, obj: Object) -> Object:
        """Create the object, or replace the one with its name."""
        metadata = obj["metadata"]
        if self.find(resource, metadata.get("namespace", ""), metadata["name"]):
            return self.update(resource, {**obj, "metadata": {**metadata, "resourceVersion": ""}})
        return self.create(resource, obj)

    def _commit(self, kind: str, resource: str, obj: Object, old: Object | None) -> Object:
        obj["metadata"]["resourceVersion"] = str(self.revision + 1)
        self.apply({"revision": self.revision + 1, "type": kind, "resource": resource, "object": obj, "old": old})
        return obj

    def apply(self, event: Event) -> None:
        """Apply one event, our own or a leader's, and write it to the log.

        Its `old` is filled in from this store. The log is synced to disk once a second. Listeners are called before it
        returns.
        """
        items = self.objects.setdefault(event["resource"], {})
        metadata = event["object"]["metadata"]
        name = (metadata.get("namespace", ""), metadata["name"])
        event["old"] = items.get(name)
        if event["type"] == "DELETED":
            items.pop(name, None)
        else:
            items[name] = event["object"]
        self.revision = event["revision"]
        if len(self.history) == HISTORY:
            self._oldest = self.history[0]["revision"]
        self.history.append(event)
        self._append({**event, "old": None})
        for listener in list(self.listeners):
            listener(event)

    # Whole states

    def begin_epoch(self, epoch: int) -> None:
        """Become the source of new revisions under a new epoch.

        The revision jumps by EPOCH_GAP, so that none of a leader before it, which this store does not know, is given
        again.
        """
        self.uid = self.uid or str(uuid.uuid4())
        self.epoch = epoch
        self.revision += EPOCH_GAP
        if not self.history:
            self._oldest = self.revision  # no object has an older one
        self.save()

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as JSON-compatible data."""
        objects = {resource: list(items.values()) for resource, items in self.objects.items() if items}
        return {"uid": self.uid, "epoch": self.epoch, "revision": self.revision, "objects": objects}

    def load(self, snapshot: dict[str, Any]) -> None:
        """Replace the whole state by a snapshot, as `snapshot` returns it.

        Listeners get None: watches end, and their clients list again.
        """
        self._set(snapshot)
        self.save()
        for listener in list(self.listeners):
            listener(None)

    def save(self) -> None:
        """Write the snapshot atomically and begin an empty log.

        Nothing without a directory. Raises OSError.
        """
        if not self.directory:
            return
        if self._log:
            self._log.close()
        _replace(self.directory / "snapshot.json", json.dumps(self.snapshot(), separators=(",", ":")))
        self._log = (self.directory / "log.jsonl").open("w")
        self._lines = 0

    def close(self) -> None:
        """Flush and close the log."""
        if self._log:
            _sync(self._log)
            self._log.close()
            self._log = None

    def _set(self, snapshot: dict[str, Any]) -> None:
        self.uid, self.epoch, self.revision = snapshot["uid"], snapshot["epoch"], snapshot["revision"]
        self.objects = {
            resource: {(o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in items}
            for resource, items in snapshot["objects"].items()
        }
        self.history.clear()
        self._oldest = self.revision

    def _load_directory(self, directory: Path) -> None:
        try:
            self._set(load_json(read_file(directory / "snapshot.json"), name=str(directory / "snapshot.json")))
        except FileNotFoundError:
            return
        for event in _read_log(directory / "log.jsonl"):
            if event["revision"] > self.revision:
                self.apply(event)
        self.save()

    def _append(self, event: Event) -> None:
        if not self._log:
            return
        self._log.write(json.dumps(event, separators=(",", ":")) + "\n")
        self._log.flush()
        self._lines += 1
        if self._lines >= COMPACT_LINES:
            self.save()
        elif not self._sync_due:
            self._sync_later()

    def _sync_later(self) -> None:
        # One fsync a second covers all events of that second: the other members have what a power loss takes.
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._sync_due = True

        def sync() -> None:
            self._sync_due = False
            if self._log:
                loop.run_in_executor(None, _sync, self._log)

        loop.call_later(1, sync)


def timestamp() -> str:
    """Return the time as the API writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _sync(log: IO[str]) -> None:
    try:
        log.flush()
        os.fsync(log.fileno())
    except ValueError:
        pass  # closed meanwhile by a compaction, which has written everything


def _read_log(path: Path) -> Iterable[Event]:
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield load_json(line, name="log")
        except ValueError:
            return


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    with temporary.open("w") as file:
        os.chmod(temporary, 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
