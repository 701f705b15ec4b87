"""Ansible's options of profile and plan: what a module's `argument_spec` and a role's argument_specs.yml say of their shape."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from . import describe
from .formats import FORMATS
from .shapes import Kind, Shape, fields, required_fields, shape

_TYPES: dict[Kind, str] = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "list": "list", "mapping": "dict",
                           "record": "dict", "tagged": "dict", "any": "raw"}  # fmt: skip
Options = dict[str, dict[str, Any]]


def arguments(record: type, *, documented: bool = False) -> Options:
    """Return the options that are the fields of a TypedDict of `model` or `options`, or of a dataclass, with its defaults.

    documented: as in DOCUMENTATION and argument_specs.yml, with descriptions; else as `AnsibleModule` takes them, with
    `no_log` for passwords. Ansible gives null to what is missing, so that a field that may be null is not required.
    """
    defaults = _defaults(record)
    texts, needed = describe.fields(record) if documented else {}, _required(record)
    return {
        name: argument(
            wanted, texts.get(name, ""), required=name in needed, secret=name == "password", documented=documented
        )
        | ({"default": defaults[name]} if name in defaults else {})
        for name, wanted in fields(record).items()
    }


def _defaults(record: type) -> dict[str, Any]:
    if not dataclasses.is_dataclass(record):
        return {}
    return {one.name: one.default for one in dataclasses.fields(record) if one.default is not dataclasses.MISSING}


def _required(record: type) -> Collection[str]:
    return fields(record).keys() - _defaults(record) if dataclasses.is_dataclass(record) else required_fields(record)


def argument(
    wanted: object, text: str = "", *, required: bool = False, secret: bool = False, documented: bool = False
) -> dict[str, Any]:
    """Return the option of one annotation; `list[Network]`, say. text: its description; secret: it must not be logged.

    The result is one entry of an argument_spec, with `elements` or `options` for lists and mappings. With `documented`
    it has a description and no `no_log`.
    """
    allowed = Shape("record", record=wanted) if dataclasses.is_dataclass(wanted) else shape(wanted)
    words = allowed.kind == "string" and allowed.items is not None
    found: dict[str, Any] = {"type": "raw" if words else _TYPES[allowed.kind]}
    if documented:
        found = {"description": _description(allowed, text), **found}
    elif secret:
        found["no_log"] = True
    if required and not allowed.null:
        found["required"] = True
    if allowed.choices:
        found["choices"] = list(allowed.choices)
    if allowed.kind == "list":
        inner = argument(allowed.items, documented=documented)
        found |= {"elements": inner["type"]} | {key: inner[key] for key in ("choices", "options") if key in inner}
    if allowed.kind == "record":
        found["options"] = arguments(allowed.record, documented=documented)
    return found


def _description(allowed: Shape, text: str) -> list[str]:
    own = shape(allowed.items) if allowed.kind == "list" else allowed
    lines = [text or describe.record(own.record) or "A value."]
    if own.kind == "string" and not own.choices and own.format != "line":
        lines.append(f"{'Each is' if allowed.kind == 'list' else 'It is'} {FORMATS[own.format].meaning}.")
    elif own.least is not None:
        lines.append(f"From {own.least} to {own.most}.")
    return [line.replace("`", "'") for line in lines]
