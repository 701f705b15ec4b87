"""`create` for automation: the options as a task gives them, and the result as data instead of log lines."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import signals
from ..log import Log
from . import run


def create(given: Mapping[str, Any], targets: list[str], *, check: bool, **more: Any) -> dict[str, Any]:
    """Make `targets` in the directory of `given`; `more` are fields of `run.Options`. Returns a module's result.

    given: `directory`, `consume`, and where they are not empty `release_image`, `release_version`, `release_profile`, `cache`;
    check: change nothing. Raises `InstallerError`.
    """
    directory = Path(given["directory"]).absolute()
    more |= {name: given[name] for name in ("release_image", "release_version", "release_profile") if given[name]}
    if given["cache"]:
        more["cache"] = Path(given["cache"])
    more.setdefault("assets", directory)
    options = run.Options.from_environment(dict(os.environ), directory, more.pop("assets"), dry=check)
    log = Log(None if check else directory, emit=lambda _line: None)
    with signals.raised():
        result = run.create(targets, dataclasses.replace(options, **more), log, consume=given["consume"])
    return {
        "changed": bool(result.changed),
        "changed_files": result.changed,
        "rendezvous_ip": result.rendezvous_ip,
        "release_image": result.release_image,
        "version": result.version,
        "log": [text for level, text in log.lines if level != "debug"],
        "warnings": [text for level, text in log.lines if level == "warning"],
        "diff": result.diffs,
    }
