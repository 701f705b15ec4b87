"""What roles and playbooks decide by, which follows from a plan alone: the filter `derived` gives it to them, and they compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast

from ..vocabulary import BOOT_ARTIFACTS
from . import ipi, phases
from .faults import of_kind
from .model import Plan
from .modes import MODES
from .outside import LAB, machines

_MANIFESTS = "cluster-manifests"


class DerivedValues(TypedDict):
    """What follows from a plan.

    flow: how the cluster is installed. host: what a hypervisor is entered from, in the inventory; empty: itself. sandbox: whether the
    hypervisor is a sandbox; remote: whether it is reached by SSH, so that nothing on it was checked when the plan was made. several:
    whether it is one of several hypervisors; further: whether it is not the first. machines: whether there are machines outside of the
    cluster; images: whether one of them boots the lab's operating system. existing: whether a node is an existing machine.
    booted: names of the nodes that the stage boot boots: those that are not of day 2; screens: of the nodes with steps on their screens.
    mode: how machines boot; start: from which file of the run directory; joining: the mode of day-2 nodes.
    faults: whether something is done to machines during the installation; ejects: whether media are ejected after it. define: whether
    the cluster is defined over REST. snapshots: whether the wait saves the state of the lab. tests: whether the profile has some.
    payload: whether the release is the lab payload. targets: of `create`, in order. token_hours: lifetime of the image's tokens; not
    given: they do not expire. policy: the containers-policy.json(5) of live hosts, in `files` of the role agent_image; empty: none.
    """

    flow: Literal["agent", "ipi"]
    host: str
    sandbox: bool
    remote: bool
    several: bool
    further: bool
    machines: bool
    images: bool
    existing: bool
    booted: list[str]
    screens: list[str]
    mode: str
    start: str
    joining: str
    faults: bool
    ejects: bool
    define: bool
    snapshots: bool
    tests: bool
    payload: bool
    targets: list[str]
    token_hours: NotRequired[float]
    policy: str


def derived_values(given: Mapping[str, Any]) -> DerivedValues:
    """Return what follows from a plan; of an empty one, what roles use in place of a plan."""
    if not given:
        return {
            "flow": "agent", "host": "", "sandbox": False, "remote": False, "several": False, "further": False, "machines": False,
            "images": False, "existing": False, "booted": [], "screens": [], "mode": "cdrom", "start": "", "joining": "cdrom",
            "faults": False, "ejects": False, "define": False, "snapshots": False, "tests": False, "payload": True,
            "targets": [_MANIFESTS, "image"], "policy": "",
        }  # fmt: skip
    plan = cast(Plan, given)
    boot, hypervisor, mode = plan["boot"], plan["hypervisor"], MODES[plan["boot"]["mode"]]
    eject, others = boot.get("eject"), machines(plan)
    found: DerivedValues = {
        "flow": "ipi" if ipi.bootstrap(plan) else "agent",
        "host": "localhost" if hypervisor["kind"] == "sandbox" else "",
        "sandbox": hypervisor["kind"] == "sandbox",
        "remote": hypervisor["kind"] == "ssh",
        "several": "hypervisors" in plan or "further" in hypervisor,
        "further": "further" in hypervisor,
        "machines": bool(others),
        "images": any(machine["image"] == LAB for machine in others),
        "existing": any(node.get("bare_metal") for node in plan["nodes"]),
        "booted": [node["name"] for node in plan["nodes"] if not node.get("day2")],
        "screens": [node["name"] for node in plan["nodes"] if node.get("screen_steps")],
        "mode": boot["mode"],
        "start": f"{BOOT_ARTIFACTS}/{boot['script']}" if mode.medium == "network" else boot["image"],
        "joining": phases.boot_mode(plan),
        "faults": bool(plan["faults"]) or eject == "on_rebooting",
        "ejects": eject == "after",
        "define": mode.dialog,
        "snapshots": bool(plan["snapshots"]),
        "tests": bool(plan["tests"]),
        "payload": plan["release"]["payload"] == "lab",
        "targets": [_MANIFESTS, *mode.targets],
        "policy": "signed.json" if any(of_kind(plan, "unsigned_image")) else "",
    }
    return {**found, "token_hours": 0} if any(of_kind(plan, "expired_token")) else found
