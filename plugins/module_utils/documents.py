"""The one way in for YAML and JSON that others wrote: profiles, plans, states, manifests, configurations, replies.

Every reader is bounded in size, depth and number of values, aliases counted as often as they are used, so that no
document can crash the interpreter, fill the memory or take more than linear time. What is wrong comes as
`DocumentError` with name, line and column, in the words of Go's yaml and encoding/json where they have some.

In an event loop documents come through `off_loop`, which holds it for less than 50 ms whatever they are.
"""

from __future__ import annotations

import json
import json.scanner
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from . import _yaml
from ._yaml import GO, NMSTATE, Document, DocumentError, Limits, Positions, Schema, Twice

__all__ = [
    "GO", "LIMITS", "NMSTATE", "Document", "DocumentError", "Limits", "Positions", "Schema", "Twice",
    "decoded", "load_json", "load_yaml", "load_yaml_all", "off_loop", "read_file", "read_reply", "read_yaml", "read_yaml_all",
]  # fmt: skip

LIMITS = Limits()
"""What is enough for every document of this project."""

T = TypeVar("T")


def load_yaml(data: bytes | str, *, name: str, schema: Schema = GO, limits: Limits = LIMITS) -> Any:
    """Return the one YAML document in `data`; None when it is empty.

    name: what messages call the document, a file's path where there is one. Raises `DocumentError`.
    """
    return read_yaml(data, name=name, schema=schema, limits=limits, positions=False).value


def load_yaml_all(data: bytes | str, *, name: str, schema: Schema = GO, limits: Limits = LIMITS) -> list[Any]:
    """Return all YAML documents in `data` that are not empty; as `load_yaml`."""
    found = read_yaml_all(data, name=name, schema=schema, limits=limits, positions=False)
    return [document.value for document in found]


def read_yaml(
    data: bytes | str,
    *,
    name: str,
    schema: Schema = GO,
    limits: Limits = LIMITS,
    positions: bool = True,
    twice: bool = False,
) -> Document:
    """Return the one YAML document in `data`, with the position of each field; as `load_yaml`.

    twice: keys that stand twice in a mapping are no error but in the result.
    """
    found = read_yaml_all(data, name=name, schema=schema, limits=limits, positions=positions, twice=twice)
    if len(found) > 1:
        raise DocumentError(name, found[1].line, found[1].column, "expected one document, found another")
    return found[0] if found else Document(None, 1, 1, Positions(None), [])


def read_yaml_all(
    data: bytes | str,
    *,
    name: str,
    schema: Schema = GO,
    limits: Limits = LIMITS,
    positions: bool = True,
    twice: bool = False,
) -> list[Document]:
    """Return all YAML documents in `data` that are not empty; as `read_yaml`."""
    text = decoded(data, name=name, limits=limits)
    found = _yaml.Composer(name, text, schema, limits, positions=positions).documents()
    if not twice:
        for document in found:
            for key in document.twice:
                raise DocumentError(name, key.line, key.column, f'key "{key.path[-1]}" already set in map')
    return found


def decoded(data: bytes | str, *, name: str, limits: Limits = LIMITS) -> str:
    """Return a document's text, which is UTF-8. Raises `DocumentError`."""
    if len(data) > limits.size:
        raise DocumentError(name, 1, 1, f"is longer than {limits.size} bytes")
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        problem = _OCTETS.get(error.reason, _OCTETS["invalid start byte"])
        raise DocumentError(name, *_yaml.place(before, len(before)), problem) from None


def read_file(path: Path, *, limits: Limits = LIMITS) -> bytes:
    """Return what stands in a file, up to one byte more than a document may have."""
    with path.open("rb") as stream:
        return stream.read(limits.size + 1)


def read_reply(answer: Any, *, limits: Limits = LIMITS) -> bytes:
    """Return the body of a response of `requests` that was asked for as a stream, up to a piece more than a document may have."""
    body = bytearray()
    for piece in answer.iter_content(1 << 16):
        body += piece
        if len(body) > limits.size:
            break
    return bytes(body)


_OCTETS = {
    "invalid start byte": "invalid leading UTF-8 octet",
    "invalid continuation byte": "invalid trailing UTF-8 octet",
    "unexpected end of data": "incomplete UTF-8 octet sequence",
}


# ------------------------------------------------------------------------------------------------------------- JSON

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.S
)
_PIECE = 1 << 20
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# What has one value more, or takes none: a string as a whole, an empty list or mapping.
_VALUE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{][ \t\r\n]*[\]}]|[,\[{]', re.S)


def load_json(data: bytes | str, *, name: str, limits: Limits = LIMITS) -> Any:
    """Return the JSON value in `data`. As in Go, the last of equal keys counts, and half a surrogate pair becomes U+FFFD.

    Raises `DocumentError`.
    """
    return _decode(_DECODER, decoded(data, name=name, limits=limits), name, limits)


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
        raise DocumentError(name, *_yaml.place(text, at), str(error)) from None
    except ValueError:  # the interpreter's limit of digits
        raise DocumentError(name, 1, 1, "a number has too many digits") from None
    if _count(text, "[{") > limits.depth and _deeper(value, limits.depth):
        raise _too_deep(name, limits)
    return value


def _dense(text: str) -> int:
    """Return the most values that can be in `text`: too many by what strings contain."""
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


def _deeper(value: Any, depth: int) -> bool:
    """Return whether lists and mappings are nested in more than `depth` levels."""
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
    """Reads in Python, which lets other threads run meanwhile; strings in Python, too, when there are many escapes."""

    def __init__(self, escapes: int) -> None:
        super().__init__(parse_float=_float, parse_constant=_no_number)
        if escapes > _ESCAPES:
            self.parse_string = json.decoder.py_scanstring  # type: ignore[attr-defined]
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


_DECODER = json.JSONDecoder(parse_float=_float, parse_constant=_no_number)

# ------------------------------------------------------------------------------------------------------- event loops

# What is read at once takes less than 30 ms at its worst: `[1,1,...` costs 4 us a value.
_YAML_BYTES = 4 << 10
# One string of so many bytes is read in less than 40 ms, in one call that no other thread can interrupt.
_OFF_LOOP_BYTES = 8 << 20
# Of more, Python's garbage collection alone takes 50 ms.
_OFF_LOOP_NODES = 200_000
# Nanoseconds: at most 1 a byte, 200 a value, 30 an escape.
_JSON_COST = 30e6
_ESCAPES = 500_000


async def off_loop(
    load: Callable[..., T], data: bytes | str, *, name: str, limits: Limits = LIMITS, **options: Any
) -> T:
    """Return `load(data, ...)` without holding the event loop: what takes longer is read in a thread.

    load: a function of this module. Documents of a few kilobytes are read at once; the most that is taken is 8 MiB and
    200,000 values.
    """
    import asyncio  # not in every command line

    limits = limits._replace(size=min(limits.size, _OFF_LOOP_BYTES), nodes=min(limits.nodes, _OFF_LOOP_NODES))
    if load is not load_json:
        if len(data) <= _YAML_BYTES:
            return load(data, name=name, limits=limits, **options)
        return await asyncio.to_thread(load, data, name=name, limits=limits, **options)
    text = decoded(data, name=name, limits=limits)
    if len(text) <= _PIECE and 200 * _dense(text) + 30 * text.count("\\") <= _JSON_COST:
        return load(text, name=name, limits=limits)
    return await asyncio.to_thread(_yielding, text, name, limits)


def _yielding(text: str, name: str, limits: Limits) -> Any:
    # json's own scanner would keep the interpreter to itself to the end.
    escapes = _count(text, "\\")
    fast = len(text) + 200 * _dense(text) + 30 * escapes <= _JSON_COST
    return _decode(_DECODER if fast else _InPython(escapes), text, name, limits)
