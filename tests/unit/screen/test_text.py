"""Screens as text: of real machines (golden pictures, made by QEMU's screendump), and drawn ones."""

from __future__ import annotations

import gzip
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import fonts, picture, text
from ansible_collections.agentlab.ocp.plugins.module_utils.screen.fonts import known_fonts
from ansible_collections.agentlab.ocp.plugins.module_utils.screen.picture import Picture
from hypothesis import given, settings
from hypothesis import strategies as st

from .draw import BLACK, GREY, draw

GOLDEN = Path(__file__).parent / "golden"
FONTS = {font.name: font for font in known_fonts()}
VGA = FONTS["VGA text, 9x16"]


def ppm(shown: picture.Picture) -> bytes:
    return b"P6\n%d %d\n255\n" % (shown.width, shown.height) + shown.dots


def machine(name: str) -> text.Screen:
    return text.read(picture.from_ppm(gzip.decompress((GOLDEN / f"{name}.ppm.gz").read_bytes())))


def test_bios() -> None:
    screen = machine("bios")
    assert screen.font == "VGA text, 9x16"
    assert screen.lines[:5] == [
        "SeaBIOS (version 1.16.2-debian-1.16.2-1)",
        "",
        "Press ESC for boot menu.",
        "",
        "Booting from Hard Disk...",
    ]
    assert screen.lines[-1] == "No bootable device."
    assert text.UNKNOWN not in screen.text


def test_firmware_menu() -> None:
    screen = machine("efi")
    assert screen.font == "UEFI firmware, 8x19"
    assert " ► Boot Manager                                          current system" in screen.lines
    assert "   Select Language            <Standard English>         This is the option" in screen.lines
    assert "<Standard English>" in screen.selected
    assert text.UNKNOWN not in screen.text


def test_every_glyph_is_distinct_or_known_to_be_ambiguous() -> None:
    ambiguous = {
        font.name: sorted(c for c in font.glyphs if font.characters[font.glyphs[c]] != c) for font in FONTS.values()
    }
    assert all(not any(c.isascii() for c in found) for found in ambiguous.values()), ambiguous


@settings(max_examples=30, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(FONTS)))
def test_round_trip(data: st.DataObject, name: str) -> None:
    font = FONTS[name]
    # Characters that are the same drawing, or the inverse of one, are read as the first of them.
    inverse = {bytes(row ^ 0xFF for row in shape) for shape in font.characters}
    alphabet = sorted(c for shape, c in font.characters.items() if shape not in inverse or c == " ")
    wanted = data.draw(
        st.lists(st.text(alphabet, max_size=20), min_size=2, max_size=4).filter(
            lambda found: any(map(str.strip, found))
        )
    )
    screen = text.read(draw([*wanted, "fill", "", ""], font))
    lines = [line.rstrip() for line in [*wanted, "fill"]]
    # The two VGA cells differ in their width.
    if screen.font == name:
        assert screen.lines == lines
    else:
        assert {screen.font, name} <= {"VGA text, 8x16", "VGA text, 9x16"}


def test_without_firmware_nothing_can_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "no-font").write_bytes(bytes(5000))
    for paths in (tmp_path / "missing", tmp_path / "no-font"):
        monkeypatch.setattr(fonts, "VGABIOS", (paths,))
        monkeypatch.setattr(fonts, "OVMF", (paths,))
        with pytest.raises(LabError, match=r"which is not on this host: .*`agentlab setup` installs it"):
            fonts.known_fonts.__wrapped__()


@pytest.mark.parametrize("name", sorted(FONTS))
def test_inverse_line_is_selected(name: str) -> None:
    menu = ["GNU GRUB  version 2.06", " Install", " Advanced options", " Memory test: Mm Ww 0"]
    screen = text.read(draw([*menu, *[""] * 21], FONTS[name], inverse=[2]))
    assert (screen.lines, screen.selected) == (menu, ["Advanced options"])
    assert screen.rows[2][1] == text.Cell("A", tuple(BLACK), tuple(GREY))


def test_firmware_centres_its_text() -> None:
    screen = text.read(draw(["Shell> ls", "FS0:"], FONTS["UEFI firmware, 8x19"], left=20, top=5))
    assert [line.strip() for line in screen.lines] == ["Shell> ls", "FS0:"]


def test_unknown_glyph_is_shown_as_such() -> None:
    shown = draw(["login: unknown here, and enough text around it", *["text"] * 5], VGA)
    dots = bytearray(shown.dots)
    at = 3 * 9 * 7  # a dot of the eighth cell, which is blank but for it
    line = shown.width * 3
    for row, x in ((0, 1), (3, 6)):
        start = row * line + at + 3 * x
        dots[start : start + 3] = b"\xff\0\0"
    screen = text.read(shown._replace(dots=bytes(dots)))
    assert screen.lines[0] == f"login: {text.UNKNOWN}nknown here, and enough text around it"


def test_cursor() -> None:
    shown = draw(["login:", "text"], VGA)
    dots = bytearray(shown.dots)
    for row in (14, 15):
        start = row * shown.width * 3 + 3 * 9 * 5
        dots[start : start + 27] = GREY * 9
    assert text.read(shown._replace(dots=bytes(dots))).lines == ["login:", "text"]


def test_graphics() -> None:
    noise = bytes((x * x * 7 + x // 640 * 31) % 251 for x in range(640 * 480 * 3))
    assert text.read(Picture(640, 480, noise)).font is None


def test_blank() -> None:
    screen = text.read(Picture(720, 400, bytes(720 * 400 * 3)))
    assert (screen.font, screen.lines, screen.selected) == ("blank", [], [])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x89PNG", "is not a PPM"),
        (b"P6 2 2 255\n" + b"x" * 11, "is cut: 11 of 12 bytes"),
        (b"P6 9999 2 255\n", "9999 x 2 dots; 8192 x 8192 is the most"),
        (b"P6 2 2 65535\n", "8 bits a colour"),
    ],
)
def test_picture_refused(data: bytes, message: str) -> None:
    with pytest.raises(LabError, match=message):
        picture.from_ppm(data)


def test_png() -> None:
    shown = Picture(2, 1, b"\1\2\3\4\5\6")
    data = picture.to_png(shown)
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (2, 1)
    start = data.index(b"IDAT") + 4
    assert zlib.decompressobj().decompress(data[start:]) == b"\0" + shown.dots
    assert picture.from_ppm(ppm(shown)) == shown


@pytest.mark.parametrize("name", ["grub-bios", "grub-efi"])
def test_boot_menu(name: str) -> None:
    screen = machine(name)
    assert screen.selected == ["*Memory test"]
    assert any("GNU GRUB  version 2.06" in line for line in screen.lines)
    assert text.UNKNOWN not in screen.text


def _png(width: int, height: int, rows: bytes, form: bytes = b"\x08\x02\0\0\0") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + bytes(4)

    head = chunk(b"IHDR", struct.pack(">II", width, height) + form)
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_png_of_every_filter() -> None:
    # Worked out by hand from the filters' definitions.
    rows = bytes(
        (
            *(0, 10, 20, 30, 40, 50, 60),
            *(1, 1, 2, 3, 255, 1, 2),
            *(2, 1, 1, 1, 1, 1, 1),
            *(3, 10, 10, 10, 10, 10, 10),
            *(4, 1, 1, 1, 2, 2, 2),
        )
    )
    wanted = [
        [10, 20, 30, 40, 50, 60],
        [1, 2, 3, 0, 3, 5],
        [2, 3, 4, 1, 4, 6],
        [11, 11, 12, 16, 17, 19],
        [12, 12, 13, 18, 19, 21],
    ]
    assert picture.read(_png(2, 5, rows)) == Picture(2, 5, b"".join(map(bytes, wanted)))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_png_round_trip(data: st.DataObject) -> None:
    width, height = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    shown = Picture(width, height, data.draw(st.binary(min_size=width * height * 3, max_size=width * height * 3)))
    assert picture.read(picture.to_png(shown)) == shown == picture.read(ppm(shown))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x89PNG\r\n\x1a\n", "is not a PNG"),
        (_png(9999, 1, b""), "9999 x 1 dots; 8192 x 8192 is the most"),
        (_png(1, 1, b"", b"\x08\x06\0\0\0"), "not a PNG of RGB with 8 bits"),
        (_png(1, 1, b"\0\1\1"), "is cut: 3 of 4 bytes"),
        (_png(1, 1, b"\5\1\1\1"), "a line has filter 5; 4 is the last"),
        (_png(1, 1, b"")[:41] + b"xxxxxxxx", "damaged"),
    ],
)
def test_png_refused(data: bytes, message: str) -> None:
    with pytest.raises(LabError, match=message):
        picture.read(data)


def kernel_image(packed: bytes) -> bytes:
    """A bzImage with a setup of two sectors, and `packed` as its payload, 32 bytes after them."""
    header = bytearray(2 * 512)
    header[0x1F1] = 1
    header[0x202:0x206] = b"HdrS"
    header[0x248:0x250] = struct.pack("<II", 32, len(packed))
    return bytes(header) + bytes(32) + packed + b"more"


def kernel_font() -> bytes:
    """A table of glyphs as a kernel has one: the firmware's, of which Z and V are other ones."""
    data = next(path for path in fonts.VGABIOS if path.exists()).read_bytes()
    table = bytearray(data[data.index(VGA.glyphs["A"]) - 16 * ord("A") :][: 256 * 16])
    for letter in b"ZV":
        table[16 * letter : 16 * letter + 16] = bytes([0, 0, 0xFF, 0x81, letter, 0x81, 0xFF]).ljust(16, b"\0")
    return bytes(table)


@pytest.mark.parametrize("pack", [lzma.compress, gzip.compress])
def test_console_of_a_kernel(pack: Callable[[bytes], bytes]) -> None:
    """The firmware's font fits most cells, but those of two letters; the kernel's fits all."""
    font = fonts.kernel(kernel_image(pack(bytes(5000) + kernel_font() + bytes(5000))))
    assert font is not None
    shown = draw(["A ZONE", "OF VLANs", "with a long line of text, so that the other font fits, too"], font)
    assert text.read(shown).lines[0] == "A �ONE"
    screen = text.read(shown, lambda: [font])
    assert (screen.font, screen.lines[:2]) == ("Linux console, 8x16", ["A ZONE", "OF VLANs"])


def test_fonts_of_a_kernel_are_read_only_when_they_are_needed() -> None:
    def never() -> list[fonts.Font]:
        raise AssertionError

    assert text.read(draw(["Boot from (hd0,0)"], VGA), never).lines == ["Boot from (hd0,0)"]


@pytest.mark.parametrize(
    "image",
    [
        b"",
        b"MZ" * 600,
        kernel_image(b"\x28\xb5\x2f\xfd of another form"),
        kernel_image(lzma.compress(b"no font")),
        kernel_image(lzma.compress(kernel_font())[:200]),
        kernel_image(b"\xfd7zXZ\0 damaged"),
        kernel_image(gzip.compress(kernel_font())[:10] + b"damaged"),
    ],
)
def test_kernels_without_a_font_that_can_be_read(image: bytes) -> None:
    assert fonts.kernel(image) is None
