"""Server-side apply: who manages which fields, and what a second manager may change.

Managers of applied fields are kept, in `metadata.managedFields`; those of updates and patches are not. A list is one field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .patch import PatchError, merge_patch
from .store import Object, timestamp

Path = tuple[str, ...]
_IDENTITY = {("apiVersion",), ("kind",)}
_OWN_METADATA = ("name", "namespace", "managedFields", "resourceVersion", "uid", "creationTimestamp", "generation")


class ApplyConflict(Exception):
    """Other managers manage fields that are applied with another value: manager -> fields, as `.spec.x`."""

    def __init__(self, found: dict[str, list[str]]) -> None:
        self.found = found
        number = sum(map(len, found.values()))
        texts = "; ".join(f'conflict with "{manager}": {", ".join(fields)}' for manager, fields in found.items())
        super().__init__(f"Apply failed with {number} conflict{'s' if number > 1 else ''}: {texts}")


def apply(old: Object, config: object, manager: str, *, force: bool) -> Object:
    """Return `old` with the fields of `config`, and without those that the manager applied before and left out now.

    old: {} for an object that does not exist. Raises `ApplyConflict` unless `force`, `PatchError` for no mapping.
    """
    if not isinstance(config, dict):
        raise PatchError("an applied configuration is a mapping")
    metadata = {k: v for k, v in (config.get("metadata") or {}).items() if k not in _OWN_METADATA[2:]}
    config = {**config, "metadata": metadata}
    wanted = {path for path in _leaves(config) if path not in _IDENTITY and path[:2] not in _NAMES}
    managed = {entry["manager"]: set(_read(entry["fieldsV1"])) for entry in _entries(old)}
    before = managed.pop(manager, set())
    taken: dict[str, set[Path]] = {}
    for other, paths in managed.items():
        differing = {p for p in paths for w in wanted if _overlap(p, w) and _value_at(old, w) != _value_at(config, w)}
        if differing:
            taken[other] = differing
    if taken and not force:
        raise ApplyConflict({other: sorted("." + ".".join(path) for path in paths) for other, paths in taken.items()})
    for other, paths in taken.items():
        managed[other] -= paths
    result = merge_patch(old, config)
    for path in before - wanted:
        if not any(_overlap(path, kept) for paths in (wanted, *managed.values()) for kept in paths):
            _remove(result, path)
    managed[manager] = wanted
    entries = [_entry(name, paths, result, old) for name, paths in managed.items() if paths]
    return {**result, "metadata": {**result["metadata"], "managedFields": entries}}


_NAMES = {("metadata", name) for name in _OWN_METADATA[:2]}


def _entries(obj: Object) -> list[Object]:
    found = (obj.get("metadata") or {}).get("managedFields") or []
    return [entry for entry in found if entry.get("operation") == "Apply"]


def _entry(manager: str, paths: set[Path], obj: Object, old: Object) -> Object:
    """Return the entry of a manager; the one before if nothing of it changed, so that nothing is written."""
    fields: Object = {}
    for path in sorted(paths):
        at = fields
        for part in path:
            at = at.setdefault(f"f:{part}", {})
    before = next((entry for entry in _entries(old) if entry["manager"] == manager), None)
    if before and before["fieldsV1"] == fields and all(_value_at(old, path) == _value_at(obj, path) for path in paths):
        return before
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": obj["apiVersion"],
        "time": timestamp(),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _read(fields: Object, start: Path = ()) -> Iterator[Path]:
    for name, below in fields.items():
        path = (*start, name.removeprefix("f:"))
        if below:
            yield from _read(below, path)
        else:
            yield path


def _leaves(value: object, start: Path = ()) -> Iterable[Path]:
    if not isinstance(value, dict) or (not value and start):
        return [start]
    return [path for name, below in value.items() for path in _leaves(below, (*start, str(name)))]


def _overlap(one: Path, other: Path) -> bool:
    short = min(len(one), len(other))
    return one[:short] == other[:short]


def _value_at(value: Any, path: Path) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _remove(obj: Object, path: Path) -> None:
    """Remove a field; the mappings above it are copied, because they are those of a stored object."""
    at = obj
    for part in path[:-1]:
        if not isinstance(at.get(part), dict):
            return
        at[part] = dict(at[part])
        at = at[part]
    at.pop(path[-1], None)
