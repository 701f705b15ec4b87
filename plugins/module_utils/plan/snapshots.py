"""What a lab cannot have that is saved as a snapshot: one list, for profiles with `snapshots`, and for a plan whose lab a user saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import bare_metal_checks, ipi
from .faults import KINDS
from .model import Plan
from .modes import MODES
from .options import Profile
from .problems import Finding


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with the snapshots of a profile; see `checks`."""
    wanted = profile["snapshots"]
    for index, name in enumerate(wanted):
        if name in wanted[:index]:
            yield ("snapshots", index), name, "is a duplicate; remove one"
    if wanted:
        for remedy in _refusals(profile, bare_metal_checks.names(profile), profile["flow"]):
            yield ("snapshots",), wanted, remedy


def refusals(plan: Plan) -> list[str]:
    """Return why the lab of a plan cannot be saved, each as "requires ..."; empty if it can."""
    hypervisor = plan["hypervisor"]
    existing = [node["name"] for node in plan["nodes"] if node.get("bare_metal")]
    found = list(_refusals(plan, existing, "ipi" if ipi.bootstrap(plan) else "agent"))
    if not Path(hypervisor["pool_dir"]).is_relative_to(hypervisor["state_dir"]):  # of a plan that was changed by hand
        found.append(f"requires a storage pool in the state directory, not in {hypervisor['pool_dir']}")
    return found


def _refusals(given: Mapping[str, Any], existing: Sequence[str], flow: str) -> Iterator[str]:
    """Yield the reasons; given: a complete profile or a plan, which have the same fields for them."""
    if given["hypervisor"]["kind"] != "sandbox":
        yield "requires `hypervisor: {kind: sandbox}`: only a whole sandbox is saved"
    if given.get("hypervisors"):
        yield "requires one hypervisor: only one sandbox is saved"
    if existing:
        yield f"requires nodes that are VMs, not existing machines ({', '.join(existing)}): only VMs are saved"
    if given.get("machines"):
        yield "requires a profile without `machines`: only nodes are saved"
    if flow != "agent":
        yield "requires `flow: agent`: the bootstrap machine is not saved"
    if MODES[given["boot"]["mode"]].medium == "lun":
        yield "requires another boot mode than iscsi: LUNs are not saved"
    if given["boot"].get("eject") == "on_rebooting":
        yield "requires another `boot.eject` than on_rebooting: what has been ejected is not saved"
    if any(not KINDS[fault["kind"]].in_plan for fault in given["faults"]):
        yield "requires a profile without faults that the lab injects: their state is not saved"
