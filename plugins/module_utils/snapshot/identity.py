"""What of a snapshot names its lab: the mark of its owner, and paths in its run directory.

The lab may have been destroyed and prepared again since, which gives it another mark, and may be in another run directory. The
mark is in networks and machines, also in their saved memory, so the lab takes that of the snapshot. Paths are changed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from xml.sax.saxutils import escape

from .. import state
from ..plan import rundir
from ..plan.model import Plan
from ..sandbox import namespaces, uplink
from ..state import owner
from ..state.owner import Owner
from .manifest import DIRECTORY, SnapshotError

Move = tuple[str, str]
"""A directory before and after: what is in the first one is in the second."""


def saved_owner(place: Path) -> Owner:
    """Return the owner of the lab when the snapshot at `place` was saved.

    Its mark is that of machines and networks in the snapshot. Raises `SnapshotError`.
    """
    try:
        return owner.from_fact({"owner": state.load(place / "run")["owner"]}).owner
    except ValueError as error:
        path = place / "run" / state.FILE
        raise SnapshotError(
            f"snapshot {place.name} is damaged: {path} does not name the owner of its lab; delete it"
        ) from error


def moves(saved: Owner, run_dir: Path) -> list[Move]:
    """Return how paths in the run directory change: not at all, unless the snapshot of owner `saved` is from another one."""
    here = os.path.realpath(run_dir)
    return [] if here == saved.run_dir else [(saved.run_dir, here)]


def take_mark(plan: Plan, found: Owner, mark: str) -> Owner:
    """Give a lab whose sandbox has ended the mark of a snapshot; return its owner with it.

    found: the owner of the lab. What this host still has with its other mark is removed.
    """
    if found.mark == mark:
        return found
    uplink.remove(plan["cluster"]["name"], found.mark)
    taken = replace(found, mark=mark)
    path = Path(plan["hypervisor"]["state_dir"]) / owner.FILE
    state.write_atomic(path, json.dumps(asdict(taken), indent=1) + "\n")
    return taken


def take_over(plan: Plan, run_dir: Path, who: Owner) -> None:
    """Note the owner `who` in a run directory that is filled from a snapshot, and where the directory is.

    Files that root has written belong to the owner of the directory.
    """
    state.record(run_dir, (), asdict(who))
    state.write_atomic(run_dir / rundir.INVENTORY, rundir.dump(rundir.inventory(plan, run_dir)))
    status = run_dir.stat()
    for name in (state.FILE, rundir.INVENTORY, rundir.PLAN):
        os.chown(run_dir / name, status.st_uid, status.st_gid)


def move(state_dir: Path, changes: Sequence[Move]) -> None:
    """Give libvirt's definitions and the symbolic links of a state directory the paths after `changes`; its snapshots stay."""
    if not changes:
        return
    for path in (state_dir / "sandbox/etc-libvirt").rglob("*.xml"):
        if path.is_file() and not path.is_symlink():
            mode, text = path.stat().st_mode & 0o777, path.read_text(encoding="utf-8")
            state.write_atomic(path, moved_xml(text, changes), mode)
    for folder, directories, names in os.walk(state_dir):
        if DIRECTORY in directories and Path(folder) == state_dir:
            directories.remove(DIRECTORY)
        for name in (*directories, *names):
            path = Path(folder, name)
            if path.is_symlink() and path.name != namespaces.ORIGIN:
                link = os.readlink(path)
                if (target := moved_path(link, changes)) != link:
                    path.unlink()
                    path.symlink_to(target)


def moved_path(path: str, changes: Sequence[Move]) -> str:
    """Return where a path is after `changes`: the directory itself or what is in it; others stay."""
    for before, after in changes:
        if path == before or path.startswith(f"{before}/"):
            return after + path[len(before) :]
    return path


def moved_xml(text: str, changes: Sequence[Move]) -> str:
    """Return a definition of libvirt in which whole values that are paths are as `moved_path` has them."""
    for before, after in changes:
        pattern = rf"(?<=['\">]){re.escape(_escaped(before))}(?=[/'\"<])"
        text = re.sub(pattern, _escaped(after).replace("\\", "\\\\"), text)
    return text


def _escaped(path: str) -> str:
    return escape(path, {"'": "&apos;", '"': "&quot;"})
