"""How the last `create cluster` of an assets directory ended. A report reads it without what creating a cluster imports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..documents import DocumentError, load_json, read_file
from ..state import write_atomic

FILENAME = ".openshift_install_cluster.json"
"""The record, in the assets directory: whether the cluster is complete, and the error."""


def complete(directory: Path) -> bool:
    """Return whether the cluster of this assets directory was created, and is complete."""
    return _read(directory).get("complete") is True


def failure(directory: Path) -> str:
    """Return why the last run in this assets directory failed; "" if it did not, or was interrupted."""
    return str(_read(directory).get("error", ""))


def write(directory: Path, error: str = "") -> None:
    """Record that the cluster is complete, or the error of a run that failed."""
    how = {"complete": False, "error": error} if error else {"complete": True}
    write_atomic(directory / FILENAME, json.dumps(how), 0o600)


def _read(directory: Path) -> Mapping[str, object]:
    try:
        found = load_json(read_file(directory / FILENAME), name=FILENAME)
    except (OSError, DocumentError):
        return {}
    return found if isinstance(found, dict) else {}
