"""Whose is what was made without a plan (`plan.short`): the user's of this host, with the state directory as run directory.

`state.json` in it lists what is created, before it is created, so that `lab_destroy` finds it. `secrets.json` and `tls/` in it are
those of the services.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import state
from ..plan import certificates, given, hypervisors, secrets, short
from ..plan.arguments import argument
from ..plan.model import Plan
from ..plan.outside import machines
from ..state import owner
from . import host, namespaces

OPTIONS: dict[str, dict[str, Any]] = {
    "plan": {"type": "dict"},
    "owner": argument(owner.Caller),
    "cluster": {"type": "str"},
    "state_dir": {"type": "path"},
}
"""Options of a module that enters, changes or removes what a cluster has on a hypervisor, by its plan or by options of its own."""


def plan_of(params: Mapping[str, object], hide: given.Hide) -> Plan:
    """Return the plan as `given.plan_of`; without the option `plan`, that of a sandbox if the state directory is a running one's."""
    plan = given.plan_of(params, hide)
    if params["plan"] is None and namespaces.find(Path(plan["hypervisor"]["state_dir"])):
        plan["hypervisor"]["kind"] = "sandbox"
    return plan


def caller(cluster: str, state_dir: Path) -> owner.Caller:
    """Return who runs this.

    The state directory takes the place of a run directory, so the same user owns it from any working directory.
    """
    return owner.caller({"cluster": {"name": cluster}, "hypervisor": {"kind": "local"}}, state_dir)


def owner_of(
    params: Mapping[str, object], plan: Plan, *, check: bool, services: Collection[str] | None = None
) -> owner.Owner:
    """Return the owner of the cluster: that of the option `plan`, otherwise the caller, who claims it with what is created.

    services: the processes that are created; None: networks and machines are. Raises `OwnerError` when it has another owner.
    """
    if params["plan"] is not None:
        return owner.of_cluster(params, check=check)
    state_dir = Path(plan["hypervisor"]["state_dir"])
    who = caller(plan["cluster"]["name"], state_dir)
    if check:
        return owner.verify(state_dir, who) or who.owner
    found = host.claim(state_dir, who)
    state.record(state_dir, _items(plan, services), asdict(found))
    if machines(plan):
        Path(plan["hypervisor"]["console_dir"]).mkdir(exist_ok=True)
    return found


def with_secrets(plan: Plan, hide: given.Hide, *, check: bool) -> tuple[Plan, secrets.Secrets, dict[str, str]]:
    """Return a plan without a run with its passwords, these, and the PEM texts of its services (`ca`, `certificate`, `key`).

    They are made in the state directory unless they are there; with `check`, the texts are then empty.
    """
    state_dir = Path(plan["hypervisor"]["state_dir"])
    found = secrets.ensure(plan, state_dir, check=check)
    hide(secrets.texts(found))
    folder, names = state_dir / "tls", certificates.served_names(plan)
    new = certificates.ensure(folder, plan["cluster"]["name"], names, check=check)
    files = {"ca": "ca.crt", "certificate": "server.crt", "key": "server.key"}
    tls = {key: "" if new and check else (folder / name).read_text(encoding="utf-8") for key, name in files.items()}
    return secrets.with_passwords(plan, found), found, tls


def created_items(params: Mapping[str, object]) -> tuple[list[state.Item], owner.Caller]:
    """Return what the state directory of the options `cluster` and `state_dir` lists, and the caller.

    Raises `StateError` for a damaged `state.json`; without one the list is empty.
    """
    state_dir = Path(short.directory(params))
    return state.load(state_dir)["created"], caller(str(params["cluster"]), state_dir)


def _items(plan: Plan, services: Collection[str] | None) -> list[state.Item]:
    hypervisor = plan["hypervisor"]
    private = hypervisor["kind"] == "sandbox"
    named = [("sandbox", hypervisor["netns"])] if private else []
    if hypervisor["egress"] or hypervisor["route"] or (services and not private):
        named.append(("uplink", plan["cluster"]["name"]))
    named.append(("state_dir", hypervisor["state_dir"]))
    if services is None:
        named += [("network", network["name"]) for network in plan["networks"]]
        domains = [machine["domain"] for machine in [*plan["nodes"], *machines(plan)]]
        named += [("pool", hypervisor["pool"])] if domains else []
        named += [("domain", domain) for domain in domains]
    if not private:
        named += [("tunnel", end.link) for end in hypervisors.ends(plan)]
    named += [("service", name) for name in services or ()]
    return [{"kind": kind, "name": name, "host": "localhost"} for kind, name in named]
