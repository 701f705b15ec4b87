"""Keys of a keyboard with US layout, by name and by what they type, as Linux key codes (linux/input-event-codes.h)."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import LabError

_ROWS = {2: "1234567890-=", 16: "qwertyuiop[]", 30: "asdfghjkl;'`", 43: "\\zxcvbnm,./"}
_SHIFTED = dict(zip('!@#$%^&*()_+{}:"~|<>?', "1234567890-=[];'`\\,./", strict=True))
_CHARACTERS = {letter: code for start, row in _ROWS.items() for code, letter in enumerate(row, start)} | {" ": 57}
_NAMED = {
    "esc": 1, "backspace": 14, "tab": 15, "enter": 28, "space": 57, "home": 102, "up": 103, "pageup": 104, "left": 105,
    "right": 106, "end": 107, "down": 108, "pagedown": 109, "insert": 110, "delete": 111, "f11": 87, "f12": 88,
    **{f"f{number}": 58 + number for number in range(1, 11)},
}  # fmt: skip
_HELD = {"ctrl": 29, "shift": 42, "alt": 56}


def names() -> list[str]:
    """Return the names of the keys that have no character of their own."""
    return [*_HELD, *_NAMED]


def chord(text: str) -> list[int]:
    """Return the codes of keys that are pressed together, such as `enter`, `ctrl-x` or `alt-f2`.

    Case does not matter. Raises `LabError` for a key without a name.
    """
    *held, key = text.lower().split("-") if not text.endswith("-") else [*text.lower()[:-1].strip("-").split("-"), "-"]
    held = [name for name in held if name]
    code = _NAMED.get(key, _CHARACTERS.get(key, _HELD.get(key)))
    if code is None or not set(held) <= _HELD.keys():
        raise LabError(
            f"{text!r} is not a key: name a letter, a digit or one of {', '.join(names())}, or several such as ctrl-x"
        )
    return [*(_HELD[name] for name in held), code]


def key_codes(text: str) -> Iterator[list[int]]:
    """Yield the codes for each character of the text; `LabError` for one that a US keyboard does not have.

    The error comes before any is yielded. A new line is the Enter key, a tab the Tab key.
    """
    found = []
    for character in text:
        plain = _SHIFTED.get(character, character.lower() if character.isascii() else character)
        code = {"\n": 28, "\t": 15}.get(plain, _CHARACTERS.get(plain))
        if code is None:
            raise LabError(f"{character!r} cannot be typed: a US keyboard has no key for it")
        found.append([_HELD["shift"], code] if plain != character else [code])
    yield from found
