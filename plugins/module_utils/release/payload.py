"""A release image: its metadata, its components, and single files out of them."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tarfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..files import staging_directory
from ..vocabulary import HARDWARE_REQUIREMENTS
from . import layers
from .content import RegistryError, parse_object
from .registry import Registry

MANIFESTS = "release-manifests/"
MOST_SMALL, MOST_MATCHING, MOST_EXTRACTED = 64 * 2**20, 512 * 2**20, 16 * 2**30
"""Bytes of a file that is read, of all that match patterns, of a file that is extracted."""


class Release:
    """The release image `pullspec`, read through `registry`; `arch` is Go's name of the wanted architecture.

    It is read lazily: each property that needs the registry raises `RegistryError` at its first use.
    """

    def __init__(self, pullspec: str, registry: Registry, arch: str = "amd64") -> None:
        self.pullspec, self.registry, self.arch = pullspec, registry, arch

    @functools.cached_property
    def manifests(self) -> dict[str, Any]:
        """`image-references` and `release-metadata` of the release, parsed.

        Raises `RegistryError` for an image that lacks one of them. Keys are these two names.
        """
        wanted = {MANIFESTS + name for name in ("image-references", "release-metadata")}
        found = read_files(self.registry, self.pullspec, self.arch, wanted)
        lost = sorted(wanted - set(found))
        if lost:
            raise RegistryError(f"{self.pullspec} is not a release image: it has no /{lost[0]}")
        return {
            name.removeprefix(MANIFESTS): parse_object(data, f"{self.pullspec}: /{name}")
            for name, data in found.items()
        }

    @property
    def metadata(self) -> dict[str, Any]:
        """release-metadata: `version`, `metadata`, ...

        Its form is cincinnati-metadata-v0. Raises `RegistryError`, as `manifests`.
        """
        data: dict[str, Any] = self.manifests["release-metadata"]
        return data

    @property
    def version(self) -> str:
        """The version of the release.

        It is that of release-metadata, else the name of the ImageStream.
        """
        return str(self.metadata.get("version") or self.manifests["image-references"]["metadata"]["name"])

    @functools.cached_property
    def architecture(self) -> str:
        """Go's name of the architecture of the release, or `multi`."""
        declared = (self.metadata.get("metadata") or {}).get("release.openshift.io/architecture")
        return str(declared or self.registry.config(self.pullspec, self.arch).get("architecture", ""))

    @functools.cached_property
    def images(self) -> dict[str, str]:
        """Component -> pullspec.

        As `image-references` lists them, with digests; mirrors are not applied.
        """
        return {
            tag["name"]: tag["from"]["name"]
            for tag in self.manifests["image-references"].get("spec", {}).get("tags", [])
            if tag.get("from", {}).get("name")
        }

    def image(self, component: str) -> str:
        """The pullspec of `component`. Raises `RegistryError` when the release has none."""
        if component not in self.images:
            raise RegistryError(f"{self.pullspec} has no component {component}")
        return self.images[component]

    @property
    def hw_requirements(self) -> str:
        """The hardware thresholds that this payload carries as JSON text; "" when it leaves them to the installer."""
        value = (self.metadata.get("metadata") or {}).get(HARDWARE_REQUIREMENTS, "")
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def read_matching(registry: Registry, pullspec: str, arch: str, patterns: list[str]) -> dict[str, bytes]:
    """Files of an image whose path, without leading slash, matches one of the patterns (`fnmatch`, `*` within one folder).

    Links are left out. RegistryError: together they have more than MOST_MATCHING bytes.
    """
    found: dict[str, bytes] = {}
    for layer in registry.layers(pullspec, arch):
        fresh: dict[str, bytes] = {}
        hidden: set[str] = set()
        with layers.open_layer(registry, pullspec, layer) as archive:
            for member in archive:
                name = layers.path_of(member)
                if gone := layers.hidden_by(name):
                    hidden.add(gone)
                elif member.isreg() and layers.matches(name, patterns):
                    left = MOST_MATCHING - sum(map(len, found.values())) - sum(map(len, fresh.values()))
                    fresh[name] = layers.contents(archive, member, left).read()
                elif not member.isdir():
                    hidden.add(name)
        kept = {path: data for path, data in found.items() if not any(layers.hides(gone, path) for gone in hidden)}
        found = kept | fresh
    return found


Take = Callable[[str, tarfile.TarFile, tarfile.TarInfo, ExitStack], Callable[[], None]]
"""Sets a wanted file of a layer aside; what it returns is called when the layer has turned out to be the right one. The
stack undoes it."""


def _walk(registry: Registry, pullspec: str, arch: str, wanted: set[str], take: Take) -> set[str]:
    """Stream the layers of an image, topmost first, and hand each wanted file to `take`; returns the names found."""
    found: set[str] = set()
    gone: set[str] = set()
    for layer in reversed(registry.layers(pullspec, arch)):
        if wanted <= found | gone:
            break
        hidden: set[str] = set()
        aside: dict[str, Callable[[], None]] = {}
        with ExitStack() as undo:
            with layers.open_layer(registry, pullspec, layer) as archive:
                for member in archive:
                    name = layers.path_of(member)
                    if name in wanted - found - gone - set(aside) and member.isreg():
                        aside[name] = take(name, archive, member, undo)
                        if wanted <= found | gone | set(aside):
                            break
                    elif not member.isdir():
                        covered = layers.hidden_by(name) or name
                        hidden |= {other for other in wanted if layers.hides(covered, other)}
            for keep in aside.values():
                keep()
        found |= set(aside)
        gone |= hidden - found
    return found


def read_files(registry: Registry, pullspec: str, arch: str, wanted: set[str]) -> dict[str, bytes]:
    """Small files of an image, by path without leading slash; those it lacks are absent.

    wanted: such paths. Links and files in whiteouts are absent, too. RegistryError: one has more than `MOST_SMALL`
    bytes.
    """
    found: dict[str, bytes] = {}

    def take(name: str, archive: tarfile.TarFile, member: tarfile.TarInfo, _undo: ExitStack) -> Callable[[], None]:
        return functools.partial(found.__setitem__, name, layers.contents(archive, member, MOST_SMALL).read())

    _walk(registry, pullspec, arch, wanted, take)
    return found


def extract_files(registry: Registry, pullspec: str, arch: str, targets: dict[str, Path]) -> dict[str, str]:
    """Stream files of an image to `targets` (path in the image -> place; atomic, 0644), in one pass over its layers.

    Returns path -> sha256 in hex of those that it has.
    """
    found: dict[str, str] = {}

    def take(name: str, archive: tarfile.TarFile, member: tarfile.TarInfo, undo: ExitStack) -> Callable[[], None]:
        target, digest = targets[name], hashlib.sha256()
        stream = layers.contents(archive, member, MOST_EXTRACTED)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = undo.enter_context(staging_directory(target.parent)) / target.name
        with temporary.open("wb") as out:
            while chunk := stream.read(2**20):
                digest.update(chunk)
                out.write(chunk)
        temporary.chmod(0o644)

        def keep() -> None:
            os.replace(temporary, target)
            found[name] = digest.hexdigest()

        return keep

    _walk(registry, pullspec, arch, set(targets), take)
    return found


def extract_file(registry: Registry, pullspec: str, arch: str, path: str, target: Path) -> str:
    """Stream one file of an image to `target`; see `extract_files`. Raises `RegistryError` when the image lacks it.

    path: with or without its leading slash. Returns the SHA-256 of the file in hexadecimal.
    """
    name = path.lstrip("/")
    found = extract_files(registry, pullspec, arch, {name: target})
    if name not in found:
        raise RegistryError(f"{pullspec} has no file /{name}")
    return found[name]
