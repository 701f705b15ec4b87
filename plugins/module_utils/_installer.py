"""What the modules that do the installer's work share: its options, and what they return of a run."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from . import signals
from .installer import run
from .installer.log import Log

ARGUMENTS: dict[str, dict[str, Any]] = {
    "directory": {"type": "path", "required": True},
    "release_image": {"type": "str"},
    "release_version": {"type": "str"},
    "release_profile": {"type": "str"},
    "cache": {"type": "path"},
    "consume": {"type": "bool", "default": False},
}


def create(module: AnsibleModule, targets: list[str], **more: Any) -> dict[str, Any]:
    """Make `targets` in the module's directory; `more` are fields of `run.Options`. Returns the module's result."""
    given = module.params
    directory = Path(given["directory"]).absolute()
    more |= {name: given[name] for name in ("release_image", "release_version", "release_profile") if given[name]}
    if given["cache"]:
        more["cache"] = Path(given["cache"])
    more.setdefault("assets", directory)
    options = run.Options.from_environment(dict(os.environ), directory, more.pop("assets"), dry=module.check_mode)
    log = Log(None if module.check_mode else directory, emit=lambda _line: None)
    with signals.raised():
        result = run.create(targets, dataclasses.replace(options, **more), log, consume=given["consume"])
    for level, text in log.lines:
        if level == "warning":
            module.warn(text)
    return {
        "changed": bool(result.changed),
        "changed_files": result.changed,
        "rendezvous_ip": result.rendezvous_ip,
        "release_image": result.release_image,
        "version": result.version,
        "log": [text for level, text in log.lines if level != "debug"],
        "diff": result.diffs,
    }
