"""A release image: its metadata, its components, and single files out of them."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from .._deps import optional
from ..files import new_file
from .registry import Registry, RegistryError

if TYPE_CHECKING:
    import zstandard
else:
    zstandard = optional("zstandard")

MANIFESTS = "release-manifests/"
HW_REQUIREMENTS = "io.agentlab.hw-validator-requirements"


class Release:
    """The release image `pullspec`, read through `registry`; `arch` is Go's name of the wanted architecture."""

    def __init__(self, pullspec: str, registry: Registry, arch: str = "amd64") -> None:
        self.pullspec, self.registry, self.arch = pullspec, registry, arch

    @functools.cached_property
    def manifests(self) -> dict[str, Any]:
        """`image-references` and `release-metadata` of the release, parsed."""
        wanted = {MANIFESTS + name for name in ("image-references", "release-metadata")}
        found = read_files(self.registry, self.pullspec, self.arch, wanted)
        lost = sorted(wanted - set(found))
        if lost:
            raise RegistryError(f"{self.pullspec} is no release image: it has no /{lost[0]}")
        return {name.removeprefix(MANIFESTS): json.loads(data) for name, data in found.items()}

    @property
    def metadata(self) -> dict[str, Any]:
        """release-metadata: `version`, `metadata`, ..."""
        data: dict[str, Any] = self.manifests["release-metadata"]
        return data

    @property
    def version(self) -> str:
        """The version of the release."""
        return str(self.metadata.get("version") or self.manifests["image-references"]["metadata"]["name"])

    @functools.cached_property
    def architecture(self) -> str:
        """Go's name of the architecture of the release, or `multi`."""
        declared = (self.metadata.get("metadata") or {}).get("release.openshift.io/architecture")
        return str(declared or self.registry.config(self.pullspec, self.arch).get("architecture", ""))

    @functools.cached_property
    def images(self) -> dict[str, str]:
        """Component -> pullspec."""
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
        value = (self.metadata.get("metadata") or {}).get(HW_REQUIREMENTS, "")
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def read_matching(registry: Registry, pullspec: str, arch: str, patterns: list[str]) -> dict[str, bytes]:
    """Files of an image whose path, without leading slash, matches one of the patterns (`fnmatch`). Links are left out."""
    manifest, __ = registry.manifest(pullspec, arch)
    found: dict[str, bytes] = {}
    for layer in manifest["layers"]:
        with _open_layer(registry, pullspec, layer) as archive:
            for member in archive:
                name = _path(member)
                folder, base = os.path.split(name)
                if base.startswith(".wh."):
                    hidden = os.path.join(folder, base[4:])
                    found = {path: data for path, data in found.items() if path != hidden}
                elif member.isreg() and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                    found[name] = _contents(archive, member).read(256 * 2**20)
    return found


def _contents(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    return cast("IO[bytes]", archive.extractfile(member))  # it is a regular file


def _path(member: tarfile.TarInfo) -> str:
    return member.name.removeprefix("./").lstrip("/")


@contextmanager
def _open_layer(registry: Registry, pullspec: str, layer: dict[str, Any]) -> Iterator[tarfile.TarFile]:
    mode: Any = "r|gz" if layer["mediaType"].endswith("gzip") else "r|"
    with registry.blob(pullspec, layer["digest"]) as stream:
        source: Any = stream
        if layer["mediaType"].endswith("zstd"):
            source = zstandard.ZstdDecompressor().stream_reader(stream)
        with tarfile.open(fileobj=source, mode=mode, bufsize=2**18) as archive:
            yield archive


def _walk(
    registry: Registry, pullspec: str, arch: str, wanted: set[str], take: Callable[[str, IO[bytes]], None]
) -> set[str]:
    """Stream the layers of an image, topmost first, and hand each wanted file to `take`; returns the names found."""
    manifest, __ = registry.manifest(pullspec, arch)
    found: set[str] = set()
    gone: set[str] = set()
    for layer in reversed(manifest["layers"]):
        if wanted <= found | gone:
            break
        whited: set[str] = set()
        with _open_layer(registry, pullspec, layer) as archive:
            for member in archive:
                name = _path(member)
                if name in wanted - found - gone and member.isreg():
                    take(name, _contents(archive, member))
                    found.add(name)
                    if wanted <= found | gone:
                        break
                elif os.path.basename(name).startswith(".wh."):
                    hidden = os.path.join(os.path.dirname(name), os.path.basename(name)[4:])
                    whited |= {other for other in wanted if other == hidden or other.startswith(hidden + "/")}
            gone |= whited - found
    return found


def read_files(registry: Registry, pullspec: str, arch: str, wanted: set[str]) -> dict[str, bytes]:
    """Small files of an image, by path without leading slash; those it lacks are absent."""
    found: dict[str, bytes] = {}
    _walk(registry, pullspec, arch, wanted, lambda name, stream: found.__setitem__(name, stream.read(64 * 2**20)))
    return found


def extract_files(registry: Registry, pullspec: str, arch: str, targets: dict[str, Path]) -> dict[str, str]:
    """Stream files of an image to `targets` (path in the image -> place; atomic, 0644), in one pass over its layers.

    Returns path -> sha256 in hex of those that it has.
    """
    found: dict[str, str] = {}

    def take(name: str, stream: IO[bytes]) -> None:
        target, digest = targets[name], hashlib.sha256()
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_file(target, overwrite=True, mode=0o644) as out:
            while chunk := stream.read(2**20):
                digest.update(chunk)
                out.write(chunk)
        found[name] = digest.hexdigest()

    _walk(registry, pullspec, arch, set(targets), take)
    return found


def extract_file(registry: Registry, pullspec: str, arch: str, path: str, target: Path) -> str:
    """Stream one file of an image to `target`; see `extract_files`. Raises `RegistryError` when the image lacks it."""
    name = path.lstrip("/")
    found = extract_files(registry, pullspec, arch, {name: target})
    if name not in found:
        raise RegistryError(f"{pullspec} has no file /{name}")
    return found[name]
