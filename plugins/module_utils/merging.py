"""Documents laid over each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, Any]:
    """Return `base` with `over` laid over it: mappings are merged, everything else is replaced. Shares nothing mutable.

    Neither argument is changed. Lists are replaced as a whole, as null is.
    """
    merged = {key: _copy(value) for key, value in base.items()}
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else _copy(value)  # type: ignore[arg-type]
    return merged


def _copy(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
