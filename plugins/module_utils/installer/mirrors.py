"""registries.conf (containers-registries.conf, version 2) and the place of mirrors in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Any

from ..releases.distributions import PUBLIC_REGISTRY
from .errors import InstallerError, quote
from .models import ImageSource, MirroredRegistry, Section

FILENAME = "mirror/registries.conf"
CA_FILENAME = "mirror/ca-bundle.crt"

# What a host without mirrors gets: nothing but the switch-off of short names.
DEFAULT = """\
# Registries and their mirrors; see containers-registries.conf(5).
#
# A mirror is written like this:
#
#   [[registry]]
#   location = "quay.io/openshift-release-dev/ocp-release"
#   mirror-by-digest-only = true
#
#     [[registry.mirror]]
#     location = "registry.example.com:5000/ocp/release"
#
unqualified-search-registries = []
"""


def merge(sources: Iterable[ImageSource]) -> list[dict[str, Any]]:
    """Join image sources that share source and policy; mirrors keep their order, each stands once.

    Returns {"source", "sourcePolicy", "mirrors"} in the order of first mention.
    """
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for source in sources:
        key = (source.get("source", ""), source.get("sourcePolicy", ""))
        entry = merged.setdefault(key, {"source": key[0], "sourcePolicy": key[1], "mirrors": []})
        entry["mirrors"] += [mirror for mirror in source.get("mirrors") or [] if mirror not in entry["mirrors"]]
    return list(merged.values())


def render(sources: list[ImageSource], *, blocked: bool) -> str:
    """registries.conf for `imageDigestSources`; `blocked` is whether the release knows NeverContactSource.

    The format is that of containers-registries.conf(5), version 2, with the installer's indentation; without sources it
    is DEFAULT.
    """
    if not sources:
        return DEFAULT
    entries = [source for source in merge(sources) if source["mirrors"]]
    lines = ["credential-helpers = []", 'short-name-mode = ""', "unqualified-search-registries = []"]
    for source in entries:
        lines += ["", "[[registry]]"]
        if blocked and source["sourcePolicy"] == "NeverContactSource":
            lines.append("  blocked = true")
        lines += [f"  location = {quote(source['source'])}", "  mirror-by-digest-only = true", '  prefix = ""']
        for mirror in source["mirrors"]:
            lines += ["", "  [[registry.mirror]]", f"    location = {quote(mirror)}"]
    return "\n".join(lines) + "\n"


def parse(text: str) -> list[MirroredRegistry]:
    """The registries of a registries.conf as `{"source", "mirrors", "blocked"}`; entries without any mirror stay in.

    `located` is whether an entry has a `location`; else `source` is its prefix. Raises `InstallerError` for text that
    is not TOML, and for values of other types.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InstallerError(f"failed to unmarshal {FILENAME}: toml: {error}") from error
    found: list[MirroredRegistry] = []
    for entry in _tables(data, "registry"):
        mirrors = _tables(entry, "mirror")
        texts = [
            entry.get("location", ""),
            entry.get("prefix", ""),
            *(mirror.get("location", "") for mirror in mirrors),
        ]
        if not all(isinstance(text, str) for text in texts):
            raise InstallerError(f"{FILENAME}: location and prefix must be strings")
        found.append(
            {
                "source": entry.get("location") or entry.get("prefix") or "",
                "mirrors": [mirror["location"] for mirror in mirrors if mirror.get("location")],
                "blocked": bool(entry.get("blocked")),
                "located": bool(entry.get("location")),
            }
        )
    return found


def _tables(data: Section, name: str) -> list[Section]:
    found = data.get(name, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise InstallerError(f"{FILENAME}: [[registry]] and [[registry.mirror]] must be tables")
    return found


def mirrors_of(pullspec: str, registries: Iterable[ImageSource]) -> list[str]:
    """Where else `pullspec` can be pulled from, best first: the longest matching source wins, ports and all.

    registries: as `parse` returns them, or image sources. [] when no source matches.
    """
    matching = [
        entry
        for entry in registries
        if entry["source"] and re.match(re.escape(entry["source"]) + r"(?=[/:@]|$)", pullspec)
    ]
    if not matching:
        return []
    best = max(matching, key=lambda entry: len(entry["source"]))
    return [mirror + pullspec[len(best["source"]) :] for mirror in best["mirrors"]]


def public_registries(registries: Iterable[ImageSource]) -> str:
    """PUBLIC_CONTAINER_REGISTRIES: the hosts of the mirrored sources, or quay.io without mirrors.

    A host has its port with it, and stands once.
    """
    return ",".join(dict.fromkeys(entry["source"].partition("/")[0] for entry in registries)) or PUBLIC_REGISTRY
