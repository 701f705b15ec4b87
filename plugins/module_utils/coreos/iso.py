"""CoreOS live ISOs: the embed area, kernel arguments and features; reading, changing and writing.

The embed area is a run of bytes that the bootloader passes to the kernel as one more initramfs. `coreos/igninfo.json` (since
2023-03) names it, `{"file": str, "offset"?: int, "length"?: int}`; before that it was all of `images/ignition.img`, and the
header `coreiso+` at 32744 of the system area (until 2022-02) has its offset and length. An area of zeros is empty.

    with LiveIso(path) as iso:
        iso.ignition = config
        iso.save()                    # or save_as(path), or stream(file)
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO

from . import cpio, image, kargs
from .errors import CoreosError, NotFound
from .image import Edits, Piece
from .iso9660 import SECTOR, Iso9660, Record, open_image

IGNITION_PATH = "config.ign"
NETWORK_DIR = "etc/coreos-firstboot-network/"
INITRD_PATH = "images/pxeboot/initrd.img"
ROOTFS_PATH = "images/pxeboot/rootfs.img"
_INFO_PATH = "coreos/igninfo.json"
_DEFAULT_PATH = "images/ignition.img"
_FEATURES_PATH = "coreos/features.json"
HEADER_AT = 32744
_HEADER = struct.Struct("<8sQQ")
_MAGIC = b"coreiso+"


@dataclass(frozen=True)
class Area:
    """The embed area: where it is in the image, and the file that it is, or is in (None: named by the header only).

    `offset` and `length` are in bytes. The area itself is an initramfs, or zeros.
    """

    offset: int
    length: int
    file: Record | None = None

    @property
    def growable(self) -> bool:
        """Return whether the area is a separate file, which can be moved.

        An area that is a part of a file, or that only the old header names, has what follows it in its way.
        """
        return self.file is not None and (self.file.offset, self.file.size) == (self.offset, self.length)


def embed_header(offset: int, length: int) -> bytes:
    """Return the header at `HEADER_AT` that names an embed area.

    Format `<8sQQ`: magic `coreiso+`, offset, length, as coreos-installer wrote it until 2022-02.
    """
    return _HEADER.pack(_MAGIC, offset, length)


def _find_area(iso: Iso9660) -> Area:
    info: dict[str, Any] = {"file": _DEFAULT_PATH}
    with contextlib.suppress(NotFound):
        info = kargs.json_object(iso.read(_INFO_PATH), _INFO_PATH)
    try:
        file = iso.find_file(kargs.typed_field(info, "file", str, _INFO_PATH))
    except NotFound as error:
        magic, offset, length = _HEADER.unpack(image.pread(iso.fd, _HEADER.size, HEADER_AT))
        if magic == _MAGIC and 0 < length <= cpio.DEFAULT_LIMIT and offset + length <= iso.size:
            return Area(offset, length)
        raise CoreosError(f"Unrecognized CoreOS ISO image. ({error})") from None
    start = kargs.typed_field(info, "offset", int, _INFO_PATH, 0)
    length = kargs.typed_field(info, "length", int, _INFO_PATH, file.size - start)
    if length < 0 or length > cpio.DEFAULT_LIMIT or file.offset + start + length > iso.size:
        raise CoreosError(
            f"{_INFO_PATH}: an area of {length} bytes at {start} does not fit {file.name} of {file.size} bytes"
        )
    return Area(file.offset + start, length, file)


class LiveIso:
    """An open CoreOS live ISO. Changes are collected, and written by one of `save`, `save_as` and `stream`.

    `files` are the members of the embed area by name, `area` and `kargs` as in the image, `kargs_text` the arguments to be
    written. Raises `CoreosError` when the image is not one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.fd = open_image(path)
        try:
            self.fs = Iso9660(self.fd)
            self.area = _find_area(self.fs)
            self.kargs = kargs.read(self.fs)
            raw = image.pread(self.fd, self.area.length, self.area.offset)
            self.files = cpio.read_files(io.BytesIO(raw))
        except CoreosError as error:
            os.close(self.fd)
            raise CoreosError(f"{path}: {error}") from error
        except BaseException:
            os.close(self.fd)
            raise
        self._files_before = dict(self.files)
        self._blank = not raw.strip(b"\0")
        self.kargs_text = self.kargs.current if self.kargs else None
        self._appended: list[tuple[Record, bytes]] = []

    def __enter__(self) -> LiveIso:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)

    @property
    def features(self) -> dict[str, Any]:
        """What the image claims to support (`coreos/features.json`, since 2021-12); empty for older ones.

        Keys are those of coreos-installer, such as `live-initrd-network`. Raises `CoreosError` when the file is not a
        JSON object.
        """
        try:
            return kargs.json_object(self.fs.read(_FEATURES_PATH), _FEATURES_PATH)
        except NotFound:
            return {}

    @property
    def ignition(self) -> bytes | None:
        """The embedded Ignition config, None for no config.

        The text is as it is stored, not checked. Setting it changes nothing in the image before `save`.
        """
        return self.files.get(IGNITION_PATH)

    @ignition.setter
    def ignition(self, config: bytes | None) -> None:
        if config is None:
            self.files.pop(IGNITION_PATH, None)
        else:
            self.files[IGNITION_PATH] = config

    @property
    def network(self) -> dict[str, bytes]:
        """The embedded NetworkManager keyfiles by file name.

        Setting it replaces all of them. Raises `CoreosError` for an image that does not support them.
        """
        found = {
            name.removeprefix(NETWORK_DIR): data for name, data in self.files.items() if name.startswith(NETWORK_DIR)
        }
        return dict(sorted(found.items()))

    @network.setter
    def network(self, keyfiles: Mapping[str, bytes]) -> None:
        if keyfiles and not self.features.get("live-initrd-network"):
            raise CoreosError("This OS image does not support customizing network settings.")
        self.files = {name: data for name, data in self.files.items() if not name.startswith(NETWORK_DIR)}
        self.files |= {NETWORK_DIR + name: data for name, data in keyfiles.items()}

    def edit_kargs(self, append: Iterable[str] = (), delete: Iterable[str] = (), replace: Iterable[str] = ()) -> None:
        """Change the kernel arguments; see `kargs.edit`.

        Changes add up until they are saved. Raises `CoreosError` for an image without areas for arguments, or when they
        do not fit.
        """
        present = kargs.require_kargs(self.kargs)
        text = present.current if self.kargs_text is None else self.kargs_text
        self.kargs_text = kargs.edit(text, append, delete, replace)
        present.pieces(self.kargs_text)

    def reset_kargs(self) -> None:
        """Go back to the default kernel arguments.

        The default is that of the image's build. Raises `CoreosError` for an image without areas for arguments.
        """
        self.kargs_text = kargs.require_kargs(self.kargs).default

    def reset(self) -> None:
        """Empty the embed area, and go back to the default arguments where there are any.

        What is in the area but is neither a config nor network settings goes too. Nothing is written before `save`.
        """
        self.files = {}
        if self.kargs:
            self.reset_kargs()

    @property
    def customized(self) -> bool:
        """Return whether the image has a config, network settings or changed arguments.

        As the image is in memory: changes of config and network that are not saved count, those of the arguments do
        not.
        """
        return bool(self.ignition is not None or self.network) or bool(
            self.kargs and self.kargs.current != self.kargs.default
        )

    def append_to_initrd(self, archive: bytes, path: str = INITRD_PATH) -> None:
        """Append an archive to an initramfs inside the image, moving it to the end of the image.

        `archive` is a cpio archive, plain or compressed; it is padded here. `path` is the initramfs in the image.
        """
        self._appended.append((self.fs.find_file(path), cpio.pad_data(archive)))

    def edits(self, compression: str = "gzip", grow: bool = False) -> Edits:
        """Return the changes of the image; empty if there are none.

        A config that does not fit the area with gzip is tried with xz, and then, with `grow`, gets a larger area at the end
        of the image. Otherwise `CoreosError` names both sizes.
        """
        edits = Edits(self.fs.size)
        if self.files != self._files_before or (not self.files and not self._blank):
            edits.pieces += self._area_pieces(edits, compression, grow)
        if self.kargs and self.kargs_text is not None and self.kargs_text != self.kargs.current:
            edits.pieces += self.kargs.pieces(self.kargs_text)
        for record, archive in self._appended:
            start = _rounded_up(max(edits.size, self.fs.size))
            size = -(-record.size // 4) * 4
            edits.pieces += [
                Piece(start, record.size, origin=record.offset),
                Piece.of(start + size, archive),
                *self.fs.moved(record, start // SECTOR, size + len(archive)),
            ]
            edits.size = _rounded_up(start + size + len(archive))
        if edits.size != self.fs.size:
            edits.pieces += self.fs.resized(edits.size)
        return edits

    def _area_pieces(self, edits: Edits, compression: str, grow: bool) -> list[Piece]:
        area = self.area
        plain = cpio.archive(self.files) if self.files else b""
        data = cpio.compress(plain, compression) if plain else b""
        if len(data) > area.length and compression != "xz":
            smaller = cpio.compress(plain, "xz")
            data = smaller if len(smaller) <= area.length else min(data, smaller, key=len)
        if len(data) <= area.length:
            return [Piece(area.offset, area.length, data)]
        if not grow or not area.growable or area.file is None:
            raise CoreosError(f"Compressed initramfs is too large: {len(data)} > {area.length}")
        # As openshift-install grows it: by quarters of the old length, with at least a quarter to spare.
        quarter = max(-(-area.length // 4), 1)  # an area may be an empty file
        length = _rounded_up((1 + -(-len(data) // quarter)) * quarter)
        at_end = _rounded_up(area.offset + area.length) >= self.fs.size
        start = area.offset if at_end else _rounded_up(self.fs.size)
        edits.size = start + length
        pieces = [Piece(start, length, data), *self.fs.moved(area.file, start // SECTOR, length)]
        if not at_end:
            pieces.append(Piece(area.offset, area.length))
        return pieces + self._area_names(start, length)

    def _area_names(self, start: int, length: int) -> list[Piece]:
        """Update other references to the area: igninfo.json if it has a length, and the old header."""
        pieces = []
        try:
            record = self.fs.find_file(_INFO_PATH)
            info = kargs.json_object(self.fs.read(_INFO_PATH), _INFO_PATH)
            if info.get("length") is not None:
                text = json.dumps(info | {"length": length}).encode()
                pieces += [Piece(record.offset, _rounded_up(record.size), text)]
                pieces += self.fs.moved(record, record.sector, len(text))
        except NotFound:
            pass
        if image.pread(self.fd, 8, HEADER_AT) == _MAGIC:
            pieces.append(Piece.of(HEADER_AT, embed_header(start, length)))
        return pieces

    def save(self, compression: str = "gzip", grow: bool = False) -> bool:
        """Put the changed image in the place of the old one; return whether there were any changes.

        `compression` and `grow` as in `edits`. Raises `CoreosError` when a config does not fit.
        """
        edits = self.edits(compression, grow)
        if edits:
            image.write_over(self.path, edits)
        return bool(edits)

    def save_as(
        self,
        path: str | os.PathLike[str],
        compression: str = "gzip",
        grow: bool = False,
        overwrite: bool = False,
        mode: int = 0o600,
    ) -> None:
        """Write the changed image to a new file, atomically.

        `mode` is the new file's mode. Raises `CoreosError` when `path` exists, unless `overwrite`. The open image stays
        as it was.
        """
        image.write_new(self.fd, self.edits(compression, grow), path, overwrite, mode)

    def stream(self, out: BinaryIO, compression: str = "gzip", grow: bool = False) -> None:
        """Write the changed image to a pipe.

        `out` need not be seekable. The open image stays as it was.
        """
        image.write_stream(self.fd, self.edits(compression, grow), out)

    def header(self) -> dict[str, int]:
        """Return what `dev show iso --ignition` prints.

        Offset and length of the embed area in the image, in bytes.
        """
        return {"offset": self.area.offset, "length": self.area.length}


def _rounded_up(size: int) -> int:
    return -(-size // SECTOR) * SECTOR
