"""What the annotations of profile and plan mean, and the validation of data against them.

The one reader of those annotations: `schema` (JSON schema), `arguments` (Ansible's options) and `reference` (the page)
are made of what `shape` returns.
"""

from __future__ import annotations

import difflib
import functools
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from .fields import OneOf, Range, TaggedMapping
from .formats import FORMATS, fits
from .problems import Mismatch, Path

MISSING = "is missing:"
"""Start of the remedy for a missing field."""
Kind = Literal["string", "integer", "number", "boolean", "list", "mapping", "record", "tagged", "any"]
_SCALARS: dict[Any, Kind] = {str: "string", int: "integer", float: "number", bool: "boolean", Any: "any"}
_PYTHON: dict[Kind, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "list": list,
    "mapping": Mapping,
    "record": Mapping,
    "tagged": Mapping,
}
_MEANINGS: dict[Kind, str] = {"list": "a list", "mapping": "a mapping", "record": "a mapping", "tagged": "a mapping",
                              "integer": "an integer", "number": "a number", "boolean": "true or false", "any": "anything"}  # fmt: skip


class Shape(NamedTuple):
    """What an annotation allows.

    null: null too. format: of a string. digits: an integer too, where a string is meant (a duration). least, most: of
    an integer. choices: the only values. items: annotation of the values of a list or mapping, or of the words that may
    stand there instead of a string. keys: of a mapping's keys. record: the TypedDict with the fields, also of what may stand there
    instead of a name. tagged: which fields there are depends on one of them.
    """

    kind: Kind
    null: bool = False
    format: str = "line"
    digits: bool = False
    least: int | None = None
    most: int | None = None
    choices: Collection[Any] = ()
    items: Any = None
    keys: Any = None
    record: Any = None
    tagged: TaggedMapping | None = None

    def meaning(self) -> str:
        """Return what a value must be, to follow "must be".

        As a part of a sentence for messages: "an integer from 1 to 100", "one of sno, ha".
        """
        if self.choices:
            names = [str(choice) for choice in self.choices]
            return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
        if self.kind == "string":
            return "a name or a mapping" if self.record else FORMATS[self.format].meaning
        if self.least is not None:
            return f"an integer from {self.least} to {self.most}"
        return _MEANINGS[self.kind]


@functools.cache
def shape(wanted: object) -> Shape:
    """Return what the annotation `wanted` allows.

    Annotations are those of `fields`: formats, ranges, tables, TypedDicts, lists, dictionaries, and unions with None.
    Any other one is a KeyError or ValueError: a mistake in the types, not in data.
    """
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return _ruled(shape(parts[0]), parts[1])
    if origin in (Union, types.UnionType):
        others = [part for part in parts if part is not types.NoneType]
        if others == [int, str]:
            return Shape("string", digits=True)  # a duration
        if len(others) == 2 and others[0] is str and get_origin(others[1]) is list:
            return Shape("string", items=get_args(others[1])[0])  # a command
        if len(others) == 2 and others[0] is str and typing.is_typeddict(others[1]):
            return Shape("string", record=others[1])
        (other,) = others
        return shape(other)._replace(null=True)
    if origin is Literal:
        return Shape(_SCALARS[type(parts[0])], choices=parts)
    if origin is list:
        return Shape("list", items=parts[0])
    if origin is dict:
        return Shape("mapping", keys=parts[0], items=parts[1])
    return Shape("record", record=wanted) if typing.is_typeddict(wanted) else Shape(_SCALARS[wanted])


def _ruled(plain: Shape, rule: object) -> Shape:
    if isinstance(rule, Range):
        return plain._replace(least=rule.least, most=rule.most)
    if isinstance(rule, OneOf):
        return plain._replace(choices=rule.table)
    if isinstance(rule, TaggedMapping):
        return plain._replace(kind="tagged", tagged=rule)
    return plain._replace(format=str(rule))


@functools.cache
def fields(record: type) -> dict[str, Any]:
    """Return the annotation of each field of a TypedDict.

    Rules (`Annotated`) are kept, so each value can be given to `shape`. Fields of base classes come first.
    """
    return typing.get_type_hints(record, include_extras=True)


def required_fields(record: type) -> Collection[str]:
    """Return the fields of a TypedDict that may not be missing.

    Fields of base classes are included. Type checkers know no attribute for it.
    """
    found: Collection[str] = record.__required_keys__  # type: ignore[attr-defined]  # of each TypedDict
    return found


def texts(value: object, wanted: object, name: str, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every string of the format `name` at or below `value`, with its path; what is not of the type `wanted` is left out."""
    allowed = shape(wanted)
    if isinstance(value, str) and allowed.kind == "string" and allowed.format == name:
        yield path, value
    elif isinstance(value, Mapping) and allowed.kind in ("record", "mapping"):
        known = fields(allowed.record) if allowed.kind == "record" else dict.fromkeys(value, allowed.items)
        for key, item in value.items():
            if key in known:
                yield from texts(item, known[key], name, (*path, key))
    elif isinstance(value, list) and allowed.kind == "list":
        for index, item in enumerate(value):
            yield from texts(item, allowed.items, name, (*path, index))


def mismatches(value: object, wanted: object, path: Path = ()) -> Iterator[Mismatch]:
    """Yield every field at or below `value` that is not of the type `wanted`.

    `path` is that of `value` itself, before each path that is yielded. Nothing is raised: a caller reports all of them
    at once.
    """
    allowed = shape(wanted)
    if allowed.kind == "any" or (value is None and allowed.null):
        return
    if allowed.choices:
        if not any(value == choice and type(value) is type(choice) for choice in allowed.choices):
            yield _choice(value, [str(choice) for choice in allowed.choices], path)
        return
    if not _is_kind(value, allowed):
        yield Mismatch(path, value, f"must be {_type(allowed)}{', or null' if allowed.null else ''}")
    elif isinstance(value, str):
        if not fits(allowed.format, value):
            yield Mismatch(path, value, f"must be {allowed.meaning()}")
    elif isinstance(value, int):
        if allowed.least is not None and allowed.most is not None and not allowed.least <= value <= allowed.most:
            yield Mismatch(path, value, f"must be from {allowed.least} to {allowed.most}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from mismatches(item, allowed.items, (*path, index))
    elif isinstance(value, Mapping):
        if allowed.kind == "mapping":
            yield from _of_mapping(value, allowed, path)
        elif allowed.tagged:
            yield from _of_tagged(value, allowed.tagged, path)
        else:
            yield from _of_record(value, fields(allowed.record), required_fields(allowed.record), path)


def _is_kind(value: object, allowed: Shape) -> bool:
    if allowed.kind == "string":
        if isinstance(value, list):
            return allowed.items is not None and bool(value)
        if isinstance(value, Mapping):
            return allowed.record is not None
        return isinstance(value, str) or (
            allowed.digits and isinstance(value, int) and not isinstance(value, bool) and value >= 0
        )
    return isinstance(value, _PYTHON[allowed.kind]) and isinstance(value, bool) is (allowed.kind == "boolean")


def _type(allowed: Shape) -> str:
    return _MEANINGS.get(allowed.kind) or allowed.meaning()


def _of_mapping(value: Mapping[object, object], allowed: Shape, path: Path) -> Iterator[Mismatch]:
    keys = shape(allowed.keys)
    for key, item in value.items():
        if keys.choices and key not in keys.choices:
            yield _unknown(key, list(keys.choices), path)
        elif not isinstance(key, str) or not key.isprintable():
            yield Mismatch((*path, key), None, "the name of a field is one line of printable characters")
        elif keys.format != "line" and not fits(keys.format, key):
            yield Mismatch((*path, key), None, f"must be {keys.meaning()}")
        else:
            yield from mismatches(item, allowed.items, (*path, key))


def _of_record(
    value: Mapping[object, object], known: Mapping[str, object], needed: Collection[str], path: Path
) -> Iterator[Mismatch]:
    for key in value:
        if key not in known:
            yield _unknown(key, list(known), path)
    for name, wanted in known.items():
        if name in value:
            yield from mismatches(value[name], wanted, (*path, name))
        elif name in needed:
            allowed = shape(wanted)
            yield Mismatch(
                (*path, name), None, f"{MISSING} must be {allowed.meaning()}{', or null' if allowed.null else ''}"
            )


def _of_tagged(value: Mapping[object, object], tagged: TaggedMapping, path: Path) -> Iterator[Mismatch]:
    kind = value.get(tagged.key)
    if tagged.key not in value:
        yield Mismatch((*path, tagged.key), None, f"{MISSING} must be one of {', '.join(tagged.kinds)}")
    elif not isinstance(kind, str) or kind not in tagged.kinds:
        yield _choice(kind, list(tagged.kinds), (*path, tagged.key))
    else:
        known, needed = tagged.record(kind)
        yield from _of_record(value, {tagged.key: str, **known}, needed, path)


def _unknown(key: object, known: list[str], path: Path) -> Mismatch:
    lower = {name.lower(): name for name in known}
    near = [lower[name] for name in difflib.get_close_matches(str(key).lower(), lower, n=1, cutoff=0.5)]
    if near:
        return Mismatch((*path, key), None, f"unknown field; did you mean `{near[0]}`?", (*path, near[0]))
    return Mismatch((*path, key), None, f"unknown field; there are {', '.join(f'`{name}`' for name in sorted(known))}")


def _choice(value: object, choices: list[str], path: Path) -> Mismatch:
    near = difflib.get_close_matches(value.lower(), choices, n=1) if isinstance(value, str) else []
    hint = f"did you mean {near[0]}? " if near else ""
    wanted = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    return Mismatch(path, value, f"{hint}must be {wanted}", choice=near[0] if near else None)
