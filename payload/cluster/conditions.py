"""Conditions of objects: a transition time changes only when the status does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .store import Object, timestamp


def condition(kind: str, status: bool | str, reason: str = "AsExpected", message: str = "") -> Object:
    """Return a condition as `merge_conditions` takes it."""
    text = status if isinstance(status, str) else str(status)
    return {"type": kind, "status": text, "reason": reason, "message": message}


def merge_conditions(old: list[Object], new: list[Object]) -> list[Object]:
    """Return `old` with the conditions of `new`, each with its lastTransitionTime."""
    before = {entry["type"]: entry for entry in old}
    result = dict(before)
    for entry in new:
        known = before.get(entry["type"])
        since = (
            known["lastTransitionTime"]
            if known and known["status"] == entry["status"] and "lastTransitionTime" in known
            else timestamp()
        )
        result[entry["type"]] = {**entry, "lastTransitionTime": since}
    return list(result.values())


def status(obj: Mapping[str, Any], kind: str) -> str:
    """Return the status of a condition, empty if the object does not have it."""
    return next((str(c["status"]) for c in obj.get("status", {}).get("conditions", ()) if c["type"] == kind), "")


def is_true(obj: Mapping[str, Any], kind: str) -> bool:
    """Return whether a condition is True."""
    return status(obj, kind) == "True"
