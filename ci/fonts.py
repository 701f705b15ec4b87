#!/usr/bin/env python3
"""Write plugins/module_utils/screen/glyphs.py: the fonts of firmware and kernel, from the programs that draw with them.

    ci/fonts.py VMLINUZ

It reads SeaBIOS's VGA BIOS (package seabios), OVMF (package ovmf) and a Linux kernel with `CONFIG_FONT_8x16` that is
compressed with xz, as Debian's are.
"""

from __future__ import annotations

import base64
import lzma
import sys
import uuid
import zlib
from pathlib import Path

VGABIOS = Path("/usr/share/seabios/vgabios-stdvga.bin")
OVMF = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
TARGET = Path(__file__).resolve().parent.parent / "plugins/module_utils/screen/glyphs.py"
LETTER_A = bytes.fromhex("000010386cc6c6fec6c6c6c600000000")
LETTER_A_19 = bytes.fromhex("00000010386cc6c6c6fec6c6c6c6")
# EFI_GUIDED_SECTION with LZMA data.
LZMA = uuid.UUID("EE4E5898-3914-4259-9D6E-DC7BD79403CF").bytes_le
NARROW = 2 + 1 + 19  # EFI_NARROW_GLYPH: UTF-16 unit, attributes, rows
HEAD = '''"""The fonts of screens, written by ci/fonts.py: change that.

Each is base64 of zlib. `VGA`: 256 glyphs of 16 rows in the order of code page 437, from SeaBIOS's VGA BIOS (which has
them in the public domain). `LINUX`: the same of the kernel's `font_8x16`. `EFI`: glyphs of EDK II's GraphicsConsoleDxe,
each a UTF-16 unit (little endian) and 19 rows. A row is a byte, its highest bit at the left.
"""

from __future__ import annotations

'''


def codepage(data: bytes, source: Path) -> bytes:
    """Return the 256 glyphs of 8x16 dots in `data`; ends with a message if there are none."""
    at = data.find(LETTER_A) - 16 * ord("A")
    if at < 0:
        raise SystemExit(f"{source}: it has no font of 8x16 dots")
    return data[at : at + 256 * 16]


def kernel(path: Path) -> bytes:
    """Return the kernel in the xz stream of a vmlinuz."""
    data = path.read_bytes()
    start = data.find(b"\xfd7zXZ\0")
    if start < 0:
        raise SystemExit(f"{path}: it is not a kernel that is compressed with xz")
    return lzma.LZMADecompressor().decompress(data[start:])


def efi() -> bytes:
    """Return the narrow glyphs of OVMF: UTF-16 unit and 19 rows each."""
    data = OVMF.read_bytes()
    at = data.index(LZMA)
    start = at - 4 + int.from_bytes(data[at + 16 : at + 18], "little")
    volume = lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(data[start:])
    first = volume.index(b"A\0\0" + LETTER_A_19)

    def unit(position: int) -> int:
        return int.from_bytes(volume[position : position + 2], "little")

    # The table is sorted by units, and begins with the space; it ends with an entry of zeros.
    while unit(first) > ord(" "):
        first -= NARROW
    found, position = b"", first
    while unit(position):
        found += volume[position : position + 2] + volume[position + 3 : position + NARROW]
        position += NARROW
    return found


def constant(name: str, data: bytes) -> str:
    """Return an assignment of lines that are short."""
    text = base64.b64encode(zlib.compress(data, 9)).decode()
    lines = "\n".join(f'    "{text[at : at + 112]}"' for at in range(0, len(text), 112))
    return f"{name} = (\n{lines}\n)\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(str(__doc__))
    path = Path(sys.argv[1])
    fonts = {
        "VGA": codepage(VGABIOS.read_bytes(), VGABIOS),
        "LINUX": codepage(kernel(path), path),
        "EFI": efi(),
    }
    TARGET.write_text(HEAD + "".join(constant(name, data) for name, data in fonts.items()))
