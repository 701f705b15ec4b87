"""What a hypervisor has of a lab's machines and services: libvirt's objects, logs of QEMU and of services, consoles.

`gather` keeps what is on its own hypervisor directly. Another one packs it into an archive (`pack`), with a document about what it
could not read, and `unpack` keeps that where `gather` runs.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from ..documents import load_json
from ..errors import LabError
from ..files import new_file
from ..libvirt import LOGS as QEMU_LOGS
from ..plan import hypervisors, names
from ..plan.machines import own_machines
from ..plan.model import Plan
from ..plan.modes import MODES
from ..plan.outside import machines
from ..sandbox import namespaces
from .host_logs import Keep, unpack_into
from .ssh import run

SCREEN, SERVICES = "screen", "services"
FOLDERS = ("console", "libvirt", SERVICES, SCREEN)
"""Folders of the report with what a hypervisor has; in `SCREEN` are pictures."""
ARCHIVE = "logs.tar.xz"
"""Name of the archive in the cluster's state directory."""
_NOTE = "note.json"
_NOTE_BYTES = 1 << 20
_SCREEN_SECONDS = 60
_VIRSH = ("virsh", "-c", "qemu:///system")
_ERRORS = (subprocess.SubprocessError, OSError, LabError)


class Note(NamedTuple):
    """What a hypervisor reports besides files.

    domains: libvirt domain -> state, as of `domain_states`; None: unknown; missing: source -> why it is missing.
    """

    domains: dict[str, str] | None
    missing: dict[str, str]


def domain_states(plan: Plan, enter: Sequence[str] = ()) -> dict[str, str] | None:
    """Each domain that exists, and its state; None if libvirt is not available (or users boot machines of their own).

    Keys are the domains of the plan, values as of `virsh domstate` ("running", "shut off", ...). enter: command prefix,
    to run virsh in a sandbox. Raises `OSError` if virsh is missing, and `subprocess.TimeoutExpired`.
    """
    if not MODES[plan["boot"]["mode"]].boots:
        return None
    states = {}
    for node in [*own_machines(plan["nodes"]), *machines(plan)]:
        try:
            states[node["domain"]] = run(*enter, *_VIRSH, "domstate", node["domain"]).strip()
        except subprocess.CalledProcessError as error:
            if "failed to get domain" not in error.stderr:
                return None
    return states


def libvirt(plan: Plan, keep: Keep, enter: Sequence[str] = ()) -> dict[str, str] | None:
    """Keep the XML of the machines and networks on the hypervisor of `plan`, and its leases; return the states of the domains.

    plan: the plan as that hypervisor sees it; enter: command prefix to run in its sandbox, if this process is not there. Raises as
    `ssh.run`.
    """
    found = domain_states(plan, enter)
    for name in found or ():
        _text(keep, f"libvirt/{name}.xml", run(*enter, *_VIRSH, "dumpxml", name))
    for network in plan["networks"]:
        for command, suffix in (("net-dumpxml", "xml"), ("net-dhcp-leases", "leases")):
            text = run(*enter, *_VIRSH, command, network["name"])
            _text(keep, f"libvirt/{_prefix(plan)}{network['name']}.{suffix}", text)
    return found


def screens(plan: Plan, keep: Keep, enter: Sequence[str] = ()) -> None:
    """Keep a picture of the screen of each machine that runs and has one, as libvirt writes it.

    enter: as for `libvirt`. Raises as `ssh.run`; then the pictures of the machines that follow are missing.
    """
    for name, state in (domain_states(plan, enter) or {}).items():
        if state == "running" and "<video>" in run(*enter, *_VIRSH, "dumpxml", name):
            command = [*enter, *_VIRSH, "--quiet", "screenshot", name, "/dev/stdout"]
            done = subprocess.run(command, capture_output=True, timeout=_SCREEN_SECONDS, check=False)
            if done.returncode:
                raise OSError(f"{name}: {done.stderr.decode(errors='replace').strip()}")
            keep(f"{SCREEN}/{name}.png", io.BytesIO(done.stdout))


def qemu(plan: Plan, keep: Keep) -> None:
    """Keep QEMU's logs of the cluster's machines. Raises `OSError`."""
    hypervisor = plan["hypervisor"]
    # A sandbox shows its own directory at that path.
    private = namespaces.private(Path(hypervisor["state_dir"]), str(QEMU_LOGS.parent)) / QEMU_LOGS.name
    folder = private if hypervisor["kind"] == "sandbox" else QEMU_LOGS
    for path in sorted(folder.glob(f"{plan['cluster']['name']}_*.log")):
        _file(keep, f"libvirt/qemu/{path.name}", path)


def service_log(name: str) -> str:
    """Return where the log of service `name` is kept, in the directory with the collected logs."""
    return f"{SERVICES}/{name}.log"


def services(plan: Plan, keep: Keep) -> None:
    """Keep the logs of the lab's services. Raises `OSError`."""
    for path in sorted(Path(plan["services"]["directory"]).glob(f"*/{names.SERVICE_LOG}")):
        _file(keep, service_log(f"{_prefix(plan)}{path.parent.name}"), path)


def consoles(plan: Plan, keep: Keep) -> None:
    """Keep the console logs of the machines. Raises `OSError`."""
    for path in sorted(Path(plan["hypervisor"]["console_dir"]).glob("*.log")):
        _file(keep, f"console/{path.name}", path)


def pack(plan: Plan) -> Path | None:
    """Pack what the hypervisor of `plan` has into `ARCHIVE` of its state directory, and return its path; None without that directory.

    Runs as root on its host, outside of a sandbox, which need not be running. The archive (0600) belongs to the user who became
    root by sudo. It is not redacted. Raises `OSError`.
    """
    directory = Path(plan["hypervisor"]["state_dir"])
    if not directory.is_dir():
        return None
    note = Note(None, {})
    with (
        new_file(directory / ARCHIVE, overwrite=True) as stream,
        tarfile.open(fileobj=stream, mode="w:xz", preset=1) as tar,
    ):
        os.fchown(stream.fileno(), int(os.environ.get("SUDO_UID", "0")), -1)
        keep = partial(_add, tar)
        try:
            note = note._replace(domains=libvirt(plan, keep, _enter(plan)))
        except _ERRORS as error:
            note.missing["libvirt"] = _reason_of(error)
        sources: dict[str, Callable[[Plan, Keep], object]] = {
            "logs of QEMU": qemu,
            "services": services,
            "consoles": consoles,
            "screens": lambda plan, keep: screens(plan, keep, _enter(plan)),
        }
        for name, source in sources.items():
            try:
                source(plan, keep)
            except _ERRORS as error:
                note.missing[name] = _reason_of(error)
        _text(keep, _NOTE, json.dumps(note._asdict()))
    return directory / ARCHIVE


def archive_path(run_dir: Path, name: str) -> Path:
    """Return where the role `gather` puts the archive of the hypervisor `name`."""
    return run_dir / "logs" / f"{name}.tar.xz"


def unpack(archive: Path, keep: Keep) -> Note:
    """Give each file of an archive of `pack` to `keep`, if its folder is one of `FOLDERS`; return the note.

    Raises `OSError` for another file, and one that is too large, and `ValueError` for a damaged note.
    """
    notes: list[bytes] = []

    def sort(name: str, content: IO[bytes]) -> None:
        if name == _NOTE:
            notes.append(content.read(_NOTE_BYTES))
        elif name.split("/")[0] in FOLDERS:
            keep(name, content)

    with archive.open("rb") as sent:
        unpack_into(sent, sort)
    note = load_json(notes[0] if notes else b"", name=_NOTE)
    if not isinstance(note, dict) or note.keys() != {*Note._fields}:
        raise ValueError(f"{_NOTE}: must have the fields {', '.join(Note._fields)}")
    return Note(_texts(note["domains"]) if note["domains"] is not None else None, _texts(note["missing"]))


def _texts(given: object) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ValueError(f"{_NOTE}: must have mappings of strings")
    return given


def _reason_of(error: Exception) -> str:
    output = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
    return str(output).strip() or str(error)


def _prefix(plan: Plan) -> str:
    """Return what distinguishes names of a further hypervisor's networks and services from those of the first."""
    name = hypervisors.name_of(plan["hypervisor"])
    return "" if name == hypervisors.FIRST else f"{name}-"


def _enter(plan: Plan) -> list[str]:
    hypervisor = plan["hypervisor"]
    if hypervisor["kind"] != "sandbox":
        return []
    return namespaces.enter(namespaces.require(plan["cluster"]["name"], Path(hypervisor["state_dir"])))


def _text(keep: Keep, name: str, text: str) -> None:
    keep(name, io.BytesIO(text.encode(errors="replace")))


def _file(keep: Keep, name: str, path: Path) -> None:
    with path.open("rb") as source:
        keep(name, source)


def _add(tar: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = content.seek(0, os.SEEK_END)  # of a console that grows, what it has now
    content.seek(0)
    tar.addfile(member, content)
