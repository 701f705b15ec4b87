"""Save, restore, list and delete snapshots of a lab. Runs as root on the host, outside of the lab's sandbox."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .. import files
from ..errors import AgentlabError, LabError
from ..libvirt.connection import connect
from ..libvirt.domain import TCG_CPU
from ..plan import names, rundir, snapshots
from ..plan.model import Plan
from ..sandbox import faults, kvm, namespaces, uplink
from ..sandbox.host import NETNS_DIR, claim
from ..state import owner
from . import clocks, identity, locks, machines, manifest, room, tree
from .manifest import DIRECTORY, FORMAT, OFF, RUNNING, Host, Machine, Manifest, SnapshotError

START_SECONDS = 60.0
# Of the state directory: what belongs to the sandbox's processes, not to the lab.
_LEFT_ALONE = frozenset(
    {
        DIRECTORY,
        owner.FILE,
        namespaces.FILE,
        "processes",
        "sandbox/run",
        "sandbox/nothing",
        "sandbox/beside",
        "sandbox/keeper.py",
    }
)


@dataclass(frozen=True)
class Lab:
    """A lab with its plan, its run directory, the caller, and the caller's version of agentlab.

    run_dir: absolute; who: as `owner.caller` returns it; version: `version.VERSION`, which a restore compares.
    """

    plan: Plan
    run_dir: Path
    who: owner.Caller
    version: str

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self.plan["cluster"]["name"]

    @property
    def state_dir(self) -> Path:
        """State directory of the cluster."""
        return Path(self.plan["hypervisor"]["state_dir"])

    @property
    def pool(self) -> Path:
        """Directory of the disks."""
        return Path(self.plan["hypervisor"]["pool_dir"])

    def check(self) -> owner.Owner:
        """Return the lab's owner. Raises `LabError` if it has no snapshots by its kind, `OwnerError` if it has another owner.

        Call it before anything is changed. `SnapshotError`, a `LabError`, names the field of the profile that would
        have to differ.
        """
        if self.plan["hypervisor"]["kind"] != "sandbox":
            self.refuse()
        found = owner.verify(self.state_dir, self.who)
        if found is None:
            raise SnapshotError(
                f"there is no lab of cluster {self.cluster} in {self.state_dir}: agentlab prepare --cluster {self.cluster}"
            )
        return found

    def refuse(self) -> None:
        """Raise `SnapshotError` with every reason why the lab cannot be saved: what `plan.snapshots` has, and faults injected by hand."""
        if found := snapshots.refusals(self.plan):
            raise SnapshotError(f"a snapshot of cluster {self.cluster} {'; it '.join(found)}")
        if injected := [faults.title(one["fault"]) for one in faults.active(self.plan)]:
            raise SnapshotError(
                f"faults that were injected by hand are not saved: {', '.join(injected)}; undo them "
                f"(agentlab fault TARGET KIND --undo --cluster {self.cluster}), or start over"
            )


class RestoreError(SnapshotError):
    """A restore failed after the present state of the lab had ended: until a restore succeeds the lab cannot be used."""


Note = Callable[[str], None]
"""Is called with what was not possible and is not an error, such as setting a machine's clock."""


def save(lab: Lab, name: str, note: Note = lambda __: None) -> Manifest:
    """Save the lab as snapshot `name`, and let it continue. Raises `SnapshotError`, after which there is no such snapshot.

    note: called for each machine whose clock could not be set. The machines stand still meanwhile (`paused` of the
    result); memory and disks are saved together, so that the cluster is consistent. Faults of the plan, too little
    space, a taken name and another action (`locks`) are refused.
    """
    lab.check()
    lab.refuse()
    # What lets the machines continue after this process was killed has the lock as long.
    with locks.exclusive(lab.state_dir, lab.cluster, inherited=True):
        return _save(lab, name, note)


def _save(lab: Lab, name: str, note: Note) -> Manifest:
    target = manifest.place(lab.state_dir, name)
    if target.exists():
        raise SnapshotError(f"snapshot {name} exists: delete it first, or choose another name")
    running = namespaces.require(lab.cluster, lab.state_dir)
    target.parent.mkdir(mode=0o700, exist_ok=True)
    domains = [node["domain"] for node in lab.plan["nodes"]]
    socket = machines.uri(running.pid)
    with files.staging_directory(target.parent, inherited=True) as stage, connect(socket) as connection:
        host = _host(lab)
        before = machines.states(connection, domains)
        room.check_disk(lab.plan, before, target.parent)
        memory = stage / "memory"
        memory.mkdir(mode=0o700)
        begin, taken = time.monotonic(), time.time()
        with machines.standing_still(connection, before, socket, memory, stage):
            saved = machines.save(connection, before, lab.pool, memory)
            layers = {disk.volume for machine in saved for disk in machine.disks}
            tops = {str((lab.pool / volume).relative_to(lab.state_dir)) for volume in layers}
            modes = tree.replicate(
                lab.state_dir,
                stage / "state",
                linked=lambda path: _is_shared(lab, path),
                skip=lambda path: path in _LEFT_ALONE or path in tops,
                private=True,
            )
            run_modes = tree.replicate(
                lab.run_dir, stage / "run", linked=lambda path: path.endswith(".iso"), private=True
            )
        manifest.write_modes(stage, {"state": modes, "run": run_modes})
        paused = time.monotonic() - begin
        _step_clocks(lab, running, saved, note)
        made = Manifest(
            FORMAT,
            name,
            lab.cluster,
            str(lab.state_dir),
            taken,
            plan_digest(lab.run_dir),
            round(paused, 2),
            host,
            saved,
        )
        manifest.write(stage, made)
        stage.rename(target)
    return made


def restore(lab: Lab, name: str, note: Note = lambda __: None) -> Manifest:
    """Put the lab back to snapshot `name`, machines running. A killed restore can be repeated.

    The lab may have been prepared again since, or be in another run directory (`identity`). Raises `SnapshotError` before
    anything changes for a snapshot of another plan, QEMU, accelerator, CPU model or version, without memory for it, and while
    another action runs (`locks`); `RestoreError` for a failure after that.
    """
    found = lab.check()
    with locks.exclusive(lab.state_dir, lab.cluster):
        saved = usable(lab, name)
        place = manifest.place(lab.state_dir, name)
        before = identity.saved_owner(place)
        room.check_memory(lab.plan, saved, namespaces.find(lab.state_dir))
        try:
            _replace(lab, saved, found, before, note)
        except (AgentlabError, ValueError) as error:
            raise RestoreError(str(error)) from error
        except OSError as error:
            raise RestoreError(files.explain(error)) from error
    return saved


def _replace(lab: Lab, saved: Manifest, found: owner.Owner, before: owner.Owner, note: Note) -> None:
    """End the lab, and start it as it was saved.

    found: its owner; before: that of the snapshot.
    """
    place, moves = manifest.place(lab.state_dir, saved.name), identity.moves(before, lab.run_dir)
    namespaces.stop(lab.plan["hypervisor"]["netns"], lab.state_dir, found.mark)
    found = identity.take_mark(lab.plan, found, before.mark)
    claim(lab.state_dir, lab.who, NETNS_DIR)
    shutil.rmtree(names.process_dir(str(lab.state_dir)), ignore_errors=True)
    fill_run(lab, place)
    mine = lab.who.owner
    now = replace(before, run_dir=mine.run_dir, uid=mine.uid, user=mine.user, host=mine.host)
    identity.take_over(lab.plan, lab.run_dir, now)
    fill_state(lab, place, saved)
    identity.move(lab.state_dir, moves)
    start(lab, saved, place / "memory", found, note, moves)


def usable(lab: Lab, name: str) -> Manifest:
    """Return the manifest of a snapshot that can be restored here. Raises `SnapshotError`.

    The manifest, all files of the snapshot, plan, QEMU, accelerator, CPU model and version are compared with this host.
    """
    saved = manifest.read(lab.state_dir, name)
    place = manifest.place(lab.state_dir, name)
    manifest.refuse_other(saved, _host(lab), plan_digest(lab.run_dir))
    _check_files(saved, place, lab)
    for part in ("state", "run"):
        manifest.read_modes(place, part)
    return saved


def fill_run(lab: Lab, place: Path) -> None:
    """Make the run directory that of the snapshot at `place`.

    Files that are not in the snapshot are removed. ISOs are hard links. Raises `SnapshotError` and `OSError`.
    """
    tree.replicate(
        place / "run", lab.run_dir, linked=lambda path: path.endswith(".iso"), modes=manifest.read_modes(place, "run")
    )


def fill_state(lab: Lab, place: Path, saved: Manifest) -> None:
    """Make the state directory that of the snapshot at `place`, with empty overlays on the layers of its disks.

    saved: its manifest, with the disks. What belongs to the sandbox's processes stays. Raises `SnapshotError` and
    `OSError`.
    """
    # The link of a copy is in its own snapshots, and not in that of the original, which it was made from.
    origin = () if (place / "state" / namespaces.ORIGIN).is_symlink() else (namespaces.ORIGIN,)
    tree.replicate(
        place / "state",
        lab.state_dir,
        linked=lambda path: _is_shared(lab, path),
        skip=lambda path: path in _LEFT_ALONE or path in origin,
        modes=manifest.read_modes(place, "state"),
    )
    for machine in saved.machines:
        for disk in machine.disks:
            machines.overlay(lab.pool, disk)


def start(
    lab: Lab, saved: Manifest, memory: Path, found: owner.Owner, note: Note, moves: Sequence[identity.Move] = ()
) -> None:
    """Start the sandbox with its networks and services, and load and resume the saved machines from the directory `memory`.

    found: the owner; note: see `Note`; moves: of paths that machines have open. Raises `LabError` if networks or services do
    not start within `START_SECONDS`.
    """
    gateways = [subnet["gateway"] for subnet in lab.plan["networks"][0]["subnets"]]
    namespaces.ensure(
        lab.who,
        lab.plan["hypervisor"]["netns"],
        lab.state_dir,
        gateways,
        lab.plan["cluster"]["domain"],
        lambda: saved.host.accelerator == "kvm",
    )
    running = namespaces.require(lab.cluster, lab.state_dir)
    uplink.ensure(running, lab.plan)
    _finish(_start(lab, running, "networks", found), "networks")
    # They take longer than the machines' memory.
    services = _start(lab, running, "services", found)
    try:
        with connect(machines.uri(running.pid)) as connection:
            machines.load(connection, saved.machines, memory, moves)
            if lab.cluster != saved.cluster:
                machines.rename(connection, saved.machines, lab.cluster)
            _finish(services, "services")
            machines.resume(connection, saved.machines)
    finally:
        services.kill()
    _step_clocks(lab, running, saved.machines, note)


def existing_snapshots(state_dir: Path) -> list[Manifest]:
    """Return the snapshots of a cluster, the oldest first, after removing what a killed save left.

    Raises `SnapshotError` for a damaged one. `files.sweep` removes only what no running save holds a lock on.
    """
    files.sweep(state_dir / DIRECTORY)
    return sorted((manifest.read(state_dir, name) for name in manifest.names(state_dir)), key=lambda one: one.taken)


def delete(lab: Lab, name: str) -> None:
    """Delete snapshot `name`; labs that were restored from it are not affected.

    Raises `SnapshotError` if there is none or another action runs, and `OwnerError` for a lab of another. A snapshot with a
    damaged manifest can be deleted, too.
    """
    lab.check()
    path = manifest.place(lab.state_dir, name)
    with locks.exclusive(lab.state_dir, lab.cluster):
        if not path.is_dir():
            manifest.read(lab.state_dir, name)
        # Without its manifest it is not a snapshot, wherever this is killed.
        with files.staging_directory(path.parent) as stage:
            path.rename(stage / name)


def plan_digest(run_dir: Path) -> str:
    """Return the SHA-256 of the plan in a run directory.

    It is of the bytes of `plan.yaml`, in hexadecimal. Raises `OSError` without a plan.
    """
    return hashlib.sha256((run_dir / rundir.PLAN).read_bytes()).hexdigest()


def _step_clocks(lab: Lab, running: namespaces.RunningSandbox, saved: Sequence[Machine], note: Note) -> None:
    for problem in clocks.step(lab.plan, lab.run_dir, running, [one.domain for one in saved if one.state == RUNNING]):
        note(problem)


def _host(lab: Lab) -> Host:
    accelerator = kvm.domain_type(lab.plan["hypervisor"]["domain_type"])
    done = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=False)
    return Host(
        (done.stdout.splitlines() or ["missing"])[0],
        accelerator,
        _processor() if accelerator == "kvm" else TCG_CPU,
        lab.version,
    )


def _processor() -> str:
    """Return model and flags of this host's processor, which a guest with KVM sees."""
    first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    lines = [line.partition(":") for line in first.splitlines()]
    found = {key.strip(): value.strip() for key, __, value in lines}
    flags = hashlib.sha256(" ".join(sorted(found.get("flags", "").split())).encode()).hexdigest()[:12]
    return f"{found.get('model name', 'unknown')} (flags {flags})"


def _check_files(saved: Manifest, place: Path, lab: Lab) -> None:
    pool = place / "state" / lab.pool.relative_to(lab.state_dir)
    wanted = [pool / disk.layer for machine in saved.machines for disk in machine.disks]
    wanted += [place / "memory" / machine.domain for machine in saved.machines if machine.state != OFF]
    missing = [str(path) for path in wanted if path.is_symlink() or not path.is_file()]
    expected = sorted(node["domain"] for node in lab.plan["nodes"])
    if missing or sorted(machine.domain for machine in saved.machines) != expected:
        raise SnapshotError(
            f"snapshot {saved.name} is damaged: {', '.join(missing) or 'its machines are not those of the plan'}"
            f"{' is missing' if missing else ''}; delete it"
        )


def _is_shared(lab: Lab, path: str) -> bool:
    """Return whether a file of the state directory never changes: layers, media of the BMCs, and blobs, whose name is their digest."""
    pool = str(lab.pool.relative_to(lab.state_dir))
    return path.startswith(f"{pool}/") or (path.endswith("/data") and "/blobs/sha256/" in path)


def _start(lab: Lab, running: namespaces.RunningSandbox, what: str, found: owner.Owner) -> subprocess.Popen[bytes]:
    """Start `inside` in the sandbox, in this program's environment."""
    module = f"{__package__}.inside"
    process = subprocess.Popen(
        [*namespaces.enter(running), sys.executable, "-m", module, what, str(lab.run_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if process.stdin:
        process.stdin.write(json.dumps(asdict(found)).encode())
        process.stdin.close()
        process.stdin = None
    return process


def _finish(process: subprocess.Popen[bytes], what: str) -> None:
    try:
        __, errors = process.communicate(timeout=START_SECONDS)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise LabError(f"the {what} of the lab did not start within {START_SECONDS:.0f} s") from error
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise LabError(f"the {what} of the lab cannot be started: {lines[-1] if lines else process.returncode}")


def sizes(lab: Lab, found: Sequence[Manifest]) -> dict[str, int]:
    """Return the bytes on disk of each snapshot's memory and disks; layers that several share count for each.

    found: as of `existing_snapshots`. Keys are the names of snapshots; sparse files count with the blocks that they use.
    """
    return {one.name: tree.size(manifest.place(lab.state_dir, one.name)) for one in found}
