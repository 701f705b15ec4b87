"""Pictures: PPM and PNG as QEMU and libvirt write them (libvirt 9 chooses PNG), and PNG for users."""

from __future__ import annotations

import itertools
import re
import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

from ..errors import LabError

MOST = 8192
"""Dots in a row or column that a picture may have."""
MOST_BYTES = MOST * MOST * 3 + 64
"""Bytes of a picture that is not compressed."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = re.compile(rb"P6\s+(?:#[^\n]*\n\s*)*(\d{1,5})\s+(\d{1,5})\s+255\s")


class Picture(NamedTuple):
    """Dots of 3 bytes (red, green, blue), row after row."""

    width: int
    height: int
    dots: bytes


def from_ppm(data: bytes) -> Picture:
    """Read a PPM (P6, 8 bits a colour); `LabError` for other data, or fewer bytes than in its header."""
    header = _HEADER.match(data)
    if not header:
        raise LabError("the picture of the screen is not a PPM with 8 bits a colour")
    width, height = int(header[1]), int(header[2])
    _check_size(width, height)
    dots = data[header.end() : header.end() + width * height * 3]
    if len(dots) < width * height * 3:
        raise LabError(f"the picture of the screen is cut: {len(dots)} of {width * height * 3} bytes")
    return Picture(width, height, dots)


def read(data: bytes) -> Picture:
    """Read a picture in one of the two formats; `LabError` as `from_ppm` and `from_png` have it."""
    return from_png(data) if data.startswith(_SIGNATURE) else from_ppm(data)


def from_png(data: bytes) -> Picture:
    """Read a PNG of RGB with 8 bits a colour that is not interlaced; `LabError` for another, or one that is cut.

    Source: https://www.w3.org/TR/png-3/, the filters in section 9.
    """
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR" or len(data) < 33:
        raise LabError("the picture of the screen is not a PNG")
    width, height, *form = struct.unpack(">IIBBBBB", data[16:29])
    _check_size(width, height)
    if form != [8, 2, 0, 0, 0]:
        raise LabError(f"the picture of the screen is not a PNG of RGB with 8 bits a colour, but of the form {form}")
    packed, at = b"", len(_SIGNATURE)
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += 12 + size
    line = width * 3
    wanted = (line + 1) * height
    try:
        rows = zlib.decompressobj().decompress(packed, wanted)
    except zlib.error as error:
        raise LabError(f"the picture of the screen is damaged: {error}") from error
    if len(rows) < wanted:
        raise LabError(f"the picture of the screen is cut: {len(rows)} of {wanted} bytes")
    before, dots = bytes(line), []
    for start in range(0, wanted, line + 1):
        kind, row = rows[start], rows[start + 1 : start + 1 + line]
        if kind >= len(_FILTERS):
            raise LabError(
                f"the picture of the screen is damaged: a line has filter {kind}; {len(_FILTERS) - 1} is the last"
            )
        before = _FILTERS[kind](row, before)
        dots.append(before)
    return Picture(width, height, b"".join(dots))


def _sub(row: bytes, __: bytes) -> bytes:
    found = bytearray(len(row))
    for colour in range(3):
        found[colour::3] = bytes(value & 255 for value in itertools.accumulate(row[colour::3]))
    return bytes(found)


def _unfilter_up(row: bytes, before: bytes) -> bytes:
    return bytes((one + other) & 255 for one, other in zip(row, before, strict=True)) if any(row) else before


def _average(row: bytes, before: bytes) -> bytes:
    found = bytearray(3) + row
    for at, above in enumerate(before, 3):
        found[at] = (found[at] + (found[at - 3] + above) // 2) & 255
    return bytes(found[3:])


def _paeth(row: bytes, before: bytes) -> bytes:
    found, above = bytearray(3) + row, bytes(3) + before
    for at in range(3, len(found)):
        left, up, corner = found[at - 3], above[at], above[at - 3]
        base = left + up - corner
        # The first of the nearest, in this order.
        nearest = min((left, up, corner), key=lambda value: abs(base - value))
        found[at] = (found[at] + nearest) & 255
    return bytes(found[3:])


_FILTERS: tuple[Callable[[bytes, bytes], bytes], ...] = (lambda row, __: row, _sub, _unfilter_up, _average, _paeth)


def _check_size(width: int, height: int) -> None:
    if not (0 < width <= MOST and 0 < height <= MOST):
        raise LabError(f"the picture of the screen has {width} x {height} dots; {MOST} x {MOST} is the most")


def to_png(picture: Picture) -> bytes:
    """Return the picture as PNG (RGB, 8 bits)."""
    line = picture.width * 3
    rows = b"".join(b"\0" + picture.dots[at : at + line] for at in range(0, len(picture.dots), line))
    return (
        _SIGNATURE
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", picture.width, picture.height, 8, 2, 0, 0, 0))
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
