"""Validation of bodies, parameters and outputs against models, in two passes as in the real service's framework.

First a JSON value is decoded by the model's types: an unknown field, a wrong type or invalid JSON ends it, null counts as absent. Then
constraints are checked, fields by name. Error messages are those of Go's `encoding/json` and go-openapi's `validate`, which users
look up. An absent field of a type without null has its zero value (`""`, 0), so a zero value there violates no constraint.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...plugins.module_utils.addresses import MAC_OR_HYPHENS

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
#: Maximum length of a value in an error message.
SHOWN = 200


class Invalid(ValueError):
    """A value that the API description does not allow; the message names the field and the valid values.

    The HTTP layer returns it as status 400 in the description's `infra_error`. Texts are those of Go's decoder and of
    go-openapi, as far as upstream has one.
    """


def _ip(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return "%" not in value and not (":" in value and "." in value)


#: Parts of the description's patterns that Python's `re` would try in exponentially many ways -> the same texts, in one way.
_IN_ONE_WAY = {
    '(?:[^ \\t\\n\\r"]+)': '(?:[^ \\t\\n\\r"])',
    "(?:[0-9a-fA-F]*:[0-9a-fA-F]*){2,}": "[0-9a-fA-F]*(?::[0-9a-fA-F]*){2,}",
}


def _pattern(regex: str) -> Callable[[str], str]:
    linear = regex
    for slow, quick in _IN_ONE_WAY.items():
        linear = linear.replace(slow, quick)
    found = re.compile(linear.removesuffix("$") + r"\Z" if linear.endswith("$") else linear, re.ASCII)
    return lambda text: "" if found.search(text) else f"should match '{regex}'"


def _format(name: str, test: Callable[[str], object]) -> Callable[[str], str]:
    return lambda text: "" if test(text) else f"must be of type {name}: {quote_text(text)}"


#: String format -> function that returns what is wrong with a string, "" if it is valid.
FORMATS: dict[str, Callable[[str], str]] = {
    "uuid": _format("uuid", UUID.fullmatch),
    "ip": _format("ip", lambda text: text == "" or _ip(text)),
    "mac": _format("mac", MAC_OR_HYPHENS.fullmatch),
    "date-time": _format("date-time", _TIME.fullmatch),
}
#: Formats with a decoding method of their own in Go, whose errors have no field name.
_OWN_DECODER = frozenset({"uuid", "date-time"})
_GO_TYPES = {"integer": "int64", "number": "float64"}
#: A schema of a Swagger 2.0 document.
Node = Mapping[str, Any]


def quote_text(text: str) -> str:
    """Return a string as Go's %q prints it, truncated to SHOWN characters.

    Characters that are not ASCII stay. The quotes are part of the result.
    """
    return json.dumps(text[:SHOWN], ensure_ascii=False)


def go_name(model: str) -> str:
    """Name of a model's type in Go.

    `host-update-params` becomes `HostUpdateParams`, by go-swagger's rule; `x-go-name` overrides it. Messages of the
    decoder name types that way.
    """
    return "".join(part[:1].upper() + part[1:] for part in model.split("-"))


def _json_type(value: object) -> str:
    kinds: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
    return kinds.get(type(value), "number")


@dataclass(frozen=True)
class Location:
    """Location of a value in a body: the root type, and the fields on the path.

    `path` has the names of fields joined by dots, and is empty for the body itself. Elements of a list have no part of
    their own, as in Go's messages.
    """

    root: str
    path: str = ""

    def field(self, name: str) -> Location:
        """Return the location of a field below this one."""
        return Location(self.root, f"{self.path}.{name}" if self.path else name)

    def refuse(self, value: object, go: str) -> Invalid:
        """Return the error for a value of a wrong type, in the words of Go's `encoding/json`; it is not raised.

        `go` is the type that would be right, as Go names it. For numbers the message has the value, shortened.
        """
        where = f"Go struct field {self.root}.{self.path}" if self.path else "Go value"
        number = (
            f" {value}"[:40] if go == "int64" and isinstance(value, int | float) and not isinstance(value, bool) else ""
        )
        return Invalid(f"json: cannot unmarshal {_json_type(value)}{number} into {where} of type {go}")


@dataclass
class Kind:
    """One compiled type. `zero`: its zero value, which violates no constraint if the type has no null.

    `go` is the name of the type in Go, for messages. `decode` raises Invalid and drops null; `wrong` assumes a value
    that was decoded.
    """

    go: str
    #: (value, where, strict) -> value; strict refuses unknown fields.
    decode: Callable[[object, Location, bool], Any]
    #: (value, path, place) -> the first problem, "" if there is none.
    wrong: Callable[[Any, str, str], str]


@dataclass
class Field:
    """A property of an object: its JSON name and what values it takes.

    Only a required field can be missing. An optional field that is not nullable counts as absent with an empty text or
    0, as in Go with `omitempty`.
    """

    name: str
    required: bool
    #: A pointer in Go: its zero value counts as given.
    nullable: bool
    kind: Kind = field(repr=False)


def _string(kind: str, test: Callable[[str], str]) -> Kind:
    def decode(value: object, at: Location, strict: bool) -> Any:
        if not isinstance(value, str):
            raise Location("").refuse(value, "string") if kind in _OWN_DECODER else at.refuse(value, "string")
        return value

    def wrong(value: Any, path: str, place: str) -> str:
        reason = test(value)
        return f"{path} in {place} {reason}" if reason else ""

    return Kind("string", decode, wrong)


def _number(kind: str, low: float | None, high: float | None) -> Kind:
    go = _GO_TYPES[kind]

    def decode(value: object, at: Location, strict: bool) -> Any:
        if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else int | float):
            raise at.refuse(value, go)
        if (kind == "integer" and not -(2**63) <= value < 2**63) or not math.isfinite(value):
            raise at.refuse(value, go)
        return value

    def wrong(value: Any, path: str, place: str) -> str:
        if low is not None and value < low:
            return f"{path} in {place} should be greater than or equal to {low:.0f}"
        if high is not None and value > high:
            return f"{path} in {place} should be less than or equal to {high:.0f}"
        return ""

    return Kind(go, decode, wrong)


def _bool() -> Kind:
    def decode(value: object, at: Location, strict: bool) -> Any:
        if not isinstance(value, bool):
            raise at.refuse(value, "bool")
        return value

    return Kind("bool", decode, lambda value, path, place: "")


def _list(item: Kind) -> Kind:
    go = f"[]*{item.go}" if item.go.startswith("models.") else f"[]{item.go}"

    def decode(value: object, at: Location, strict: bool) -> Any:
        if not isinstance(value, list):
            raise at.refuse(value, go)
        return [item.decode(entry, at, strict) for entry in value if entry is not None]

    def wrong(value: Any, path: str, place: str) -> str:
        found = (item.wrong(entry, f"{path}.{index}", place) for index, entry in enumerate(value))
        return next(filter(None, found), "")

    return Kind(go, decode, wrong)


def _map(item: Kind) -> Kind:
    go = "map[string]interface {}"

    def decode(value: object, at: Location, strict: bool) -> Any:
        if not isinstance(value, dict):
            raise at.refuse(value, go)
        return {key: item.decode(entry, at, strict) for key, entry in value.items()}

    return Kind(go, decode, lambda value, path, place: "")


def _object(name: str, fields: dict[str, Field]) -> Kind:
    go = f"models.{name}"
    ordered = sorted(fields.values(), key=lambda known: known.name)

    def decode(value: object, at: Location, strict: bool) -> Any:
        if not isinstance(value, dict):
            raise at.refuse(value, go)
        found: dict[str, Any] = {}
        for key, entry in value.items():
            known = fields.get(key) or fields.get(key.lower())  # Go's decoder falls back to a case-insensitive match
            if known is None:
                if strict:
                    raise Invalid(f"json: unknown field {quote_text(key)}")
            elif entry is not None:
                found[known.name] = known.kind.decode(entry, at.field(known.name), strict)
        return found

    def wrong(value: Any, path: str, place: str) -> str:
        for known in ordered:
            where = f"{path}.{known.name}" if path else known.name
            entry = value.get(known.name)
            if entry is None or (known.required and not known.nullable and entry == "" and place == "body"):
                if known.required:
                    return f"{where} in {place} is required"
            elif known.nullable or known.required or entry not in ("", 0):
                reason = known.kind.wrong(entry, where, place)
                if reason:
                    return reason
        return ""

    return Kind(go, decode, wrong)


_REF = "#/definitions/"


class Models:
    """Compiled types by their schema, of a Swagger 2.0 document's definitions.

    `x-nullable`: null, and for optional fields the zero value, count as given; false of a required field: an empty one counts as missing.
    `x-go-name`: name of the type in Go, if it is not the definition's.
    """

    def __init__(self, definitions: Mapping[str, Node]) -> None:
        self._definitions = definitions
        self._kinds: dict[str, Kind] = {}

    def named(self, name: str) -> Kind:
        """The type of a definition; KeyError if there is none.

        Compiled once. Definitions must not refer to themselves.
        """
        done = self._kinds.get(name)
        if done is None:
            done = self._kinds[name] = self.compile(self._definitions[name], name)
        return done

    def compile(self, node: Node, name: str = "") -> Kind:
        """The type that a schema describes. `name`: the definition, whose fields messages name.

        Supported are references, objects, lists, numbers with bounds, booleans, and strings with an enumeration,
        format, pattern or length. An object without properties takes any values, anything else is not validated.
        """
        if "$ref" in node:
            return self.named(node["$ref"].removeprefix(_REF))
        kind = node.get("type", "")
        if kind == "object" and "properties" in node:
            required = frozenset(node.get("required", ()))
            fields = {key: self._field(key, entry, key in required) for key, entry in node["properties"].items()}
            return _object(node.get("x-go-name") or go_name(name), fields)
        if kind == "object":
            return _map(_any_kind())
        if kind == "array":
            return _list(self.compile(node["items"]))
        if kind in ("integer", "number"):
            return _number(kind, node.get("minimum"), node.get("maximum"))
        if kind == "boolean":
            return _bool()
        return _text(node) if kind == "string" else _any_kind()

    def _field(self, name: str, node: Node, required: bool) -> Field:
        nullable = bool(node.get("x-nullable", required))
        return Field(name, required, nullable, self.compile(node))

    @staticmethod
    def body(compiled: Kind, value: object, name: str) -> Any:
        """Return a request's body, validated against its type; raise Invalid. `name`: the body's, in the description.

        The result has the description's names of fields even if the request wrote them in another case, and no nulls. A
        decoder's error begins with `parsing <name> body from "" failed`, as go-openapi's runtime does.
        """
        try:
            found = compiled.decode(value, Location(compiled.go.removeprefix("models.")), True)
        except Invalid as err:
            raise Invalid(f'parsing {name} body from "" failed, because {err}') from None
        reason = compiled.wrong(found, "", "body")
        if reason:
            raise Invalid(reason)
        return found

    def strict(self, name: str, value: object) -> Any:
        """Return a value decoded by a definition's types, without unknown fields; constraints are not checked.

        Raises Invalid with the decoder's message, for texts in which JSON is part of a field. `name` is a definition's.
        """
        compiled = self.named(name)
        return compiled.decode(value, Location(compiled.go.removeprefix("models.")), True)

    def output(self, name: str, value: object) -> Any:
        """Return an agent's report: types and required fields are checked, unknown fields dropped; raise Invalid.

        Agents of another version may send fields that the description does not have. `name` is the definition of the
        step's output, such as `inventory`.
        """
        compiled = self.named(name)
        found = compiled.decode(value, Location(compiled.go.removeprefix("models.")), False)
        reason = compiled.wrong(found, "", "body")
        if reason:
            raise Invalid(reason)
        return found


def parameter(compiled: Kind, value: object, name: str, place: str) -> Any:
    """Return a value of a query, path or header; raise Invalid.

    `value` already has the parameter's type; only constraints are checked. `place` is `query`, `path` or `header`, for
    the message: `<name> in <place> ...`.
    """
    reason = compiled.wrong(value, name, place)
    if reason:
        raise Invalid(reason)
    return value


def _any_kind() -> Kind:
    return Kind("interface {}", lambda value, at, strict: value, lambda value, path, place: "")


def _length(low: float | None, high: float | None) -> Callable[[str], str]:
    def test(text: str) -> str:
        if low is not None and len(text) < low:
            return f"should be at least {low:.0f} chars long"
        if high is not None and len(text) > high:
            return f"should be at most {high:.0f} chars long"
        return ""

    return test


def _text(node: Node) -> Kind:
    if "enum" in node:
        values = node["enum"]
        shown = f"should be one of [{' '.join(values)}]"
        return _string("", lambda text: "" if text in values else shown)
    if "format" in node:
        return _string(node["format"], FORMATS[node["format"]])
    if "pattern" in node:
        return _string("", _pattern(node["pattern"]))
    return _string("", _length(node.get("minLength"), node.get("maxLength")))
