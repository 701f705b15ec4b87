"""The passwords of a run: `secrets.json` in the run directory, 0600.

A plan is a function of profile and cluster name, so that it cannot contain a random password: `password` is null there
unless the profile sets it. What is null gets one here, once for each run directory. Modules are handed the plan without any
password (`without_passwords`), and this file where they need one (`with_passwords`), so that a verbose run does not print them.
"""

from __future__ import annotations

import copy
import json
import secrets
from pathlib import Path
from typing import Any, TypedDict, cast

from ..documents import load_json
from ..state import write_atomic
from ..vocabulary import RunFile
from .model import Plan

FILE = RunFile.SECRETS
_BYTES = 18


class Secrets(TypedDict):
    """registry_http: what the registry signs its upload sessions with; nodes: passwords of BMCs that the profile sets, by node."""

    bmc: str
    registry: str
    registry_http: str
    nodes: dict[str, str]


def passwords_of(plan: Plan, run_dir: Path) -> Secrets:
    """Return the passwords of `plan`: its own, else those in the run directory, else new ones. Raises `ValueError`.

    A plan that went through `without_passwords` keeps the passwords of single nodes that are in the run directory.
    """
    path = run_dir / FILE
    return complete(plan, path.read_text(errors="replace") if path.exists() else "{}", str(path))


def planned_passwords(plan: Plan, run_dir: Path) -> Secrets:
    """Return the passwords of `plan` as `passwords_of`, with those of single nodes that the plan itself has.

    plan: as it was made from its profile, with passwords. Another profile of the same run directory may have named
    passwords for nodes of the same names.
    """
    own = {node["name"]: node["bmc"]["password"] for node in plan["nodes"] if node["bmc"]["password"]}
    return {**passwords_of(plan, run_dir), "nodes": own}


def complete(plan: Plan, text: str, name: str) -> Secrets:
    """Return the passwords as `passwords_of`, with the text of the file; messages call it `name`.

    Where `passwords_of` reads the file itself, a module on another host is handed `text`. Raises `ValueError` naming what is
    wrong with it.
    """
    kept = _load(text, name)
    services = plan["services"]
    own = {node["name"]: node["bmc"]["password"] for node in plan["nodes"]}
    return {
        "bmc": services["bmc"]["password"] or kept.get("bmc") or _new(),
        "registry": services["registry"]["password"] or kept.get("registry") or _new(),
        "registry_http": kept.get("registry_http") or _new(),
        "nodes": {name: password for name in own if (password := own[name] or kept.get("nodes", {}).get(name))},
    }


def texts(found: Secrets) -> list[str]:
    """Return the passwords, none of which may be printed.

    For `no_log`, and for `redact`.
    """
    return [found["bmc"], found["registry"], found["registry_http"], *found["nodes"].values()]


def dump(found: Secrets) -> str:
    """Return the text of the file.

    JSON with one space of indent; `write_atomic` gives it mode 0600.
    """
    return json.dumps(found, indent=1) + "\n"


def ensure(plan: Plan, run_dir: Path, *, check: bool = False) -> Secrets:
    """Return the passwords of `plan`; those that are new are written, unless `check`.

    With `check` nothing is written, and new passwords are other ones the next time.
    """
    found = passwords_of(plan, run_dir)
    if not check:
        write_atomic(run_dir / FILE, dump(found), 0o600)
    return found


def without_passwords(plan: Plan) -> Plan:
    """Return the plan with null in the place of each password.

    The argument is not changed. A module that needs passwords is handed the text of `secrets.json`, too.
    """
    made = copy.deepcopy(plan)
    for holder in (made["services"]["bmc"], made["services"]["registry"], *(node["bmc"] for node in made["nodes"])):
        holder["password"] = None
    return made


def with_passwords(plan: Plan, found: Secrets) -> Plan:
    """Return the plan with its passwords.

    The argument is not changed. A node without a password of its own gets that of the BMC service, `found["bmc"]`.
    """
    made = copy.deepcopy(plan)
    for name in ("bmc", "registry"):
        service = cast(dict[str, Any], made["services"][name])
        service["password"] = service["password"] or found[name]
    for node in made["nodes"]:
        node["bmc"]["password"] = node["bmc"]["password"] or found["nodes"].get(node["name"]) or found["bmc"]
    return made


def _load(text: str, name: str) -> dict[str, Any]:
    found = load_json(text, name=name)
    names = ("bmc", "registry", "registry_http")
    nodes = found.get("nodes", {}) if isinstance(found, dict) else None
    if not isinstance(nodes, dict) or not all(
        isinstance(text, str) for text in (*(found.get(key, "") for key in names), *nodes.values())
    ):
        raise ValueError(
            f"{name}: passwords are a mapping of strings: {', '.join(names)}; correct the file, or remove it for new ones"
        )
    return found


def _new() -> str:
    return secrets.token_urlsafe(_BYTES)
