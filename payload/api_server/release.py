"""Component images of a release, read from its image in the registry, with the mirrors and trust anchors of the host."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from ...plugins.module_utils.documents import load_json

REGISTRIES = Path("/etc/containers/registries.conf")
CA_BUNDLE = Path("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")


def mirrors(text: str, first: str = "") -> Callable[[str], list[str]]:
    """Return pullspec -> mirrors to try first, from a registries.conf; `first` is the release's own mirror."""
    table: list[tuple[str, list[str]]] = []
    for entry in tomllib.loads(text).get("registry", []):
        source = str(entry.get("prefix") or entry.get("location") or "")
        if source:
            table.append((source, [str(mirror["location"]) for mirror in entry.get("mirror", [])]))

    def places(pullspec: str) -> list[str]:
        found = [first] if first else []
        for source, locations in table:
            rest = pullspec.removeprefix(source)
            if rest != pullspec and rest[:1] in ("/", "@", ":"):
                found += [location + rest for location in locations]
        return found

    return places


def component_images(pullspec: str, pull_secret: str, mirror: str) -> dict[str, str]:
    """Return component -> pullspec. ValueError if the release image cannot be read."""
    from ...plugins.module_utils.release.payload import Release
    from ...plugins.module_utils.release.registry import Registry

    text = REGISTRIES.read_text(encoding="utf-8") if REGISTRIES.is_file() else ""
    bundle = CA_BUNDLE.read_text(encoding="utf-8") if CA_BUNDLE.is_file() else ""
    registry = Registry(
        load_json(pull_secret or "{}", name="pull secret").get("auths", {}), bundle, mirrors(text, mirror)
    )
    images: dict[str, str] = Release(pullspec, registry).images
    return images
