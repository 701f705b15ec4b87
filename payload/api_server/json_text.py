"""JSON of requests: read within bounds; what is wrong with it in the words of Go's `encoding/json`."""

from __future__ import annotations

from typing import Any

from ...plugins.module_utils.documents import DocumentError, load_json, off_loop
from .aside import QUICK, run_in_thread
from .schema import SHOWN, Invalid

#: Characters that are looked through without a pause.
_PIECE = 1 << 16
#: Error of Python's decoder -> Go's description of the position of an unexpected character.
_PLACES = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
}


def parse_json(raw: bytes | str, end: str = "unexpected end of JSON input") -> Any:
    """Return JSON as the service accepts it: no NaN, bounded in size, values and depth. Raise Invalid with Go's message.

    `end` is the message for truncated input: stream decoders have a different one.
    """
    try:
        return load_json(raw, name="the body")
    except DocumentError as err:
        raise Invalid(_in_words(raw, err, end)) from None


async def read_json(raw: bytes | str, end: str = "unexpected end of JSON input") -> Any:
    """As `parse_json`, for the event loop: what is large is read in a thread.

    A small text (at most QUICK bytes) is read at once, since a thread costs more. Errors are those of `parse_json`.
    """
    if len(raw) <= QUICK:
        return parse_json(raw, end)
    try:
        return await off_loop(load_json, raw, name="the body")
    except DocumentError as err:
        raise Invalid(await run_in_thread(_in_words, raw, err, end)) from None


def _in_words(raw: bytes | str, err: DocumentError, end: str) -> str:
    return _go_syntax(raw.decode(errors="replace") if isinstance(raw, bytes) else raw, err, end)


def _offset(text: str, line: int, column: int) -> int:
    """Where a line's column is. In pieces: others run meanwhile, and there may be a line for each byte."""
    at, left = 0, line - 1
    while left > 0:
        found = text.count("\n", at, at + _PIECE)
        if found < left and at < len(text):
            at, left = at + _PIECE, left - found
            continue
        for __ in range(left):
            at = text.find("\n", at) + 1
        left = 0
    return at + max(column - 1, 0)


def _go_syntax(text: str, err: DocumentError, end: str) -> str:
    rest = text[_offset(text, err.line, err.column) :].lstrip()
    if err.problem.startswith("unexpected end"):
        return end
    if err.problem not in _PLACES or not rest:
        return err.problem[:SHOWN]
    for literal in ("null", "true", "false"):
        if rest[0] == literal[0] and err.problem == "Expecting value":
            good = next(
                (index for index, letter in enumerate(literal) if rest[index : index + 1] != letter), len(literal)
            )
            if not rest[good : good + 1]:
                return end
            return f"invalid character {rest[good]!r} in literal {literal} (expecting {literal[good]!r})"
    return f"invalid character {rest[0]!r} {_PLACES[err.problem]}"
