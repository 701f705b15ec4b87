"""The fields of a network state as nmstate 2.2 has them, and `parse`, which brings a state into their types.

https://nmstate.io/devel/yaml_api.html describes what the fields mean; `interface_fields` has those of interfaces.
"""

from __future__ import annotations

from typing import Any

from .errors import NmstateError
from .interface_fields import BASE, OVS_DB, TYPES
from .kinds import (
    I64,
    U16,
    U32,
    any_value,
    fields,
    list_of,
    mandatory,
    one_of,
    optional,
    scalar,
    struct,
)

_NODES = 200_000
_DEPTH = 32

_ROUTE = struct(
    {
        "state": one_of("absent"),
        **fields(scalar, "destination", "next-hop-interface", "next-hop-address", "source"),
        "metric": I64,
        "table-id": U32,
        "cwnd": optional(U32),
        "weight": U16,
        "route-type": one_of("blackhole", "unreachable", "prohibit"),
    }
)

_RULE = struct(
    {
        "state": one_of("absent"),
        "family": one_of("ipv4", "ipv6"),
        **fields(scalar, "ip-from", "ip-to", "iif"),
        "priority": I64,
        **fields(U32, "route-table", "fwmark", "fwmask", "suppress-prefix-length"),
        "action": one_of("blackhole", "unreachable", "prohibit"),
    },
    suppress_prefixlength="suppress-prefix-length",
)

_DNS = struct(fields(list_of(scalar), "server", "search", "options"))


def _bridge_mappings(value: object, where: str) -> list[dict[str, Any]]:
    found = list_of(
        struct({"localnet": scalar, "bridge": scalar, "state": one_of("absent", "present")}, required=("localnet",))
    )(value, where)
    seen: set[str] = set()
    for mapping in found:
        if mapping["localnet"] in seen:
            raise NmstateError(f"Found duplicate `localnet` key {mapping['localnet']}")
        seen.add(mapping["localnet"])
        if mapping.get("state") != "absent" and "bridge" not in mapping:
            raise NmstateError(f"mapping for `localnet` key {mapping['localnet']} missing the `bridge` attribute")
    return found


_TOP = struct(
    {
        "description": mandatory(scalar),
        "hostname": struct(fields(scalar, "running", "config")),
        "dns-resolver": struct(fields(_DNS, "running", "config")),
        "route-rules": mandatory(struct({"config": list_of(_RULE)})),
        "routes": mandatory(struct(fields(list_of(_ROUTE), "running", "config"))),
        "interfaces": mandatory(list_of(any_value)),
        "ovs-db": OVS_DB,
        "ovn": mandatory(struct({"bridge-mappings": _bridge_mappings})),
    }
)


def _interface(value: object, index: int) -> dict[str, Any]:
    where = f"interfaces[{index}]"
    if not isinstance(value, dict):
        raise NmstateError(f"{where}: expected a mapping, not {value!r}")
    if isinstance(value.get("name"), str):
        where = f"interface {value['name']}"
    if value.get("state") == "absent":
        value = {key: value[key] for key in ("name", "type", "state") if key in value}
    kind = value.get("type")
    if kind is None or (isinstance(kind, str) and kind not in TYPES):
        kind = "ethernet"  # what nmstate treats it as when it cannot ask the host, a misspelled type too
    known = TYPES[kind] if isinstance(kind, str) else {}
    interface: dict[str, Any] = struct(BASE | known, required=("name",))(value, where)
    if not interface["name"]:
        raise NmstateError(f"{where}: the name is empty")
    return interface | {"type": "ethernet" if kind == "veth" else kind, "state": interface.get("state", "up")}


def _bounded(state: object) -> None:
    """Refuse what is enormous or endless, as YAML aliases can make it."""
    stack = [(state, 0)]
    for __ in range(_NODES):
        if not stack:
            return
        value, depth = stack.pop()
        if isinstance(value, (dict, list)) and depth < _DEPTH:
            stack += [(item, depth + 1) for item in (value.values() if isinstance(value, dict) else value)]
    raise NmstateError(f"the state has more than {_NODES} values")


def parse(state: object) -> dict[str, Any]:
    """Return a network state with every value in its proper type; raise `NmstateError` naming what is wrong.

    `state` is the document as `load` returns it; null is an empty state. Every interface has `name`, `type` and `state`
    afterwards; fields that were null are left out unless their kind refuses null.
    """
    if state is None:
        state = {}
    _bounded(state)
    parsed: dict[str, Any] = _TOP(state, "")
    parsed["interfaces"] = [_interface(value, index) for index, value in enumerate(parsed.get("interfaces", []))]
    return parsed
