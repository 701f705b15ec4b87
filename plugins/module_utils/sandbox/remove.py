"""Removes what a cluster created on a hypervisor and what has its mark, in any state."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LabError
from ..libvirt import domain, network, storage
from ..libvirt.connection import connect, lookup
from ..plan import names
from ..state import Item, owner
from . import host, namespaces, processes, tunnels, uplink

if TYPE_CHECKING:
    import libvirt

KINDS = {"sandbox", "uplink", "state_dir", "network", "pool", "domain", "tunnel", "service"}

FINDERS = {"domain": "lookupByName", "pool": "storagePoolLookupByName", "network": "networkLookupByName"}
REMOVERS = {"domain": domain.remove, "pool": storage.remove, "network": network.remove}


def remove(created: Sequence[Item], who: owner.Caller, *, check: bool = False) -> list[Item]:
    """Remove the objects in `created` with the mark of the cluster of `who`; return those that existed.

    Removing a sandbox removes everything in it; elsewhere objects are removed one by one, the last one first. Before
    anything is removed, raises `LabError` for an unknown kind, and `owner.OwnerError` for a state directory
    of another, or one with files but without its marker.
    """
    unknown = sorted({item["kind"] for item in created} - KINDS)
    if unknown:
        raise LabError(
            f"state.json lists {', '.join(unknown)}, which this version cannot remove: known are {', '.join(sorted(KINDS))}"
        )
    directories = {
        item["name"]: owner.marked_owner(Path(item["name"]), who) for item in created if item["kind"] == "state_dir"
    }
    for name in directories:
        host.refuse_damaged(Path(name).parent)
    # Without a state directory the mark comes from state.json.
    found = next((one for one in directories.values() if one), who.owner)
    sandboxes = [item["name"] for item in created if item["kind"] == "sandbox"]
    for name, directory in itertools.product(sandboxes, directories):
        namespaces.refuse_foreign_namespace(name, Path(directory), found.mark)
    if sandboxes:
        removed = _sandbox(created, directories, found, check)
    else:
        removed = _carried(created, directories, found, check)
    for item in created:
        if item["kind"] == "state_dir":
            path = Path(item["name"])
            one = directories[item["name"]]
            if one or owner.leftover(path):
                removed.append(item)
            if not check:
                if one or owner.leftover(path):
                    owner.remove(path, one or found)
                host.leave_host(path.parent)
    return removed


def _sandbox(
    created: Sequence[Item], directories: dict[str, owner.Owner | None], found: owner.Owner, check: bool
) -> list[Item]:
    removed = []
    for item in created:
        if item["kind"] == "uplink" and (uplink.exists if check else uplink.remove)(item["name"], found.mark):
            removed.append(item)
    for item in created:
        if item["kind"] != "sandbox":
            continue
        for directory in map(Path, directories):
            if os.path.lexists(host.NETNS_DIR / item["name"]) or namespaces.find(directory):
                removed.append(item)
            if not check:
                namespaces.stop(item["name"], directory, found.mark)
    return removed


def _carried(
    created: Sequence[Item], directories: dict[str, owner.Owner | None], found: owner.Owner, check: bool
) -> list[Item]:
    removed = [item for item in reversed(created) if item["kind"] == "service" and _service(item, directories, check)]
    for item in created:
        if item["kind"] == "uplink" and (uplink.exists if check else uplink.remove)(item["name"], found.mark):
            removed.append(item)
    for item in created:
        if item["kind"] == "tunnel" and (tunnels.exists if check else tunnels.remove)(item["name"], found.mark):
            removed.append(item)
    carried = [item for item in reversed(created) if item["kind"] in FINDERS]
    if carried and found.mark:
        with connect() as connection:
            for item in carried:
                kind, name = item["kind"], item["name"]
                there = lookup(connection, FINDERS[kind], name)
                if there is None or not _is_ours(kind, name, there, found.mark):
                    continue
                removed.append(item)
                if not check:
                    REMOVERS[kind](connection, name, found.mark)
    return removed


def _is_ours(
    kind: str, name: str, there: libvirt.virDomain | libvirt.virNetwork | libvirt.virStoragePool, mark: str
) -> bool:
    if kind == "domain":
        return domain.mark_of(there) == mark
    return bool(there.UUIDString() == owner.identity(mark, kind, name))


def _service(item: Item, directories: dict[str, owner.Owner | None], check: bool) -> bool:
    for directory in directories:
        place = Path(names.process_dir(directory))
        if check:
            return processes.find(place, item["name"]) is not None
        if processes.stop(place, item["name"]):
            return True
    return False
