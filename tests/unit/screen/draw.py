"""Draws text as a screen does, and machines that show it."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.agentlab.ocp.plugins.module_utils.screen.fonts import WIDTH, Font
from ansible_collections.agentlab.ocp.plugins.module_utils.screen.picture import Picture

GREY, BLACK = b"\xaa\xaa\xaa", b"\0\0\0"


def draw(
    lines: Sequence[str], font: Font, *, columns: int = 80, inverse: Sequence[int] = (), left: int = 0, top: int = 0
) -> Picture:
    """Draw lines of at most `columns` characters; inverse: numbers of lines whose colours are exchanged.

    left, top: dots around the text.
    """
    width = columns * font.cell + 2 * left
    data = bytearray(BLACK * width * top)
    for number, line in enumerate(lines):
        ink, paper = (BLACK, GREY) if number in inverse else (GREY, BLACK)
        for row in range(font.height):
            data += BLACK * left
            for character in line.ljust(columns):
                bits = font.glyphs[character][row]
                dots = b"".join(ink if bits >> (WIDTH - 1 - at) & 1 else paper for at in range(WIDTH))
                data += dots + paper * (font.cell - WIDTH)
            data += BLACK * left
    data += BLACK * width * top
    return Picture(width, 2 * top + len(lines) * font.height, bytes(data))


class Shows:
    """A machine whose screen shows one picture after the other, and then the last; `pressed` are the keys."""

    def __init__(self, *pictures: Picture) -> None:
        self.pictures = list(pictures)
        self.pressed: list[list[int]] = []

    def fonts(self) -> Sequence[Font]:
        return ()

    def picture(self) -> Picture:
        return self.pictures.pop(0) if len(self.pictures) > 1 else self.pictures[0]

    def press(self, codes: Sequence[int]) -> None:
        self.pressed.append(list(codes))
