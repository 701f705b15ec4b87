"""What a snapshot is and where it belongs: `snapshot.json` in its directory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeVar

from ..documents import load_json, read_file
from ..errors import LabError
from ..state import write_atomic

FILE = "snapshot.json"
MODES = "modes.json"
_PERMISSIONS = 0o777
FORMAT = 1
DIRECTORY = "snapshots"
"""In the state directory of a cluster, so that `destroy` removes the snapshots with it."""
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
RUNNING, PAUSED, OFF = "running", "paused", "shut off"
_T = TypeVar("_T")
_STATES = (RUNNING, PAUSED, OFF)


class SnapshotError(LabError):
    """A snapshot cannot be saved, read, restored, exported or imported."""


@dataclass(frozen=True)
class Host:
    """What a saved machine runs on: a restore needs the same.

    cpu: model and flags of the host's processor with KVM, the emulated model without; agentlab: version of the collection.
    """

    qemu: str
    accelerator: str
    cpu: str
    agentlab: str


@dataclass(frozen=True)
class SavedDisk:
    """A disk: the name of its volume, the layer with its content, and its size in bytes.

    Both are names of files in the pool's directory; the size is the virtual one.
    """

    volume: str
    layer: str
    size: int


@dataclass(frozen=True)
class Machine:
    """A machine: its domain, `running`, `paused` or `shut off`, and its disks."""

    domain: str
    state: str
    disks: tuple[SavedDisk, ...]


@dataclass(frozen=True)
class Manifest:
    """Content of `snapshot.json`.

    taken: when, in seconds since 1970; plan: SHA-256 of `plan.yaml`; paused: for how many seconds the machines stood still.
    """

    format: int
    name: str
    cluster: str
    state_dir: str
    taken: float
    plan: str
    paused: float
    host: Host
    machines: tuple[Machine, ...]


def place(state_dir: Path, name: str) -> Path:
    """Return the directory of snapshot `name`. Raises `SnapshotError` for a name that is not valid.

    It is `snapshots/NAME` in the state directory, and need not exist. Names are those of `NAME`.
    """
    if not NAME.fullmatch(name):
        raise SnapshotError(
            f"snapshot name {name!r} is not valid: use lower case letters, digits, '.' and '-', at most 63 characters"
        )
    return state_dir / DIRECTORY / name


def read(state_dir: Path, name: str) -> Manifest:
    """Return the manifest of snapshot `name`. Raises `SnapshotError` when there is none, or a damaged one."""
    directory = place(state_dir, name)
    path = directory / FILE
    try:
        return parse(read_file(path), path)
    except (FileNotFoundError, NotADirectoryError) as error:
        known = ", ".join(names(state_dir)) or "none"
        raise SnapshotError(
            f"there is no snapshot {name!r} in {directory.parent}; existing snapshots: {known}"
        ) from error


def names(state_dir: Path) -> list[str]:
    """Return the names of a cluster's snapshots.

    They are sorted. A directory without its manifest is not a snapshot: its save, or its deletion, was killed.
    """
    directory = state_dir / DIRECTORY
    found = directory.iterdir() if directory.is_dir() else ()
    return sorted(path.name for path in found if NAME.fullmatch(path.name) and (path / FILE).is_file())


def parse(data: bytes, path: Path) -> Manifest:
    """Return the manifest in `data`, the content of `path`. Raises `SnapshotError`.

    path: for messages. Every field is checked for its type, and names of machines and disks for being plain file names.
    """
    try:
        found = load_json(data, name=str(path))
        if isinstance(found, dict) and found.get("format") not in (None, FORMAT):
            raise SnapshotError(f"{path}: format is {found['format']!r}; this version reads format {FORMAT}")
        machines = tuple(
            _typed(Machine, {**one, "disks": tuple(_typed(SavedDisk, disk) for disk in one["disks"])})
            for one in found["machines"]
        )
        made = _typed(Manifest, {**found, "host": _typed(Host, found["host"]), "machines": machines})
        texts = [
            disk for one in machines for disk in (one.domain, *(n for d in one.disks for n in (d.volume, d.layer)))
        ]
        if not all(_FILE_NAME.fullmatch(text) for text in texts) or not NAME.fullmatch(made.name):
            raise ValueError("a name in it is not a file name")
        if not all(one.state in _STATES for one in machines):
            raise ValueError(f"the state of a machine is not one of {', '.join(_STATES)}")
        return made
    except (ValueError, KeyError, TypeError) as error:
        raise SnapshotError(f"{path}: damaged snapshot ({error}): delete it, or import it again") from error


def write(directory: Path, manifest: Manifest) -> None:
    """Write the manifest, which is the last file of a snapshot."""
    write_atomic(directory / FILE, json.dumps(asdict(manifest), indent=1) + "\n", 0o600)


def write_modes(directory: Path, trees: Mapping[str, Mapping[str, int]]) -> None:
    """Write the modes that files and directories of each tree had, because a snapshot is private.

    trees: `state` and `run`, each a mapping of relative path to permission bits.
    """
    write_atomic(directory / MODES, json.dumps(trees) + "\n", 0o600)


def read_modes(directory: Path, tree: str) -> dict[str, int]:
    """Return the modes of a tree. Raises `SnapshotError`.

    tree: `state` or `run`. The result is relative path -> permission bits (at most 0777).
    """
    path = directory / MODES
    try:
        found = load_json(read_file(path), name=str(path))[tree]
        if not all(isinstance(mode, int) and 0 <= mode <= _PERMISSIONS for mode in found.values()):
            raise ValueError("a mode is not one of permissions")
        return {str(name): int(mode) for name, mode in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SnapshotError(f"{path}: damaged snapshot ({error}): delete it, or import it again") from error


def refuse_other(manifest: Manifest, here: Host, plan: str) -> None:
    """Raise `SnapshotError` with every difference between where the snapshot was taken and here.

    here: this host; plan: SHA-256 of the plan of the run directory, in hexadecimal.
    """
    pairs = [
        ("QEMU", manifest.host.qemu, here.qemu),
        ("accelerator", manifest.host.accelerator, here.accelerator),
        ("CPU model", manifest.host.cpu, here.cpu),
        ("agentlab", manifest.host.agentlab, here.agentlab),
        ("plan (SHA-256)", manifest.plan[:12], plan[:12]),
    ]
    wrong = [f"{what} is {there!r} in the snapshot and {now!r} here" for what, there, now in pairs if there != now]
    if wrong:
        raise SnapshotError(
            f"snapshot {manifest.name} cannot be restored: {'; '.join(wrong)}. "
            "Restore it where it was saved, or delete it and save another one"
        )


def _typed(kind: type[_T], data: object) -> _T:
    names = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(data, dict) or set(data) != set(names):
        raise TypeError(f"expected a mapping of {', '.join(names)}")
    simple = {"str": str, "int": int, "float": int | float}
    for name, type_name in names.items():
        wanted = simple.get(type_name)
        if wanted and (not isinstance(data[name], wanted) or isinstance(data[name], bool)):
            raise TypeError(f"{name} is {data[name]!r}")
    return kind(**data)
