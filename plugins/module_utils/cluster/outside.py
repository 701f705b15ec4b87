"""Machines outside of the cluster: whether each runs, in its networks, with its addresses or its image, as the hypervisor sees them.

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

from ..documents import load_json
from ..plan.model import Plan
from ..plan.outside import LAB, Machine, machines
from .booted import Run, run
from .links import Finding

_SSH = 22
_SECONDS = 10.0


def connect(address: str) -> None:
    """Connect to the SSH server that a machine with the lab's operating system has. Raises `OSError`."""
    socket.create_connection((address, _SSH), _SECONDS).close()


def findings(plan: Plan, command: Run = run, reach: Callable[[str], None] = connect) -> Iterator[Finding]:
    """Yield state, networks, addresses and image of each machine; nothing where this is not its hypervisor.

    reach: connects to an address, after which the kernel knows the MAC that has it. Raises OSError.
    """
    if plan["hypervisor"]["kind"] == "ssh":
        return
    every = machines(plan)
    with ThreadPoolExecutor() as pool, contextlib.suppress(FileNotFoundError):  # without virsh
        look = partial(_seen, plan["hypervisor"]["pool"], command, reach)
        for machine, found in zip(every, pool.map(look, every), strict=True):
            held = [(nic["network"], [a["ip"] for a in nic["addresses"]]) for nic in machine["nics"]]
            yield Finding(
                f"outside machine {machine['name']}", _described(machine, "running", held, _image(machine)), found
            )


def _image(machine: Machine) -> str:
    """Return the path of an image of the user's own; nothing for another machine."""
    return "" if machine["image"] in (None, LAB) else str(Path(str(machine["image"])).expanduser())


def _seen(pool: str, command: Run, reach: Callable[[str], None], machine: Machine) -> str:
    try:
        state = command(["virsh", "domstate", machine["domain"]]).strip()
        definition = ET.fromstring(command(["virsh", "dumpxml", machine["domain"]]))
        image = ""
        if _image(machine):
            disk = command(["virsh", "vol-dumpxml", machine["disks"][0]["name"], "--pool", pool])
            image = ET.fromstring(disk).findtext("backingStore/path") or "nothing"
    except FileNotFoundError:
        raise
    except (OSError, ET.ParseError) as error:
        return f"unknown: {error}"
    there = {
        str(mac.get("address")): str(source.get("network"))
        for one in definition.iterfind("devices/interface")
        if (mac := one.find("mac")) is not None and (source := one.find("source")) is not None
    }
    held = []
    for nic in machine["nics"]:
        wanted = nic["addresses"] if machine["image"] == LAB and state == "running" else []
        answers = [_answer(address["ip"], nic["mac"], command, reach) for address in wanted]
        held.append((there.pop(nic["mac"], "no network"), answers))
    return _described(machine, state, [*held, *((network, []) for network in there.values())], image)


def _answer(address: str, mac: str, command: Run, reach: Callable[[str], None]) -> str:
    """Return an address that the machine answers for, or what is wrong with it."""
    try:
        reach(address)
        [neighbor] = load_json(command(["ip", "-json", "neighbor", "show", "to", address]), name="ip neighbor")
        return address if neighbor["lladdr"] == mac else f"{address} of {neighbor['lladdr']}"
    except (OSError, ValueError, LookupError, TypeError) as error:
        return f"{address}: {error}"


def _described(machine: Machine, state: str, held: list[tuple[str, list[str]]], image: str) -> str:
    shown = (
        f"{network}: {', '.join(addresses)}" if machine["image"] == LAB else network for network, addresses in held
    )
    return "; ".join([state, *shown, *([f"disk over {image}"] if image else [])])
