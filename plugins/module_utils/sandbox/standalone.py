"""Whose networks and machines without a cluster are (`plan.short`): the user's of this host, with the state directory as run directory.

`state.json` in it lists what is created, before it is created, so that `lab_destroy` finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import state
from ..plan import short
from ..plan.model import Plan
from ..state import owner
from . import host


def caller(cluster: str, state_dir: Path) -> owner.Caller:
    """Return who runs this."""
    return owner.caller({"cluster": {"name": cluster}, "hypervisor": {"kind": "local"}}, state_dir)


def owner_of(given: Mapping[str, Any], plan: Plan, *, check: bool) -> owner.Owner:
    """Return whose the cluster is: that of the option `plan` as it says, otherwise the caller's, who claims it with what `plan` creates.

    Raises `OwnerError` when it is another's.
    """
    if given["plan"] is not None:
        return owner.of_cluster(given, check=check)
    state_dir = Path(plan["hypervisor"]["state_dir"])
    who = caller(plan["cluster"]["name"], state_dir)
    if check:
        return owner.verify(state_dir, who) or who.owner
    found = host.claim(state_dir, who)
    state.record(state_dir, _items(plan), asdict(found))
    return found


def created(given: Mapping[str, Any]) -> tuple[list[state.Item], owner.Caller]:
    """Return what the state directory of the options `cluster` and `state_dir` lists, and who asks."""
    state_dir = Path(short.directory(given))
    return state.load(state_dir)["created"], caller(str(given["cluster"]), state_dir)


def _items(plan: Plan) -> list[state.Item]:
    hypervisor = plan["hypervisor"]
    named = [("state_dir", hypervisor["state_dir"])]
    named += [("network", network["name"]) for network in plan["networks"]]
    named += [("pool", hypervisor["pool"])] if plan["nodes"] else []
    named += [("domain", node["domain"]) for node in plan["nodes"]]
    return [{"kind": kind, "name": name, "host": "localhost"} for kind, name in named]
