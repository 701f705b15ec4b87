"""Layers of an image: tar archives, read as a stream without trusting what they say of themselves.

A layer is read once, from begin to end. Files come out of it while it arrives, so callers keep them aside until the `with`
block has ended without an error: only then content and descriptor are known to agree.
"""

from __future__ import annotations

import fnmatch
import gzip
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from .._deps import optional
from .content import CHUNK, Descriptor, RegistryError, VerifiedStream
from .registry import Registry

if TYPE_CHECKING:
    import zstandard
else:
    zstandard = optional("zstandard")

MOST_UNPACKED = 64 * 2**30
"""Bytes of a layer after decompression. The largest of a release is machine-os-images, with less than 4 GiB."""
MOST_NAME = 2**20
"""Bytes of an extended header, which tarfile reads into memory."""
WHITEOUT = ".wh."
_EXTENDED = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
)


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        member = super().frombuf(buf, encoding, errors)
        if member.type in _EXTENDED and member.size > MOST_NAME:
            raise RegistryError(f"an archive has a header of {member.size} bytes, {MOST_NAME} is the limit")
        if member.size < 0:
            raise RegistryError(f"an archive has a member of {member.size} bytes")
        return member


class _UnpackedLayer:
    """A layer without its compression, up to MOST_UNPACKED bytes."""

    def __init__(self, stream: VerifiedStream | IO[bytes], layer: Descriptor) -> None:
        self._layer, self._left = layer, MOST_UNPACKED
        self._errors: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error)
        if layer.media_type.endswith("gzip"):
            self._read: Callable[[int], bytes] = gzip.GzipFile(fileobj=cast("IO[bytes]", stream), mode="rb").read
        elif layer.media_type.endswith("zstd"):
            self._errors = (*self._errors, zstandard.ZstdError)
            self._read = zstandard.ZstdDecompressor().stream_reader(
                cast("IO[bytes]", stream), read_across_frames=True
            ).read  # fmt: skip
        else:
            self._read = stream.read

    def read(self, size: int) -> bytes:
        try:
            data = self._read(size)
        except self._errors as error:
            raise _DamagedLayer(f"layer {self._layer.digest} cannot be unpacked: {error}") from error
        self._left -= len(data)
        if self._left < 0:
            raise RegistryError(f"layer {self._layer.digest} unpacks to more than {MOST_UNPACKED} bytes")
        return data


class _DamagedLayer(RegistryError):
    pass


@contextmanager
def open_layer(registry: Registry, pullspec: str, layer: Descriptor) -> Iterator[tarfile.TarFile]:
    """The archive of a layer. RegistryError, at the latest at the end: it differs from its descriptor, or no archive.

    pullspec: of the image that the layer belongs to. The archive can be read once, forwards; a caller may leave early,
    and then the rest is still read and compared.
    """
    with registry.blob(pullspec, layer) as stream:
        try:
            with tarfile.open(
                fileobj=cast("IO[bytes]", _UnpackedLayer(stream, layer)), mode="r|", bufsize=CHUNK, tarinfo=_Member
            ) as archive:
                yield archive
        except (_DamagedLayer, tarfile.TarError) as error:
            stream.finish()  # that it is other content explains it better
            raise RegistryError(f"{pullspec}: {error}") from error
        stream.finish()


def has_any(folder: Path, layers: Sequence[Descriptor], paths: Iterable[str]) -> bool:
    """Return whether an image has a file or link at one of some paths. RegistryError: a layer cannot be read.

    folder: where its layers are, each named by its digest without `sha256:`; layers: lowest first. They are read from
    the uppermost down until one has a path, and their digests are not compared. paths: without a leading slash; one below a
    symbolic link counts as there.
    """
    left = set(paths)
    for layer in reversed(layers):
        if not left:
            break
        hidden = set[str]()
        try:
            with (folder / layer.digest.partition(":")[2]).open("rb") as stream, tarfile.open(
                fileobj=cast("IO[bytes]", _UnpackedLayer(stream, layer)), mode="r|", bufsize=CHUNK, tarinfo=_Member
            ) as archive:  # fmt: skip
                for member in archive:
                    path = path_of(member)
                    if not member.isdir() and any(hides(path, one) for one in left if member.issym() or path == one):
                        return True
                    gone = hidden_by(path)
                    hidden |= {one for one in left if gone and hides(gone, one)}
        except (OSError, tarfile.TarError) as error:
            raise RegistryError(f"layer {layer.digest} cannot be read: {error}") from error
        left -= hidden
    return False


def path_of(member: tarfile.TarInfo) -> str:
    """A member's path below the root, without a leading slash; "" when it would lead out of it.

    A NUL in it is removed. What would lead out of the root must not be written anywhere.
    """
    name = posixpath.normpath("/" + member.name.replace("\0", ""))
    return "" if ".." in member.name.split("/") else name.lstrip("/")


def hidden_by(path: str) -> str | None:
    """Return the path that an OCI whiteout hides; None if it is not a whiteout. FOLDER/ hides all content of a directory.

    path: as of `path_of`. Whiteouts are `.wh.NAME`, and `.wh..wh..opq` for a directory (OCI image-spec, layer.md).
    """
    folder, base = posixpath.split(path)
    if not base.startswith(WHITEOUT):
        return None
    return f"{folder}/" if base == ".wh..wh..opq" else posixpath.join(folder, base.removeprefix(WHITEOUT))


def hides(hidden: str, path: str) -> bool:
    """Return whether a hidden path (see `hidden_by`) covers another."""
    return path == hidden or path.startswith(hidden.rstrip("/") + "/")


def matches(path: str, patterns: list[str]) -> bool:
    """Return whether a path matches one of the patterns, with as many folders: `*` stays within one."""
    folders = path.count("/")
    return bool(path) and any(
        folders == pattern.count("/") and fnmatch.fnmatchcase(path, pattern) for pattern in patterns
    )


def contents(archive: tarfile.TarFile, member: tarfile.TarInfo, limit: int) -> IO[bytes]:
    """The content of a regular file. RegistryError: it is longer than `limit` bytes.

    member: regular, of `archive`; read it before the next member. limit: by the size in its header.
    """
    if member.size > limit:
        raise RegistryError(f"/{path_of(member)} has {member.size} bytes, {limit} is the limit")
    return cast("IO[bytes]", archive.extractfile(member))
