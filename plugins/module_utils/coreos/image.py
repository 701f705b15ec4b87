"""Changes to a large file, and the ways to bring them out: over the file, in place, to a new file, to a pipe.

A change is a list of `Piece`; the rest of the file stays where it is and is never read into memory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from .. import files
from .errors import CoreosError

_BLOCK = 1 << 20
_FICLONE = 0x40049409  # linux/fs.h
_CANNOT_COPY = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF, errno.ETXTBSY, errno.EPERM}


@dataclass(frozen=True)
class Piece:
    """`length` bytes at `offset`: the bytes of the old file from `origin`, or `data` filled up with zeros.

    `data` may be shorter than `length`, never longer. Offsets and lengths are in bytes.
    """

    offset: int
    length: int
    data: bytes = b""
    origin: int | None = None

    @classmethod
    def of(cls, offset: int, data: bytes) -> Piece:
        return cls(offset, len(data), data)

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass
class Edits:
    """Pieces that do not overlap, and the size that the file has afterwards.

    False when there are no pieces. A size smaller than the old one cuts the file.
    """

    size: int
    pieces: list[Piece] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.pieces)


def pread(fd: int, length: int, offset: int) -> bytes:
    """Read exactly `length` bytes at `offset`; raise `CoreosError` when the file ends before.

    An error of the operating system is a `CoreosError` too, as is an offset that no file can have.
    """
    parts: list[bytes] = []
    while length:
        try:
            data = os.pread(fd, min(length, _BLOCK), offset)
        except (OSError, OverflowError) as error:
            raise CoreosError(f"cannot read {length} bytes at {offset}: {error}") from None
        if not data:
            raise CoreosError(f"file ends at {offset}, where {length} more bytes are expected")
        parts.append(data)
        length -= len(data)
        offset += len(data)
    return b"".join(parts)


def blocks(fd: int, offset: int, length: int) -> Iterator[bytes]:
    """Yield `length` bytes from `offset` in blocks of at most 1 MiB.

    Raises `CoreosError` when the file ends before.
    """
    while length:
        data = pread(fd, min(length, _BLOCK), offset)
        yield data
        offset += len(data)
        length -= len(data)


def _contents(fd: int, piece: Piece) -> Iterator[bytes]:
    if piece.origin is not None:
        yield from blocks(fd, piece.origin, piece.length)
        return
    yield piece.data
    left = piece.length - len(piece.data)
    while left:
        yield bytes(min(left, _BLOCK))
        left -= min(left, _BLOCK)


def _write_all(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view = view[written:]
        offset += written


def _apply(source: int, target: int, pieces: list[Piece]) -> None:
    for piece in pieces:
        offset = piece.offset
        for data in _contents(source, piece):
            _write_all(target, data, offset)
            offset += len(data)


def write_over(path: str | os.PathLike[str], edits: Edits) -> None:
    """Put the changed file in the place of the old one, in one step: whatever ends the program, one of the two is there, whole.

    Mode and owner stay; other hard links keep the old file. A block device is changed in place.
    """
    target = os.path.realpath(path)
    with open(target, "r+b", buffering=0) as file:  # who may not write to the file may not replace it, either
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            write_new(
                file.fileno(),
                edits,
                target,
                overwrite=True,
                mode=stat.S_IMODE(status.st_mode),
                owner=(status.st_uid, status.st_gid),
            )
            return
    write_in_place(target, edits)


def write_in_place(path: str | os.PathLike[str], edits: Edits) -> None:
    """Change an unfinished file of our own, or a device: what is behind its end first, then what makes use of that.

    An error is rolled back; a program that is killed leaves a mixture.
    """
    with open(path, "r+b", buffering=0) as file:
        fd = file.fileno()
        old_size = file_size(fd)
        tail = [piece for piece in edits.pieces if piece.offset >= old_size]
        inside = [piece for piece in edits.pieces if piece.offset < old_size]
        before = [Piece.of(p.offset, pread(fd, min(p.length, old_size - p.offset), p.offset)) for p in inside]
        try:
            _apply(fd, fd, tail)
            if edits.size != old_size:
                os.ftruncate(fd, edits.size)
                os.fsync(fd)
            _apply(fd, fd, inside)
        except BaseException:
            _apply(fd, fd, before)
            if edits.size != old_size:
                os.ftruncate(fd, old_size)
            raise


def write_stream(fd: int, edits: Edits, out: BinaryIO) -> None:
    """Write the changed file to a pipe.

    `fd` is the unchanged file, open for reading; `out` need not be seekable. Raises `CoreosError` for pieces that
    overlap.
    """
    old_size = file_size(fd)
    position = 0

    def unchanged(until: int) -> None:
        nonlocal position
        kept = max(0, min(until, old_size) - position)
        for data in blocks(fd, position, kept):
            out.write(data)
        out.write(bytes(max(0, until - position - kept)))
        position = max(position, until)

    for piece in sorted(edits.pieces, key=lambda p: p.offset):
        if piece.offset < position:
            raise CoreosError(f"two changes meet at offset {piece.offset}")
        unchanged(piece.offset)
        for data in _contents(fd, piece):
            out.write(data)
        position = piece.end
    unchanged(edits.size)
    out.flush()


def _segments(fd: int, size: int) -> Iterator[tuple[int, int]]:
    position = 0
    while position < size:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
            position = os.lseek(fd, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            start, position = position, size
        yield start, min(position, size)


def copy_range(source: int, target: int, offset: int, length: int, to: int) -> None:
    """Copy bytes between files, in the kernel where it can.

    `offset` is in `source`, `to` in `target`; all are in bytes. Between file systems that the kernel cannot copy
    between, it reads and writes.
    """
    while length:
        try:
            done = os.copy_file_range(source, target, min(length, 1 << 30), offset, to)
        except OSError as error:
            if error.errno not in _CANNOT_COPY:
                raise
            done = 0
        if not done:
            for data in blocks(source, offset, length):
                _write_all(target, data, to)
                to += len(data)
            return
        offset, to, length = offset + done, to + done, length - done


def clone(source: int, target: int, size: int) -> None:
    """Make `target`, an empty file, a copy of `source`: shared blocks, or a copy in the kernel that keeps holes.

    `size` is that of `source` in bytes. Reflinks (FICLONE) need a file system that has them, such as XFS or Btrfs.
    """
    try:
        fcntl.ioctl(target, _FICLONE, source)
        return
    except OSError:
        pass
    for start, end in _segments(source, size):
        copy_range(source, target, start, end - start, start)
    os.ftruncate(target, size)


@contextmanager
def new_file(path: str | os.PathLike[str], overwrite: bool = False, mode: int = 0o600) -> Iterator[BinaryIO]:
    """As `files.new_file`, but an existing `path` is a `CoreosError`.

    The file has its name only when the block ends without an exception. `mode` is its mode.
    """
    try:
        with files.new_file(path, overwrite=overwrite, mode=mode) as file:
            yield file
    except FileExistsError as error:
        raise CoreosError(files.explain(error)) from None


def write_new(
    fd: int,
    edits: Edits,
    path: str | os.PathLike[str],
    overwrite: bool = False,
    mode: int = 0o600,
    owner: tuple[int, int] | None = None,
) -> None:
    """Write the changed file to `path`, which appears whole or not at all. owner: user and group that it is to have, if possible.

    `fd` is the unchanged file. Raises `CoreosError` when `path` exists without `overwrite`, and `OSError` with the
    needed size when the disk is full.
    """
    with new_file(path, overwrite, mode) as out:
        if owner is not None:
            with suppress(PermissionError):
                os.fchown(out.fileno(), *owner)
        try:
            clone(fd, out.fileno(), file_size(fd))
            _apply(fd, out.fileno(), edits.pieces)
            os.ftruncate(out.fileno(), edits.size)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            text = f"{error.strerror}: the image has {files.size_text(edits.size)}"
            raise OSError(error.errno, text, os.fspath(path)) from error


def file_size(fd: int) -> int:
    """Return the size of a file or block device.

    In bytes. `st_size` of a block device is 0, so its end is looked for.
    """
    status = os.fstat(fd)
    if stat.S_ISBLK(status.st_mode):
        return os.lseek(fd, 0, os.SEEK_END)
    return status.st_size
