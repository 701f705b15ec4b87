"""Pictures: PPM as QEMU and libvirt write it, and PNG for people."""

from __future__ import annotations

import re
import struct
import zlib
from typing import NamedTuple

from ..errors import LabError

MOST = 8192
"""Dots in a row or column that a picture may have."""
_HEADER = re.compile(rb"P6\s+(?:#[^\n]*\n\s*)*(\d{1,5})\s+(\d{1,5})\s+255\s")


class Picture(NamedTuple):
    """Dots of 3 bytes (red, green, blue), row after row."""

    width: int
    height: int
    dots: bytes


def from_ppm(data: bytes) -> Picture:
    """Read a PPM (P6, 8 bits a colour); `LabError` for other data, or less than its header says."""
    header = _HEADER.match(data)
    if not header:
        raise LabError("the picture of the screen is not a PPM with 8 bits a colour")
    width, height = int(header[1]), int(header[2])
    if not (0 < width <= MOST and 0 < height <= MOST):
        raise LabError(f"the picture of the screen has {width} x {height} dots; {MOST} x {MOST} is the most")
    dots = data[header.end() : header.end() + width * height * 3]
    if len(dots) < width * height * 3:
        raise LabError(f"the picture of the screen is cut: {len(dots)} of {width * height * 3} bytes")
    return Picture(width, height, dots)


def to_ppm(picture: Picture) -> bytes:
    """Return the picture as PPM."""
    return b"P6\n%d %d\n255\n" % (picture.width, picture.height) + picture.dots


def to_png(picture: Picture) -> bytes:
    """Return the picture as PNG (RGB, 8 bits)."""
    line = picture.width * 3
    rows = b"".join(b"\0" + picture.dots[at : at + line] for at in range(0, len(picture.dots), line))
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", picture.width, picture.height, 8, 2, 0, 0, 0))
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
