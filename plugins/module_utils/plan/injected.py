"""What the process `faultd` of a lab injects."""

from __future__ import annotations

from .faults import KINDS, Fault, complete
from .model import Plan

_REBOOTING = "Rebooting"


def of_lab(plan: Plan) -> list[Fault]:
    """Return what the lab's process injects.

    Those are the faults with a trigger (`when`), and with `boot.eject: on_rebooting` the loss of each machine's medium.
    The other faults are in the plan, or in the image, from the start.
    """
    found = [fault for fault in plan["faults"] if not KINDS[fault["kind"]].in_plan]
    if plan["boot"].get("eject") == "on_rebooting":
        found += [complete({"kind": "eject", "node": node["name"], "when": _REBOOTING}) for node in plan["nodes"]]
    return found
