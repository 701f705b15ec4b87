"""The only reader for external YAML and JSON: profiles, plans, states, manifests, configurations, replies.

Every reader is bounded in size, depth and number of values, aliases counted as often as they are used, so that no
document can crash the interpreter, exhaust the memory or take more than linear time. Errors are
`DocumentError` with name, line and column, with the messages of Go's yaml and encoding/json if there are any.

Event loops use `off_loop`, which blocks them for less than 50 ms with any document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from . import _yaml
from ._yaml import GO, NMSTATE, PROFILE, Document, DuplicateKey, Positions, Schema
from .bounded import LIMITS, DocumentError, Limits, decode_text, is_quick, load_json, load_json_in_steps

__all__ = [
    "GO",
    "LIMITS",
    "NMSTATE",
    "PROFILE",
    "Document",
    "DocumentError",
    "DuplicateKey",
    "Limits",
    "Positions",
    "Schema",
    "decode_text",
    "load_json",
    "load_yaml",
    "load_yaml_all",
    "off_loop",
    "read_file",
    "read_reply",
    "read_yaml",
    "read_yaml_all",
]  # fmt: skip

T = TypeVar("T")


def load_yaml(data: bytes | str, *, name: str, schema: Schema = GO, limits: Limits = LIMITS) -> Any:
    """Return the single YAML document in `data`; None if it is empty.

    name: the document's name in messages, such as its path. Raises `DocumentError`.
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

    twice: return duplicate keys instead of raising an error for them.
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
    text = decode_text(data, name=name, limits=limits)
    found = _yaml.Composer(name, text, schema, limits, positions=positions).documents()
    if not twice:
        for document in found:
            for key in document.twice:
                raise DocumentError(name, key.line, key.column, f'key "{key.path[-1]}" already set in map')
    return found


class _TextStream(Protocol):
    def iter_content(self, size: int, /) -> Iterable[bytes]: ...


def read_file(path: Path, *, limits: Limits = LIMITS) -> bytes:
    """Return the content of a file, up to one byte more than the limit of a document.

    A reader refuses what is longer, so no file is read in full for that. Raises `OSError`.
    """
    with path.open("rb") as stream:
        return stream.read(limits.size + 1)


def read_reply(answer: _TextStream, *, limits: Limits = LIMITS) -> bytes:
    """Return the body of a streamed response of `requests`, up to a piece more than the limit of a document.

    answer: made with `stream=True`. Raises what `requests` does while it arrives.
    """
    body = bytearray()
    for piece in answer.iter_content(1 << 16):
        body += piece
        if len(body) > limits.size:
            break
    return bytes(body)


# ------------------------------------------------------------------------------------------------------- event loops

# Documents that are read directly take less than 30 ms in the worst case: `[1,1,...` costs 4 us a value.
_YAML_BYTES = 4 << 10
# A string of this size is read in less than 40 ms, in one call that no other thread can interrupt.
_OFF_LOOP_BYTES = 8 << 20
# For more values, Python's garbage collection alone takes 50 ms.
_OFF_LOOP_NODES = 200_000


async def off_loop(
    load: Callable[..., T], data: bytes | str, *, name: str, limits: Limits = LIMITS, **options: object
) -> T:
    """Return `load(data, ...)` without blocking the event loop: larger documents are read in a thread.

    load: a function of this module. Documents of a few kilobytes are read directly; the limits are 8 MiB and
    200,000 values.
    """
    import asyncio  # not in every command line

    limits = limits._replace(size=min(limits.size, _OFF_LOOP_BYTES), nodes=min(limits.nodes, _OFF_LOOP_NODES))
    if load is not load_json:
        if len(data) <= _YAML_BYTES:
            return load(data, name=name, limits=limits, **options)
        return await asyncio.to_thread(load, data, name=name, limits=limits, **options)
    text = decode_text(data, name=name, limits=limits)
    if is_quick(text):
        return load(text, name=name, limits=limits)
    return await asyncio.to_thread(load_json_in_steps, text, name=name, limits=limits)
