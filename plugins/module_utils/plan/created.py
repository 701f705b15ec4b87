"""Objects that a plan creates on a hypervisor, as entries of `state.json`."""

from __future__ import annotations

from collections.abc import Sequence

from ..state import Item
from . import hypervisors
from .balancers import of_sandbox
from .injected import of_lab
from .machines import own_machines
from .model import Plan
from .outside import machines


def items(plan: Plan, host: str) -> list[Item]:
    """Return everything that `prepare` creates for `plan` on inventory host `host`, in the order of creation.

    Kinds are `sandbox`, `uplink`, `state_dir`, `network`, `pool`, `domain`, `tunnel` and `service`. `destroy` removes what is
    recorded, in the opposite order.
    """
    hypervisor = plan["hypervisor"]
    named: list[tuple[str, str]] = []
    if hypervisor["kind"] == "sandbox":
        named.append(("sandbox", hypervisor["netns"]))
    if hypervisor["kind"] != "sandbox" or hypervisor["egress"] or hypervisor["route"]:
        named.append(("uplink", plan["cluster"]["name"]))  # elsewhere, the firewall rules against neighbours
    named.append(("state_dir", hypervisor["state_dir"]))
    named += [("network", network["name"]) for network in plan["networks"]]
    named.append(("pool", hypervisor["pool"]))
    named += [("domain", node["domain"]) for node in [*own_machines(plan["nodes"]), *machines(plan)]]
    if hypervisor["kind"] != "sandbox":  # those of a sandbox end with it
        named += [("tunnel", end.link) for end in hypervisors.ends(plan)]
    if hypervisor.get("further"):
        named.append(("service", hypervisors.SERVICE))
        return [{"kind": kind, "name": name, "host": host} for kind, name in named]
    beyond = ["proxy"] if plan["services"].get("proxy") else []
    beyond += ["balancer"] if of_sandbox(plan) else []
    more = [*beyond, *(["faults"] if of_lab(plan) else [])]
    named += [("service", name) for name in ("bmc", "registry", "http", "ntp", *more)]
    return [{"kind": kind, "name": name, "host": host} for kind, name in named]


def on_host(created: Sequence[Item] | None, host: str | None) -> list[Item] | None:
    """Return what a list has with an inventory host; None if that is nothing: the list, or this part of it, is lost.

    host: None for the whole list.
    """
    if created is None or host is None:
        return None if created is None else [*created]
    return [item for item in created if item["host"] == host] or None
