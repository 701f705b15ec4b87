"""Strict decoding of YAML and JSON into the shapes that Go structs give them.

A shape is data: `STR`, `BOOL`, one of `INTEGERS`, `RAW`, `[shape]` for a list, `Map(shape)`, or
`Struct(name, {field: shape})`. Keys are matched without regard to case, as Go's encoding/json does, and come out spelled as
in the shape and in its order. Numbers and booleans are taken where a string is asked for, as sigs.k8s.io/yaml does:
`password: 123456` is a password.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Union

from ..documents import Positions
from .errors import InstallerError
from .gojson import dumps, kind
from .yamlio import load

STR, BOOL, RAW = "string", "bool", "raw"
INT, INT32, INT64, UINT32 = "int", "int32", "int64", "uint32"
INTEGERS = {
    INT: range(-(2**63), 2**63),
    INT32: range(-(2**31), 2**31),
    INT64: range(-(2**63), 2**63),
    UINT32: range(2**32),
}
"""The range of each integer type of Go; `int` as on 64-bit machines."""


@dataclass(frozen=True)
class Map:
    """A free mapping of strings to `shape`.

    Keys come out as they are written; null values are dropped.
    """

    shape: Shape


@dataclass(frozen=True)
class Struct:
    """A Go struct: its name, its fields in order, and its package; errors mention name and package.

    fields: name as in the document -> shape; package: what precedes the name in messages, as in `types.InstallConfig`.
    """

    name: str
    fields: dict[str, Shape]
    package: str = "types"


Shape = Union[str, "list[Any]", Map, Struct]


def decode_file(
    text: str | bytes, name: str, shape: Struct, *, strict: bool = True, unknown: list[str] | None = None
) -> Any:
    """Decode the single YAML document `text` of the file `name`.

    Every unknown field (unless `strict` is false) and every wrong type is collected and raised as one `InstallerError`
    with line and column. With a list in `unknown`, unknown fields go there as finished messages and are not errors.
    Absent and null fields are absent in the result.
    """
    value, position = load(text, name)
    return decode(value, name, shape, position, strict=strict, unknown=unknown)


def decode(
    value: object,
    name: str,
    shape: Struct,
    position: Positions,
    *,
    strict: bool = True,
    unknown: list[str] | None = None,
) -> Any:
    """Decode an already parsed document; see `decode_file`.

    value, position: as `yamlio.load` returns them; null counts as an empty document.
    """
    errors: list[str] = []
    strays: list[str] = []
    result = _decode({} if value is None else value, shape, (), (shape.name, ""), position, errors, strays)
    if unknown is not None:
        unknown += strays
    elif strict:
        errors = strays + errors
    if errors:
        text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise InstallerError(f"failed to unmarshal {name}: error unmarshaling JSON: while decoding JSON: {text}")
    return result


def _position_text(path: tuple[str | int, ...], position: Positions) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else ("." if text else "") + str(part)
    line, column = position.get(path, (0, 0))
    parts = [*([text] if text else []), *([f"line {line}", f"column {column}"] if line else [])]
    return f" ({', '.join(parts)})" if parts else ""


def _type(shape: Shape) -> str:
    """What Go calls the type of a shape."""
    if isinstance(shape, list):
        return f"[]{_type(shape[0])}"
    if isinstance(shape, Map):
        return f"map[string]{_type(shape.shape)}"
    return f"{shape.package}.{shape.name}" if isinstance(shape, Struct) else str(shape)


def _zero(shape: Shape) -> Any:
    """What Go's encoding/json makes of a null in a list: the element's zero value."""
    if isinstance(shape, list):
        return []
    if isinstance(shape, Struct | Map):
        return {}
    return {STR: "", BOOL: False, **dict.fromkeys(INTEGERS, 0)}.get(shape)


def _scalar(value: object, shape: str) -> Any:
    """`value` as sigs.k8s.io/yaml hands it to the JSON decoder of a field of this shape."""
    if shape == STR and isinstance(value, bool):
        return "true" if value else "false"
    if shape == STR and isinstance(value, int):
        return str(value)
    if shape == STR and isinstance(value, float):
        return _float(value)
    if shape in INTEGERS and isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def _fits(value: Any, shape: str) -> bool:
    """Whether a scalar is a value of the type `shape`."""
    if isinstance(value, bool) or shape == BOOL:
        return isinstance(value, bool) and shape == BOOL
    return isinstance(value, str) if shape == STR else isinstance(value, int) and value in INTEGERS[shape]


def _float(value: float) -> str:
    """As Go's strconv.FormatFloat(value, 'g', -1, 64)."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    digits = repr(value).partition("e")[0].replace(".", "").replace("-", "").strip("0")
    mantissa, __, exponent = f"{value:.{max(len(digits), 1) - 1}e}".partition("e")
    # Without a precision, 'g' decides as for six digits.
    return (
        f"{mantissa}e{exponent}"
        if not -4 <= int(exponent) < 6
        else f"{value:.{max(0, len(digits) - 1 - int(exponent))}f}"
    )


def _decode(
    value: object,
    shape: Shape,
    path: tuple[str | int, ...],
    owner: tuple[str, str],
    position: Positions,
    errors: list[str],
    strays: list[str],
) -> Any:
    """owner: the struct that has the field, and the names of fields on the way to it, as encoding/json reports them."""
    if shape is RAW:
        return value
    if isinstance(shape, str):
        value = _scalar(value, shape)
        if _fits(value, shape):
            return value
    elif isinstance(shape, list):
        if isinstance(value, list):
            return [
                _zero(shape[0])
                if item is None
                else _decode(item, shape[0], (*path, index), owner, position, errors, strays)
                for index, item in enumerate(value)
            ]
    elif isinstance(value, dict):
        if isinstance(shape, Map):
            return {
                str(key): _decode(item, shape.shape, (*path, key), owner, position, errors, strays)
                for key, item in value.items()
                if item is not None
            }
        known = {field.lower(): field for field in shape.fields}
        found: dict[str, Any] = {}
        for key, item in value.items():
            field = known.get(str(key).lower())
            if field is None:
                strays.append(f'json: unknown field "{key}"' + _position_text((*path, key), position))
            elif item is not None:
                inner = (shape.name, f"{owner[1]}.{field}".removeprefix("."))
                found[field] = _decode(item, shape.fields[field], (*path, key), inner, position, errors, strays)
        return {field: found[field] for field in shape.fields if field in found}
    into = f"Go struct field {'.'.join(owner)} of type {_type(shape)}"
    if not path:
        into = f"Go value of type {_type(shape)}"
    literal = f" {dumps(value)}" if isinstance(shape, str) and shape in INTEGERS and kind(value) == "number" else ""
    errors.append(f"json: cannot unmarshal {kind(value)}{literal} into {into}" + _position_text(path, position))
    return None


def order_keys(value: object, shape: Shape) -> Any:
    """`value`, decoded before and changed since, with its keys in the shape's order; keys the shape lacks come last.

    Structs in lists are ordered, too; maps stay as they are.
    """
    if isinstance(shape, Struct) and isinstance(value, dict):
        known = {name: order_keys(value[name], inner) for name, inner in shape.fields.items() if name in value}
        return known | {name: item for name, item in value.items() if name not in known}
    if isinstance(shape, list) and isinstance(value, list):
        return [order_keys(item, shape[0]) for item in value]
    return value
