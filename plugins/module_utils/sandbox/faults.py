"""Faults of a lab: the process `faults`, which injects those of a plan at their triggers, and those that are injected by hand.

The program of the process is `faultd`; what is injected by hand is listed in `<services>/faults/now.json`.
"""

from __future__ import annotations

import contextlib
import fcntl
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from .. import signals
from ..documents import DocumentError, load_json, read_file
from ..errors import LabError
from ..plan import names
from ..plan.faults import Fault
from ..plan.injected import of_lab
from ..plan.machines import own_machines
from ..plan.model import Plan
from ..state import write_atomic
from ..vocabulary import PAYLOAD_REPOSITORY
from . import faultd, processes, relay

NAME = "faults"
NOW = "now.json"
STATE = "state.json"
"""What `faultd` has injected, by the number of the fault in its configuration."""
_TARGETS = ("node", "service", "component")


def ensure(plan: Plan, url: str, headers: Mapping[str, str], *, check: bool = False) -> list[dict[str, str]]:
    """Start the process if the plan has faults for it; return what was done (`name`, `before`, `after`).

    url, headers: of the assisted service's API. A process for another image (with another token) is replaced, and its
    faults happen again.
    """
    faults, directory = of_lab(plan), Path(plan["services"]["process_dir"])
    if not faults:
        return []
    base = _directory(plan)
    state = base / STATE
    config = {
        **_config(plan),
        "faults": faults,
        "api": {"url": url, "headers": dict(headers)},
        "state": str(state),
    }
    files = {
        base / "faultd.py": (inspect.getsource(faultd), 0o644),
        base / "relay.py": (inspect.getsource(relay), 0o644),
        base / "config.json": (json.dumps(config, indent=1) + "\n", 0o600),
    }
    running = processes.find(directory, NAME)
    new = any(not path.exists() or path.read_text() != text for path, (text, __) in files.items())
    if running and not new:
        return []
    if not check:
        if running:
            processes.stop(directory, NAME)
        for path, (text, mode) in files.items():
            write_atomic(path, text, mode)
        if new:
            state.unlink(missing_ok=True)
        argv = [sys.executable, "-I", str(base / "faultd.py"), str(base / "config.json")]
        processes.launch(directory, processes.Program(NAME, argv, log(plan), {}, tuple(files)))
    return [
        {
            "name": NAME,
            "before": "running with different settings\n" if running else "stopped\n",
            "after": f"running, {len(faults)} faults\n",
        }
    ]


def log(plan: Plan) -> Path:
    """Return the log of the process: a line for each fault.

    Each line is a time (ISO 8601 in UTC), the fault, and what happened; `not yet:` marks a failed attempt. It may not
    exist.
    """
    return Path(names.service_log(plan["services"]["directory"], NAME))


def outstanding(plan: Plan) -> list[str]:
    """Return the faults of the profile that the lab has not injected, as `KIND of NODE (WHEN)`."""
    try:
        done = load_json(read_file(_directory(plan) / STATE), name=STATE)
    except (OSError, DocumentError):
        done = {}
    struck = done if isinstance(done, dict) else {}
    return [
        f"{fault['kind']} of {fault.get('node') or 'the lab'} ({fault['when']})"
        for number, fault in enumerate(of_lab(plan))
        if str(number) not in struck and fault in plan["faults"]
    ]


def _directory(plan: Plan) -> Path:
    return Path(plan["services"]["directory"]) / NAME


def _config(plan: Plan) -> dict[str, Any]:
    """Return what injecting a fault needs, of the configuration of `faultd`."""
    return {
        "nodes": {
            n["name"]: {"domain": n["domain"], "nics": {nic["name"]: nic["mac"] for nic in n["nics"]}}
            for n in own_machines(plan["nodes"])
        },
        "processes": plan["services"]["process_dir"],
        "repository": f"{plan['services']['registry']['storage']}/docker/registry/v2/repositories/{PAYLOAD_REPOSITORY}",
        "relay": str(_directory(plan) / "relay.py"),
    }


class Active(TypedDict):
    """A fault that was injected by hand: when (seconds since 1970), and what ends it.

    note: what `faultd.Kind.note` returned, as JSON; its form depends on the kind.
    """

    fault: Fault
    at: float
    note: Any


def active(plan: Plan) -> list[Active]:
    """Return the faults that were injected by hand and not undone.

    They are in `now.json` of the process's directory, in the order of their injection. Raises `OSError` and
    `DocumentError` for a damaged file.
    """
    path = _now(plan)
    try:
        found = load_json(read_file(path), name=str(path))
    except FileNotFoundError:
        return []
    return [Active(fault=entry["fault"], at=entry["at"], note=entry["note"]) for entry in found]


def inject(plan: Plan, fault: Fault) -> None:
    """Inject a fault now. Raises `LabError` if that is not possible, or was done before, also with other values.

    fault: with all fields of its kind, without a trigger. It is listed in `now.json`, with what undoes it, from before it begins, unless
    it fails. A signal takes effect when it has begun.
    """
    with _locked(plan) as found:
        if there := next((entry["fault"] for entry in found if _subject(entry["fault"]) == _subject(fault)), None):
            if _fields(there) == _fields(fault):
                raise LabError(f"{title(fault)}: was injected before; undo it first (--undo)")
            undo_it = f"{command(there)} --undo --cluster {plan['cluster']['name']}"
            raise LabError(f"{title(fault)}: {title(there)} was injected before; undo it first: {undo_it}")
        write_atomic(_directory(plan) / "relay.py", inspect.getsource(relay), 0o644)
        kind = _kind(plan, fault)
        note = _attempt(fault, lambda: kind.note(dict(fault)))
        with signals.defer_signals():
            _save(plan, [*found, Active(fault=fault, at=time.time(), note=note)])
            try:
                _attempt(fault, lambda: kind.begin(dict(fault), note))
            except BaseException:
                _save(plan, found)
                raise


def undo(plan: Plan, fault: Fault) -> None:
    """Undo a fault that was injected by hand. Raises `LabError` if there is none, and if it cannot be undone.

    It is no longer listed in either case: a machine may have been powered on, or a service started, by other means. A signal takes
    effect when it has ended.
    """
    end = _kind(plan, fault).end
    if end is None:
        raise LabError(f"{title(fault)}: cannot be undone; start over: agentlab destroy, agentlab deploy")
    with _locked(plan) as found:
        entry = next((entry for entry in found if _fields(entry["fault"]) == _fields(fault)), None)
        if entry is None:
            raise LabError(f"{title(fault)}: was not injected; agentlab fault lists those that were")
        with signals.defer_signals():
            try:
                _attempt(fault, lambda: end(dict(entry["fault"]), entry["note"]))
            finally:
                _save(plan, [one for one in found if one is not entry])


def _kind(plan: Plan, fault: Fault) -> faultd.Kind:
    return faultd.kinds(faultd.Lab(_config(plan)))[fault["kind"]]


def title(fault: Fault) -> str:
    """Return a fault as it is printed: kind and fields."""
    return " ".join(map(str, _fields(fault).values()))


def command(fault: Fault) -> str:
    """Return the command that injects a fault by hand, as `agentlab fault master-0 mtu --nic eth0 --mtu 1300`."""
    given: dict[str, Any] = _fields(fault)
    kind, target = given.pop("kind"), next(given.pop(name) for name in _TARGETS if name in given)
    options = [f"--{name.replace('_', '-')} {value}" for name, value in given.items()]
    return " ".join(["agentlab fault", target, kind, *options])


def _fields(fault: Fault) -> dict[str, Any]:
    return {key: value for key, value in fault.items() if key not in ("when", "seconds") and value is not None}


def _subject(fault: Fault) -> dict[str, Any]:
    """Return what a fault is about, without its values: there can be one of them at a time."""
    return {key: value for key, value in _fields(fault).items() if key in ("kind", "nic", "peer", *_TARGETS)}


def _attempt(fault: Fault, action: Callable[[], object]) -> Any:
    try:
        return action()
    except (faultd.FaultError, OSError, ValueError) as error:
        raise LabError(f"{title(fault)}: {error}") from error


def _now(plan: Plan) -> Path:
    return _directory(plan) / NOW


@contextlib.contextmanager
def _locked(plan: Plan) -> Iterator[list[Active]]:
    """Yield the list under a lock."""
    path = _now(plan)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield active(plan)
    finally:
        os.close(handle)


def _save(plan: Plan, found: list[Active]) -> None:
    write_atomic(_now(plan), json.dumps(found, indent=1) + "\n", 0o600)
