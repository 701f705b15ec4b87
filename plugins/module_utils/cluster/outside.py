"""Machines outside of the cluster: whether each runs, with its sizes, firmware, networks, addresses and disks, as the hypervisor sees them.

Only machines with the lab's operating system are asked for their addresses: the others may have no system, or one with other addresses.
"""

from __future__ import annotations

import contextlib
import socket
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..documents import load_json
from ..plan.disks import GIB
from ..plan.model import Plan
from ..plan.outside import LAB, Machine, machines
from .booted import Run, run
from .links import Finding

_SSH = 22
_SECONDS = 10.0
_KIB = 1024


class _MachineState(NamedTuple):
    """What a machine has: state as of virsh(1), networks with the addresses that were asked for, disks with size and the image below."""

    state: str
    vcpus: str
    memory_mib: float
    firmware: str
    networks: list[tuple[str, list[str]]]
    disks: list[tuple[float, str]]


def connect(address: str) -> None:
    """Connect to the SSH server that a machine with the lab's operating system has. Raises `OSError`."""
    socket.create_connection((address, _SSH), _SECONDS).close()


def findings(plan: Plan, command: Run = run, reach: Callable[[str], None] = connect) -> Iterator[Finding]:
    """Yield state, sizes, firmware, networks, addresses and disks of each machine; nothing where this is not its hypervisor.

    reach: connects to an address, after which the kernel knows the MAC that has it. Raises OSError.
    """
    if plan["hypervisor"]["kind"] == "ssh":
        return
    every = machines(plan)
    with ThreadPoolExecutor() as pool, contextlib.suppress(FileNotFoundError):  # without virsh
        look = partial(_found, plan["hypervisor"]["pool"], command, reach)
        for machine, found in zip(every, pool.map(look, every), strict=True):
            yield Finding(f"outside machine {machine['name']}", _described(machine, _planned(machine)), found)


def _planned(machine: Machine) -> _MachineState:
    return _MachineState(
        "running",
        str(machine["vcpus"]),
        machine["memory_mib"],
        machine["firmware"],
        [(nic["network"], [address["ip"] for address in nic["addresses"]]) for nic in machine["nics"]],
        [(disk["size_gib"], _image(machine)) for disk in machine["disks"]],
    )


def _image(machine: Machine) -> str:
    """Return the path of an image of the user's own; nothing for another machine."""
    return "" if machine["image"] in (None, LAB) else str(Path(str(machine["image"])).expanduser())


def _found(pool: str, command: Run, reach: Callable[[str], None], machine: Machine) -> str:
    """Describe what a machine has, or why that is not known."""
    try:
        state = command(["virsh", "domstate", machine["domain"]]).strip()
        definition = ET.fromstring(command(["virsh", "dumpxml", machine["domain"]]))
        volumes = [one.get("volume", "") for one in definition.iterfind("devices/disk[@device='disk']/source")]
        described = [ET.fromstring(command(["virsh", "vol-dumpxml", name, "--pool", pool])) for name in volumes]
        seen = _MachineState(
            state,
            definition.findtext("vcpu", "no"),
            int(definition.findtext("memory", "0")) / _KIB,
            _firmware(definition),
            _networks(definition, machine, partial(_answer, command, reach) if state == "running" else None),
            [(int(one.findtext("capacity", "0")) / GIB, one.findtext("backingStore/path", "")) for one in described],
        )
    except FileNotFoundError:
        raise
    except (OSError, ValueError, ET.ParseError) as error:
        return f"unknown: {error}"
    return _described(machine, seen)


def _firmware(definition: ET.Element) -> str:
    """Return the firmware of a domain: one that was not started yet has `efi` for it, and one that runs the file that libvirt chose."""
    has_file = definition.find("os/loader") is not None
    return "uefi" if has_file or definition.find("os[@firmware='efi']") is not None else "bios"


def _networks(
    definition: ET.Element, machine: Machine, answer: Callable[[str, str], str] | None
) -> list[tuple[str, list[str]]]:
    """Return the network of each NIC, the planned ones first, with what the machine answers at its addresses.

    answer: of `_answer`; None: it is not asked. Only one with the lab's operating system is.
    """
    there = {
        str(mac.get("address")): str(source.get("network"))
        for one in definition.iterfind("devices/interface")
        if (mac := one.find("mac")) is not None and (source := one.find("source")) is not None
    }
    held = []
    for nic in machine["nics"]:
        wanted = nic["addresses"] if machine["image"] == LAB else []
        answers = [answer(address["ip"], nic["mac"]) for address in wanted] if answer else []
        held.append((there.pop(nic["mac"], "no network"), answers))
    return [*held, *((network, []) for network in there.values())]


def _answer(command: Run, reach: Callable[[str], None], address: str, mac: str) -> str:
    """Return an address that the machine answers for, or what is wrong with it."""
    try:
        reach(address)
        [neighbor] = load_json(command(["ip", "-json", "neighbor", "show", "to", address]), name="ip neighbor")
        return address if neighbor["lladdr"] == mac else f"{address} of {neighbor['lladdr']}"
    except (OSError, ValueError, LookupError, TypeError) as error:
        return f"{address}: {error}"


def _described(machine: Machine, seen: _MachineState) -> str:
    answers = machine["image"] == LAB
    networks = (f"{name}: {', '.join(addresses)}" if answers else name for name, addresses in seen.networks)
    disks = (f"disk of {gib:g} GiB{f' over {image}' if image else ''}" for gib, image in seen.disks)
    size = f"{seen.vcpus} vCPUs, {seen.memory_mib:g} MiB, {seen.firmware}"
    return "; ".join([seen.state, size, *networks, *disks])
