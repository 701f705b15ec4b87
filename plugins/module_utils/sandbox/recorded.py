"""What a cluster creates, noted in its run directory before it is created: its objects and its owner, and the lab's certificates."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

from .. import state
from ..errors import LabError
from ..installer import state as installer_state
from ..plan import certificates, created, ipi
from ..plan.model import Plan
from ..state import owner


class RecordResult(NamedTuple):
    """created: the objects that were not listed yet; certified: whether certificates were issued; who: the owner, with the mark of the objects."""

    created: list[state.Item]
    certified: bool
    who: owner.Caller


def record(plan: Plan, run_dir: Path, host: str, who: owner.Caller, *, check: bool = False) -> RecordResult:
    """List the objects of `plan` in `state.json`, and issue the certificates in `tls/`.

    host: inventory name of the hypervisor. What a former cluster of this name left in the run directory is removed first. Raises
    `OwnerError` for a cluster of another, `StateError` for a damaged list, and `LabError` when a cluster exists whose list is lost.
    """
    items = created.items(plan, host)
    recorded = state.load(run_dir)
    listed = recorded["created"]
    found = None
    if not who.remote:
        directory = Path(plan["hypervisor"]["state_dir"])
        owner.refuse_foreign(directory)
        found = owner.verify(directory, who)
    if found and not listed and found.plan != who.owner.plan:
        raise LabError(
            f"cluster {found.cluster} exists with a different plan, and {run_dir}/state.json, which lists its objects, "
            f"is lost: remove it first, agentlab destroy PROFILE --cluster {found.cluster}"
        )
    # Another hypervisor may have been recorded since the plan was read.
    noted = (recorded["owner"] or {}).get("mark", "")
    mark = found.mark if found else who.owner.mark or noted or str(uuid.uuid4())
    who = replace(who, owner=replace(who.owner, mark=mark))
    if not check:
        if not listed:
            _clear(plan, run_dir)
        state.record(run_dir, items, asdict(who.owner))
    certified = not plan["hypervisor"].get("further") and certificates.ensure(
        run_dir / "tls", plan["cluster"]["name"], certificates.served_names(plan), check=check
    )
    return RecordResult([item for item in items if item not in listed], certified, who)


def discard(run_dir: Path, *, check: bool = False) -> list[Path]:
    """Remove the list and the certificates; return the paths that were there."""
    there = [path for path in (run_dir / state.FILE, run_dir / "tls") if path.exists()]
    if not check:
        for path in there:
            _remove(path)
    return there


def _clear(plan: Plan, run_dir: Path) -> None:
    """Remove what the next cluster of this name would take for its own.

    The installer's state of an agent-based one stays: `create cluster` removes with it what it lists.
    """
    kept = [installer_state.FILENAME] if installer_state.is_ours(run_dir) else []
    for name in ("logs", "report", *(ipi.LEFT if ipi.bootstrap(plan) else ())):
        if name not in kept:
            _remove(run_dir / name)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
