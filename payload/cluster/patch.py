"""The three patch formats of the Kubernetes API: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any


class PatchError(ValueError):
    """The patch cannot be applied to this object."""


# Lists that a strategic merge patch merges by key (`patchMergeKey` of Kubernetes' types). All others are replaced: a node's
# taints and a pod's containerStatuses, for example.
_MERGE_KEYS: dict[str, str] = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "initContainers": "name",
    "podIPs": "ip",
    "hostIPs": "ip",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ownerReferences": "uid",
    "imagePullSecrets": "name",
    "secrets": "name",
    "hostAliases": "ip",
}
_MERGED_SCALARS = frozenset({"finalizers", "podCIDRs"})


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with a merge patch applied; `null` removes, lists are replaced."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def strategic_merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with a strategic merge patch applied.

    Understands `$patch` (replace, delete, merge), `$deleteFromPrimitiveList/<field>` and lists merged by key;
    `$setElementOrder/<field>` and `$retainKeys` only reorder or prune and are dropped.
    """
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {name: copy.deepcopy(value) for name, value in patch.items() if name != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            result[field] = [item for item in result.get(field, []) if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        elif isinstance(value, list):
            result[name] = _merge_list(name, result.get(name) or [], value)
        else:
            result[name] = strategic_merge_patch(result.get(name), value)
    return result


def _merge_key(field: str, patch: list[Any]) -> str | None:
    if field == "ports":  # of a container, or of a Service
        return "containerPort" if any(isinstance(item, dict) and "containerPort" in item for item in patch) else "port"
    return _MERGE_KEYS.get(field)


def _merge_list(field: str, target: list[Any], patch: list[Any]) -> list[Any]:
    if field in _MERGED_SCALARS:
        return target + [item for item in patch if item not in target]
    key = _merge_key(field, patch)
    if key is None or not all(isinstance(item, dict) for item in patch):
        return copy.deepcopy(patch)
    if any(item.get("$patch") == "replace" for item in patch):
        return [copy.deepcopy(item) for item in patch if "$patch" not in item]
    result = list(target)
    for item in patch:
        if key not in item:
            raise PatchError(f"list {field}: an element lacks its merge key {key}")
        at = next((i for i, old in enumerate(result) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(strategic_merge_patch({}, item))
        else:
            result[at] = strategic_merge_patch(result[at], item)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """Return `target` with a JSON patch applied: add, remove, replace, move, copy, test."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    result = copy.deepcopy(target)
    for operation in operations:
        try:
            result = _operate(result, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            if isinstance(error, PatchError):
                raise
            raise PatchError(f"operation {operation!r} does not match the object: {error!r}") from None
    return result


def _operate(document: Any, operation: dict[str, Any]) -> Any:
    op, path = operation["op"], operation["path"]
    if op == "test":
        if _lookup(document, path) != operation["value"]:
            raise PatchError(f"test of {path} failed: the value is {_lookup(document, path)!r}")
        return document
    if op == "remove":
        return _remove(document, path)
    if op in ("add", "replace"):
        return _insert(document, path, copy.deepcopy(operation["value"]), op == "add")
    if op in ("copy", "move"):
        value = copy.deepcopy(_lookup(document, operation["from"]))
        if op == "move":
            document = _remove(document, operation["from"])
        return _insert(document, path, value, True)
    raise PatchError(f"unknown operation {op!r}: use add, remove, replace, move, copy or test")


def _pointer(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise PatchError(f"path {path!r} does not start with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


def _step(container: Any, part: str) -> Any:
    return container[int(part)] if isinstance(container, list) else container[part]


def _lookup(document: Any, path: str) -> Any:
    for part in _pointer(path):
        document = _step(document, part)
    return document


def _parent(document: Any, path: str) -> tuple[Any, str]:
    *parents, last = _pointer(path)
    for part in parents:
        document = _step(document, part)
    return document, last


def _remove(document: Any, path: str) -> Any:
    parent, last = _parent(document, path)
    del parent[int(last) if isinstance(parent, list) else last]
    return document


def _insert(document: Any, path: str, value: Any, add: bool) -> Any:
    if path == "":
        return value
    parent, last = _parent(document, path)
    if isinstance(parent, list):
        if add:
            index = len(parent) if last == "-" else int(last)
            if not 0 <= index <= len(parent):
                raise PatchError(f"index {last} of {path} is outside of the list")
            parent.insert(index, value)
        else:
            parent[int(last)] = value
    elif not add and last not in parent:
        raise PatchError(f"{path} does not exist and cannot be replaced")
    else:
        parent[last] = value
    return document
