"""The reader behind `documents`: YAML composed from libyaml's events, without recursion.

PyYAML's own composer recurses in C, its constructor flattens merge keys by copying and reads base-60 numbers in
quadratic time. Events avoid this: libyaml emits them in linear time, at any nesting.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from ._deps import optional
from .bounded import DocumentError, Limits, place

if TYPE_CHECKING:
    import yaml
else:
    yaml = optional("yaml", "PyYAML")

Path = tuple[Any, ...]


class Schema(NamedTuple):
    """How plain scalars are read. scalar: text to value; merge: whether `<<` merges mappings; plain_keys: keys are as written."""

    scalar: Callable[[str], Any]
    merge: bool
    plain_keys: bool = False


class DuplicateKey(NamedTuple):
    """A duplicate key of a mapping; only the first ones are recorded.

    path: keys and indices from the top to it, itself last; line and column are from 1.
    """

    path: Path
    line: int
    column: int


class Positions:
    """Positions of a document's fields.

    They are of one document, without its values; those that were read without positions have none.
    """

    def __init__(self, root: Any) -> None:
        self._root = root

    def get(self, path: Path, default: Any = None) -> Any:
        """Return line and column, both from 1, of the key or list item at `path`, or `default` when there is none.

        path: keys and indices from the top. The root itself, with the path (), has one, too.
        """
        mark: Any
        inner: Any
        mark, inner = self._root or (None, None)
        for part in path:
            try:
                found = inner[part]
            except (KeyError, IndexError, TypeError):
                return default
            mark, inner = found if isinstance(found, tuple) else (found, None)
        return (mark.line + 1, mark.column + 1) if mark else default

    def raised(self, key: str) -> Positions:
        """Return the positions after moving the fields of the mapping at `key` to the top.

        Use it with a value that was changed in the same way. Without such a mapping only the key itself is left out.
        """
        if not self._root or not isinstance(self._root[1], dict):
            return self
        mark, inner = self._root
        found = inner.get(key)
        moved = found[1] if isinstance(found, tuple) and isinstance(found[1], dict) else {}
        return Positions((mark, {**{name: at for name, at in inner.items() if name != key}, **moved}))


class Document(NamedTuple):
    """One document: its value, its start, positions of its fields, and duplicate keys (the last one counts).

    line and column are from 1. A document that has only a comment is left out by the reader.
    """

    value: Any
    line: int
    column: int
    positions: Positions
    twice: list[DuplicateKey]


# ---------------------------------------------------------------------------------------------------------- scalars

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMERIC = frozenset("+-.0123456789")
_GO_INTEGER = re.compile(r"[-+]?(?:0b[01]+|0[xX][0-9a-fA-F]+|0o?[0-7]+|0|[1-9][0-9]*)")
_GO_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DIGITS = 70  # 64 bits in base 2, with sign and prefix


def _go_scalar(text: str) -> Any:
    """YAML 1.1 as Go's yaml.v2 reads it for JSON: no dates, no base 60, and no integers of more than 64 bits."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    plain = text.replace("_", "")
    if len(plain) <= _DIGITS and _GO_INTEGER.fullmatch(plain):
        digits = plain.lstrip("+-")
        base = {"0b": 2, "0x": 16, "0X": 16, "0o": 8}.get(digits[:2], 8 if digits[0] == "0" else 10)
        number = int(digits.removeprefix("0o"), base) * (-1 if plain[0] == "-" else 1)
        if -(1 << 63) <= number < 1 << 64:
            return number
    if _GO_FLOAT.fullmatch(plain):
        value = float(plain)
        if value not in (float("inf"), float("-inf")):
            return value
    return text


_NMSTATE_WORDS: dict[str, Any] = {
    **{word: _WORDS[word] for word in ("true", "True", "TRUE", "false", "False", "FALSE")},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_NMSTATE_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+")
_NMSTATE_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?")


def _nmstate_scalar(text: str) -> Any:
    """YAML 1.2, as nmstate reads it: `no` is text, `010` is ten."""
    if text in _NMSTATE_WORDS:
        return _NMSTATE_WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if len(text) <= _DIGITS and _NMSTATE_INTEGER.fullmatch(text):
        return int(text, 16 if text.startswith("0x") else 10)
    return float(text) if _NMSTATE_FLOAT.fullmatch(text) else text


GO = Schema(_go_scalar, merge=True)
"""YAML 1.1 as sigs.k8s.io/yaml reads it: the result is JSON, with string keys."""

NMSTATE = Schema(_nmstate_scalar, merge=False)
"""YAML 1.2 as nmstate reads it."""

PROFILE = Schema(_go_scalar, merge=True, plain_keys=True)
"""As `GO`, but the key `on` is not the key `true`."""

# --------------------------------------------------------------------------------------------------------- composing

_TAG = "tag:yaml.org,2002:"
_OF_MAPPINGS = ("!", f"{_TAG}map", f"{_TAG}set", f"{_TAG}omap")
_OF_LISTS = ("!", f"{_TAG}seq", f"{_TAG}omap", f"{_TAG}pairs")
_NO_KEY = object()
_OPEN = object()
_MERGE = object()
# libyaml compares each with all previous ones.
_DIRECTIVES = 64
_MOST_TWICE = 20
# Go's yaml: up to the first number of values nearly all may come from aliases, from the second on a tenth.
_ALIAS_LOW, _ALIAS_HIGH = 400_000, 4_000_000


class _Mark(Protocol):
    """A position in the text, from 0: libyaml's reader and the one in Python have a type each."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class _Frame:
    """An incomplete list or mapping."""

    __slots__ = ("anchor", "before", "height", "inner", "key", "key_mark", "mark", "merged", "value")

    def __init__(self, value: Any, inner: Any, mark: Any, anchor: str | None, before: int) -> None:
        self.value, self.inner, self.mark, self.anchor, self.before = value, inner, mark, anchor, before
        self.height, self.key, self.key_mark = 1, _NO_KEY, mark
        self.merged: list[tuple[dict[str, Any], Any]] = []


class Composer:
    """Constructs the values of one stream. Raises `DocumentError`.

    name: of the stream in messages; text: all of it; positions: False makes `Positions` empty, and reading faster. Use
    one for one text.
    """

    def __init__(self, name: str, text: str, schema: Schema, limits: Limits, *, positions: bool) -> None:
        self._name, self._text, self._schema, self._limits, self._positions = name, text, schema, limits, positions
        self._nodes = self._aliased = 0
        self._anchors: dict[str, Any] = {}
        self._stack: list[_Frame] = []
        self._twice: list[DuplicateKey] = []

    def documents(self) -> list[Document]:
        """Return all documents that are not empty.

        Each document has anchors of its own; the limits hold for all together.
        """
        if self._text.startswith("%") + self._text.count("\n%") > _DIRECTIVES:
            raise DocumentError(self._name, 1, 1, f"has more than {_DIRECTIVES} directives")
        try:
            source = (getattr(yaml, "CSafeLoader", None) or yaml.SafeLoader)(self._text)
            try:
                return self._read(source.get_event)
            finally:
                source.dispose()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._fail(mark, error.problem or error.context or "not valid YAML")
        except yaml.reader.ReaderError as error:
            before = self._text.encode("utf-8", "replace")[: error.position].decode("utf-8", "replace")
            raise DocumentError(self._name, *place(before, len(before)), error.reason) from None
        except UnicodeEncodeError as error:
            raise DocumentError(
                self._name, *place(self._text, error.start), "control characters are not allowed"
            ) from None

    def _fail(self, mark: _Mark | None, problem: str) -> NoReturn:
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise DocumentError(self._name, line, column, problem) from None

    def _read(self, get_event: Callable[[], Any]) -> list[Document]:
        found: list[Document] = []
        scalar_event, alias_event = yaml.ScalarEvent, yaml.AliasEvent
        mapping_event, list_event = yaml.MappingStartEvent, yaml.SequenceStartEvent
        ends = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
        stack, most = self._stack, self._limits.nodes
        while (event := get_event()) is not None:
            kind = type(event)
            mark = event.start_mark
            if kind is scalar_event:
                self._nodes += 1
                value, inner, height = self._scalar(event), None, 0
                if event.anchor is not None:
                    self._anchors[event.anchor] = ("<<" if value is _MERGE else value, None, 1, 0)
            elif kind is mapping_event or kind is list_event:
                self._nodes += 1
                self._open(event, kind is mapping_event)
                continue
            elif kind in ends:
                frame = stack.pop()
                value, inner, height, mark = frame.value, frame.inner, frame.height, frame.mark
                if frame.merged:
                    value, inner = _merged(frame)
                if frame.anchor is not None:
                    self._anchors[frame.anchor] = (value, inner, self._nodes - frame.before, height)
            elif kind is alias_event:
                value, inner, height = self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                self._anchors, self._twice = {}, []
                continue
            else:
                continue
            if self._nodes > most:
                self._fail(mark, f"has more than {most} values")
            if stack:
                self._add(value, inner, height, mark)
            elif value is not None:
                positions = Positions((mark, inner) if self._positions else None)
                found.append(Document(value, mark.line + 1, mark.column + 1, positions, self._twice))
        return found

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, mapping: bool) -> None:
        mark, depth = event.start_mark, self._limits.depth
        if len(self._stack) >= depth:
            self._fail(mark, f"exceeded max depth of {depth}")
        if event.tag is not None and event.tag not in (_OF_MAPPINGS if mapping else _OF_LISTS):
            self._fail(mark, f"unknown tag {event.tag}")
        if self._stack and self._stack[-1].key is _NO_KEY and isinstance(self._stack[-1].value, dict):
            self._fail(mark, f"invalid map key: a {'mapping' if mapping else 'list'}; a key is a string")
        if event.anchor is not None:
            self._anchors[event.anchor] = _OPEN
        value: Any = {} if mapping else []
        inner: Any = ({} if mapping else []) if self._positions else None
        self._stack.append(_Frame(value, inner, mark, event.anchor, self._nodes - 1))

    def _alias(self, event: Any) -> tuple[Any, Any, int]:
        name, mark = event.anchor, event.start_mark
        found = self._anchors.get(name)
        if found is None:
            self._fail(mark, f"unknown anchor '{name[:80]}' referenced")
        if found is _OPEN:
            self._fail(mark, f"anchor '{name[:80]}' value contains itself")
        value, inner, size, height = found
        if len(self._stack) + height > self._limits.depth:
            self._fail(mark, f"exceeded max depth of {self._limits.depth}")
        self._nodes += size
        self._aliased += size
        if self._aliased > 100 and self._nodes > 1000 and self._aliased / self._nodes > _allowed(self._nodes):
            self._fail(mark, "document contains excessive aliasing")
        return value, inner, height

    def _add(self, value: Any, inner: Any, height: int, mark: Any) -> None:
        """Add a value to the enclosing list or mapping."""
        frame = self._stack[-1]
        if height >= frame.height:
            frame.height = height + 1
        at = mark if inner is None else (mark, inner)
        if isinstance(frame.value, list):
            frame.value.append(value)
            if frame.inner is not None:
                frame.inner.append(at)
            return
        if frame.key is _NO_KEY:
            frame.key, frame.key_mark = self._key(value, mark), mark
            return
        key, frame.key = frame.key, _NO_KEY
        if key is _MERGE:
            sources = value if isinstance(value, list) else [value]
            inners = inner if isinstance(value, list) and inner else [inner] * len(sources)
            if not all(isinstance(source, dict) for source in sources):
                self._fail(mark, "map merge requires map or sequence of maps as the value")
            if frame.merged:
                self._repeated(frame, "<<")
            # Positions of a list's items have the item's own mark with them.
            frame.merged += [
                (source, found[1] if isinstance(found, tuple) else found)
                for source, found in zip(sources, inners, strict=True)
            ]
            return
        if key in frame.value:
            self._repeated(frame, key)
        frame.value[key] = value
        if frame.inner is not None:
            frame.inner[key] = frame.key_mark if inner is None else (frame.key_mark, inner)

    def _repeated(self, frame: _Frame, key: object) -> None:
        if len(self._twice) >= _MOST_TWICE:
            return
        # The frame itself has no key anymore; the enclosing ones have the key that leads here.
        way: list[Any] = [len(one.value) if isinstance(one.value, list) else one.key for one in self._stack[:-1]]
        self._twice.append(DuplicateKey((*way, key), frame.key_mark.line + 1, frame.key_mark.column + 1))

    def _key(self, value: object, mark: _Mark) -> Any:
        kind = type(value)
        if kind is str or value is _MERGE:
            return value
        if kind is bool:
            return "true" if value else "false"
        if kind is int:
            return str(value)
        if kind is float:
            return f"{value:g}"
        shown = "null" if value is None else "a list" if kind is list else "a mapping"
        return self._fail(mark, f"invalid map key: {shown}; a key is a string")

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        tag, text = event.tag, event.value
        if tag is None:
            if not event.implicit[0]:
                return text
            if text == "<<" and self._schema.merge and self._at_key():
                return _MERGE
            if self._schema.plain_keys and self._at_key():
                return text
            return self._schema.scalar(text)
        if tag in ("!", f"{_TAG}str", f"{_TAG}timestamp"):
            return text
        if tag == f"{_TAG}merge" and self._schema.merge and self._at_key():
            return _MERGE
        if tag == f"{_TAG}binary":
            return self._binary(event)
        value = self._schema.scalar(text)
        wanted = _TAGGED.get(tag)
        if wanted is None:
            self._fail(event.start_mark, f"unknown tag {tag}")
        if type(value) not in wanted:
            self._fail(event.start_mark, f"cannot decode `{text[:80]}` as a {tag.replace(_TAG, '!!')}")
        return float(value) if wanted is _TAGGED[f"{_TAG}float"] else value

    def _at_key(self) -> bool:
        return bool(self._stack) and self._stack[-1].key is _NO_KEY and isinstance(self._stack[-1].value, dict)

    def _binary(self, event: yaml.ScalarEvent) -> str:
        try:
            return base64.b64decode("".join(event.value.split()), validate=True).decode()
        except (binascii.Error, ValueError):
            return self._fail(event.start_mark, "!!binary value contains invalid base64 data")


_TAGGED: dict[str, tuple[type, ...]] = {
    f"{_TAG}int": (int,),
    f"{_TAG}float": (float, int),
    f"{_TAG}bool": (bool,),
    f"{_TAG}null": (type(None),),
}


def _merged(frame: _Frame) -> tuple[dict[str, Any], Any]:
    """Return a mapping with the ones that it merges below it: its own keys win, then the first of a list."""
    value: dict[str, Any] = {}
    inner: dict[str, Any] | None = {} if frame.inner is not None else None
    for source, found in reversed(frame.merged):
        value |= source
        if inner is not None and isinstance(found, dict):
            inner |= found
    value |= frame.value
    return value, inner if inner is None else inner | frame.inner


def _allowed(nodes: int) -> float:
    """Return the ratio of values that may come from aliases in a document with `count` values (Go's yaml: allowedAliasRatio)."""
    if nodes <= _ALIAS_LOW:
        return 0.99
    if nodes >= _ALIAS_HIGH:
        return 0.10
    return 0.99 - 0.89 * (nodes - _ALIAS_LOW) / (_ALIAS_HIGH - _ALIAS_LOW)
