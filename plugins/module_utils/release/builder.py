"""Runs `payload.build`, the builder of the lab payload, in a process of its own: Ansible does not ship it with a module."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..documents import load_json
from ..log import Log

PACKAGE = "ansible_collections.agentlab.ocp.payload"


class PayloadError(ValueError):
    """The builder failed; its message.

    Without a message of its own, it is the builder's exit status.
    """


class Builder:
    """Build the payload of a lab.

    source: the collection's directory; cache: the directory of `agentlab/payload`; scratch: an empty directory to work in;
    log_directory: where its progress is logged (None: nowhere).
    """

    def __init__(self, source: Path, cache: Path, scratch: Path, log_directory: Path | None = None) -> None:
        package = scratch / "ansible_collections/agentlab"
        package.mkdir(parents=True)
        (package / "ocp").symlink_to(source.resolve())
        self.scratch, self.cache = scratch, cache
        self.log = Log(log_directory if log_directory and log_directory.is_dir() else None, emit=lambda line: None)

    def __call__(self, *arguments: str, program: str = "build") -> Any:
        """Return the JSON that the builder prints for `arguments`. Raises `PayloadError` when it fails.

        program: the module of the package `payload`: `build`, or `ipi.images` for what a real Ironic needs.
        """
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.scratch),
            "XDG_CACHE_HOME": str(self.cache),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", f"{PACKAGE}.{program}", *arguments, "--json", "--progress"]
        with subprocess.Popen(
            command,
            env=environment,
            cwd=self.scratch,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            lines = [self._report(line.rstrip()) for line in process.stderr or ()]
            printed = process.stdout.read() if process.stdout else ""
        if process.returncode and not printed:
            raise PayloadError(_cause(lines) or f"the builder ended with {process.returncode}")
        return load_json(printed, name="the builder's report")

    def _report(self, line: str) -> str:
        self.log("info", f"payload: {line}")
        return line


@dataclass(frozen=True)
class PayloadRequest:
    """What a payload is to be, and where.

    overrides: replacements of components, by their names; version: of OpenShift, None for the newest; force: whether it is built even if
    it exists; storage: directory of a registry that gets its images, too; ironic: whether a real Ironic is made with it.
    """

    overrides: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    force: bool = False
    storage: str | None = None
    ironic: bool = False


class BuildResult(NamedTuple):
    """changed: whether anything was made, or would be; payload: the builder's report, empty if it would be built.

    before, after: its hashes, or words in their place; pushed: number of files added to the registry's storage, None without one.
    """

    changed: bool
    payload: dict[str, Any]
    before: str
    after: str
    pushed: int | None = None


def ensure(builder: Builder, wanted: PayloadRequest, *, check: bool = False) -> BuildResult:
    """Build the payload unless it exists, and write it to the storage. check: only look. Raises `PayloadError`."""
    words = [word for name, source in sorted(wanted.overrides.items()) for word in ("--override", f"{name}={source}")]
    words += ["--release", wanted.version] if wanted.version else []
    before = builder("build", "--check", *words)
    changed, payload = before is None or wanted.force, before or {}
    if changed and not check:
        payload = builder("build", *(["--force"] if wanted.force else []), *words)
    ensured = BuildResult(changed, payload, (before or {}).get("hash", "none"), payload.get("hash", "to be built"))
    if not payload:
        return ensured
    if wanted.storage:
        more = ["--check"] if check else []
        added = builder("push", wanted.storage, "--payload", payload["directory"], *more)["added"]
        ensured = ensured._replace(changed=changed or added > 0, pushed=added)
    if wanted.ironic and not check:
        ensured = ensured._replace(payload={**payload, **builder(payload["iso"], program="ipi.images")})
    return ensured


def _cause(lines: Sequence[str]) -> str:
    return "\n".join(lines[-20:]).rpartition("agentlab payload: ")[2]
