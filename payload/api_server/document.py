"""A document of the store: a dictionary that notices which of its fields change."""

from __future__ import annotations

from typing import Any, Protocol, cast

from .objects import Cluster, Host, InfraEnv


class Keeper(Protocol):
    """What a document needs of the store that it belongs to.

    kinds: the documents by kind and id; dirty: those that the next commit writes, by kind and id.
    """

    kinds: dict[str, dict[str, Document]]
    dirty: dict[tuple[str, str], Document]

    def remember(self, document: Document) -> None:
        """Save a document before its first change since the last commit, so that the change can be undone."""


class Document(dict[str, Any]):
    """A dictionary that tracks which top-level fields changed since the last commit. Replace values, never mutate them.

    Values must be JSON. Setting an equal value changes nothing. A document that was deleted can still be set, without
    effect on the file. `changed` has the names that the next commit writes.
    """

    def __init__(self, store: Keeper, kind: str, ident: str) -> None:
        super().__init__()
        self.kind, self.ident, self._store = kind, ident, store
        self.changed: set[str] = set()

    def __setitem__(self, name: str, value: object) -> None:
        if name not in self or self[name] != value:
            self._store.remember(self)
            super().__setitem__(name, value)
            self.changed.add(name)
            self._mark()

    def _mark(self) -> None:
        """Add it to the next commit, unless it was deleted; another document may have its id."""
        if self._store.kinds[self.kind].get(self.ident) is self:
            self._store.dirty[(self.kind, self.ident)] = self

    def set(self, **fields: object) -> None:
        """Sets several fields; None removes one.

        Same as assigning each; removing an absent field changes nothing. It is the usual way to set fields of which a
        TypedDict does not allow None.
        """
        for name, value in fields.items():
            if value is None:
                self.drop(name)
            else:
                self[name] = value

    def drop(self, *names: str) -> None:
        """Remove fields; absent ones are ignored. The removal is part of the next commit."""
        for name in names:
            if name in self:
                self._store.remember(self)
                super().__delitem__(name)
                self.changed.add(name)
                self._mark()

    def touch(self, name: str, value: object) -> None:
        """Set a field without a commit of its own; it is written with the next change of the document.

        For observations at each poll, which would otherwise cause a commit each. Not undone if it was the only change.
        `flush` writes it with the monitors' pass.
        """
        super().__setitem__(name, value)
        self.changed.add(name)

    def restore(self, name: str, value: object) -> None:
        """Set a field that is not written: it is derived when the service starts."""
        super().__setitem__(name, value)

    def flush(self) -> None:
        """Add the touched fields to the next commit."""
        if self.changed:
            self._mark()


def tracked_document(shown: Host | Cluster | InfraEnv) -> Document:
    """Return a host, cluster or infra-env of the store as the document that it is, whose fields are set by name.

    The TypedDicts in `objects` describe the same dictionary; `set`, `drop`, `touch` and `restore` are methods of the
    document only. A plain dict has none of them.
    """
    return cast(Document, shown)
