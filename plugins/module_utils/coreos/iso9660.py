"""Reads ISO 9660 images, and finds the fields that describe a file's extent.

Format: ECMA-119, with the Rock Ridge `NM` and `CE` entries of IEEE P1282 for long names. Only what a CoreOS image needs:
names, extents and sizes, in both trees (primary and Joliet). Everything is read by `pread`, a directory at a time.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .errors import CoreosError, NotFound
from .image import Piece, copy_range, file_size, new_file, pread

SECTOR = 2048
_DESCRIPTORS = 64
_DIRECTORY_LIMIT = 1 << 20
_DEPTH = 16
_TYPES = {0: "boot", 1: "primary", 2: "supplementary"}
_MULTI_EXTENT = 0x80


@dataclass(frozen=True)
class Record:
    """One entry of a directory.

    `name` is the Rock Ridge name where there is one, `iso_name` the plain one without version; `sector` and `size` say
    where the contents are; `at` is the position of the directory record itself in the image.
    """

    name: str
    iso_name: str
    sector: int
    size: int
    is_dir: bool
    at: int

    @property
    def offset(self) -> int:
        return self.sector * SECTOR

    @property
    def end(self) -> int:
        return self.offset + self.size

    def answers_to(self, name: str) -> bool:
        """Return whether a path component matches this record: its long name, its plain one, or its 8.3 form.

        Only the long name is compared by case, so that an exact match can be preferred to a similar one.
        """
        upper = name.upper()
        stem, dot, extension = upper.rpartition(".")
        short = f"{stem[:8]}.{extension[:3]}" if dot else upper[:8]
        return name == self.name or self.iso_name.upper() in (upper, short)


class Iso9660:
    """A parsed image on an open file descriptor, which stays the caller's.

    Raises `CoreosError` when it is not an ISO 9660 image, or shorter than declared.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.size = file_size(fd)
        self.descriptors: list[dict[str, Any]] = []
        self._volumes: list[tuple[int, Record, str]] = []  # descriptor's position, root directory, coding of names
        self._lists: dict[tuple[int, int, str], list[Record]] = {}  # what was read of directories, by extent
        self._read_descriptors()
        if not any(d["type"] == "primary" for d in self.descriptors):
            raise CoreosError("no primary volume descriptor found in ISO")
        self.volume_id: str = next(d["volume_id"] for d in self.descriptors if d["type"] == "primary")
        self.root = self._volumes[0][1]

    def _read_descriptors(self) -> None:
        for index in range(_DESCRIPTORS):
            at = (16 + index) * SECTOR
            if at + SECTOR > self.size:
                raise CoreosError("not an ISO 9660 image: it ends before its volume descriptors do")
            raw = pread(self.fd, SECTOR, at)
            if raw[1:7] != b"CD001\x01":
                raise CoreosError(f"not an ISO 9660 image: volume descriptor {index + 1} is {raw[:7]!r}")
            if raw[0] == 255:
                return
            found: dict[str, Any] = {"type": _TYPES.get(raw[0], "unknown")}
            if raw[0] == 0:
                found |= {"boot_system_id": _text(raw[7:39]), "boot_id": _text(raw[39:71])}
            elif raw[0] == 1:
                sectors = struct.unpack_from("<I", raw, 80)[0]
                root = self._record(raw[156:190], at + 156, "ascii")
                if sectors * SECTOR > self.size:
                    raise CoreosError("ISO image is incomplete")
                found |= {
                    "system_id": _text(raw[8:40]),
                    "volume_id": _text(raw[40:72]),
                    "volume_space_size": sectors,
                    "root": {"name": ".", "address": root.sector, "length": root.size},
                }
                self._volumes.insert(0, (at, root, "ascii"))
            elif raw[0] == 2 and raw[88:91] in (b"%/@", b"%/C", b"%/E"):
                self._volumes.append((at, self._record(raw[156:190], at + 156, "utf-16-be"), "utf-16-be"))
            elif raw[0] not in _TYPES:
                found["type_id"] = raw[0]
            self.descriptors.append(found)
        raise CoreosError(f"ISO image has more than {_DESCRIPTORS} volume descriptors")

    def _record(self, raw: bytes, at: int, coding: str) -> Record:
        length = raw[32] if len(raw) > 32 else 0
        if len(raw) < 33 + length or not length:
            raise CoreosError("incomplete directory record; corrupt ISO?")
        sector, size = struct.unpack_from("<I4xI", raw, 2)
        name = raw[33 : 33 + length]
        if name in (b"\0", b"\1"):
            iso_name = "." if name == b"\0" else ".."
        else:
            iso_name = name.decode(coding, "replace").split(";", 1)[0].removesuffix(".")
        system_use = raw[33 + length + (length + 1) % 2 :]
        long_name = "" if coding != "ascii" else self._rock_ridge_name(system_use)
        return Record(long_name or iso_name, iso_name, sector, size, bool(raw[25] & 2), at)

    def _rock_ridge_name(self, system_use: bytes) -> str:
        name = b""
        for __ in range(_DEPTH):
            continuation = b""
            while len(system_use) >= 4 and 4 <= system_use[2] <= len(system_use):
                entry, system_use = system_use[: system_use[2]], system_use[system_use[2] :]
                if entry[:2] == b"NM" and len(entry) > 5:
                    name += entry[5:]
                elif entry[:2] == b"CE" and len(entry) >= 28:
                    sector, offset, length = struct.unpack_from("<I4xI4xI", entry, 4)
                    if offset + length <= SECTOR and (sector + 1) * SECTOR <= self.size:
                        continuation = pread(self.fd, length, sector * SECTOR + offset)
            if not continuation:
                break
            system_use = continuation
        return name.decode("utf-8", "replace")

    def _list(self, directory: Record, coding: str) -> list[Record]:
        key = (directory.sector, directory.size, coding)
        if key not in self._lists:
            self._lists[key] = self._read_list(directory, coding)
        return self._lists[key]

    def _read_list(self, directory: Record, coding: str) -> list[Record]:
        if directory.size > _DIRECTORY_LIMIT or directory.end > self.size:
            raise CoreosError(
                f"directory {directory.name} of {directory.size} bytes does not fit the image; corrupt ISO?"
            )
        raw = pread(self.fd, directory.size, directory.offset)
        records: list[Record] = []
        position = 0
        partial = False
        while position < len(raw):
            length = raw[position]
            if not length:
                position = (position // SECTOR + 1) * SECTOR
                continue
            data = raw[position : position + length]
            if len(data) < length or length < 34:
                raise CoreosError("incomplete directory record; corrupt ISO?")
            record = self._record(data, directory.offset + position, coding)
            position += length
            if record.iso_name in (".", ".."):
                continue
            if partial:  # the next extent of a file larger than 4 GiB
                if record.offset != -(-records[-1].end // SECTOR) * SECTOR:
                    raise CoreosError(f"{record.name}: its extents do not follow each other, which is not supported")
                records[-1] = replace(records[-1], size=records[-1].size + record.size)
            else:
                records.append(record)
            partial = bool(data[25] & _MULTI_EXTENT)
        return records

    def entries(self, directory: Record) -> list[Record]:
        """Return the entries of a directory, without `.` and `..`.

        In the order of the image; a file of several extents is one entry. Raises `CoreosError` for a damaged directory.
        """
        return self._list(directory, "ascii")

    def find(self, path: str) -> Record:
        """Return what `path` names, by long or plain names, whatever their case; raise `NotFound` otherwise.

        `path` is relative to the root, with slashes; an exact match wins over a similar one.
        """
        record = self.root
        for part in path.strip("/").split("/"):
            if not record.is_dir:
                raise NotFound(f"{path}: {record.name} is not a directory")
            found = self.entries(record)
            exact = next((entry for entry in found if entry.name == part), None)
            similar = next((entry for entry in found if entry.answers_to(part)), None)
            match = exact or similar
            if match is None:
                raise NotFound(f"no {path} in the ISO image: {part} does not exist")
            record = match
        return record

    def find_file(self, path: str) -> Record:
        """Return the regular file `path`, whose extent is inside the image.

        Raises `NotFound` when there is none, and `CoreosError` for a directory, or an extent outside of the image.
        """
        record = self.find(path)
        if record.is_dir:
            raise CoreosError(f"{path} is a directory")
        if record.end > self.size:
            raise CoreosError(
                f"{path}: its {record.size} bytes at {record.offset} are outside of the image of {self.size}"
            )
        return record

    def walk(self, plain: bool = False) -> Iterator[tuple[str, Record]]:
        """Yield path and record of everything in the image, directories before what is in them.

        With `plain` the paths are made of the plain ISO 9660 names.
        """
        yield from ((path, record) for path, record in self._walk(self.root, "ascii", plain))

    def _walk(self, root: Record, coding: str, plain: bool) -> Iterator[tuple[str, Record]]:
        seen = {root.sector}
        stack = [(0, "", iter(self._list(root, coding)))]
        while stack:
            depth, prefix, records = stack[-1]
            record = next(records, None)
            if record is None:
                stack.pop()
                continue
            path = prefix + (record.iso_name if plain else record.name)
            yield path, record
            if record.is_dir:
                if record.sector in seen or depth > _DEPTH:
                    raise CoreosError(f"directory {path} contains itself; corrupt ISO?")
                seen.add(record.sector)
                stack.append((depth + 1, path + "/", iter(self._list(record, coding))))

    def read(self, path: str, limit: int = 1 << 20) -> bytes:
        """Return the contents of a small file; raise `CoreosError` when it is larger than `limit`.

        `limit` is in bytes, 1 MiB unless given. Raises `NotFound` when there is no such file.
        """
        record = self.find_file(path)
        if record.size > limit:
            raise CoreosError(f"{path} has {record.size} bytes; at most {limit} are expected")
        return pread(self.fd, record.size, record.offset)

    def extract(self, record: Record, path: str | os.PathLike[str], mode: int = 0o644, overwrite: bool = False) -> None:
        """Copy the contents of a file to a new file outside; raise `CoreosError` when that exists.

        `mode` is the new file's mode; with `overwrite` it replaces an existing one. The file appears whole or not at
        all.
        """
        with new_file(path, overwrite, mode) as out:
            copy_range(self.fd, out.fileno(), record.offset, record.size, 0)

    def moved(self, record: Record, sector: int, size: int) -> list[Piece]:
        """Return the changes that set another extent of `record`, in every tree.

        `sector` is where it begins, in sectors of 2048 bytes, `size` in bytes. Trees are those of ISO 9660 and Joliet.
        The contents are not copied.
        """
        extent = (
            struct.pack("<I", sector) + struct.pack(">I", sector) + struct.pack("<I", size) + struct.pack(">I", size)
        )
        return [
            Piece.of(other.at + 2, extent)
            for __, root, coding in self._volumes
            for _name, other in self._walk(root, coding, plain=True)
            if (other.sector, other.size, other.is_dir) == (record.sector, record.size, False)
        ]

    def resized(self, size: int) -> list[Piece]:
        """Return the changes that let the volume, and the partition of a hybrid image, end at `size` bytes.

        Rounded up to sectors of 2048 bytes. Space behind the volume's old end must be written by the caller.
        """
        sectors = -(-size // SECTOR)
        both = struct.pack("<I", sectors) + struct.pack(">I", sectors)
        pieces = [Piece.of(at + 80, both) for at, *__ in self._volumes]
        # isohybrid: the first MBR partition starts at 0 and spans the image, so that the label is found on a USB stick.
        boot = pread(self.fd, 512, 0)
        if boot[510:] == b"\x55\xaa" and boot[454:458] == bytes(4) and boot[458:462] != bytes(4):
            pieces.append(Piece.of(458, struct.pack("<I", sectors * SECTOR // 512)))
        return pieces


def _text(raw: bytes) -> str:
    return raw.decode("ascii", "replace").rstrip(" \0")


def open_image(path: str | os.PathLike[str]) -> int:
    """Open `path` for reading; raise `CoreosError` when that fails.

    A pipe or a directory is refused, too. The caller closes the descriptor.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # do not block on a pipe
    except OSError as error:
        raise CoreosError(f"opening {path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode) and not stat.S_ISBLK(os.fstat(fd).st_mode):
        os.close(fd)
        raise CoreosError(f"opening {path}: not a regular file or block device")
    return fd
