"""The kinds of values in a network state, with the spellings that nmstate 2.2 accepts.

A kind is a function of value and place that returns the value in its proper type or raises `NmstateError` naming the
place.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from .errors import NmstateError

Kind = Callable[[object, str], Any]

_TRUE = {"1", "true", "yes", "on", "y"}
_FALSE = {"0", "false", "no", "off", "n"}


def text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise NmstateError(f"{where}: expected a string, not {value!r}")
    if any(ord(c) < 32 and c != "\t" for c in value):
        raise NmstateError(f"{where}: control characters are not allowed in {value!r}")
    return value


def flag(value: object, where: str) -> bool:
    """A boolean proper.

    No other spelling is accepted, unlike `boolean`. Raises `NmstateError` naming `where`.
    """
    if not isinstance(value, bool):
        raise NmstateError(f"{where}: expected a boolean, not {value!r}")
    return value


def boolean(value: object, where: str) -> bool:
    """A boolean, or a word or number for one; not null.

    Words are those of nmstate (`yes`, `on`, `y`, `1` and their opposites) in any case. Raises `NmstateError` naming
    `where`.
    """
    if isinstance(value, bool):
        return value
    word = str(value).lower() if isinstance(value, (str, int)) else ""
    if word not in _TRUE | _FALSE:
        raise NmstateError(f"{where}: Need to be boolean: 1|0|true|false|yes|no|on|off|y|n, not {value!r}")
    return word in _TRUE


_NEVER_NULL: set[Kind] = {boolean}
"""Kinds that nmstate reads by functions of its own, which do not take null; for all others null is the same as nothing."""


def integer(bits: int, signed: bool = False) -> Kind:
    """An integer that fits, or a decimal or hexadecimal string of one; not null.

    `bits` and `signed` give the range, 0 to 2^bits - 1 or -2^(bits-1) to 2^(bits-1) - 1. The kind raises `NmstateError`
    for what is not an integer, or out of range.
    """
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def kind(value: object, where: str) -> int:
        number = value
        if isinstance(value, str) and len(value) <= 24 and "_" not in value:
            with contextlib.suppress(ValueError):
                number = int(value, 16 if value.lower().startswith("0x") else 10)
        if isinstance(number, bool) or not isinstance(number, int):
            raise NmstateError(f"{where}: expected an integer, not {value!r}")
        if not low <= number <= high:
            raise NmstateError(f"{where}: {number} is out of range, expected {low} to {high}")
        return number

    _NEVER_NULL.add(kind)
    return kind


def optional(kind: Kind) -> Kind:
    """`kind`, but null is the same as nothing.

    For a kind that refuses null by itself, as integers and booleans do. `struct` then drops the field.
    """

    def check(value: object, where: str) -> Any:
        return kind(value, where)

    return check  # an object of its own, which is not among those that refuse null


def mandatory(kind: Kind) -> Kind:
    """`kind`, but null is refused.

    For a kind for which null would be the same as nothing: `struct` passes null on to it, which raises `NmstateError`.
    """

    def never_null(value: object, where: str) -> Any:
        if value is None:
            raise NmstateError(f"{where}: null is not allowed")
        return kind(value, where)

    _NEVER_NULL.add(never_null)
    return never_null


def one_of(*names: str, numbered: int | None = None, **aliases: str) -> Kind:
    """One of `names`; with `numbered` also the number of one of them, counted from that.

    An alias (alias=name) is accepted too. The kind returns the name, also for a number or an alias, and raises
    `NmstateError` with the names otherwise.
    """
    known = {name: name for name in names} | aliases
    if numbered is not None:
        known |= {str(numbered + index): name for index, name in enumerate(names)}

    def kind(value: object, where: str) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int)) or str(value) not in known:
            expected = ", ".join(f"`{name}`" for name in names)
            raise NmstateError(f"{where}: unknown variant `{value}`, expected one of {expected}")
        return known[str(value)]

    return kind


def list_of(item: Kind) -> Kind:
    def kind(value: object, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise NmstateError(f"{where}: expected a list, not {value!r}")
        return [item(entry, f"{where}[{index}]") for index, entry in enumerate(value)]

    return kind


def struct(
    fields: Mapping[str, Kind], required: tuple[str, ...] = (), open_ended: bool = False, **aliases: str
) -> Kind:
    """A mapping with these fields. `open_ended` drops unknown ones, otherwise an error.

    `required` are fields that must be there and not null; an alias (alias=name, dashes for underscores) is another
    spelling of a field. The kind returns the fields that were given, by their right names, each in its own type.
    """
    renamed = {alias.replace("_", "-"): name for alias, name in aliases.items()} | aliases

    def kind(value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise NmstateError(f"{where}: expected a mapping, not {value!r}")
        given = {str(renamed.get(key, key)): content for key, content in value.items()}
        known = {
            name: content for name, content in given.items() if content is not None or fields.get(name) in _NEVER_NULL
        }
        for missing in required:
            if missing not in known:
                raise NmstateError(f"{where}: missing field `{missing}`")
        for unknown in given.keys() - fields.keys() if not open_ended else ():
            expected = ", ".join(f"`{field}`" for field in fields)
            raise NmstateError(f"{where + ': ' if where else ''}unknown field `{unknown}`, expected one of {expected}")
        dot = f"{where}." if where else ""
        return {name: fields[name](content, dot + name) for name, content in known.items() if name in fields}

    return kind


def dictionary(item: Kind, nullable: bool = False) -> Kind:
    def kind(value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise NmstateError(f"{where}: expected a mapping, not {value!r}")
        wanted = {k: v for k, v in value.items() if v is not None or not nullable}
        return {text(k, where): item(v, f"{where}.{k}") for k, v in wanted.items()}

    return kind


def address(value: object, where: str) -> str:
    """An IP address in its canonical form.

    As nmstate writes it: compressed, in lower case, and `::ffff:` with dots. Raises `NmstateError` for anything else, a
    zone (`%eth0`) included.
    """
    try:
        written = text(value, where)
        if "%" in written:
            raise ValueError
        return canonical(ipaddress.ip_address(written))
    except ValueError:
        raise NmstateError(f"{where}: invalid IP address syntax: {value!r}") from None


def canonical(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    mapped = ip.ipv4_mapped if ip.version == 6 else None
    return f"::ffff:{mapped}" if mapped else str(ip)


def scalar(value: object, where: str) -> str:
    """A string, also when it was written as a number or boolean, as nmstate takes it outside of interfaces and for OVS.

    A boolean becomes `true` or `false`. Raises `NmstateError` for null, lists and mappings, and for control characters.
    """
    if isinstance(value, bool):
        return str(value).lower()
    return text(str(value) if isinstance(value, (int, float)) else value, where)


def any_value(value: object, where: str) -> Any:
    return value


U8, U16, U32, U64 = integer(8), integer(16), integer(32), integer(64)
I32, I64 = integer(32, signed=True), integer(64, signed=True)


def fields(kind: Kind, *names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, kind)
