"""A picture of a screen as text: each cell is looked up in a fixed font, dot by dot. Nothing is guessed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .fonts import WIDTH, Font, known_fonts
from .picture import Picture

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""Replaces a cell that is not a glyph of the font."""
SHARE = 0.9
"""A grid fits when this share of the cells with dots in two colours are glyphs."""
_CURSOR = 3  # rows at the bottom of a cell in which a cursor is drawn
_FEW = 8

Colour = tuple[int, int, int]


class Cell(NamedTuple):
    """A character, and its colours (red, green, blue); an unknown one has the colour of its first dot as background."""

    character: str
    foreground: Colour
    background: Colour


class Screen(NamedTuple):
    """Rows of cells, and the name of the font; a screen in no known font has no rows and font None.

    background: the most frequent one.
    """

    rows: tuple[tuple[Cell, ...], ...]
    font: str | None
    background: Colour

    @property
    def lines(self) -> list[str]:
        """The text, without blanks at the ends of lines and without empty lines at the end."""
        lines = ["".join(cell.character for cell in row).rstrip() for row in self.rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def text(self) -> str:
        """The lines as one string."""
        return "\n".join(self.lines)

    @property
    def selected(self) -> list[str]:
        """Text on another background than most of its screen, such as the selected line of a menu.

        Each run of cells of a row with one background, without blanks around; blank runs are left out.
        """
        found = []
        for row in self.rows:
            run, colour = "", self.background
            for cell in (*row, Cell("", self.background, self.background)):
                if cell.background != colour:
                    found.append(run.strip())
                    run, colour = "", cell.background
                if cell.background != self.background:
                    run += cell.character
        return [run for run in found if run]


def read(picture: Picture, more: Callable[[], Sequence[Font]] = tuple) -> Screen:
    """Read the picture with the font and the grid that fit; see `Screen` for a picture that no font fits.

    A screen of one colour is empty text of no font. more: returns fonts in addition to the firmware's, which are tried
    when none of these fits every cell.
    """
    first = _colour(picture.dots[:3])
    if picture.dots == picture.dots[:3] * (picture.width * picture.height):
        return Screen((), "blank", first)
    best: tuple[float, Font, int, int] | None = None
    for font in itertools.chain(known_fonts(), _lazy_fonts(more)):
        for left, top in _grids(picture, font):
            share = _fit(picture, font, left, top)
            if share >= SHARE and (best is None or share > best[0]):
                best = (share, font, left, top)
        if best is not None and best[0] == 1:
            break  # no other can fit better
    if best is None:
        return Screen((), None, first)
    __, font, left, top = best
    return _read(picture, font, left, top)


def _lazy_fonts(more: Callable[[], Sequence[Font]]) -> Iterator[Font]:
    yield from more()


def _grids(picture: Picture, font: Font) -> Iterator[tuple[int, int]]:
    """Yield left and top of the first cell.

    VGA and the kernel begin in the corner. Firmware centres its text: columns are in pairs, so that the left is known
    up to half a cell; any top is possible.
    """
    if font.height == 16:
        if picture.width % font.cell == 0:
            yield 0, 0
        return
    middle = picture.width // 2
    for top in range(font.height):
        for left in (middle % WIDTH, (middle - WIDTH // 2) % WIDTH):
            yield left, top


def _cells(picture: Picture, font: Font, left: int, top: int) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yield row, column and lines of dots of each cell."""
    line = picture.width * 3
    for row, y in enumerate(range(top, picture.height - font.height + 1, font.height)):
        strip = [picture.dots[at * line : (at + 1) * line] for at in range(y, y + font.height)]
        for column, x in enumerate(range(left, picture.width - font.cell + 1, font.cell)):
            yield row, column, [dots[x * 3 : (x + WIDTH) * 3] for dots in strip]


def _plain(lines: list[bytes]) -> bool:
    return lines[0] == lines[0][:3] * WIDTH and all(line == lines[0] for line in lines)


def _colours(lines: list[bytes]) -> set[bytes]:
    if _plain(lines):
        return {lines[0][:3]}  # most cells, and it is fast
    dots = b"".join(lines)
    return {dots[at : at + 3] for at in range(0, len(dots), 3)}


def _fit(picture: Picture, font: Font, left: int, top: int) -> float:
    """Return the share of the cells of two colours that are glyphs; it stops early when too few are.

    Cells of more colours, such as those of the firmware's logo next to its messages, are not text. Near them a few
    glyphs may be part of a drawing: fewer than `_FEW` are not text either.
    """
    seen = good = drawn = 0
    for __, __, lines in _cells(picture, font, left, top):
        colours = len(_colours(lines))
        drawn += colours > 2
        if colours != 2:
            continue
        seen += 1
        good += bool(_matches(lines, font))
        if seen >= 40 and good < SHARE / 2 * seen:
            return 0.0
    return good / seen if seen and not (drawn and good < _FEW) else 0.0


def _matches(lines: list[bytes], font: Font) -> list[Cell]:
    """Return what a cell of two colours can be: at most one for each choice of the background."""
    colours = _colours(lines)
    if len(colours) != 2:
        return []
    found = []
    ordered = sorted(colours, key=lambda colour: colour != lines[0][:3])
    for background, foreground in (ordered, ordered[::-1]):
        rows = bytes(
            sum((line[at * 3 : at * 3 + 3] == foreground) << (WIDTH - 1 - at) for at in range(WIDTH)) for line in lines
        )
        character = font.characters.get(rows) or _under_cursor(rows, font)
        if character:
            found.append(Cell(character, _colour(foreground), _colour(background)))
    return found


def _under_cursor(rows: bytes, font: Font) -> str | None:
    """Return the character under a cursor of full rows at the bottom, if its other rows belong to one character only.

    Nothing above the cursor is a blank.
    """
    cursor = [at for at in range(len(rows) - _CURSOR - 1, len(rows)) if rows[at] == 0xFF]
    if not cursor:
        return None
    rest = [at for at in range(len(rows)) if at not in cursor]
    if not any(rows[at] for at in rest):
        return " "
    found = {character for shape, character in font.characters.items() if all(shape[at] == rows[at] for at in rest)}
    return found.pop() if len(found) == 1 else None


def _read(picture: Picture, font: Font, left: int, top: int) -> Screen:
    cells = list(_cells(picture, font, left, top))
    plain = Counter(lines[0][:3] for __, __, lines in cells if _plain(lines))
    common = _colour(plain.most_common(1)[0][0]) if plain else _colour(picture.dots[:3])
    rows: list[list[Cell]] = []
    for row, __, lines in cells:
        if row == len(rows):
            rows.append([])
        first = _colour(lines[0][:3])
        if _plain(lines):
            rows[row].append(Cell(" ", first, first))
            continue
        matches = _matches(lines, font)
        # A glyph and its inverse may both be characters: the background is then the screen's, or that of the cell before.
        before = rows[row][-1].background if rows[row] else common
        matches.sort(key=lambda cell: (cell.background != common, cell.background != before))
        rows[row].append(matches[0] if matches else Cell(UNKNOWN, first, first))
    return Screen(tuple(map(tuple, rows)), font.name, common)


def _colour(dots: bytes) -> Colour:
    return dots[0], dots[1], dots[2]
