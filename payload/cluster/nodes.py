"""Queries on Node objects."""

from __future__ import annotations

from collections.abc import Iterable

from .conditions import is_true
from .store import Object

ROLE = "node-role.kubernetes.io/"


def has_role(node: Object, role: str) -> bool:
    """Return whether a node has the role's label."""
    return f"{ROLE}{role}" in node["metadata"].get("labels", {})


def ready(nodes: Iterable[Object], role: str = "") -> list[Object]:
    """Return the nodes that are Ready, of a role if one is given."""
    return [node for node in nodes if is_true(node, "Ready") and (not role or has_role(node, role))]


def addresses(node: Object, kind: str = "InternalIP") -> list[str]:
    """Return a node's addresses of a type."""
    return [entry["address"] for entry in node.get("status", {}).get("addresses", ()) if entry["type"] == kind]
