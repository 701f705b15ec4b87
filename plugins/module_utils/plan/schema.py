"""JSON schemas (draft 2020-12) of profile and plan, for editors and other tools. Validation itself is that of `shapes`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from . import describe
from .formats import FORMATS
from .model import Plan
from .options import Profile
from .presets import DEFAULTS
from .settings import SETTINGS
from .shapes import Shape, fields, required_fields, shape

_PROFILES = "../config_examples/profile.schema.json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "list": "array", "mapping": "object",
          "record": "object", "tagged": "object"}  # fmt: skip

Schema = dict[str, Any]


def profile() -> Schema:
    """Return the schema of a profile.

    It is `config_examples/profile.schema.json`, and has the defaults of `presets`. Every field has a description;
    unknown ones are refused.
    """
    return document("profile", Profile, DEFAULTS)


def plan() -> Schema:
    """Return the schema of a plan.

    It is `docs/plan.schema.json`. All fields but those that may be missing are required.
    """
    return document("plan", Plan)


def text(schema: Schema) -> str:
    """Return a schema as the text of a file.

    Indented by one, with characters outside of ASCII as they are; the order of fields is that of the types.
    """
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def document(
    name: str, wanted: object, defaults: Mapping[str, object] | None = None, *, has_profiles: bool = False
) -> Schema:
    """Return the schema of `wanted`, a TypedDict with documented fields or a list of one. name: what it is called in `$id` and title.

    `defaults` has the default of each field, at any depth, in the shape of the data; None for a type without defaults. has_profiles:
    it is for a file in `docs/` that refers to the schema of profiles by its path, which is relative to that of a schema without `$id`.
    """
    return {
        "$schema": DRAFT,
        **({} if has_profiles else {"$id": f"urn:agentlab:schema:{name}"}),
        "title": f"agentlab {name}",
        **_schema_of(wanted, "", defaults),
    }


def _schema_of(wanted: object, text: str, default: object) -> Schema:
    """Return the schema of an annotation. text: its documentation; default: its default, None for none."""
    allowed = shape(wanted)
    found: Schema = {"description": text or describe.record(allowed.record)} if text or allowed.record else {}
    if allowed.kind != "any":
        found |= _typed(allowed)
    if allowed.choices:
        found["enum"] = [*allowed.choices, *([None] if allowed.null else [])]
    elif allowed.kind == "string" and (allowed.items is not None or allowed.record):
        other: Schema = {"$ref": _PROFILES}
        if allowed.items is not None:
            other = {"type": "array", "minItems": 1, "items": _schema_of(allowed.items, "", None)}
        text_or_null = {"type": found.pop("type"), **_format(allowed)}
        found["anyOf"] = [text_or_null, other]
    elif allowed.kind == "string":
        found |= _format(allowed)
    elif allowed.least is not None:
        found |= {"minimum": allowed.least, "maximum": allowed.most}
    elif allowed.kind == "list":
        found["items"] = _schema_of(allowed.items, "", None)
    elif allowed.kind == "record":
        defaults = default if isinstance(default, dict) else {}
        known = {
            name: (kind, describe.fields(allowed.record).get(name, ""), defaults.get(name))
            for name, kind in fields(allowed.record).items()
        }
        return found | _object(known, required_fields(allowed.record))
    elif allowed.tagged:
        return found | _tagged(allowed)
    elif allowed.kind == "mapping":
        found |= _mapping(allowed)
    return found if default is None or default in ([], {}) else {**found, "default": default}


def _typed(allowed: Shape) -> Schema:
    names = [_TYPES[allowed.kind], *(["integer"] if allowed.digits else []), *(["null"] if allowed.null else [])]
    return {"type": names[0] if len(names) == 1 else names, **({"minimum": 0} if allowed.digits else {})}


def _format(allowed: Shape) -> Schema:
    rule = FORMATS[allowed.format]
    return {"format": allowed.format, **({"pattern": f"^(?:{rule.pattern})$"} if rule.pattern else {})}


def _object(known: Mapping[str, tuple[object, str, object]], needed: Collection[str]) -> Schema:
    properties = {name: _schema_of(*parts) for name, parts in known.items()}
    return {
        "properties": properties,
        "additionalProperties": False,
        **({"required": [name for name in known if name in needed]} if needed else {}),
    }


def _mapping(allowed: Shape) -> Schema:
    keys = shape(allowed.keys)
    if keys.choices:
        texts = {name: SETTINGS[name].meaning if name in SETTINGS else "" for name in keys.choices}
        return _object({name: (allowed.items, texts[name], None) for name in keys.choices}, ())
    pattern = {} if keys.format == "line" else {"propertyNames": _format(keys)}
    return {**pattern, "additionalProperties": _schema_of(allowed.items, "", None)}


def _tagged(allowed: Shape) -> Schema:
    tagged = allowed.tagged
    if tagged is None:
        raise TypeError(f"{allowed}: is not tagged")
    texts = describe.fields(allowed.record)
    cases = []
    for kind, meaning in tagged.kinds.items():
        known, needed = tagged.record(kind)
        parts = {name: (part, texts.get(name, ""), None) for name, part in known.items()}
        then = {"type": "object", **_object(parts, needed)}
        then["properties"] = {tagged.key: {"const": kind, "description": meaning}, **then["properties"]}
        cases.append({"if": {"properties": {tagged.key: {"const": kind}}, "required": [tagged.key]}, "then": then})
    return {
        "properties": {tagged.key: {"enum": list(tagged.kinds), "description": texts[tagged.key]}},
        "required": [tagged.key],
        "allOf": cases,
    }
