"""The same by nmstate's own program, where it is installed."""

from __future__ import annotations

import shutil
import subprocess

from ..documents import DocumentError, load_json
from .errors import NmstateError
from .source import load

_TIMEOUT = 60


def generate(text: str, command: str = "nmstatectl") -> list[tuple[str, str]]:
    """Return what `nmstatectl gc` makes of a state, as file names and texts; raise `NmstateError` with its message.

    `text` is the state as YAML or JSON, `command` the program's name or path. The pairs are as those of `generate` in
    this package. The program has 60 s.
    """
    if not shutil.which(command):
        raise NmstateError(f"{command} is not installed", "DependencyError")
    try:
        done = subprocess.run(
            [command, "gc", "-"], input=text, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise NmstateError(f"{command} gc does not answer for {_TIMEOUT} s", "Timeout") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{command} gc ended with {done.returncode}"]
        kind, colon, message = lines[-1].rpartition("NmstateError: ")[2].partition(": ")
        raise NmstateError(message if colon else lines[-1], kind if colon else "PluginFailure")
    try:
        found = load_json(done.stdout, name=command)
    except DocumentError:
        found = load(done.stdout)
    return [(str(name), str(content)) for name, content in (found or {}).get("NetworkManager", [])]
