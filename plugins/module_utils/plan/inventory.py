"""Inventories of existing machines: dev-scripts' `ironic_nodes.json`, or the same in YAML, as the profile field `nodes`.

The form is that of Ironic's `baremetal create`: `nodes`, each with `driver_info` (`address`, `username`, `password`, and the
key of the CA that the kind of BMC has), `ports` and `properties`; the hints to the root disk are `properties.root_device`. `agentlab_quirks` of a node is
this project's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..bmc import kinds
from ..documents import DocumentError, load_yaml
from . import files
from .build import node_names
from .machine_options import NodeOptions
from .options import Profile
from .problems import Mismatch
from .shapes import mismatches

HINTS = {
    "hctl": "hctl", "model": "model", "vendor": "vendor", "serial": "serial_number", "size": "min_size_gigabytes",
    "wwn": "wwn", "rotational": "rotational",
}  # fmt: skip
"""Ironic's hints to the root disk, and the fields of `RootDeviceHints` that they are."""
_PATHS = {
    "bmc": "driver_info",
    "nics": "ports",
    "root_device": "properties.root_device",
    "root_device_hints": "properties.root_device",
}


class InventoryError(ValueError):
    """An inventory that cannot be used. The text follows the name of the file in a message."""


def nodes(profile: Profile) -> dict[str, Any]:
    """Return what the inventory of a complete profile adds to `nodes`: its machines, by the names of the nodes, in their order.

    Empty for an inventory that is not valid, which `problems` reports.
    """
    try:
        machines = read(str(profile["machines_from"]))
    except (files.FileError, InventoryError):
        return {}
    if any(mismatches(machines, list[NodeOptions])):
        return {}
    return dict(zip((found[0] for found in node_names(profile)), machines, strict=False))


def problems(profile: Profile) -> Iterator[str]:
    """Yield what is wrong with the inventory of a complete profile; each text follows the name of the file."""
    try:
        machines = read(str(profile["machines_from"]))
    except (files.FileError, InventoryError) as error:
        yield str(error)
        return
    wanted = len(node_names(profile))
    if len(machines) < wanted:
        yield f"has {len(machines)} machines, and {wanted} nodes are planned: add machines, or use fewer nodes"
    for index, machine in enumerate(machines):
        for one in mismatches(machine, NodeOptions):
            yield f"nodes[{index}].{_place(one)}{'' if one.value is None else f' is {one.value!r}'}: {one.remedy}"


def read(name: str) -> list[dict[str, Any]]:
    """Return the machines of an inventory, each with the fields of `NodeOptions`. Raises `FileError` and `InventoryError`.

    name: its path, `~` included. The values are not validated.
    """
    try:
        document = load_yaml(files.read(name), name=Path(name).name)
    except DocumentError as error:
        raise InventoryError(
            f"is neither JSON nor YAML: line {error.line}, column {error.column}: {error.problem}"
        ) from None
    found = document.get("nodes") if isinstance(document, Mapping) else None
    if not isinstance(found, list) or not found:
        raise InventoryError('has no machines, which are {"nodes": [...]} as in ironic_nodes.json')
    return [_machine(one, index) for index, one in enumerate(found)]


def _place(one: Mismatch) -> str:
    first, *rest = (str(part) for part in one.path)
    return ".".join([_PATHS.get(first, first), *rest])


def _part(machine: Mapping[str, Any], name: str, kind: type, place: str) -> Any:
    value = machine.get(name, kind())
    if not isinstance(value, kind):
        raise InventoryError(f"{place}.{name}: must be {'a list' if kind is list else 'a mapping'}")
    return value


def _machine(machine: object, index: int) -> dict[str, Any]:
    place = f"nodes[{index}]"
    if not isinstance(machine, Mapping):
        raise InventoryError(f"{place}: must be a mapping")
    driver = machine.get("driver", kinds.default().drivers[0])
    kind = kinds.of_driver(driver)
    if kind is None:
        titles = " or ".join(one.title for one in kinds.KINDS.values())
        raise InventoryError(
            f"{place}.driver is {driver!r}: BMCs are reached by {titles}: must be one of {', '.join(kinds.drivers())}"
        )
    about, properties = _part(machine, "driver_info", dict, place), _part(machine, "properties", dict, place)
    bmc = {key: about[key] for key in ("address", "username", "password") if key in about}
    verify = about.get(kind.ca_key, True)
    if str(verify).lower() in ("true", "false"):
        bmc["verify_ca"] = str(verify).lower() == "true"
    else:
        bmc["ca_file"] = verify
    if "agentlab_quirks" in machine:
        bmc["quirks"] = machine["agentlab_quirks"]
    ports = [
        port.get("address") if isinstance(port, Mapping) else port for port in _part(machine, "ports", list, place)
    ]
    made: dict[str, Any] = {
        "bare_metal": True,
        "bmc": bmc,
        "nics": {f"eth{number}": {"mac": mac} for number, mac in enumerate(ports)},
    }
    hints = _part(properties, "root_device", dict, f"{place}.properties")
    if unknown := [key for key in hints if key not in HINTS and key != "name"]:
        raise InventoryError(
            f"{place}.properties.root_device.{unknown[0]}: unknown hint; there are name, {', '.join(HINTS)}"
        )
    if "name" in hints:
        made["root_device"] = hints["name"]
    if others := {HINTS[key]: value for key, value in hints.items() if key in HINTS}:
        made["root_device_hints"] = others
    return made
