"""Remove what `state.json` lists, whatever is left of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..sandbox import LabError, namespaces, processes, uplink
from ..state import Item
from . import domain, network, storage
from .connection import connect, lookup

KINDS = {"sandbox", "uplink", "state_dir", "network", "pool", "domain", "service"}

FINDERS = {"domain": "lookupByName", "pool": "storagePoolLookupByName", "network": "networkLookupByName"}


def remove(created: Sequence[Item], cluster: str, *, check: bool = False) -> list[Item]:
    """Remove the things in `created` that `cluster` made; return those that were there.

    A sandbox takes everything that is in it along; elsewhere each thing is removed by itself, the last one first. Raises
    `LabError` for a kind that nobody here knows.
    """
    unknown = sorted({item["kind"] for item in created} - KINDS)
    if unknown:
        raise LabError(f"state.json lists {', '.join(unknown)}, which this version cannot remove: known are {', '.join(sorted(KINDS))}")
    directories = [item for item in created if item["kind"] == "state_dir"]
    if any(item["kind"] == "sandbox" for item in created):
        found = [item for item in created if item["kind"] == "sandbox" and _sandbox_exists(item, directories)]
        found += [item for item in directories if Path(item["name"]).exists()]
        if not check:
            for item in created:
                if item["kind"] == "uplink" and uplink.remove(item["name"]):
                    found.append(item)
            for item in created:
                if item["kind"] == "sandbox":
                    for directory in directories:
                        namespaces.remove(item["name"], Path(directory["name"]))
        return found
    removed = [item for item in reversed(created) if item["kind"] == "service" and _service(item, directories, check)]
    carried = [item for item in reversed(created) if item["kind"] in ("domain", "pool", "network")]
    if carried:
        with connect() as connection:
            for item in carried:
                if lookup(connection, FINDERS[item["kind"]], item["name"]) is None:
                    continue
                if check or _carried(connection, item, cluster):
                    removed.append(item)
    for item in directories:
        path = Path(item["name"])
        if path.exists():
            removed.append(item)
            if not check:
                shutil.rmtree(path)
        if not check:
            namespaces.leave_host(path.parent)
    return removed


def _carried(connection: object, item: Item, cluster: str) -> bool:
    if item["kind"] == "domain":
        return domain.remove(connection, item["name"], cluster)
    if item["kind"] == "pool":
        return storage.remove(connection, item["name"])
    return network.remove(connection, item["name"], cluster)


def _service(item: Item, directories: Sequence[Item], check: bool) -> bool:
    for directory in directories:
        place = Path(directory["name"]) / "processes"
        if check:
            return processes.find(place, item["name"]) is not None
        if processes.stop(place, item["name"]):
            return True
    return False


def _sandbox_exists(item: Item, directories: Sequence[Item]) -> bool:
    named = os.path.lexists(namespaces.NETNS_DIR / item["name"])
    return named or any(namespaces.find(Path(directory["name"])) for directory in directories)
