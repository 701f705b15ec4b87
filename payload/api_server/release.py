"""Component images of a release, read from its image in the registry, with the mirrors and trust anchors of the host."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...plugins.module_utils.documents import load_json

if TYPE_CHECKING:
    from ...plugins.module_utils.release.registry import Registry

REGISTRIES = Path("/etc/containers/registries.conf")
CA_BUNDLE = Path("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")


Mirrors = list[tuple[str, list[str]]]


def mirrors(table: Mirrors, first: str = "") -> Callable[[str], list[str]]:
    """Return pullspec -> mirrors to try first, from sources and their mirrors; `first` is the release's own mirror.

    Places are pullspecs for `registry`, in the order to try. A source matches at the end of a path's part only:
    `quay.io/a` does not match `quay.io/ab`.
    """

    def places(pullspec: str) -> list[str]:
        found = [first] if first else []
        for source, locations in table:
            rest = pullspec.removeprefix(source)
            if rest != pullspec and rest[:1] in ("/", "@", ":"):
                found += [location + rest for location in locations]
        return found

    return places


def configured_mirrors(text: str) -> Mirrors:
    """Return sources and their mirrors of a registries.conf.

    `text` is TOML. The result is (source, mirrors) in the file's order; `prefix` has precedence over `location`. An
    invalid file raises ValueError.
    """
    table = []
    for entry in tomllib.loads(text).get("registry", []):
        source = str(entry.get("prefix") or entry.get("location") or "")
        if source:
            table.append((source, [str(mirror["location"]) for mirror in entry.get("mirror", [])]))
    return table


def registry(auths: dict[str, Any], more: Mirrors, first: str = "") -> Registry:
    """Return a client with this host's mirrors and trust anchors; `more` mirrors come before them, `first` before all.

    `auths` is that of a pull secret. Files that the host does not have are ignored. Nothing is read from the network
    yet.
    """
    from ...plugins.module_utils.release.registry import Registry

    text = REGISTRIES.read_text(encoding="utf-8") if REGISTRIES.is_file() else ""
    bundle = CA_BUNDLE.read_text(encoding="utf-8") if CA_BUNDLE.is_file() else ""
    return Registry(auths, bundle, mirrors([*more, *configured_mirrors(text)], first))


class Contents(NamedTuple):
    """What a release image has: its version, and component -> pullspec."""

    version: str
    images: dict[str, str]


def contents(pullspec: str, pull_secret: str, mirror: str = "") -> Contents:
    """Return what a release image has. ValueError if it cannot be read.

    `pull_secret` is JSON, `mirror` the release's own mirror or empty. It reads from the registry, so call it in a
    thread. OSError can occur as well: the engine retries after both.
    """
    from ...plugins.module_utils.release.payload import Release

    auths = load_json(pull_secret or "{}", name="pull secret").get("auths", {})
    found = Release(pullspec, registry(auths, [], mirror))
    return Contents(found.version, found.images)
