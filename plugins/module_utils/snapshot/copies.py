"""Copies of a lab: its snapshot, running as a cluster with another name, next to the lab itself and to other copies.

Names and addresses inside are the same: domains, networks, host names, certificates, the cluster's domain. What the host sees
has the new name: state directory, run directory, namespace, uplink, owner. In the sandbox of a copy its state directory also has
the path of the original's (`namespaces.ORIGIN`), because the saved machines know files by that path.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TypeVar, cast

from .. import signals, state
from ..plan import created, names, rundir
from ..plan.formats import LABEL
from ..plan.model import Plan
from ..sandbox import namespaces
from ..sandbox.host import NETNS_DIR, claim
from ..state import owner
from . import identity, locks, manifest, room, tree
from . import lab as labs
from .lab import Lab, Note
from .manifest import Manifest, SnapshotError

_HOST = "hypervisor"
MAX_NAME = 54  # of any cluster
_T = TypeVar("_T")


def copy(lab: Lab, name: str, cluster: str, note: Note = lambda __: None) -> Manifest:
    """Start snapshot `name` of `lab` as the new cluster `cluster`, with a run directory next to the lab's.

    Raises `SnapshotError`, and `OwnerError` for a name that is in use; when it fails, nothing is left. Both labs are locked meanwhile
    (`locks`): several copies of one lab can start at once.
    """
    lab.check()
    with locks.exclusive(lab.state_dir, lab.cluster, shared=True):
        return _start(lab, name, cluster, note)


def _start(lab: Lab, name: str, cluster: str, note: Note) -> Manifest:
    saved = labs.usable(lab, name)
    plan = plan_of_copy(lab.plan, cluster)
    target = Path(plan["hypervisor"]["state_dir"])
    run_dir = lab.run_dir.parent / cluster
    for path in (run_dir, target):
        if path.exists() or path.is_symlink():
            raise _taken(path)
    room.check_memory(plan, saved, None)
    place = manifest.place(lab.state_dir, name)
    status = lab.run_dir.stat()
    try:
        run_dir.mkdir(mode=status.st_mode & 0o777)
    except FileExistsError as error:  # another copy was faster, and what is there is its own
        raise _taken(run_dir) from error
    try:
        os.chown(run_dir, status.st_uid, status.st_gid)
        return _copy(lab, saved, place, Lab(plan, run_dir, lab.who, lab.version), note)
    except BaseException:
        with signals.defer_signals():
            found = owner.read(target)
            if found and found.run_dir == os.path.realpath(run_dir):
                namespaces.remove(plan["hypervisor"]["netns"], target, found)
            shutil.rmtree(run_dir, ignore_errors=True)
        raise


def _taken(path: Path) -> SnapshotError:
    return SnapshotError(f"{path} exists: choose another name for the copy, or destroy that cluster and remove it")


def _copy(lab: Lab, saved: Manifest, place: Path, new: Lab, note: Note) -> Manifest:
    labs.fill_run(new, place)
    state.write_atomic(new.run_dir / rundir.PLAN, rundir.plan_text(new.plan), 0o600)
    (new.run_dir / rundir.PROFILE).unlink(missing_ok=True)  # which would be planned with the new name
    who = owner.caller(new.plan, new.run_dir)  # with the mark of the original, which is in machines and networks
    new = Lab(new.plan, new.run_dir, who, new.version)
    (new.run_dir / state.FILE).unlink()
    state.record(new.run_dir, created.items(new.plan, _HOST))
    stages = state.load(place / "run")["stages"]
    for stage, entry in stages.items():
        if entry["result"] == "ok":
            state.finish(new.run_dir, stage, failed=False)
    identity.take_over(new.plan, new.run_dir, who.owner)
    found = claim(new.state_dir, who, NETNS_DIR)
    with locks.exclusive(new.state_dir, new.cluster):
        _run(lab, saved, place, new, found, note)
    return saved


def _run(lab: Lab, saved: Manifest, place: Path, new: Lab, found: owner.Owner, note: Note) -> None:
    origin = lab.state_dir / namespaces.ORIGIN
    (new.state_dir / namespaces.ORIGIN).symlink_to(os.readlink(origin) if origin.is_symlink() else lab.state_dir)
    labs.fill_state(new, place, saved)
    moves = identity.moves(identity.saved_owner(place), new.run_dir)
    identity.move(new.state_dir, [*moves, (str(lab.state_dir), str(new.state_dir))])
    # The sandbox of a copy does not see the original's directory, which the snapshot is in.
    memory = new.state_dir / "memory"
    tree.replicate(place / "memory", memory, linked=lambda __: True)
    labs.start(new, saved, memory, found, note, moves)
    shutil.rmtree(memory)


def plan_of_copy(plan: Plan, cluster: str) -> Plan:
    """Return the plan of a copy with the name `cluster`. Raises `SnapshotError` for a name that is not valid.

    plan: of the original. Paths, namespace and uplink of the host get the new name; names and addresses inside stay.
    The copy saves no snapshots by itself.
    """
    before = plan["hypervisor"]["state_dir"]
    after = names.state_dir(cluster, str(Path(before).parent))
    made = _moved(plan, before, after)
    made["cluster"]["name"] = cluster
    made["hypervisor"]["netns"] = names.netns(cluster)
    made["hypervisor"]["uplink"] = names.uplink(cluster)
    made["snapshots"] = []
    if not re.fullmatch(LABEL, cluster) or len(cluster) > MAX_NAME:
        raise SnapshotError(
            f"name of the copy {cluster!r} is not valid: use lower case letters, digits and '-', at most {MAX_NAME} characters"
        )
    return made


def _moved(value: _T, before: str, after: str) -> _T:
    """Return plain data in which paths in the directory `before` are in `after`."""
    if isinstance(value, dict):
        return cast(_T, {key: _moved(entry, before, after) for key, entry in value.items()})
    if isinstance(value, list):
        return cast(_T, [_moved(entry, before, after) for entry in value])
    return cast(_T, identity.moved_path(value, [(before, after)])) if isinstance(value, str) else value
