r"""The recipe of a minimal ISO, `coreos/miniso.dat`: a live ISO without its root file system, made from the full one.

Format, version 1: bincode with variable-length integers, little endian. A byte below 251 is itself; 251, 252 and 253 announce
16, 32 and 64 bits. Strings and vectors are preceded by their length.

    "MINISO\0\0", version, string with the version of the program that made it,
    vector of (sector in the minimal ISO, sector in the full ISO, length in bytes) by sector,
    SHA-256 of the minimal ISO (32 bytes),
    vector of bytes: the xz stream of all that no entry covers
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from . import image, kargs
from .errors import CoreosError, NotFound
from .image import Edits, Piece
from .iso import ROOTFS_PATH, LiveIso
from .iso9660 import SECTOR, Iso9660, Record, open_image

PATH = "coreos/miniso.dat"
_MAGIC = b"MINISO\0\0"
_VERSION = 1
_LIMIT = 1 << 20
_XZ_MEMORY = 128 << 20
_PIECE = 1 << 16


class _Parser:
    def __init__(self, raw: bytes) -> None:
        self._raw, self._at = raw, 0

    def bytes(self, size: int) -> bytes:
        data = self._raw[self._at : self._at + size]
        if len(data) < size:
            raise CoreosError(f"{PATH} is truncated")
        self._at += size
        return data

    def number(self) -> int:
        first = self.bytes(1)[0]
        if first < 251:
            return first
        widths = {251: 2, 252: 4, 253: 8}
        if first not in widths:
            raise CoreosError(f"{PATH} is corrupt: {first} cannot begin a number")
        return int.from_bytes(self.bytes(widths[first]), "little")


def _number(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    for mark, width in ((251, 2), (252, 4)):
        if value < 1 << (8 * width):
            return bytes([mark]) + value.to_bytes(width, "little")
    return b"\xfd" + value.to_bytes(8, "little")


@dataclass(frozen=True)
class Recipe:
    """`table` of (minimal sector, full sector, bytes), SHA-256 of the result, and the compressed rest."""

    table: tuple[tuple[int, int, int], ...]
    digest: bytes
    packed: bytes

    def check(self) -> None:
        if not self.table:
            raise CoreosError("table is empty; ISOs have no files in common?")
        for (first, __, length), (second, __, __) in zip(self.table, self.table[1:], strict=False):
            if first * SECTOR + length > second * SECTOR:
                raise CoreosError(f"Files at offsets {first * SECTOR} and {second * SECTOR} overlap")

    @classmethod
    def parse(cls, raw: bytes) -> Recipe:
        parser = _Parser(raw)
        if parser.bytes(8) != _MAGIC:
            raise CoreosError("not a miniso file!")
        version = parser.number()
        if version != _VERSION:
            raise CoreosError(f"incompatible miniso file version: {_VERSION} vs {version}")
        parser.bytes(parser.number())
        entries = parser.number()
        if entries > len(raw):
            raise CoreosError(f"{PATH} is truncated")
        table = tuple((parser.number(), parser.number(), parser.number()) for __ in range(entries))
        recipe = cls(table, parser.bytes(32), parser.bytes(parser.number()))
        recipe.check()
        return recipe

    def serialize(self, program: str = "agentlab") -> bytes:
        out = [_MAGIC, _number(_VERSION), _number(len(program)), program.encode(), _number(len(self.table))]
        out += [_number(value) for entry in self.table for value in entry]
        return b"".join([*out, self.digest, _number(len(self.packed)), self.packed])

    def unpack(self, full: int) -> Iterator[bytes]:
        """Yield the minimal ISO, taking common data from the full one; raise `CoreosError` if the checksum is wrong.

        `full` is a descriptor of the full ISO. The checksum is known only at the end: discard what was yielded when it
        raises.
        """
        digest = hashlib.sha256()
        for data in self._pieces(full):
            digest.update(data)
            yield data
        if digest.digest() != self.digest:
            raise CoreosError(f"wrong final digest: expected {self.digest.hex()}, found {digest.hexdigest()}")

    def _pieces(self, full: int) -> Iterator[bytes]:
        rest = _Unpacker(self.packed)
        offset = 0
        for minimal, source, length in self.table:
            gap = minimal * SECTOR - offset
            while gap:
                data = rest.read(min(gap, _PIECE))
                if not data:
                    raise CoreosError(f"{PATH} is truncated")
                yield data
                gap -= len(data)
            yield from image.blocks(full, source * SECTOR, length)
            offset = minimal * SECTOR + length
        while data := rest.read(_PIECE):
            yield data


class _Unpacker:
    def __init__(self, packed: bytes) -> None:
        self._packed: bytes = packed
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def read(self, size: int) -> bytes:
        while not self._decoder.eof:
            try:
                data = self._decoder.decompress(self._packed, size)
            except lzma.LZMAError as error:
                raise CoreosError(f"{PATH} is corrupt: {error}") from None
            self._packed = b""
            if data:
                return data
            if self._decoder.needs_input is True:
                raise CoreosError(f"{PATH} is truncated")
        return b""


def recipe_of(iso: LiveIso) -> Recipe:
    """Return the recipe in a full ISO; raise `CoreosError` when it has none or is not pristine."""
    pristine = not iso.files and kargs.require_kargs(iso.kargs).current == kargs.require_kargs(iso.kargs).default
    if not pristine:
        raise CoreosError(
            "Cannot operate on ISO with embedded customizations.\n"
            "Reset it with `coreos-installer iso reset` and try again."
        )
    try:
        raw = iso.fs.read(PATH, _LIMIT)
    except NotFound:
        raise CoreosError("This ISO image does not support extracting a minimal ISO.") from None
    return Recipe.parse(raw)


def _set_boot_arguments(path: str, rootfs_url: str | None) -> None:
    """Replace `coreos.liveiso` in the arguments and their defaults, so that a reset does not bring it back."""
    with LiveIso(path) as iso:
        present = kargs.require_kargs(iso.kargs)
        live = next((word for word in present.current.split() if word.startswith("coreos.liveiso=")), None)
        if live is None:
            raise CoreosError("minimal ISO does not have coreos.liveiso= karg")
        default = kargs.edit(present.current, delete=[live])
        text = default
        if rootfs_url is not None:
            if len(rootfs_url.split()) > 1:
                raise CoreosError(f"forbidden whitespace found in '{rootfs_url}'")
            text = kargs.edit(default, append=[f"coreos.live.rootfs_url={rootfs_url}"])
        record = iso.fs.find_file(kargs.INFO_PATH)
        info = kargs.json_object(iso.fs.read(kargs.INFO_PATH), kargs.INFO_PATH) | {"default": default}
        new = json.dumps(info, indent=2, ensure_ascii=False).encode()
        if len(new) > record.size:
            raise CoreosError(f"New version of {kargs.INFO_PATH} does not fit in space ({len(new)} vs {record.size})")
        pieces = [*present.pieces(text), Piece.of(record.offset, new.ljust(record.size))]
        image.write_in_place(path, Edits(iso.fs.size, pieces))


def _write(recipe: Recipe, full: int, out: BinaryIO, rootfs_url: str | None) -> None:
    for data in recipe.unpack(full):
        out.write(data)
    out.flush()
    _set_boot_arguments(f"/proc/self/fd/{out.fileno()}", rootfs_url)


def extract(
    iso: LiveIso,
    output: str | os.PathLike[str] | BinaryIO,
    rootfs_url: str | None = None,
    rootfs: str | os.PathLike[str] | None = None,
) -> None:
    """Write the minimal ISO of a full one to a new file or a pipe, and its root file system to the new file `rootfs`.

    The machine that boots it fetches the root file system from `rootfs_url`. Raises `CoreosError` when the full ISO is
    customized, has no recipe, or is not what the recipe was made for; then nothing is written.
    """
    recipe = recipe_of(iso)
    with contextlib.ExitStack() as stack:
        if rootfs is not None:
            iso.fs.extract(iso.fs.find_file(ROOTFS_PATH), rootfs)
        if isinstance(output, (str, os.PathLike)):
            _write(recipe, iso.fd, stack.enter_context(image.new_file(output)), rootfs_url)
            return
        temporary = stack.enter_context(tempfile.TemporaryFile(buffering=0))
        _write(recipe, iso.fd, temporary, rootfs_url)
        for data in image.blocks(temporary.fileno(), 0, os.fstat(temporary.fileno()).st_size):
            output.write(data)
        output.flush()


def _files(fs: Iso9660) -> dict[str, Record]:
    return {path: record for path, record in fs.walk(plain=True) if not record.is_dir}


def pack(full: str | os.PathLike[str], minimal: str | os.PathLike[str]) -> dict[str, int]:
    """Write the recipe of a minimal ISO into the full one, which has a file of the right name and enough space.

    Both must have the same files; one that has its own location, such as isolinux.bin, is included in the recipe.
    Returns how many files matched, and bytes skipped, written and compressed.
    """
    with contextlib.ExitStack() as stack:
        full_fd, minimal_fd = (open_image(path) for path in (full, minimal))
        stack.callback(os.close, full_fd)
        stack.callback(os.close, minimal_fd)
        full_fs, minimal_fs = Iso9660(full_fd), Iso9660(minimal_fd)
        sources = _files(full_fs)
        table: set[tuple[int, int, int]] = set()
        matched = 0
        wanted = _files(minimal_fs)
        for path, record in wanted.items():
            source = sources.get(path)
            if source is None:
                raise CoreosError(f"missing minimal file {path} in full ISO")
            if source.size != record.size:
                raise CoreosError(f"File {path} has different lengths in full and minimal ISOs")
            if record.size and all(
                one == other
                for one, other in zip(
                    image.blocks(minimal_fd, record.offset, record.size),
                    image.blocks(full_fd, source.offset, record.size),
                    strict=True,
                )
            ):
                matched += 1
                table.add((record.sector, source.sector, record.size))
        digest = hashlib.sha256()
        for data in image.blocks(minimal_fd, 0, minimal_fs.size):
            digest.update(data)
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 20}]
        compressor = lzma.LZMACompressor(lzma.FORMAT_XZ, filters=filters)
        packed, written, offset = [], 0, 0
        for start, end in [*((s * SECTOR, s * SECTOR + size) for s, __, size in sorted(table)), (minimal_fs.size,) * 2]:
            for data in image.blocks(minimal_fd, offset, max(0, start - offset)):
                written += len(data)
                packed.append(compressor.compress(data))
            offset = end
        recipe = Recipe(tuple(sorted(table)), digest.digest(), b"".join([*packed, compressor.flush()]))
        recipe.check()
        for __ in recipe.unpack(full_fd):
            pass
        record = full_fs.find_file(PATH)
        data = recipe.serialize()
        if len(data) > record.size:
            raise CoreosError(f"{PATH} has {record.size} bytes; {len(data)} are needed")
        image.write_over(full, Edits(full_fs.size, [Piece(record.offset, record.size, data)]))
        return {
            "files": len(wanted),
            "matched": matched,
            "skipped": sum(size for __, __, size in table),
            "written": written,
            "compressed": len(recipe.packed),
        }
