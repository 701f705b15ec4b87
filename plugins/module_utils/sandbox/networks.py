"""The libvirt networks of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..libvirt import network
from ..plan import names
from ..plan.iscsi import NETWORK
from ..plan.machines import Network
from ..plan.model import Plan
from ..plan.modes import MODES, Mode
from ..state.owner import Owner
from . import host, uplink

if TYPE_CHECKING:
    import libvirt


def ensure(connection: libvirt.virConnect, plan: Plan, owner: Owner, *, check: bool = False) -> list[dict[str, Any]]:
    """Define and start the networks of a plan; return a difference (`before`, `after`) for each that was not as wanted.

    owner: whose mark the networks get; check: change nothing. Raises `LabError` as `network.apply`, and `OSError` when
    the directory of dnsmasq's log cannot be made.
    """
    hypervisor = plan["hypervisor"]
    private = hypervisor["kind"] == "sandbox"
    # In a sandbox there is no system log.
    log = Path(names.service_log(plan["services"]["directory"], network.SERVICE)) if private else None
    if log and not check:
        log.parent.mkdir(parents=True, exist_ok=True)
    if private and hypervisor.get("further") and not check:
        host.LEASES.mkdir(parents=True, exist_ok=True)
    forwarders = uplink.forwarders(Path(hypervisor["state_dir"])) if private else []
    mode = MODES[plan["boot"]["mode"]]
    boot_file = plan["boot"]["script_url"] if mode.medium in ("network", "lun") else None
    wanted = [
        network.render(
            entry,
            owner,
            private=private,
            forwarders=forwarders,
            boot_file=boot_file if _boots(entry, mode) else None,
            log=log,
            bare=bool(hypervisor.get("further")),
        )
        for entry in plan["networks"]
    ]
    return network.apply(connection, wanted, check=check)


def _boots(network: Network, mode: Mode) -> bool:
    """Return whether machines that boot over a network do so over this one."""
    return network["name"] == NETWORK if mode.medium == "lun" else network["purpose"] in ("machine", "segment")
