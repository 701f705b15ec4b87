"""The parts of the service's answers that observers rely on: a program of others sends them, so their types are compared first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..documents import DocumentError, load_json
from ..errors import AssistedError

_NONE = type(None)
_TEXT, _MAYBE = (str,), (str, _NONE)
_THING = {"id": _TEXT, "status": _TEXT, "status_info": _MAYBE, "validations_info": _MAYBE}
_CLUSTER = {**_THING, "name": _MAYBE, "hosts": (list, _NONE)}
_HOST = {**_THING, "requested_hostname": _MAYBE, "role": _MAYBE, "inventory": _MAYBE, "progress": (dict, _NONE)}
_DISK = {"name": _MAYBE, "drive_type": _MAYBE, "installation_eligibility": (dict, _NONE)}
_PROGRESS = {"current_stage": _MAYBE, "progress_info": _MAYBE, "installation_percentage": (int, float, _NONE)}
_EVENT = {"severity": _TEXT, "message": _TEXT, "event_time": _MAYBE}
_CHECK = {"id": _TEXT, "status": _TEXT, "message": _TEXT}
_NAMES = {
    str: "a string",
    list: "a list",
    dict: "a mapping",
    int: "a number",
    float: "a number",
    _NONE: "null",
    bool: "a boolean",
}


def object_list(value: object, where: str) -> list[dict[str, Any]]:
    """Return an answer that is a list of mappings with an `id`; raise `AssistedError` for anything else.

    where: the URL, for the message. Infra-envs and clusters are such lists.
    """
    return [
        _fields(one, {"id": _TEXT, "status": _MAYBE}, f"{where}: [{index}]")
        for index, one in enumerate(_list(value, where))
    ]


def events(value: object, where: str) -> list[dict[str, Any]]:
    """Return an answer that is a list of events; raise `AssistedError` for anything else.

    where: the URL, for the message. Each event has a `severity` and a `message`.
    """
    return [_fields(one, _EVENT, f"{where}: [{index}]") for index, one in enumerate(_list(value, where))]


def cluster(value: object, where: str) -> dict[str, Any]:
    """Return an answer that is a cluster with its hosts; raise `AssistedError` for anything else.

    where: the URL, for the message. Validations are JSON in strings: lists of checks by category.
    """
    found = _fields(value, _CLUSTER, where)
    _validations(found, where)
    for index, one in enumerate(found.get("hosts") or []):
        place = f"{where}: hosts[{index}]"
        host = _fields(one, _HOST, place)
        _fields(host.get("progress") or {}, _PROGRESS, f"{place}.progress")
        _validations(host, place)
        inventory = _fields(_text(host, "inventory", place), {}, f"{place}: inventory")
        for nic in _list(inventory.get("interfaces") or [], f"{place}: interfaces"):
            _fields(nic, {"mac_address": _MAYBE}, f"{place}: interfaces")
        for given in _list(inventory.get("disks") or [], f"{place}: disks"):
            disk = _fields(given, _DISK, f"{place}: disks")
            eligible = disk.get("installation_eligibility") or {}
            _fields(eligible, {"not_eligible_reasons": (list, _NONE)}, f"{place}: disks: installation_eligibility")
    return found


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise AssistedError(f"{where}: the answer is {_named(value)}, not a list")
    return value


def _fields(value: object, wanted: Mapping[str, tuple[type, ...]], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise AssistedError(f"{where}: is {_named(value)}, not a mapping")
    for name, types in wanted.items():
        given = value.get(name)
        if not isinstance(given, types) or (isinstance(given, bool) and bool not in types):
            raise AssistedError(f"{where}: {name} is {_named(given)}, not {_NAMES[types[0]]}")
    return value


def _validations(thing: Mapping[str, Any], where: str) -> None:
    place = f"{where}: validations_info"
    for category, checks in _fields(_text(thing, "validations_info", where), {}, place).items():
        for check in _list(checks, f"{place}.{category}"):
            _fields(check, _CHECK, f"{place}.{category}")


def _text(thing: Mapping[str, Any], name: str, where: str) -> object:
    """Return the JSON value in a string, an empty mapping for none."""
    try:
        return load_json(thing.get(name) or "{}", name=f"{where}: {name}")
    except DocumentError as error:
        raise AssistedError(str(error)) from error


def _named(value: object) -> str:
    return _NAMES.get(type(value), type(value).__name__)
