"""The three patch formats of the Kubernetes API: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jsonpatch


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


def merge_patch(target: object, patch: object) -> Any:
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


def strategic_merge_patch(target: object, patch: object) -> Any:
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


def json_patch(target: object, operations: object) -> Any:
    """Return `target` with a JSON patch applied. Raises `PatchError` for a patch that is not valid or does not fit."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise PatchError("a JSON patch is a list of operations")
    try:
        return jsonpatch.apply_patch(target, operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, KeyError, TypeError, ValueError) as error:
        # It does not expect paths that are not strings, or lead through a string.
        raise PatchError(f"the patch does not match the object: {error}") from None


#: Content type of a PATCH -> function of the object and the body; PatchError if it cannot be applied.
PATCHES: dict[str, Callable[[object, object], Any]] = {
    "application/json-patch+json": json_patch,
    "application/merge-patch+json": merge_patch,
    "application/strategic-merge-patch+json": strategic_merge_patch,
    # Server-side apply without ownership of fields: the applied fields win.
    "application/apply-patch+yaml": merge_patch,
    "application/apply-patch+json": merge_patch,
}
