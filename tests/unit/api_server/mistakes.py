"""Requests with one mistake each, for every operation of the description, and what the real service answers to that mistake.

The texts are those of go-openapi and of Go's `encoding/json`; `TEXTS` has their forms as the recorded answers show them.
They are made from the description alone, without the service's own types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ansible_collections.agentlab.ocp.payload.api_server.models import DOCUMENT

Node = Mapping[str, Any]
UNKNOWN = "00000000-0000-4000-8000-00000000dead"
#: Forms of the messages of refusals by the description.
TEXTS = [
    r'parsing \w+ body from "" failed, because (unexpected EOF|json: unknown field "[^"]*")',
    r'parsing \w+ body from "" failed, because json: cannot unmarshal (object|array|string|bool|number( \S+)?) into '
    r"Go (value|struct field \w+\.[\w.-]+) of type (string|bool|int64|float64|(\[\]|map\[string\])?[\w*.\[\]{} ]+)",
    r"[\w.\[\]-]+ in (body|query|path|header) (is required|should be one of \[[^\]]*\]|should match '.*'|must be of type [\w-]+: \".*\")",
    r"[\w.-]+ in (body|query|path) should be at (most|least) \d+ chars long",
    r"[\w.-]+ in body should be (greater|less) than or equal to \d+",
    r"method [A-Z]+ is not allowed, but \[[A-Z,]+\] are",
    r"path \S+ was not found",
    r'unsupported media type "[^"]*", only \[application/json\] are allowed',
    r"unsupported media type requested, only \[application/octet-stream\] are available",
]
#: Texts that patterns of the description accept.
_SAMPLES = (
    "a",
    "x.yaml",
    "192.168.111.5",
    "10.0.0.0/8",
    "52:54:00:00:00:01",
    "a.example",
    "http://a/b",
    "ssh-rsa AAAA",
    "1",
    "4.22",
)
_FORMATS = {
    "uuid": "0c0d0e0f-0000-4000-8000-000000000001",
    "ip": "192.168.111.5",
    "mac": "52:54:00:00:00:01",
    "date-time": "2026-11-24T01:00:00.000Z",
}


class Mistake(NamedTuple):
    """A request and its answer: `query` and `body` are as they are sent, `raw` replaces the body; `message` is that of the answer."""

    what: str
    method: str
    path: str
    query: dict[str, str]
    body: Any
    code: int
    message: str
    raw: bytes | None = None
    kind: str = "application/json"


def resolved(node: Node) -> tuple[Node, str]:
    """A schema without reference, and the name of its type in Go."""
    name = ""
    while "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        node = DOCUMENT["definitions"][name]
    return node, node.get("x-go-name") or "".join(part[:1].upper() + part[1:] for part in name.split("-"))


def go_type(node: Node) -> str:
    """The type in Go that a value is decoded to, as messages name it."""
    found, name = resolved(node)
    kind = found.get("type")
    if kind == "object":
        return f"models.{name}" if "properties" in found else "map[string]interface {}"
    if kind == "array":
        item = go_type(found["items"])
        return f"[]*{item}" if item.startswith("models.") else f"[]{item}"
    return {"string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}.get(
        str(kind), "interface {}"
    )


def good(node: Node) -> Any:
    """A small valid value: of an object the required fields."""
    node, __ = resolved(node)
    kind = node.get("type")
    if kind == "object":
        return {name: good(node["properties"][name]) for name in node.get("required", ())}
    if kind == "array":
        return []
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return max(1, int(node.get("minimum", 1)))
    if kind != "string":
        return {}
    if "enum" in node:
        return node["enum"][0]
    if "format" in node:
        return _FORMATS[node["format"]]
    if "pattern" in node:
        return next(text for text in _SAMPLES if re.search(node["pattern"], text))
    return "a" * max(1, int(node.get("minLength", 1)))


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    kinds: dict[type, str] = {dict: "object", list: "array", str: "string"}
    return kinds.get(type(value), "number")


class Wrong(NamedTuple):
    """A wrong value: `value` in the place of a body, `because` the decoder's error, or else `message` of the validation."""

    value: Any
    because: str = ""
    message: str = ""


def wrong(node: Node, root: str, path: str, where: str, *, required: bool, nullable: bool) -> Iterator[Wrong]:
    """Values that a schema refuses. root: the body's type in Go; path: fields up to here; where: the same with indexes."""
    go = go_type(node)
    node, __ = resolved(node)
    kind = node.get("type")
    place = f"Go struct field {root}.{path}" if path else f"Go value of type {go}"
    suffix = f" of type {go}" if path else ""
    fits = {"object": dict, "array": list, "string": str, "boolean": bool}.get(str(kind))
    for value in ({"a": 1}, [1], "x", True, 7, 1.5):
        if fits is None and (
            kind not in ("integer", "number") or (isinstance(value, int | float) and not isinstance(value, bool))
        ):
            continue
        if fits is not None and isinstance(value, fits):
            continue
        if node.get("format") in ("uuid", "date-time"):
            continue  # they have decoders of their own, whose errors have no field
        yield Wrong(value, f"json: cannot unmarshal {_word(value)} into {place}{suffix}")
    if kind == "integer":
        yield Wrong(1.5, f"json: cannot unmarshal number 1.5 into {place}{suffix}")
    if kind == "object" and "properties" in node:
        yield from _fields(node, root, path, where)
    if kind == "array":
        item = node["items"]
        for one in wrong(item, root, path, f"{where}.0", required=False, nullable=True):
            yield one._replace(value=[one.value])
    if kind == "string":
        yield from _texts(node, where, required=required, nullable=nullable)


def _fields(node: Node, root: str, path: str, where: str) -> Iterator[Wrong]:
    whole = good(node)
    yield Wrong({**whole, "colour": "red"}, 'json: unknown field "colour"')
    for name, field in node["properties"].items():
        needed = name in node.get("required", ())
        below = f"{where}.{name}" if where else name
        if needed:
            yield Wrong(
                {key: value for key, value in whole.items() if key != name}, message=f"{below} in body is required"
            )
            yield Wrong({**whole, name: None}, message=f"{below} in body is required")
        nullable = bool(field.get("x-nullable", needed))
        for one in wrong(field, root, f"{path}.{name}" if path else name, below, required=needed, nullable=nullable):
            yield one._replace(value={**whole, name: one.value})


def _texts(node: Node, where: str, *, required: bool, nullable: bool) -> Iterator[Wrong]:
    if "enum" in node:
        for text in ("zap", f"{node['enum'][0]}x", node["enum"][0].swapcase()):
            if text not in node["enum"]:
                yield Wrong(text, message=f"{where} in body should be one of [{' '.join(node['enum'])}]")
        return
    if node.get("format") in ("uuid", "ip", "mac"):
        for text in ("x", "0" * 300):
            yield Wrong(text, message=f"{where} in body must be of type {node['format']}: {json.dumps(text[:200])}")
        return
    if "pattern" in node:
        for text in ("\x07", "!\n", " "):
            if not re.search(node["pattern"], text):
                yield Wrong(text, message=f"{where} in body should match '{node['pattern']}'")
        return
    if "maxLength" in node:
        text = "a" * (node["maxLength"] + 1)
        if len(text) < 2**17:
            yield Wrong(text, message=f"{where} in body should be at most {node['maxLength']} chars long")
    if node.get("minLength") and (nullable or required):
        yield Wrong("", message=f"{where} in body should be at least {node['minLength']} chars long")


def mistakes(ids: Mapping[str, str]) -> Iterator[Mistake]:
    """All requests with one mistake; ids: of objects that exist, by the names of path parameters."""
    for path, operations in DOCUMENT["paths"].items():
        for method, node in operations.items():
            yield from _of(method.upper(), path, node, ids)
        if "}" not in path and f"{path.rpartition('/')[0]}/{{cluster_id}}" in DOCUMENT["paths"]:
            continue  # for other methods, the last part is an id
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - {method.upper() for method in operations}:
            allowed = ",".join(sorted(method.upper() for method in operations))
            text = f"method {method} is not allowed, but [{allowed}] are"
            yield Mistake("method", method, _filled(path, ids), {}, None, 405, text)


def lost(ids: Mapping[str, str]) -> Iterator[Mistake]:
    """Valid requests about objects that do not exist. ids: of those that do."""
    for path, operations in DOCUMENT["paths"].items():
        for method, node in operations.items():
            given = node.get("parameters", [])
            names = [one["name"] for one in given if one["in"] == "path" and one.get("format") == "uuid"]
            if not names or any(one["in"] == "formData" for one in given):
                continue
            entry = next((one for one in given if one["in"] == "body"), None)
            body, query = good(entry["schema"]) if entry else None, _query(given)
            yield Mistake("all", method.upper(), _filled(path, dict.fromkeys(names, UNKNOWN)), query, body, 404, "")
            if len(names) > 1 and names[0] in ids:
                yield Mistake("last", method.upper(), _filled(path, {**ids, names[-1]: UNKNOWN}), query, body, 404, "")


def _filled(path: str, ids: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: ids.get(match[1], "a"), path)


def _of(method: str, path: str, node: Node, ids: Mapping[str, str]) -> Iterator[Mistake]:
    given = node.get("parameters", [])
    usual, url = _query(given), _filled(path, ids)
    entry = next((one for one in given if one["in"] == "body"), None)
    body = good(entry["schema"]) if entry else None
    if any(one["in"] == "formData" for one in given):
        body = None
    for one in given:
        if one["in"] == "path" and one.get("format") == "uuid":
            for text in ("x", f"{UNKNOWN}0", UNKNOWN.replace("-", "")):
                where = _filled(path, {**ids, one["name"]: text})
                yield Mistake(
                    f"path {one['name']}",
                    method,
                    where,
                    usual,
                    body,
                    400,
                    f'{one["name"]} in path must be of type uuid: "{text}"',
                )
        elif one["in"] == "query":
            for text, message in _queries(one):
                query = {key: value for key, value in usual.items() if key != one["name"]}
                yield Mistake(
                    f"query {one['name']}",
                    method,
                    url,
                    query if text is None else {**query, one["name"]: text},
                    body,
                    400,
                    message,
                )
    if entry is None:
        return
    name, parsing = entry["name"], f'parsing {entry["name"]} body from "" failed, because '
    __, root = resolved(entry["schema"])
    if entry.get("required"):
        yield Mistake("no body", method, url, usual, None, 400, f"{name} in body is required")
    yield Mistake("cut", method, url, usual, None, 400, f"{parsing}unexpected EOF", raw=b'{"a": ')
    text = 'unsupported media type "text/csv", only [application/json] are allowed'
    yield Mistake("type", method, url, usual, body, 400, text, kind="text/csv")
    for one in wrong(entry["schema"], root, "", "", required=True, nullable=True):
        yield Mistake(
            "body",
            method,
            url,
            usual,
            one.value,
            400,
            one.message or parsing + one.because,
            raw=json.dumps(one.value).encode(),
        )


def _query(given: list[Node]) -> dict[str, str]:
    found = {}
    for one in given:
        if one["in"] == "query" and one.get("required"):
            value = good(one)
            found[one["name"]] = str(value) if not isinstance(value, list) else str(good(one["items"]))
    return found


def _queries(one: Node) -> Iterator[tuple[str | None, str]]:
    name, item = one["name"], one.get("items", one)
    if one.get("required"):
        yield None, f"{name} in query is required"
        yield "", f"{name} in query is required"
    where = f"{name}.0" if one["type"] == "array" else name
    if "enum" in item:
        yield "zap", f"{where} in query should be one of [{' '.join(item['enum'])}]"
    elif item.get("format") == "uuid":
        yield "x", f'{where} in query must be of type uuid: "x"'
    elif item["type"] == "integer":
        for text in ("x", "1.5", "9" * 30):
            yield text, f'{where} in query must be of type int64: "{text}"'
