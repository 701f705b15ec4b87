"""What the modules for live ISOs share: in place or a copy, what changed, and a diff without secrets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from . import signals
from .coreos.errors import CoreosError
from .coreos.iso import LiveIso

ARGUMENTS: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "dest": {"type": "path"},
    "mode": {"type": "str", "default": "0600"},
}


def digest(data: bytes) -> str:
    """Return size and SHA-256 of something that is not to be shown."""
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def summary(files: dict[str, bytes], kargs: str | None) -> str:
    """Describe what an image carries."""
    lines = [f"{name}: {digest(data)}" for name, data in sorted(files.items())]
    return "".join(f"{line}\n" for line in [*lines, *([f"kernel arguments: {kargs}"] if kargs is not None else [])])


def _look(iso: LiveIso, dest: str) -> tuple[bool, str]:
    """Say whether `dest` is a younger copy of the image that carries exactly what is wanted, and what it carries."""
    try:
        with LiveIso(dest) as copy:
            same_base = copy.fs.volume_id == iso.fs.volume_id and copy.fs.size >= iso.fs.size
            younger = os.fstat(copy.fd).st_mtime >= os.fstat(iso.fd).st_mtime
            same = copy.files == iso.files and copy.kargs_text == iso.kargs_text
            return same_base and younger and same, summary(copy.files, copy.kargs_text)
    except CoreosError:
        return False, ""


def change(module: AnsibleModule, edit: Callable[[LiveIso], None], grow: bool = False) -> dict[str, Any]:
    """Open the image, let `edit` change it, write it where it belongs; return the module's result."""
    dest = module.params["dest"]
    with LiveIso(module.params["path"]) as iso:
        before = summary(iso.files, iso.kargs_text)
        edit(iso)
        changed = bool(iso.edits(grow=grow))
        if dest is not None:
            done, before = _look(iso, dest)
            changed = not done
        diff = {"before": before, "after": summary(iso.files, iso.kargs_text)}
        if changed and not module.check_mode:
            with signals.raised():
                if dest is None:
                    iso.save(grow=grow)
                else:
                    iso.save_as(dest, grow=grow, overwrite=True, mode=int(module.params["mode"], 8))
    return {"changed": changed, "path": dest or module.params["path"], "diff": diff}
