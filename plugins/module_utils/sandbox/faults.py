"""The lab's process `faults`, which injects a plan's faults at their triggers; the program is `faultd`."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from ..plan.faults import of_lab
from ..plan.model import Plan
from ..state import write_atomic
from . import faultd, processes

NAME = "faults"


def ensure(plan: Plan, url: str, headers: Mapping[str, str], *, check: bool = False) -> list[dict[str, str]]:
    """Start the process if the plan has faults for it; return what was done (`name`, `before`, `after`).

    url, headers: of the assisted service's API. A process for another image (with another token) is replaced, and its
    faults happen again.
    """
    faults, directory = of_lab(plan), Path(plan["hypervisor"]["state_dir"]) / "processes"
    if not faults:
        return []
    base = Path(plan["services"]["directory"])
    state = base / NAME / "state.json"
    config = {
        "faults": faults,
        "nodes": {
            n["name"]: {"domain": n["domain"], "nics": {nic["name"]: nic["mac"] for nic in n["nics"]}}
            for n in plan["nodes"]
        },
        "api": {"url": url, "headers": dict(headers)},
        "processes": str(directory),
        "registry": plan["services"]["registry"]["storage"],
        "state": str(state),
    }
    files = {
        base / NAME / "faultd.py": (inspect.getsource(faultd), 0o644),
        base / NAME / "config.json": (json.dumps(config, indent=1) + "\n", 0o600),
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
        argv = [sys.executable, "-I", *(str(path) for path in files)]
        processes.launch(directory, processes.Program(NAME, argv, base / NAME / "log", {}, tuple(files)))
    return [
        {
            "name": NAME,
            "before": "running with different settings\n" if running else "stopped\n",
            "after": f"running, {len(faults)} faults\n",
        }
    ]
