"""The fixed fonts of screens, to look up characters by their dots."""

from __future__ import annotations

import base64
import functools
import zlib
from typing import NamedTuple

from . import glyphs

# What VGA draws for the control characters (https://en.wikipedia.org/wiki/Code_page_437); 0 and 255 are blank.
_CONTROLS = " ☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼"
WIDTH = 8
"""Dots of a row of a glyph; cells may be wider."""


class Font(NamedTuple):
    """A font of glyphs that are 8 dots wide.

    name: for messages; height: rows of a glyph; cell: dots from one cell to the next; glyphs: rows of dots by
    character; characters: the reverse. Of characters with the same dots (such as K and the sign for kelvin) the first one
    is in `characters`.
    """

    name: str
    height: int
    cell: int
    glyphs: dict[str, bytes]
    characters: dict[bytes, str]


def _font(name: str, height: int, cell: int, shapes: dict[str, bytes]) -> Font:
    characters: dict[bytes, str] = {}
    # ASCII first: it wins over what looks the same.
    for character in sorted(shapes):
        characters.setdefault(shapes[character], character)
    return Font(name, height, cell, shapes, characters)


def _unpack(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def _codepage(data: bytes) -> dict[str, bytes]:
    shapes: dict[str, bytes] = {}
    for code in range(256):
        character = _CONTROLS[code] if code < 32 else "⌂" if code == 127 else bytes([code]).decode("cp437")
        shapes.setdefault(character, data[code * 16 : code * 16 + 16])
    return shapes


@functools.cache
def known() -> tuple[Font, ...]:
    """Return all fonts: VGA text with cells of 9 and 8 dots, the kernel's framebuffer console, and UEFI firmware."""
    vga, linux, efi = _codepage(_unpack(glyphs.VGA)), _codepage(_unpack(glyphs.LINUX)), _unpack(glyphs.EFI)
    units = {efi[at : at + 2].decode("utf-16-le"): efi[at + 2 : at + 21] for at in range(0, len(efi), 21)}
    return (
        _font("VGA text, 9x16", 16, 9, vga),
        _font("VGA text, 8x16", 16, 8, vga),
        _font("Linux framebuffer console, 8x16", 16, 8, linux),
        _font("UEFI firmware, 8x19", 19, 8, units),
    )
