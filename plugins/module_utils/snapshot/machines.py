"""Machines of a snapshot: paused together, memory and disks saved, restored and resumed.

A disk's content becomes an immutable layer (`layer-<uuid>.qcow2`) next to the volume, and the volume an empty overlay on it.
Backing files are named relative to the directory, so that layers are shared by hard links and each directory is complete:
deleting a snapshot or a lab never affects another. Each step leaves disks that a machine can start from.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from .. import signals
from ..documents import load_json
from ..libvirt.connection import lookup
from ..libvirt.domain import METADATA, is_medium
from ..libvirt.xmldiff import NAMESPACES
from .identity import Move, moved_xml
from .manifest import OFF, PAUSED, RUNNING, Machine, SavedDisk, SnapshotError

if TYPE_CHECKING:
    import libvirt

LAYER = "layer-"
AGAIN_SECONDS = 300.0
"""For how long the watcher of a save tries to let machines continue."""
# libvirt's constants, of virDomainSaveRestoreFlags, virDomainState and virDomainXMLFlags. _SECURE is the same in
# virDomainSaveImageXMLFlags.
_SAVE_PAUSED = 4
_STATES = {1: RUNNING, 3: PAUSED, 5: OFF}
_SECURE, _INACTIVE, _MIGRATABLE = 1, 2, 8
# Of virDomainMetadataType and virDomainModificationImpact.
_ELEMENT, _LIVE, _CONFIG = 2, 1, 2


def uri(pid: int) -> str:
    """Return the URI of the libvirt in the sandbox with first process `pid`, as root outside of it.

    The socket is reached through the root directory of that process, so it works without entering the namespaces.
    """
    return f"qemu+unix:///system?socket=/proc/{pid}/root/run/libvirt/libvirt-sock"


def states(connection: libvirt.virConnect, domains: Sequence[str]) -> dict[str, str]:
    """Return the state of each domain. Raises `SnapshotError` for one that is missing or in a state that cannot be saved.

    connection: of libvirt. The states are `running`, `paused` and `shut off`, as in the manifest.
    """
    found = {}
    for name in domains:
        domain = lookup(connection, "lookupByName", name)
        if domain is None:
            raise SnapshotError(f"domain {name} does not exist: the lab is not complete; run: agentlab prepare")
        number = domain.state()[0]
        if number not in _STATES:
            raise SnapshotError(f"domain {name} cannot be saved in libvirt's state {number}: power it off or on first")
        found[name] = _STATES[number]
    return found


@contextlib.contextmanager
def standing_still(
    connection: libvirt.virConnect, before: Mapping[str, str], socket: str, memory: Path, stage: Path
) -> Iterator[None]:
    """Pause all running domains, and let them continue at the end, also those whose memory was saved to `memory` meanwhile.

    stage: unfinished files. When this process is killed, a watcher lets the machines continue and removes these; socket: URI of libvirt.
    The first signal interrupts the block, and no other one what follows. Raises `SnapshotError` when a machine did not continue; its
    message begins with that of an error in the block.
    """
    running = [name for name, state in before.items() if state == RUNNING]
    live = [name for name, state in before.items() if state != OFF]
    # Standard input ends with this process, however it ends. What libvirt was doing for it, it finishes first.
    script = (
        "read done && exit; uri=$1 memory=$2 stage=$3; shift 3; for name; do state=${name%%:*} name=${name#*:}; "
        '[ "$state" = running ] && virsh -q -c "$uri" resume "$name" || virsh -q -c "$uri" restore "$memory/$name" "--$state"; '
        'done; rm -rf "$stage"'
    )
    watcher = subprocess.Popen(
        ["sh", "-c", script, "sh", socket, str(memory), str(stage), *(f"{before[name]}:{name}" for name in live)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        close_fds=False,  # it holds the locks of the lab and of `stage`, whose memory it needs
    )
    with signals.first_only():
        try:
            for name in running:
                connection.lookupByName(name).suspend()
            yield
        finally:
            with signals.defer_signals():
                _continue(connection, {name: before[name] for name in live}, memory, watcher)


def _continue(
    connection: libvirt.virConnect, before: Mapping[str, str], memory: Path, watcher: subprocess.Popen[bytes]
) -> None:
    """Load the machines that have ended, and then resume those that ran, each whatever happens to the others.

    before: the state of each that is not off. With one that does not continue, the watcher tries it again, which removes the
    unfinished snapshot, and a `SnapshotError` names it.
    """
    wrong: dict[str, Exception] = {}

    def attempt(name: str, action: Callable[[libvirt.virDomain, str], None]) -> None:
        try:
            action(connection.lookupByName(name), name)
        except Exception as error:
            wrong[name] = error

    def load(domain: libvirt.virDomain, name: str) -> None:
        if not domain.isActive():
            connection.restoreFlags(str(memory / name), None, _SAVE_PAUSED)

    def resume(domain: libvirt.virDomain, name: str) -> None:
        if before[name] == RUNNING and _STATES.get(domain.state()[0]) != RUNNING:
            domain.resume()

    failed = sys.exc_info()[1]
    with ThreadPoolExecutor(4) as executor:
        list(executor.map(lambda name: attempt(name, load), before))
    for name in [name for name in before if name not in wrong]:
        attempt(name, resume)
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        watcher.communicate(None if wrong else b"done\n", AGAIN_SECONDS)
    if wrong:
        reasons = [f"machine {name} did not continue: {error}" for name, error in sorted(wrong.items())]
        raise SnapshotError(
            f"{'; '.join([*([str(failed)] if isinstance(failed, Exception) else []), *reasons])}; it was tried again. "
            "A machine that is off now starts from its disk: agentlab power NODE on"
        )


def save(connection: libvirt.virConnect, before: Mapping[str, str], pool: Path, memory: Path) -> tuple[Machine, ...]:
    """Save the memory of machines into the directory `memory`, which ends their QEMU, and make their disks layers in `pool`.

    before: domain -> state, as of `states`. Up to four at once. Raises `SnapshotError` for a disk that is not a volume
    of the pool.
    """

    def one(name: str) -> Machine:
        domain = connection.lookupByName(name)
        volumes = _volumes(domain)
        if before[name] != OFF:
            domain.saveFlags(str(memory / name), _without_chains(domain), _SAVE_PAUSED)
            (memory / name).chmod(0o600)
        return Machine(name, before[name], tuple(_layer(pool, volume) for volume in volumes))

    with ThreadPoolExecutor(4) as executor:
        return tuple(executor.map(one, before))


def load(connection: libvirt.virConnect, machines: Sequence[Machine], memory: Path, moves: Sequence[Move] = ()) -> None:
    """Load the memory of machines from the directory `memory`; they stay paused.

    The files are those that `save` wrote, named as the domains. Machines that were off are left out. moves: of files that
    they have open. libvirt's errors are raised.
    """
    _load(connection, [memory / machine.domain for machine in machines if machine.state != OFF], moves)


def _load(connection: libvirt.virConnect, files: Sequence[Path], moves: Sequence[Move] = ()) -> None:
    def one(path: Path) -> None:
        saved = connection.saveImageGetXMLDesc(str(path), _SECURE) if moves else ""
        moved = moved_xml(saved, moves)
        connection.restoreFlags(str(path), moved if moved != saved else None, _SAVE_PAUSED)

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(one, files))


def resume(connection: libvirt.virConnect, machines: Sequence[Machine]) -> None:
    """Resume those machines that ran, together.

    Those that were paused when they were saved stay paused.
    """
    for machine in machines:
        if machine.state == RUNNING:
            connection.lookupByName(machine.domain).resume()


def rename(connection: libvirt.virConnect, machines: Sequence[Machine], cluster: str) -> None:
    """Note in the definitions of loaded machines that they belong to `cluster`, as `domain.render` does.

    The metadata is that of the running machine and, in any case, of its persistent definition.
    """
    uri = METADATA[1:].partition("}")[0]
    for machine in machines:
        domain = connection.lookupByName(machine.domain)
        node = ET.fromstring(domain.metadata(_ELEMENT, uri, 0))
        node.set("cluster", cluster)
        places = _CONFIG if machine.state == OFF else _CONFIG | _LIVE
        domain.setMetadata(_ELEMENT, ET.tostring(node, encoding="unicode"), NAMESPACES[uri], uri, places)


def overlay(pool: Path, disk: SavedDisk) -> None:
    """Make the volume of a disk an empty overlay on its layer.

    pool: directory with both files; the volume is replaced in one step. Raises `SnapshotError` with the error of
    qemu-img.
    """
    volume, layer = pool / disk.volume, pool / disk.layer
    new = pool / f".{disk.volume}.new"
    new.unlink(missing_ok=True)
    # -u: the backing file is not opened.
    command = [
        "qemu-img",
        "create",
        "-q",
        "-f",
        "qcow2",
        "-u",
        "-b",
        disk.layer,
        "-F",
        "qcow2",
        str(new),
        str(disk.size),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        new.unlink(missing_ok=True)
        raise SnapshotError(f"disk {disk.volume}: {done.stderr.strip()}")
    status = layer.stat()
    os.chown(new, status.st_uid, status.st_gid)
    new.chmod(0o600)
    new.rename(volume)


def _layer(pool: Path, volume: str) -> SavedDisk:
    disk = SavedDisk(volume, f"{LAYER}{uuid.uuid4()}.qcow2", _size(pool / volume))
    os.link(pool / volume, pool / disk.layer)
    (pool / disk.layer).chmod(0o600)
    overlay(pool, disk)
    return disk


def _without_chains(domain: libvirt.virDomain) -> str:
    """Return the definition of a running domain, for the file with its memory, without the layers of its disks.

    With them libvirt would open a disk as it was, without the layer that it has from now on.
    """
    tree = ET.fromstring(domain.XMLDesc(_SECURE | _MIGRATABLE))
    for disk in tree.findall("devices/disk"):
        for chain in disk.findall("backingStore"):
            disk.remove(chain)
    return ET.tostring(tree, encoding="unicode")


def _size(path: Path) -> int:
    done = subprocess.run(["qemu-img", "info", "--output=json", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SnapshotError(f"disk {path.name}: {done.stderr.strip()}")
    return int(load_json(done.stdout, name=path.name)["virtual-size"])


def _volumes(domain: libvirt.virDomain) -> list[str]:
    """Return the volume of each disk of a domain that it writes to. Raises `SnapshotError` for one that is not a volume."""
    found = []
    for disk in ET.fromstring(domain.XMLDesc(_INACTIVE)).findall("devices/disk"):
        source, target = disk.find("source"), disk.find("target")
        if not is_medium(disk) and source is not None and target is not None:
            volume = source.get("volume")
            if not volume:
                raise SnapshotError(
                    f"domain {domain.name()}: disk {target.get('dev')} is not a volume of the lab's pool"
                )
            found.append(volume)
    return found
