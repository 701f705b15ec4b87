"""Bounded reading of JSON with the standard library alone: the part of `documents` that also runs without the collection.

The bundle of the node agent carries this module.
"""

from __future__ import annotations

import json
import json.scanner
import re
from typing import Any, NamedTuple, NoReturn


class DocumentError(ValueError):
    """An invalid document: `problem`, in `name`, at `line` and `column`, both from 1.

    The message is `NAME:LINE:COLUMN: PROBLEM`.
    """

    def __init__(self, name: str, line: int, column: int, problem: str) -> None:
        super().__init__(f"{name}:{line}:{column}: {problem}")
        self.name, self.line, self.column, self.problem = name, line, column, problem


class Limits(NamedTuple):
    """Limits of a document: bytes, values (an alias counts as all that it refers to), levels of nesting.

    `_replace` makes others; a document that exceeds one is a `DocumentError`.
    """

    size: int = 32 << 20
    nodes: int = 1_000_000
    depth: int = 100


LIMITS = Limits()
"""Limits that suffice for every document of this project."""


def place(text: str, at: int) -> tuple[int, int]:
    """Return line and column of a character, both from 1.

    at: index of the character in the text.
    """
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def decode_text(data: bytes | str, *, name: str, limits: Limits = LIMITS) -> str:
    """Return a document's text, which is UTF-8. Raises `DocumentError`.

    A byte order mark is dropped. data that is text is only compared with the limit, in characters.
    """
    if len(data) > limits.size:
        raise DocumentError(name, 1, 1, f"is longer than {limits.size} bytes")
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        problem = _OCTETS.get(error.reason, _OCTETS["invalid start byte"])
        raise DocumentError(name, *place(before, len(before)), problem) from None


_OCTETS = {
    "invalid start byte": "invalid leading UTF-8 octet",
    "invalid continuation byte": "invalid trailing UTF-8 octet",
    "unexpected end of data": "incomplete UTF-8 octet sequence",
}

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.S
)
_PIECE = 1 << 20
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# Tokens that add a value, or none: a whole string, an empty list or mapping.
_VALUE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{][ \t\r\n]*[\]}]|[,\[{]', re.S)


def load_json(data: bytes | str, *, name: str, limits: Limits = LIMITS) -> Any:
    """Return the JSON value in `data`. As in Go, the last of equal keys counts, and half a surrogate pair becomes U+FFFD.

    Raises `DocumentError`.
    """
    return _decode(_DECODER, decode_text(data, name=name, limits=limits), name, limits)


def _decode(decoder: json.JSONDecoder, text: str, name: str, limits: Limits) -> Any:
    if "\\u" in text and any(_SURROGATE.search(text, at, at + _PIECE + 2) for at in range(0, len(text), _PIECE)):
        text = _ESCAPE.sub(lambda match: "\\ufffd" if match[0][1] == "u" and len(match[0]) == 6 else match[0], text)
    if _dense(text) > limits.nodes and _values(text, limits.nodes) > limits.nodes:
        raise DocumentError(name, 1, 1, f"has more than {limits.nodes} values")
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise _too_deep(name, limits) from None
    except json.JSONDecodeError as error:
        problem = "unexpected end of JSON input" if error.pos >= len(text.rstrip()) else error.msg
        raise DocumentError(name, error.lineno, error.colno, problem) from None
    except _NumberError as error:
        at = max(text.find(error.literal), 0)
        raise DocumentError(name, *place(text, at), str(error)) from None
    except ValueError:  # the interpreter's limit of digits
        raise DocumentError(name, 1, 1, "a number has too many digits") from None
    if _count(text, "[{") > limits.depth and _deeper(value, limits.depth):
        raise _too_deep(name, limits)
    return value


def _dense(text: str) -> int:
    """Return the maximum number of values in `text`: it also counts the content of strings."""
    return _count(text, ",[{") + 1


def _count(text: str, characters: str) -> int:
    if len(text) <= _PIECE:
        return sum(map(text.count, characters))
    # In pieces, between which other threads may run.
    return sum(text.count(one, at, at + _PIECE) for at in range(0, len(text), _PIECE) for one in characters)


def _values(text: str, most: int) -> int:
    count = 1
    for match in _VALUE.finditer(text):
        count += match.end() - match.start() == 1
        if count > most:
            break
    return count


def _deeper(value: object, depth: int) -> bool:
    """Return whether lists and mappings are nested deeper than `depth` levels."""
    level = [value] if isinstance(value, (dict, list)) else []
    for __ in range(depth):
        if not level:
            return False
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, (dict, list))
        ]
    return bool(level)


def _too_deep(name: str, limits: Limits) -> DocumentError:
    return DocumentError(name, 1, 1, f"exceeded max depth of {limits.depth}")


class _NumberError(Exception):
    def __init__(self, literal: str, text: str) -> None:
        super().__init__(text)
        self.literal = literal


def _float(literal: str) -> float:
    value = float(literal)
    if value in (float("inf"), float("-inf")):
        raise _NumberError(literal, f"cannot unmarshal number {literal[:40]} into Go value of type float64")
    return value


def _no_number(literal: str) -> NoReturn:
    raise _NumberError(literal, f"invalid character '{literal.lstrip('-')[0]}' looking for beginning of value")


class _InPython(json.JSONDecoder):
    """Decodes in Python, which lets other threads run; also strings in Python if there are many escapes."""

    def __init__(self, escapes: int) -> None:
        super().__init__(parse_float=_float, parse_constant=_no_number)
        if escapes > _ESCAPES:
            self.parse_string = json.decoder.py_scanstring  # type: ignore[attr-defined]
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


_DECODER = json.JSONDecoder(parse_float=_float, parse_constant=_no_number)
# Nanoseconds: at most 1 a byte, 400 a value, 30 an escape.
_COST = 30e6
_ESCAPES = 500_000


def is_quick(text: str) -> bool:
    """Return whether `text` is certainly decoded within 30 ms.

    It is an estimate from above: its length, commas, brackets and escapes count.
    """
    return len(text) <= _PIECE and _cost(text) <= _COST


def load_json_in_steps(text: str, *, name: str, limits: Limits) -> Any:
    """Return the JSON value in `text`, as `load_json`, for a thread: other threads run meanwhile, for any text.

    text: as `decode_text` returns it. Raises `DocumentError`.
    """
    # json's own scanner would hold the GIL until the end.
    return _decode(_DECODER if _cost(text) <= _COST else _InPython(_count(text, "\\")), text, name, limits)


def _cost(text: str) -> int:
    return len(text) + 400 * _dense(text) + 30 * _count(text, "\\")
