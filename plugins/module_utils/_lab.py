"""What the modules of the machine room share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .plan.model import Plan
from .plan.stored import checked

PLAN: dict[str, Any] = {"type": "dict", "required": True}


def plan_of(module: AnsibleModule) -> Plan:
    """Return the module's parameter `plan`, and keep its passwords out of everything that the module prints.

    Raises `PlanError` when it is no plan.
    """
    plan = checked(module.params["plan"])
    services = plan["services"]
    secrets = {node["bmc"]["password"] for node in plan["nodes"]} | {services["registry"]["password"], services["bmc"]["password"]}
    module.no_log_values.update(secrets)
    return plan


def changed(changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a module's result for changes of the form `{"name", "before", "after"}`."""
    return {
        "changed": bool(changes),
        "changes": [change["name"] for change in changes],
        "diff": [
            {
                "before_header": change["name"],
                "after_header": change["name"],
                "before": change["before"],
                "after": change["after"],
            }
            for change in changes
        ],
    }
