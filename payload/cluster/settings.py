"""Intervals of the lab payload: environment first, then `/etc/agentlab/settings.json`, then the caller's default."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from ...plugins.module_utils.documents import load_json, read_file

SETTINGS_FILE = Path("/etc/agentlab/settings.json")


@lru_cache(maxsize=4)
def _file_settings(path: str) -> dict[str, str]:
    try:
        loaded = load_json(read_file(Path(path)), name=str(Path(path)))
    except FileNotFoundError:
        return {}
    return {str(name): value for name, value in loaded.items()}


def setting(name: str, default: str) -> str:
    """Return the value of the setting `name`, or `default` (upstream's value) if it is not set.

    `AGENTLAB_SETTINGS_FILE` in the environment names another file, for programs that run outside a node.
    """
    if name in os.environ:
        return os.environ[name]
    path = os.environ.get("AGENTLAB_SETTINGS_FILE", str(SETTINGS_FILE))
    return str(_file_settings(path).get(name, default))


def seconds(name: str, default: float) -> float:
    """Return the setting `name` as seconds; a trailing `s` is allowed, as in Go's durations."""
    text = setting(name, str(default))
    try:
        return float(text.removesuffix("s"))
    except ValueError:
        raise ValueError(f"setting {name}: {text!r} is not a number of seconds such as 5 or 2s") from None
