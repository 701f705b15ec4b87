"""Machines outside of the cluster: the image of those that run the lab's operating system, their disks, domains and power."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..boot import sequence
from ..boot.domain import Machine as Domain
from ..coreos.edit import change
from ..coreos.iso import LiveIso
from ..errors import LabError
from ..ignition.config import Config, dumps
from ..libvirt import domain
from ..libvirt.connection import lookup
from ..nmstate import generate
from ..plan.files import ssh_keys
from ..plan.machines import Node
from ..plan.model import Plan
from ..plan.outside import LAB, Machine, machines
from ..state.owner import Owner
from ..vocabulary import RunFile
from . import balancer, one_thread
from .machines import create

if TYPE_CHECKING:
    import libvirt

DIRECTORY = "machines"
"""In the run directory: the images of the machines that run the lab's operating system."""
_CONNECTIONS = "/etc/NetworkManager/system-connections"
_ANCHOR = "/etc/pki/ca-trust/source/anchors/agentlab.crt"


def image_of(run_dir: Path, machine: Machine) -> Path:
    """Return the image that a machine with the lab's operating system boots from."""
    return run_dir / DIRECTORY / f"{machine['name']}.iso"


def ignition(plan: Plan, machine: Machine, keys: Sequence[str], authority: str) -> dict[str, Any]:
    """Return the Ignition config of a machine with the lab's operating system.

    keys: public keys that log in as user core; authority: PEM text of the lab's certificate authority, which it trusts, or empty.
    """
    config = Config()
    config.user("core", [*keys])
    config.file("/etc/hostname", f"{machine['name']}\n", 0o644)
    for name, text in generate(machine["network_config"] or {}):
        config.file(f"{_CONNECTIONS}/{name}", text, 0o600)
    if authority:
        config.file(_ANCHOR, authority, 0o644)
    made = plan["services"].get("balancer")
    if made and made.get("machine") == machine["name"]:
        config.file("/etc/haproxy/haproxy.cfg", balancer.config(made), 0o644)
        config.unit("haproxy.service", enabled=True)
    for path, text in machine["files"].items():
        config.file(path, text, 0o644)
    for name, text in machine["units"].items():
        config.unit(name, text, enabled=True)
    return config.to_dict()


def write_images(plan: Plan, run_dir: Path, base: Path | None, *, check: bool = False) -> list[dict[str, str]]:
    """Write the images of the machines that run the lab's operating system; return what changed (`name`, `before`, `after`).

    base: the live ISO of the lab payload; None in check mode: it is to be built. Raises `LabError` without the keys of the run,
    and `CoreosError` for another image.
    """
    mine = [machine for machine in machines(plan) if machine["image"] == LAB]
    if not mine:
        return []
    public, authority = run_dir / RunFile.SSH_PUBLIC_KEY, run_dir / RunFile.CA
    if base is None or (check and not public.exists()):
        return [{"name": one["name"], "before": "", "after": f"image of {one['name']}\n"} for one in mine]
    if not public.exists():
        raise LabError(
            f"{public}: the run has no SSH key yet; run: agentlab configure --cluster {plan['cluster']['name']}"
        )
    given = plan["installer"]["ssh_key_file"]
    keys = [public.read_text().strip(), *(ssh_keys(given).splitlines() if given else [])]
    trusted = authority.read_text() if authority.exists() else ""
    changes = []
    for machine in mine:
        config = dumps(ignition(plan, machine, keys, trusted))

        def edit(iso: LiveIso, config: bytes = config) -> None:
            iso.ignition = config

        path = image_of(run_dir, machine)
        if not check:
            path.parent.mkdir(exist_ok=True)
        result = change({"path": str(base), "dest": str(path), "mode": "0600"}, edit, check=check)
        if result["changed"]:
            changes.append({"name": machine["name"], **result["diff"]})
    return changes


def apply(
    connection: libvirt.virConnect,
    plan: Plan,
    owner: Owner,
    run_dir: Path | None,
    domain_type: str,
    *,
    check: bool = False,
) -> list[dict[str, Any]]:
    """Create the machines and switch them on; return what changed (`name`, `before`, `after`).

    run_dir: with the images of those that run the lab's operating system; None: these are left for later. A machine that runs is left
    alone, unless its image was written again. Raises `LabError` for a missing image, and what libvirt's objects of others raise.
    """
    mine = [machine for machine in machines(plan) if run_dir is not None or machine["image"] != LAB]
    hypervisor = plan["hypervisor"]
    for machine in mine:
        if run_dir and machine["image"] == LAB and not check and not image_of(run_dir, machine).exists():
            name = plan["cluster"]["name"]
            raise LabError(f"{image_of(run_dir, machine)}: no such image: agentlab image --cluster {name}")
    changes = _create(connection, mine, plan, owner, domain_type, check=check)
    present = [one for one in mine if lookup(connection, "lookupByName", one["domain"]) is not None]
    if not present:
        return changes

    def image(node: Node) -> sequence.Image:
        one = cast(Machine, node)
        if one["image"] != LAB or run_dir is None:
            return sequence.Image("its disk", "disk")
        path = image_of(run_dir, one)
        return sequence.Image(str(path), sequence.identity([path]) if path.exists() else "")

    def machine_of(node: Node) -> Domain:
        return Domain(connection, node["domain"], "cdrom" if cast(Machine, node)["image"] == LAB else "network")

    done = sequence.boot(
        cast("list[Node]", present), machine_of, image, Path(hypervisor["state_dir"]), lambda node: None, check=check
    )
    return changes + done


def _create(
    connection: libvirt.virConnect,
    mine: Sequence[Machine],
    plan: Plan,
    owner: Owner,
    domain_type: str,
    *,
    check: bool,
) -> list[dict[str, Any]]:
    wanted = [
        domain.render(
            machine,
            owner,
            pool=plan["hypervisor"]["pool"],
            domain_type=domain_type,
            console=Path(machine["console"]),
            emulator=one_thread.emulator(plan, machine, domain_type),
            medium="cdrom" if machine["image"] == LAB else "network",
        )
        for machine in mine
    ]
    images = {
        disk["name"]: machine["image"]
        for machine in mine
        for disk in machine["disks"]
        if machine["image"] and machine["image"] != LAB
    }
    return create(connection, plan, owner, mine, wanted, images, check=check)
