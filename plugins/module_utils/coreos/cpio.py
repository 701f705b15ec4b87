"""initramfs archives: newc cpio, plain or compressed, one behind the other.

Format: kernel documentation, `driver-api/early-userspace/buffer-format`. An initramfs is a sequence of cpio archives, each
of them plain or compressed by itself, with any number of zero bytes between them; of several entries with one name the
last counts.

Reading is streaming: for any input, memory is bounded by a few pieces of `_PIECE` bytes, or by the
`limit` that the caller of `read_files` gives.
"""

from __future__ import annotations

import gzip
import lzma
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .._deps import optional
from .errors import CoreosError

if TYPE_CHECKING:
    import zstandard
else:
    zstandard = optional("zstandard")

_PIECE = 1 << 16
_ENTRIES = 100_000
_NAME_LIMIT = 8192  # PATH_MAX, and the padding that dracut-cpio adds to align data
_XZ_MEMORY = 128 << 20  # what the 64 MiB dictionary of "xz -9" needs; pages are touched only as data arrives
TRAILER = "TRAILER!!!"
DEFAULT_LIMIT = 64 << 20


class Readable(Protocol):
    """What an archive is read from, from its begin to its end.

    Any binary file, `io.BytesIO`, or an object whose `read` returns at most `size` bytes, and none at the end.
    """

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Entry:
    """One member of an archive: its name as stored, `st_mode`, size in bytes and ownership.

    `mtime` is in seconds since 1970. A name that is not UTF-8 has surrogates, so that it can be written again as it
    was.
    """

    name: str
    mode: int
    size: int
    uid: int = 0
    gid: int = 0
    mtime: int = 0

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


@dataclass(frozen=True)
class File:
    """A regular file to be written: contents and permission bits.

    The default mode, 0600, is that of files with secrets. `archive` adds the type of the file.
    """

    data: bytes
    mode: int = 0o600


class _Source:
    """A stream with push-back."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._buffer = b""

    def read_some(self) -> bytes:
        if self._buffer:
            data, self._buffer = self._buffer, b""
            return data
        return self._stream.read(_PIECE)

    def push_back(self, data: bytes) -> None:
        self._buffer = data + self._buffer

    def peek(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = self._stream.read(_PIECE)
            if not data:
                break
            self._buffer += data
        return self._buffer[:size]

    def next_magic(self) -> bytes:
        """Skip zeros; return the first bytes of what follows, none at the end."""
        while data := self.read_some():
            if rest := data.lstrip(b"\0"):
                self.push_back(rest)
                return self.peek(6)
        return b""


class _Pieces:
    """Reads exact lengths out of an iterator of pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.rest = b""

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, fewer only when a piece or the stream ends there."""
        if not self.rest:
            self.rest = next(self._pieces, b"")
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

    def exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            data = self.read(size)
            if not data:
                raise CoreosError("cpio archive is truncated")
            parts.append(data)
            size -= len(data)
        return b"".join(parts)


def _plain(source: _Source) -> Iterator[bytes]:
    while data := source.read_some():
        yield data


def _damaged(kind: str, error: Exception) -> CoreosError:
    return CoreosError(f"{kind} archive is corrupt: {error}")


def _next_bytes(source: _Source, kind: str) -> bytes:
    data = source.read_some()
    if not data:
        raise CoreosError(f"{kind} archive is truncated")
    return data


def _gunzip(source: _Source) -> Iterator[bytes]:
    decoder = zlib.decompressobj(wbits=31)
    while not decoder.eof:
        try:
            yield decoder.decompress(decoder.unconsumed_tail or _next_bytes(source, "gzip"), _PIECE)
        except zlib.error as error:
            raise _damaged("gzip", error) from None
    source.push_back(decoder.unused_data)


def _unxz(source: _Source) -> Iterator[bytes]:
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    while not decoder.eof:
        try:
            yield decoder.decompress(_next_bytes(source, "xz") if decoder.needs_input is True else b"", _PIECE)
        except lzma.LZMAError as error:
            raise _damaged("xz", error) from None
    source.push_back(decoder.unused_data)


def _unzstd(source: _Source) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=_XZ_MEMORY).decompressobj()
    while not decoder.eof:
        data = _next_bytes(source, "zstd")
        # There is no output limit here, and a block of four bytes can expand to 128 KiB: feed it in small pieces.
        source.push_back(data[256:])
        try:
            yield decoder.decompress(data[:256])
        except zstandard.ZstdError as error:
            raise _damaged("zstd", error) from None
    source.push_back(decoder.unused_data)


_READERS: dict[bytes, Callable[[_Source], Iterator[bytes]]] = {
    b"070701": _plain,
    b"070702": _plain,
    b"\x1f\x8b": _gunzip,
    b"\xfd7zXZ\0": _unxz,
    b"\x28\xb5\x2f\xfd": _unzstd,
}


def _header(pieces: _Pieces) -> tuple[Entry, int]:
    raw = pieces.exactly(110)
    if raw[:6] not in (b"070701", b"070702"):
        raise CoreosError(f"not a cpio archive in newc format: found {raw[:6]!r} in place of '070701'")
    try:
        # int() would take signs, blanks and underscores too.
        fields = [int.from_bytes(bytes.fromhex(raw[at : at + 8].decode("ascii")), "big") for at in range(6, 110, 8)]
    except ValueError as error:
        raise CoreosError(f"cpio header has a field that is not a hexadecimal number: {error}") from None
    __, mode, uid, gid, __, mtime, size, __, __, __, __, name_size, __ = fields
    if not 0 < name_size <= _NAME_LIMIT:
        raise CoreosError(f"cpio header has a name of {name_size} bytes; 1 to {_NAME_LIMIT} are allowed")
    name = pieces.exactly(name_size).split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
    pieces.exactly(-(110 + name_size) % 4)
    return Entry(name, mode, size, uid, gid, mtime), -size % 4


def _archive(pieces: _Pieces) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    while True:
        entry, padding = _header(pieces)
        if entry.name == TRAILER:
            return
        left = entry.size

        def data() -> Iterator[bytes]:
            nonlocal left
            while left:
                piece = pieces.read(min(left, _PIECE))
                if not piece:
                    raise CoreosError(f"cpio archive is truncated in {entry.name!r}")  # noqa: B023
                left -= len(piece)
                yield piece

        contents = data()
        yield entry, contents
        for __ in contents:
            pass
        pieces.exactly(padding)


def entries(stream: Readable) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yield every member of the archives in `stream`, with an iterator over the pieces of its contents.

    Read the contents, if needed, before the next member. Raises `CoreosError` for input that is not
    an initramfs, is truncated, or has anything but zeros behind the last member of a compressed archive.
    """
    source = _Source(stream)
    count = 0
    while start := source.next_magic():
        reader = next((r for magic, r in _READERS.items() if start.startswith(magic)), None)
        if reader is None:
            raise CoreosError(
                f"found {start!r} where a cpio archive, plain or compressed with gzip, xz or zstd, should begin"
            )
        inflated = reader(source)
        pieces = _Pieces(piece for piece in inflated if piece)
        for member in _archive(pieces):
            count += 1
            if count > _ENTRIES:
                raise CoreosError(f"archive has more than {_ENTRIES} members")
            yield member
        if reader is _plain:
            source.push_back(pieces.rest)
        elif pieces.rest.strip(b"\0") or any(piece.strip(b"\0") for piece in inflated):
            raise CoreosError("found trailing garbage inside compressed archive")


def read_files(
    stream: Readable, wanted: Callable[[str], bool] = lambda name: True, limit: int = DEFAULT_LIMIT
) -> dict[str, bytes]:
    """Return the contents of the regular files whose name is `wanted`; of several with one name the last.

    Raises `CoreosError` when they are larger than `limit` bytes together.
    """
    found: dict[str, bytes] = {}
    total = 0
    for entry, contents in entries(stream):
        if not entry.is_file or not wanted(entry.name):
            continue
        total += entry.size + len(entry.name)
        if total > limit:
            raise CoreosError(f"{entry.name}: archive unpacks to more than {limit} bytes")
        found[entry.name] = b"".join(contents)
    return found


def header(name: str, *, mode: int, size: int, nlink: int = 1, inode: int = 0) -> bytes:
    """Return header and name of one member, owned by root and without times, padded: its `size` bytes come next, then `padding`.

    Surrogates in `name` are stored as the bytes that they represent; `mode` is a full `st_mode`, type included. Format
    newc (magic 070701).
    """
    encoded = name.encode("utf-8", "surrogateescape") + b"\0"
    fields = (inode, mode, 0, 0, nlink, 0, size, 0, 0, 0, 0, len(encoded), 0)
    return pad_data(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)


def archive(files: Mapping[str, File | bytes], parents: bool = True, ordered: bool = False) -> bytes:
    """Return a newc archive of regular files, sorted by name unless `ordered` already, owned by root, without times.

    With `parents` the directories on the way are members too, without which the kernel does not unpack a file. Plain
    bytes get mode 0600.
    """
    members: dict[str, tuple[int, bytes]] = {}
    for name in files if ordered else sorted(files):
        file = files[name]
        if parents:
            parts = name.strip("/").split("/")[:-1]
            for depth in range(len(parts)):
                members.setdefault("/".join(parts[: depth + 1]), (stat.S_IFDIR | 0o755, b""))
        if isinstance(file, bytes):
            file = File(file)
        members[name] = (stat.S_IFREG | file.mode, file.data)
    out: list[bytes] = []
    for inode, (name, (mode, data)) in enumerate(members.items()):
        out += [header(name, mode=mode, size=len(data), inode=inode), pad_data(data)]
    return b"".join([*out, header(TRAILER, mode=0, size=0, inode=len(members))])


def _xz(data: bytes) -> bytes:
    # The kernel requires CRC32. A dictionary larger than the data takes eleven times its size without a benefit.
    dictionary = min(max(1 << 12, 1 << (len(data) - 1).bit_length()), 1 << 23)
    filters: list[dict[str, Any]] = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": dictionary}]
    return lzma.compress(data, lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=filters)


_WRITERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 9, mtime=0),
    "xz": _xz,
    "none": lambda data: data,
}


def compress(data: bytes, method: str = "gzip") -> bytes:
    """Compress an archive with `gzip`, `xz` (in the kernel's variant) or `none`; the same bytes for the same input.

    `xz` has a CRC32 checksum and a dictionary of at most 8 MiB, which the kernel's decoder accepts. Another method is a
    KeyError.
    """
    return _WRITERS[method](data)


def padding(size: int) -> bytes:
    """Return the zeros that fill `size` bytes up to a multiple of four.

    newc pads names and contents so.
    """
    return bytes(-size % 4)


def pad_data(data: bytes) -> bytes:
    """Return `data` filled up with zeros to a multiple of four, so that another archive may follow.

    Contents of members, headers with names, and archives of an initramfs all have this alignment.
    """
    return data + padding(len(data))


def join(archives: Iterable[bytes]) -> bytes:
    """Return one initramfs of several archives.

    Each is padded to four bytes. They may be compressed in different ways; of files with one name the last counts.
    """
    return b"".join(pad_data(part) for part in archives)
