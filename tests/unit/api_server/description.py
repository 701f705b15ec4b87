"""Checks requests and answers against a description of the service's API (Swagger 2.0): the one in the tree, or upstream's."""

from __future__ import annotations

import copy
import functools
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import yaml

#: Answers that the real service gives and its description omits.
MISSING_STATUSES = {
    ("v2UpdateHostInstallProgress", 409),
    ("v2PostStepReply", 409),
    ("BindHost", 409),
    *((f"V2{verb}ClusterManifest", 422) for verb in ("Create", "Update", "Delete")),
    ("v2DownloadClusterManifest", 422),
}
BASE = "/api/assisted-install"


def find() -> Path | None:
    """Upstream's description, where it is at hand."""
    root = os.environ.get("AGENTLAB_SHARED") or Path(__file__).resolve().parents[3].parent / "shared"
    path = Path(root) / "conformance" / "assisted-service-swagger.yaml"
    return path if path.is_file() else None


def without(value: Any, empty: tuple[Any, ...]) -> Any:
    """A body without empty fields: to a decoder in Go null, and the zero value of an optional field, are as good as absent."""
    if isinstance(value, dict):
        return {
            name: without(entry, empty)
            for name, entry in value.items()
            if isinstance(entry, bool) or entry not in empty
        }
    if isinstance(value, list):
        return [without(entry, empty) for entry in value if entry is not None]
    return value


class Description:
    """The description as JSON schemas. In answers fields that it does not know are an error, too.

    In requests a list may be null: the real client, written in Go, sends null for an empty one.
    """

    def __init__(self, path: Path) -> None:
        self.document = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.definitions = self.document["definitions"]
        self.paths = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$"), path, operations)
            for path, operations in sorted(self.document["paths"].items(), key=lambda item: item[0].count("{"))
        ]
        self.formats = jsonschema.FormatChecker(["uuid", "ipv4", "ipv6"])
        self.formats.checks("date-time", ValueError)(
            lambda value: not isinstance(value, str) or bool(datetime.fromisoformat(value))
        )
        self.seen: set[tuple[str, str, int]] = set()

    def schema(self, node: Any, closed: bool) -> Any:
        if isinstance(node, list):
            return [self.schema(item, closed) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            found = self.resolved(node["$ref"].rsplit("/", 1)[1], closed)
            if node.get("x-nullable"):
                return {"anyOf": [{"type": "null"}, found]}
            return found
        if "allOf" in node:
            merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
            for part in (self.schema(part, closed) for part in node["allOf"]):
                merged["properties"] |= part.get("properties", {})
                merged["required"] += part.get("required", [])
            return {**merged, "additionalProperties": not closed}
        made = {
            key: self.schema(value, closed)
            for key, value in node.items()
            if key not in ("properties", "example", "description")
        }
        # An object without a description is any value in Go.
        if node.get("additionalProperties") == {"type": "object"}:
            made["additionalProperties"] = True
        if "properties" in node:
            made["properties"] = {key: self.schema(value, closed) for key, value in node["properties"].items()}
            if closed and "additionalProperties" not in node:
                made["additionalProperties"] = False
        if "numa-resources" in made.get("enum", ()):
            made["enum"] = [*made["enum"], "numaresources"]  # as the real service calls it
        # Go's encoder writes null for a list that was never made.
        if (made.get("x-nullable") or made.get("type") == "array") and isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
            if "enum" in made:
                made["enum"] = [*made["enum"], None]
        return made

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    def resolved(self, name: str, closed: bool) -> Any:
        definition = copy.deepcopy(self.definitions[name])
        if name == "platform":  # of a cluster that has none the real service sends {"type": null}
            definition["properties"]["type"] = {"anyOf": [definition["properties"]["type"], {"type": "null"}]}
        return self.schema(definition, closed)

    def check(self, schema: Any, value: Any, closed: bool) -> None:
        jsonschema.Draft4Validator(self.schema(schema, closed), format_checker=self.formats).validate(value)

    def operation(self, method: str, path: str) -> dict[str, Any]:
        path = path.removeprefix(BASE).partition("?")[0]
        for pattern, __, operations in self.paths:
            if pattern.match(path) and method.lower() in operations:
                return operations[method.lower()]
        raise AssertionError(f"{method} {path} is not in the description")

    def exchange(self, method: str, path: str, body: Any, status: int, answer: Any) -> None:
        """An exchange that the client meant well: body and answer must be as described."""
        operation = self.operation(method, path)
        self.seen.add((method, operation["operationId"], status))
        if status < 400:
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "body":
                    self.check(parameter["schema"], body, False)
        answers = {int(code): self.described(found) for code, found in operation["responses"].items()}
        known = status in answers or status == 400 or (operation["operationId"], status) in MISSING_STATUSES
        assert known, f"{method} {path}: {status} is not described"
        schema = answers.get(status, {"schema": {"$ref": "#/definitions/error"}}).get("schema")
        if status >= 400:
            # What the framework refuses has the shape that the description has for unauthorized callers; some refusals are not described.
            refusal = {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
            }
            if answer is not None:
                both = self.schema([{"$ref": "#/definitions/error"}], True)
                jsonschema.Draft4Validator({"anyOf": [*both, {**refusal, "additionalProperties": False}]}).validate(
                    answer
                )
        elif schema is None:
            assert answer in (None, "", b""), f"{method} {path}: an answer without body is described, found {answer!r}"
        elif schema.get("type") != "file":
            self.check(schema, answer, True)

    def described(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The description of an answer, which may be a reference."""
        found: dict[str, Any] = (
            self.document["responses"][answer["$ref"].rsplit("/", 1)[1]] if "$ref" in answer else answer
        )
        return found

    def refused(self, method: str, path: str, status: int, answer: Any) -> None:
        """A refusal has a described status, and the form that is described for it."""
        answers = self.operation(method, path)["responses"]
        assert str(status) in answers, f"{method} {path}: {status} is not described"
        if answer is not None:
            self.check(self.described(answers[str(status)])["schema"], answer, True)

    def allows(self, method: str, path: str, body: Any) -> bool:
        for parameter in self.operation(method, path).get("parameters", ()):
            if parameter["in"] == "body":
                return any(
                    self._holds(parameter["schema"], form)
                    for form in (body, without(body, (None,)), without(body, (None, "", 0)))
                )
        return True

    def _holds(self, schema: Any, value: Any) -> bool:
        try:
            self.check(schema, value, False)
        except jsonschema.ValidationError:
            return False
        return True
