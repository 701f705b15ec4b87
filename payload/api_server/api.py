"""The operations the service serves, with what each takes and answers: the paths of `data/swagger.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .models import DOCUMENT, MODELS, Invalid
from .schema import Kind, Node, parameter, quote_text

BASE: str = DOCUMENT["basePath"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query, path or header.

    `separator` splits several values in one text (`collectionFormat` csv), `multiple`: it may be given repeatedly
    (multi). `type` is the description's: string, integer or boolean.
    """

    name: str
    #: Type of the value, or of each value of a list.
    kind: Kind
    type: str
    required: bool = False
    separator: str = ""
    multiple: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the OpenAPI document, and the handler that serves it.

    `handler` is the operation id, or `x-handler`, by which `calls.HANDLERS` is read. `schemes` are authentication
    schemes of which one must hold; empty: none is needed. `status` is that of success. `upload`: a form with a file;
    `file`: the response is a file. `path` begins with the base path.
    """

    method: str
    path: str
    handler: str
    schemes: tuple[str, ...]
    status: int
    #: Name of the body in the description, and its type; None without a body.
    body_name: str
    body: Kind | None
    upload: bool
    file: bool
    query: tuple[Parameter, ...]
    #: Parameters of the path that have a format.
    in_path: tuple[Parameter, ...]


def _parameter(node: Node) -> Parameter:
    one = node["items"] if node["type"] == "array" else node
    listed = node.get("collectionFormat", "")
    return Parameter(
        name=node["name"],
        kind=MODELS.compile(one),
        type=one["type"],
        required=node.get("required", False),
        separator="," if listed == "csv" else "",
        multiple=listed == "multi",
    )


def _operation(method: str, path: str, node: Node) -> Operation:
    given = node.get("parameters", [])
    body = next((entry for entry in given if entry["in"] == "body"), None)
    status = next(code for code in node["responses"] if code != "default")
    return Operation(
        method=method.upper(),
        path=BASE + path,
        handler=node.get("x-handler") or node["operationId"],
        schemes=tuple(name for entry in node["security"] for name in entry),
        status=int(status),
        body_name=body["name"] if body else "",
        body=MODELS.compile(body["schema"]) if body else None,
        upload=any(entry["in"] == "formData" for entry in given),
        file=node["responses"][status].get("schema", {}).get("type") == "file",
        query=tuple(_parameter(entry) for entry in given if entry["in"] == "query"),
        in_path=tuple(_parameter(entry) for entry in given if entry["in"] == "path" and "format" in entry),
    )


def _operations() -> Iterator[Operation]:
    for path, operations in DOCUMENT["paths"].items():
        for method, node in operations.items():
            yield _operation(method, path, node)


OPERATIONS: tuple[Operation, ...] = tuple(_operations())

#: What counts as true in a query; anything else is false (go-openapi's `swag.ConvertBool`).
_TRUE = frozenset({"true", "1", "yes", "ok", "y", "on", "selected", "checked", "t", "enabled"})


def is_true(text: str) -> bool:
    """Return whether a boolean of a query or header is set.

    Any text that go-openapi does not know as true is false, so no value is an error. Case does not matter.
    """
    return text.lower() in _TRUE


def query_value(one: Parameter, texts: list[str]) -> Any:
    """Return a query parameter's value, or the list of all values of one that is `multiple`.

    `texts` are as given, one at least; of several the last counts. A list with a separator stays one text after its
    parts were validated. Invalid, in go-openapi's words, if a value does not match the description.
    """
    if one.multiple:
        return [_value(one, f"{one.name}.{index}", text) for index, text in enumerate(texts)]
    text = texts[-1]
    if one.separator:
        for index, part in enumerate(filter(None, text.split(one.separator))):
            _value(one, f"{one.name}.{index}", part.strip())
        return text
    return _value(one, one.name, text)


def _value(one: Parameter, name: str, text: str) -> Any:
    if one.type == "boolean":
        return is_true(text)
    if one.type == "integer":
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not -(2**63) <= int(text) < 2**63:
            raise Invalid(f"{name} in query must be of type int64: {quote_text(text)}")
        return parameter(one.kind, int(text), name, "query")
    return parameter(one.kind, text, name, "query")
