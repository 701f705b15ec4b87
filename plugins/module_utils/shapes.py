"""Types of a decoded reply: a program of others sends it, so they are compared before anything is used.

A shape is a type, a list of one shape, or a mapping of field names to shapes. A field may be missing or null unless its
name ends with `!`; `"*"` is every other field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Shape: TypeAlias = "type | Sequence[Shape] | Mapping[str, Shape]"

_NAMES: Mapping[type, str] = {
    str: "a string", list: "a list", dict: "a mapping", int: "an integer", float: "a number", bool: "a boolean", type(None): "null",
}  # fmt: skip


class ShapeError(ValueError):
    """A value of another type than the one that is used. The message is `FIELD is a list, not a string`."""


def check(value: object, shape: Shape, where: str) -> None:
    """Raise `ShapeError` unless the value has the shape.

    where: what the value is called in the message, such as `items[0].metadata`.
    """
    kind = shape if isinstance(shape, type) else dict if isinstance(shape, Mapping) else list
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ShapeError(f"{where} is {type_name(value)}, not {_NAMES[kind]}")
    if isinstance(shape, Mapping) and isinstance(value, dict):
        _fields(value, shape, where)
    elif isinstance(shape, Sequence) and isinstance(value, list):
        for index, one in enumerate(value):
            check(one, shape[0], f"{where}[{index}]")


def _fields(value: Mapping[str, object], shape: Mapping[str, Shape], where: str) -> None:
    for field, wanted in shape.items():
        name = field.removesuffix("!")
        if field == "*":
            for other, one in value.items():
                check(one, wanted, f"{where}[{other[:100]!r}]")
        elif value.get(name) is not None or field != name:
            check(value.get(name), wanted, f"{where}.{name}")


def type_name(value: object) -> str:
    """Return the type of a decoded value in words, such as `a list`."""
    return _NAMES.get(type(value), type(value).__name__)
