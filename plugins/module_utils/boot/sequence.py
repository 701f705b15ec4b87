"""Boot the machines of a cluster from an image, once; a new image means a redeploy.

`<state_dir>/boot.json` records which image each machine was booted from: `{node: image identity}`. A machine that was booted
from this image is left alone, or powered on again; any other gets empty disks and boots from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from ..bmc.machine import Machine
from ..documents import load_json, read_file
from ..errors import LabError
from ..plan.machines import Node
from ..state import write_atomic

FILE = "boot.json"
PARALLEL = 4


class Image(NamedTuple):
    """The image of a machine: its URL, and an identity that distinguishes it from others at the same URL.

    The identity is what `boot.json` records; it is that of `identity` for the files of the image.
    """

    url: str
    identity: str


def identity(files: Iterable[Path]) -> str:
    """Return an identity of these files that changes with their content.

    Of their sizes and times of change: contents are not read. A file that is written again counts as another one.
    """
    found = [path.stat() for path in sorted(files)]
    return hashlib.sha256(repr([(one.st_size, one.st_mtime_ns) for one in found]).encode()).hexdigest()


def order(nodes: Sequence[Node], first: str) -> list[Node]:
    """Return the nodes with the rendezvous host, `first`, before all others: they look for it from their first minute.

    The others keep their order.
    """
    return sorted(nodes, key=lambda node: node["name"] != first)


def boot(
    nodes: Sequence[Node],
    connect: Callable[[Node], Machine],
    image: Callable[[Node], Image],
    state_dir: Path,
    blank: Callable[[Node], None],
    *,
    check: bool = False,
) -> list[dict[str, str]]:
    """Boot `nodes`, in their order, each from its image; return what was done (`name`, `before`, `after`).

    connect: returns the machine of a node; blank: empties the disks of a node that is off.
    """
    path, lock, booted = state_dir / FILE, Lock(), _booted(state_dir)
    done: dict[str, dict[str, str]] = {}
    machines: dict[str, Machine] = {}

    def prepare(node: Node) -> None:
        name, (url, identity) = node["name"], image(node)
        machine = machines[name] = connect(node)
        power = machine.power()
        if booted.get(name) == identity:
            if power == "off":
                done[name] = {"name": name, "before": "off\n", "after": "on\n"}
            return
        done[name] = {"name": name, "before": f"{power}\n", "after": f"on, from {url}\n"}
        if check:
            return
        machine.power_off()
        blank(node)
        # The emulator uses the file at the URL when it was inserted, so a new image must be inserted again.
        machine.eject()
        machine.insert(url)
        machine.boot_from_cd()

    def start(node: Node) -> None:
        name = node["name"]
        if name not in done:
            return
        machines[name].power_on()
        with lock:
            booted[name] = image(node).identity
            write_atomic(path, json.dumps(booted, indent=1) + "\n")

    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(prepare, nodes))
        if not check:
            start(nodes[0])
            list(pool.map(start, nodes[1:]))
    return [done[node["name"]] for node in nodes if node["name"] in done]


def unbooted_machines(nodes: Sequence[Node], image: Callable[[Node], Image], state_dir: Path) -> list[dict[str, str]]:
    """Return the machines that were not booted from their image, as `boot` does; what is `after` is left to a person."""
    known = _booted(state_dir)
    return [
        {"name": node["name"], "before": "\n", "after": f"to be booted from {image(node).url}\n"}
        for node in nodes
        if known.get(node["name"]) != image(node).identity
    ]


def note(nodes: Sequence[Node], identity: str, state_dir: Path, *, check: bool = False) -> list[str]:
    """Record that `nodes` were booted from the image `identity`; return the names of those for which this is new."""
    known = _booted(state_dir)
    new = [node["name"] for node in nodes if known.get(node["name"]) != identity]
    if new and not check:
        write_atomic(state_dir / FILE, json.dumps(known | dict.fromkeys(new, identity), indent=1) + "\n")
    return new


def booted_machines(state_dir: Path) -> set[str]:
    """Return the names of the machines that were booted; none where the state directory has no record."""
    return {*_booted(state_dir)}


def _booted(state_dir: Path) -> dict[str, str]:
    path = state_dir / FILE
    return load_json(read_file(path), name=str(path)) if path.exists() else {}


def release(nodes: Sequence[Node], connect: Callable[[Node], Machine]) -> list[str]:
    """Switch each of `nodes` off and eject its medium; return the names of those that were changed.

    Up to four at a time. Raises `LabError` with the failures of all, after each was tried.
    """
    failures: list[str] = []

    def one(node: Node) -> bool:
        try:
            machine = connect(node)
            # Some BMCs eject only while the machine is off.
            return any([machine.power_off(), machine.eject()])
        except LabError as error:
            failures.append(str(error))
            return False

    with ThreadPoolExecutor(PARALLEL) as pool:
        changed = list(pool.map(one, nodes))
    if failures:
        raise LabError("; ".join(failures))
    return [node["name"] for node, was in zip(nodes, changed, strict=True) if was]


def eject(nodes: Sequence[Node], connect: Callable[[Node], Machine]) -> list[str]:
    """Eject the medium of each of `nodes`; return the names of those that had one.

    Up to four at a time. `connect` returns the machine of a node; its errors are raised.
    """
    with ThreadPoolExecutor(PARALLEL) as pool:
        had = list(pool.map(lambda node: connect(node).eject(), nodes))
    return [node["name"] for node, one in zip(nodes, had, strict=True) if one]
