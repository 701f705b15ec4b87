"""What roles and playbooks decide by, which follows from a plan alone: the filter `derived` gives it to them, and they compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast

from ..vocabulary import BOOT_ARTIFACTS
from . import ipi, phases
from .faults import of_kind
from .model import Plan
from .modes import MODES

_MANIFESTS = "cluster-manifests"


class Derived(TypedDict):
    """What follows from a plan.

    flow: how the cluster is installed. host: what a hypervisor is entered from, in the inventory; empty: itself. several: whether it is one
    of several hypervisors. mode: how machines boot; start: from which file of the run directory; joining: the mode of day-2 nodes.
    faults: whether something is done to machines during the installation; ejects: whether media are ejected after it. define: whether
    the cluster is defined over REST. targets: of `create`, in order. token_hours: lifetime of the image's tokens; not given: they do
    not expire. policy: the containers-policy.json(5) of live hosts, in `files` of the role agent_image; empty: none.
    """

    flow: Literal["agent", "ipi"]
    host: str
    several: bool
    mode: str
    start: str
    joining: str
    faults: bool
    ejects: bool
    define: bool
    targets: list[str]
    token_hours: NotRequired[float]
    policy: str


def derived(given: Mapping[str, Any]) -> Derived:
    """Return what follows from a plan; of an empty one, what roles do without a plan."""
    if not given:
        return {
            "flow": "agent", "host": "", "several": False, "mode": "cdrom", "start": "", "joining": "cdrom", "faults": False, "ejects": False,
            "define": False, "targets": [_MANIFESTS, "image"], "policy": "",
        }  # fmt: skip
    plan = cast(Plan, given)
    boot, hypervisor, mode = plan["boot"], plan["hypervisor"], MODES[plan["boot"]["mode"]]
    eject = boot.get("eject")
    found: Derived = {
        "flow": "ipi" if ipi.bootstrap(plan) else "agent",
        "host": "localhost" if hypervisor["kind"] == "sandbox" else "",
        "several": "hypervisors" in plan or "further" in hypervisor,
        "mode": boot["mode"],
        "start": f"{BOOT_ARTIFACTS}/{boot['script']}" if mode.medium == "network" else boot["image"],
        "joining": phases.boot_mode(plan),
        "faults": bool(plan["faults"]) or eject == "on_rebooting",
        "ejects": eject == "after",
        "define": mode.dialog,
        "targets": [_MANIFESTS, *mode.targets],
        "policy": "signed.json" if any(of_kind(plan, "unsigned_image")) else "",
    }
    return {**found, "token_hours": 0} if any(of_kind(plan, "expired_token")) else found
