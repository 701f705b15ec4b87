"""The fixed fonts of screens, to look up characters by their dots: read from the firmware or the kernel that draws with them."""

from __future__ import annotations

import functools
import lzma
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import LabError

# Of Debian, of Fedora and its relatives.
VGABIOS = (Path("/usr/share/seabios/vgabios-stdvga.bin"), Path("/usr/share/seavgabios/vgabios-stdvga.bin"))
"""SeaBIOS's VGA BIOS, which has 256 glyphs of 16 rows in the order of code page 437."""
OVMF = (Path("/usr/share/OVMF/OVMF_CODE_4M.fd"), Path("/usr/share/edk2/ovmf/OVMF_CODE.fd"))
"""EDK II, whose GraphicsConsoleDxe has a table of EFI_NARROW_GLYPH, sorted by their characters (UEFI 2.10, 33.3.3.1)."""
# By the letter A a font is found; its first rows are blank.
_LETTER = bytes.fromhex("000010386cc6c6fec6c6c6c600000000")
_LETTER_EFI = bytes.fromhex("00000010386cc6c6c6fec6c6c6c6")
# An EFI_GUIDED_SECTION with LZMA data.
_LZMA = uuid.UUID("EE4E5898-3914-4259-9D6E-DC7BD79403CF").bytes_le
_MOST = 64 << 20
"""Bytes of a firmware volume, at most."""
_MOST_KERNEL = 256 << 20
"""Bytes of an unpacked kernel, at most."""
# What a compressed kernel begins with; Debian's is xz, as is that of RHEL's family up to 9.
_XZ, _GZIP = b"\xfd7zXZ\0", b"\x1f\x8b"
_NARROW = 2 + 1 + 19
"""An EFI_NARROW_GLYPH: UTF-16 unit (little endian), attributes, rows. A row is a byte, its highest bit at the left."""
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


def _codepage(data: bytes) -> dict[str, bytes]:
    shapes: dict[str, bytes] = {}
    for code in range(256):
        character = _CONTROLS[code] if code < 32 else "⌂" if code == 127 else bytes([code]).decode("cp437")
        shapes.setdefault(character, data[code * 16 : code * 16 + 16])
    return shapes


def _vga(path: Path) -> Iterator[Font]:
    data = path.read_bytes()
    at = data.find(_LETTER) - 16 * ord("A")
    if at >= 0:
        shapes = _codepage(data[at : at + 256 * 16])
        yield _font("VGA text, 9x16", 16, 9, shapes)
        yield _font("VGA text, 8x16", 16, 8, shapes)


def _efi(path: Path) -> Iterator[Font]:
    data = path.read_bytes()
    at = data.find(_LZMA)
    start = at - 4 + int.from_bytes(data[at + 16 : at + 18], "little")
    try:
        volume = lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(data[start:] if at >= 0 else b"", _MOST)
    except lzma.LZMAError:
        return
    first = volume.find(b"A\0\0" + _LETTER_EFI)

    def unit(position: int) -> int:
        return int.from_bytes(volume[position : position + 2], "little")

    # The table begins with the space; it ends with an entry of zeros.
    while first > 0 and unit(first) > ord(" "):
        first -= _NARROW
    shapes = dict[str, bytes]()
    while first >= 0 and unit(first):
        shapes[volume[first : first + 2].decode("utf-16-le", "replace")] = volume[first + 3 : first + _NARROW]
        first += _NARROW
    if shapes:
        yield _font("UEFI firmware, 8x19", 19, 8, shapes)


@functools.cache
def known_fonts() -> tuple[Font, ...]:
    """Return the fonts of the firmware on this host: VGA text with cells of 9 and 8 dots, and UEFI.

    They are read from the firmware itself, which machines on this host run: about half a second, once per process. Raises
    `LabError` when neither is installed.
    """
    found: list[Font] = []
    for paths, read in ((VGABIOS, _vga), (OVMF, _efi)):
        path = next((path for path in paths if path.exists()), None)
        found += read(path) if path else ()
    if not found:
        raise LabError(
            f"a screen is read with the fonts of the firmware, which is not on this host: neither {VGABIOS[0]} nor {OVMF[0]};"
            " `agentlab setup` installs it"
        )
    return tuple(found)


def kernel(image: bytes) -> Font | None:
    """Return the font with which a Linux kernel for x86 draws its console on a framebuffer (its `VGA8x16`).

    image: a bzImage (https://www.kernel.org/doc/html/latest/arch/x86/boot.html), as a boot medium has it; it takes some
    seconds. None for other data, and a kernel that is packed otherwise than with xz or gzip, or has no such font.
    """
    if image[0x202:0x206] != b"HdrS":
        return None
    start = ((image[0x1F1] or 4) + 1) * 512 + int.from_bytes(image[0x248:0x24C], "little")
    packed = image[start : start + int.from_bytes(image[0x24C:0x250], "little")]
    try:
        if packed.startswith(_XZ):
            data = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(packed, _MOST_KERNEL)
        elif packed.startswith(_GZIP):
            data = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(packed, _MOST_KERNEL)
        else:
            return None
    except (lzma.LZMAError, zlib.error):
        return None
    at = data.find(_LETTER) - 16 * ord("A")
    if at < 0:
        return None
    return _font("Linux console, 8x16", 16, 8, _codepage(data[at : at + 256 * 16]))
