"""`create` for automation: the options as a task gives them, and the result as data instead of log lines."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import signals
from ..documents import load_json, read_file
from ..log import Log
from ..vocabulary import RunFile
from . import binary, run


def create(given: Mapping[str, Any], targets: list[str], *, check: bool, **more: Any) -> dict[str, Any]:
    """Make `targets` in the directory of `given`; `more` are fields of `run.Options`. Returns a module's result.

    given: `directory`, `consume`, and where they are not empty `release_image`, `release_version`, `release_profile`, `cache`;
    and `image_policy`, the path of a containers-policy.json(5); check: change nothing. Raises `InstallerError`, and `OSError` and
    `ValueError` for a policy that cannot be read.
    """
    directory = Path(given["directory"]).absolute()
    if path := given.get("image_policy"):
        policy = read_file(Path(path))
        load_json(policy, name=path)
        more["image_policy"] = policy.decode()
    more |= {name: given[name] for name in ("release_image", "release_version", "release_profile") if given[name]}
    if given["cache"]:
        more["cache"] = Path(given["cache"])
    more.setdefault("assets", directory)
    options = run.Options.from_environment(dict(os.environ), directory, more.pop("assets"), dry=check)
    log = Log(None if check else directory, emit=lambda _line: None)
    with signals.raise_terminated():
        if not check:
            binary.discard(directory)
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


def create_by_binary(given: Mapping[str, Any], targets: list[str], *, check: bool) -> dict[str, Any]:
    """Let a build of openshift-install make `targets`, as `create` does. Raises `InstallerError`.

    given: also `binary`, `collection`, `os_image`.
    """
    directory = Path(given["directory"]).absolute()
    log = Log(None, emit=lambda _line: None)  # the program writes the directory's
    usual = run.Options.from_environment(dict(os.environ), directory, directory)
    program = binary.InstallerBuild(
        Path(given["binary"]),
        directory,
        Path(given["collection"]),
        (Path(given["cache"]) if given["cache"] else usual.cache) / "openshift-install",
        given["release_image"],
        given["os_image"] or "",
    )
    with signals.raise_terminated():
        changed = binary.create(program, targets, log, check=check)
    ip = directory / RunFile.RENDEZVOUS_IP
    return {
        "changed": bool(changed),
        "changed_files": changed,
        "rendezvous_ip": ip.read_text(encoding="utf-8").strip() if ip.is_file() else "",
        "release_image": given["release_image"],
        "version": given["release_version"] or "",
        "log": [text for level, text in log.lines if level != "debug"],
        "warnings": [text for level, text in log.lines if level == "warning"],
        "diff": [],
    }
