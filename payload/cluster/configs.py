"""Ignition configs as dictionaries: merging them, as the machine-config operator does. Kept small, because the installer imports it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

Config = dict[str, Any]


def merge(base: Config, *others: Mapping[str, Any]) -> Config:
    """Return `base` with the files, links, directories, units and users of `others`; the last one with an entry wins."""
    merged: Config = copy.deepcopy(dict(base))
    for other in others:
        for section, lists in (
            ("storage", {"files": "path", "directories": "path", "links": "path"}),
            ("systemd", {"units": "name"}),
            ("passwd", {"users": "name"}),
        ):
            for field, key in lists.items():
                entries = (other.get(section) or {}).get(field) or []
                if entries:
                    new = {entry[key] for entry in entries}
                    target = merged.setdefault(section, {})
                    target[field] = [entry for entry in target.get(field, []) if entry[key] not in new] + [
                        dict(entry) for entry in entries
                    ]
    return merged
