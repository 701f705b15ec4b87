"""Settings of one cluster: the data of its manifest ConfigMap `agentlab-settings`.

They are validated when the manifest is posted. The state file of an older service is read with the same bounds, and
invalid settings in it count as unset: no manifest may keep the cluster's hosts from getting responses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...plugins.module_utils.documents import LIMITS, DocumentError, load_yaml_all
from ...plugins.module_utils.vocabulary import SETTINGS_MANIFEST
from .config import DEFAULTS, seconds

#: A manifest with settings is read in the event loop.
MOST_BYTES = 32 * 1024
_LIMITS = LIMITS._replace(size=MOST_BYTES, nodes=1000, depth=20)
_DURATIONS = ("TIMEOUT", "INTERVAL", "TIME", "SECONDS")
_FLAGS = ("1", "true", "yes", "0", "false", "no", "")


def settings_of(documents: Iterable[object]) -> dict[str, Any] | None:
    """Return the settings in the documents of a manifest, unvalidated; None if it has no such ConfigMap.

    A ConfigMap whose data is not an object gives one invalid setting, so that the request is refused. Documents of
    other kinds are skipped.
    """
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") != "ConfigMap":
            continue
        metadata = document.get("metadata")
        if isinstance(metadata, dict) and metadata.get("name") == SETTINGS_MANIFEST:
            found = document.get("data")
            return found if isinstance(found, dict) else {"data": [found]} if found is not None else {}
    return None


def read(content: bytes) -> dict[str, str] | None:
    """Return the settings in a stored manifest, without invalid ones; None if it has no such ConfigMap.

    Used at each start and after each change of the manifests. A manifest that is too large or not YAML counts as one
    without settings.
    """
    if SETTINGS_MANIFEST.encode() not in content or len(content) > MOST_BYTES:
        return None
    try:
        found = settings_of(load_yaml_all(content, name=SETTINGS_MANIFEST, limits=_LIMITS))
    except DocumentError:
        return None
    if found is None:
        return None
    return {str(name): _text(value) for name, value in found.items() if not problem(str(name), value)}


def problem(name: str, value: object) -> str:
    """Return what is wrong with a setting; empty if valid. Names unknown to this service are for other programs.

    The kind of value follows from the end of the name: durations, numbers, and flags by the default. Unknown names are
    only bounded in length. The text is for the response to the upload.
    """
    if not isinstance(value, str | int | float | bool):
        return f"data.{name} should be a string, got {type(value).__name__}"
    text = _text(value)
    if len(text) > 1024 or not text.isprintable():
        return f"data.{name} should be one line of at most 1024 characters"
    if name.endswith(_DURATIONS):
        try:
            seconds(text)
        except ValueError as err:
            return f"data.{name}: {err}"
    elif name.endswith("_PER_MINUTE"):
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            return f"data.{name}: {text[:80]!r} is not a number of checks"
    elif DEFAULTS.get(name) in ("true", "false") and text.lower() not in _FLAGS:
        return f"data.{name}: {text[:80]!r} is neither true nor false"
    return ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
