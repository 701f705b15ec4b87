"""The two phases of a cluster: its installation, and the nodes that join it afterwards (day 2)."""

from __future__ import annotations

from pathlib import Path

from .. import state
from . import faults
from .machines import Node
from .model import Plan
from .modes import MODES

ADD_NODES = "add-nodes"
"""The stage in `state.json` whose success means that the day-2 nodes are part of the cluster."""
DIRECTORY = "add-nodes"
"""The assets directory of the node ISO, in the run directory: the installer's files of day 1 stay as they are."""


def installed_nodes(plan: Plan) -> list[Node]:
    """Return the nodes of the installation, in the order of the plan.

    Day-2 nodes are left out, and machines that are not part of the cluster (fault extra_host).
    """
    return [node for node in plan["nodes"] if node["role"] != faults.EXTRA and not node.get("day2")]


def joining_nodes(plan: Plan) -> list[Node]:
    """Return the day-2 nodes, which join the installed cluster, in the order of the plan.

    Their machines exist from `prepare` on, and are off until `agentlab add-nodes`.
    """
    return [node for node in plan["nodes"] if node.get("day2")]


def boot_mode(plan: Plan) -> str:
    """Return how day-2 machines boot: a node ISO is never a minimal one, so that virtual media have all of it."""
    mode = plan["boot"]["mode"]
    return MODES[mode].joining or mode


def nodes_added(run_dir: Path) -> bool:
    """Return whether the day-2 nodes have been added, by the record of the run directory.

    Raises `state.StateError` for a damaged record.
    """
    stage = state.load(run_dir)["stages"].get(ADD_NODES)
    return bool(stage and stage["result"] == "ok")


def present(plan: Plan, run_dir: Path | None) -> Plan:
    """Return the plan with the nodes that the cluster should have by now: day-2 nodes only after they were added.

    run_dir: the run directory, whose record decides; None: they were not added. The plan given is not changed.
    """
    if not joining_nodes(plan) or (run_dir is not None and nodes_added(run_dir)):
        return plan
    return {**plan, "nodes": [node for node in plan["nodes"] if not node.get("day2")]}
