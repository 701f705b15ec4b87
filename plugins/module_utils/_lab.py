"""What the modules of the machine room share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .plan import secrets
from .plan.model import Plan
from .plan.stored import checked
from .state import owner

PLAN: dict[str, Any] = {"type": "dict", "required": True}
SECRETS: dict[str, Any] = {"type": "str", "no_log": True}
OWNED: dict[str, Any] = {"plan": PLAN, "owner": {"type": "dict", "required": True}}
"""The options of a module that enters, changes or removes what a cluster has on a hypervisor."""


def plan_of(module: AnsibleModule) -> Plan:
    """Return the module's parameter `plan`, and keep its passwords out of everything that the module prints.

    Raises `PlanError` when it is no plan.
    """
    plan = checked(module.params["plan"])
    services = plan["services"]
    passwords = {node["bmc"]["password"] for node in plan["nodes"]} | {services["registry"]["password"], services["bmc"]["password"]}
    module.no_log_values.update(password for password in passwords if password)
    return plan


def plan_with_secrets(module: AnsibleModule) -> tuple[Plan, secrets.Secrets]:
    """Return the parameter `plan` with the passwords of the parameter `secrets`, and those; in check mode there may be none yet."""
    plan = plan_of(module)
    if not module.params["secrets"] and not module.check_mode:
        raise ValueError(f"secrets is missing: it is what {secrets.FILE} of the run directory has, which the module plan writes")
    found = secrets.complete(plan, module.params["secrets"] or "{}", secrets.FILE)
    module.no_log_values.update([found["bmc"], found["registry"], found["registry_http"], *found["nodes"].values()])
    return secrets.into(plan, found), found


def owner_of(module: AnsibleModule) -> owner.Owner:
    """Return whose the cluster of the parameter `plan` is, by its state directory on this host.

    Raises `OwnerError` when it is not the caller's, and when it is nobody's yet; in check mode it then is the caller's.
    """
    who = owner.from_fact(module.params["owner"])
    state_dir = Path(module.params["plan"]["hypervisor"]["state_dir"])
    found = owner.verify(state_dir, who)
    if found is None and not module.check_mode:
        raise owner.OwnerError(f"{state_dir / owner.FILE}: there is no cluster {who.owner.cluster}: agentlab prepare --cluster {who.owner.cluster}")
    return found or who.owner


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
