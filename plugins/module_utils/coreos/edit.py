"""Change a live ISO, in place or as a copy, and report what changed, without secrets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from .. import signals
from .errors import CoreosError
from .iso import LiveIso


def digest(data: bytes) -> str:
    """Return size and SHA-256 of data that must not be shown."""
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def summary(files: dict[str, bytes], kargs: str | None) -> str:
    """Describe the customizations of an image."""
    lines = [f"{name}: {digest(data)}" for name, data in sorted(files.items())]
    return "".join(f"{line}\n" for line in [*lines, *([f"kernel arguments: {kargs}"] if kargs is not None else [])])


def _look(iso: LiveIso, dest: str) -> tuple[bool, str]:
    """Return whether `dest` is a younger copy of the image that carries exactly what is wanted, and what it carries."""
    try:
        with LiveIso(dest) as copy:
            same_base = copy.fs.volume_id == iso.fs.volume_id and copy.fs.size >= iso.fs.size
            younger = os.fstat(copy.fd).st_mtime >= os.fstat(iso.fd).st_mtime
            same = copy.files == iso.files and copy.kargs_text == iso.kargs_text
            return same_base and younger and same, summary(copy.files, copy.kargs_text)
    except CoreosError:
        return False, ""


def change(
    given: Mapping[str, Any], edit: Callable[[LiveIso], None], *, grow: bool = False, check: bool = False
) -> dict[str, Any]:
    """Open the image at `path`, let `edit` change it, write it in place or to `dest` with `mode`; return a module's result.

    given: these three, `mode` in octal digits; grow: whether the image may become longer; check: write nothing. Raises `CoreosError`.
    """
    path, dest, mode = given["path"], given["dest"], int(given["mode"], 8)
    with LiveIso(path) as iso:
        before = summary(iso.files, iso.kargs_text)
        edit(iso)
        changed = bool(iso.edits(grow=grow))
        if dest is not None:
            done, before = _look(iso, dest)
            changed = not done
        diff = {"before": before, "after": summary(iso.files, iso.kargs_text)}
        if changed and not check:
            with signals.raise_terminated():
                if dest is None:
                    iso.save(grow=grow)
                else:
                    iso.save_as(dest, grow=grow, overwrite=True, mode=mode)
    return {"changed": changed, "path": dest or path, "diff": diff}
