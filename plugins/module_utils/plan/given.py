"""A plan as a task gives it: checked, with the passwords of the run, and these kept out of everything that is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import secrets
from .model import Plan
from .stored import check_plan

Hide = Callable[[Iterable[str]], object]
"""Takes texts that must not be printed."""


def plan_of(given: Mapping[str, object], hide: Hide) -> Plan:
    """Return the option `plan`, or what replaces it (`short`). Raises `PlanError`, `ProfileError` when it is not valid."""
    if given["plan"] is None:
        from . import short  # makes a plan, with all that this needs

        return short.plan(given)
    plan = check_plan(given["plan"])
    services = plan["services"]
    passwords = {node["bmc"]["password"] for node in plan["nodes"]} | {
        services["registry"]["password"],
        services["bmc"]["password"],
    }
    hide(password for password in passwords if password)
    return plan


def plan_with_secrets(given: Mapping[str, Any], hide: Hide, *, check: bool) -> tuple[Plan, secrets.Secrets]:
    """Return the option `plan` with the passwords of the option `secrets` (the text of `secrets.json`), and these.

    check: there may be none yet. Raises `ValueError`.
    """
    plan, text = plan_of(given, hide), given["secrets"]
    if not text and not check:
        raise ValueError(
            f"secrets is missing: pass the content of {secrets.FILE} in the run directory, which the module plan writes"
        )
    found = secrets.complete(plan, text or "{}", secrets.FILE)
    hide(secrets.texts(found))
    return secrets.with_passwords(plan, found), found
