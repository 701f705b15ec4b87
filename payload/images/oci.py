"""OCI image layouts, written without a container engine.

Formats: OCI image-spec v1.0, `image-layout.md`, `manifest.md`, `config.md`, `layer.md`. Everything is reproducible: same
content, same digests.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from ...plugins.module_utils.documents import load_json, read_file
from ...plugins.module_utils.release import content
from ...plugins.module_utils.state import write_atomic
from ..machine_os.distro import run

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
TAR = "application/vnd.oci.image.layer.v1.tar"
REF_NAME = "org.opencontainers.image.ref.name"
MOST_DOCUMENT = 8 * 2**20
"""Bytes of an index or a manifest."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_EPOCH = "1970-01-01T00:00:00Z"


class ImageError(Exception):
    """An image or a layout is invalid; the message names it."""


@dataclass(frozen=True, slots=True)
class Descriptor(content.Descriptor):
    """A blob; for a layer also the digest of its uncompressed tar archive.

    diff_id: empty for other blobs, and for layers of others' images. `json` gives the form of a manifest.
    """

    diff_id: str = ""

    def json(self, **annotations: str) -> dict[str, Any]:
        value: dict[str, Any] = {"mediaType": self.media_type, "digest": self.digest, "size": self.size}
        return {**value, "annotations": annotations} if annotations else value


@dataclass(frozen=True)
class Node:
    """One entry of a layer: bytes or the file to read them from, the target of a symbolic link, or (neither) a directory.

    mode: permission bits; those of a link do not matter. The owner is always root.
    """

    data: bytes | Path | None = None
    link: str | None = None
    mode: int = 0o755


@dataclass(frozen=True)
class Image:
    """Content of an image: layers, lowest first, and the parts of its configuration that differ from the defaults.

    The configuration has Linux as its operating system, and the usual PATH. Layers must be in the layout.
    """

    layers: Sequence[Descriptor]
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "amd64"


class Layout:
    """An image layout directory: blobs, and an index of the images by tag."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blobs = path / "blobs/sha256"

    @classmethod
    def create(cls, path: Path) -> Layout:
        layout = cls(path)
        layout.blobs.mkdir(parents=True, exist_ok=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        return layout

    def blob(self, digest: str) -> Path:
        return self.blobs / digest.removeprefix("sha256:")

    def add_bytes(self, data: bytes, media_type: str) -> Descriptor:
        digest = hashlib.sha256(data).hexdigest()
        self._place(digest, data)
        return Descriptor(media_type, f"sha256:{digest}", len(data))

    def add_json(self, value: object, media_type: str) -> Descriptor:
        return self.add_bytes(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), media_type)

    def link_blob(self, source: Path, digest: str) -> None:
        """Add a file as a blob: as a hard link, or as a copy on another file system.

        digest: `sha256:` and hexadecimal digits; it is not compared with the content. A blob that exists stays.
        """
        link_or_copy(source.resolve(), self.blob(digest))

    def add_image(self, image: Image) -> Descriptor:
        """Write configuration and manifest; the layers must exist.

        Returns the descriptor of the manifest, for `write_index`. Equal images have equal digests.
        """
        settings: dict[str, Any] = {
            "Env": [
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                *(f"{name}={value}" for name, value in image.environment.items()),
            ],
            "Entrypoint": list(image.entrypoint),
            "Cmd": list(image.command),
            "Labels": dict(image.labels),
        }
        config = {
            "architecture": image.architecture,
            "os": "linux",
            "created": _EPOCH,
            "config": {key: value for key, value in settings.items() if value},
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in image.layers]},
            "history": [{"created": _EPOCH, "created_by": "agentlab"} for __ in image.layers],
        }
        described = self.add_json(config, CONFIG)
        return self.add_json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": described.json(),
                "layers": [layer.json() for layer in image.layers],
            },
            MANIFEST,
        )

    def write_index(self, images: Mapping[str, Descriptor]) -> None:
        """Tags the images; an image may have several tags."""
        manifests = [
            {**image.json(**{REF_NAME: tag}), "platform": {"architecture": "amd64", "os": "linux"}}
            for tag, image in sorted(images.items())
        ]
        text = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, indent=1)
        write_atomic(self.path / "index.json", text.encode())

    def tags(self) -> dict[str, Descriptor]:
        """The images of the layout by tag; one without a tag has the tag "".

        Raises `ImageError` for a directory that is not a layout, and for an index with invalid descriptors.
        """
        index = self._parsed(self.path / "index.json", "index.json is missing")
        found: dict[str, Descriptor] = {}
        for nth, entry in enumerate(_entries(index, "manifests", self.path / "index.json")):
            annotations = entry.get("annotations")
            tag = annotations.get(REF_NAME, "") if isinstance(annotations, dict) else ""
            found[str(tag)] = _descriptor(entry, f"{self.path / 'index.json'}: manifests[{nth}]")
        return found

    def manifest(self, digest: str) -> dict[str, Any]:
        """The manifest of a digest. ImageError: it is missing, has a different digest, or is not a JSON object."""
        if not _DIGEST.fullmatch(digest):
            raise ImageError(f"{self.path}: {digest[:100]!r} is not a digest: must be sha256:<64 hexadecimal digits>")
        if self.blob(digest).is_file():
            self.verify([digest])
        return self._parsed(self.blob(digest), f"manifest {digest} is not in the layout")

    def blobs_of(self, digest: str) -> list[str]:
        """The digests of an image's configuration and layers.

        digest: of the manifest. The configuration is first; a layer that is there twice is listed once. Raises
        `ImageError`.
        """
        manifest = self.manifest(digest)
        if "layers" not in manifest:
            raise ImageError(f"{self.path}: {digest} is an image index for several architectures, not a single image")
        where = f"{self.path}: {digest}"
        layers = _entries(manifest, "layers", where)
        parts = [(manifest.get("config"), "config"), *((layer, f"layers[{nth}]") for nth, layer in enumerate(layers))]
        return list(dict.fromkeys(_descriptor(value, f"{where}: {name}").digest for value, name in parts))

    def _parsed(self, path: Path, missing: str) -> dict[str, Any]:
        try:
            if path.stat().st_size > MOST_DOCUMENT:
                raise ImageError(f"{path}: is longer than {MOST_DOCUMENT} bytes")
            value = load_json(read_file(path), name=str(path))
        except (FileNotFoundError, NotADirectoryError):
            raise ImageError(
                f"{self.path} is not an OCI image layout: {missing}"
                if path.name == "index.json"
                else f"{self.path}: {missing}"
            ) from None
        except ValueError as error:
            raise ImageError(f"{path}: is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise ImageError(f"{path}: must be an object")
        return value

    def verify(self, digests: Sequence[str] | None = None) -> None:
        """Reads the blobs (all, or those given) and compares their digests; ImageError names the first that differs."""
        for path in sorted(self.blobs.iterdir()) if digests is None else [self.blob(digest) for digest in digests]:
            try:
                with path.open("rb") as stream:
                    found = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise ImageError(f"{path}: {error.strerror}") from None
            if found != path.name:
                raise ImageError(f"{path}: the content has digest {found}")

    def _place(self, digest: str, data: bytes) -> None:
        path = self.blobs / digest
        if not path.exists():
            write_atomic(path, data)


def _entries(document: Mapping[str, Any], name: str, where: object) -> list[dict[str, Any]]:
    found = document.get(name)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ImageError(f"{where}: {name} must be a list of descriptors")
    return found


def _descriptor(value: object, where: str) -> Descriptor:
    """A descriptor of an index or a manifest that another program wrote."""
    try:
        found = content.Descriptor.of(value, where)
    except content.RegistryError as error:
        raise ImageError(str(error)) from None
    if not _DIGEST.fullmatch(found.digest):
        raise ImageError(f"{where}.digest is {found.digest[:100]!r}: must be sha256:<64 hexadecimal digits>")
    return Descriptor(found.media_type, found.digest, found.size)


class _HashingWriter(io.RawIOBase):
    """A file object that hashes and counts written data."""

    def __init__(self, target: BinaryIO | None) -> None:
        self.target, self.hash, self.size = target, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.hash.update(data)
        self.size += len(data)
        if self.target is not None:
            self.target.write(data)
        return len(data)


def write_layer(
    out: Path, nodes: Mapping[str, Node], *, compression: Literal["gzip", "zstd", ""] = "gzip", level: int = 15
) -> Descriptor:
    """Writes a layer (tar) of `nodes`, by path without a leading slash; parents are added. Owner root, time 0.

    zstd, whose `level` can be chosen, takes an emulated machine half the time of gzip; use gzip for layers that tools other than
    podman read.
    """
    temporary = out.with_name(out.name + ".new")
    with temporary.open("wb") as stream:
        packed = _HashingWriter(stream)
        zipped = (
            gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0)
            if compression == "gzip"
            else None
        )
        plain = _HashingWriter(zipped or packed)  # type: ignore[arg-type]
        with tarfile.open(fileobj=plain, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20) as archive:
            for name, node in sorted(_with_parents(nodes).items()):
                _add(archive, name, node)
        if zipped is not None:
            zipped.close()
    if compression == "zstd":
        run("zstd", "-q", "-f", f"-{level}", "--rm", temporary, "-o", out)
        with out.open("rb") as result:
            packed.hash, packed.size = hashlib.file_digest(result, "sha256"), out.stat().st_size
    else:
        os.replace(temporary, out)
    suffix = f"+{compression}" if compression else ""
    return Descriptor(
        TAR + suffix, f"sha256:{packed.hash.hexdigest()}", packed.size, f"sha256:{plain.hash.hexdigest()}"
    )


def tree_nodes(root: Path) -> Iterator[tuple[str, Node]]:
    """A directory as layer entries.

    root: of the tree. Paths are relative to it; sockets, pipes and devices are left out.
    """
    for path, dirs, files in os.walk(root):
        found = {str(Path(path, name).relative_to(root)): Path(path, name) for name in [*dirs, *files]}
        yield from nodes_of(found).items()


def nodes_of(files: Mapping[str, Path]) -> dict[str, Node]:
    """Files, links and directories as layer entries, by their paths in the layer; others are left out.

    files: path in the layer -> file. Contents are read when the layer is written. Raises `OSError`.
    """
    nodes = {}
    for name, path in files.items():
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            nodes[name] = Node(link=os.readlink(path))
        elif stat.S_ISDIR(info.st_mode):
            nodes[name] = Node(mode=stat.S_IMODE(info.st_mode))
        elif stat.S_ISREG(info.st_mode):
            nodes[name] = Node(data=path, mode=stat.S_IMODE(info.st_mode))
    return nodes


def _with_parents(nodes: Mapping[str, Node]) -> dict[str, Node]:
    complete = dict(nodes)
    for name in nodes:
        for parent in Path(name).parents:
            if str(parent) != ".":
                complete.setdefault(str(parent), Node())
    return complete


def _add(archive: tarfile.TarFile, name: str, node: Node) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode = node.mode
    if node.link is not None:
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, node.link, 0o777
        archive.addfile(entry)
    elif node.data is None:
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    elif isinstance(node.data, bytes):
        entry.size = len(node.data)
        archive.addfile(entry, io.BytesIO(node.data))
    else:
        entry.size = node.data.stat().st_size
        with node.data.open("rb") as stream:
            archive.addfile(entry, stream)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link `target` to `source`, or copy it on another file system.

    An existing target stays. The target appears complete or not at all. Raises `OSError`.
    """
    if target.exists():
        return
    temporary = target.with_name(f"{target.name}.{os.getpid()}.new")
    try:
        os.link(source, temporary)
    except OSError:
        with source.open("rb") as src, temporary.open("wb") as dst:
            while os.copy_file_range(src.fileno(), dst.fileno(), 1 << 30):
                pass
    os.replace(temporary, target)
