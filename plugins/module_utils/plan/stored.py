"""Validate a plan that was read from a file, which people may have edited: shape by the types of `model`, texts by `formats`."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from typing import Any

from . import faults
from .formats import FORMATS, fits
from .model import Finding, Path, Plan
from .presets import FAMILIES, ROLES, TOPOLOGIES

_ENUMS: dict[str, tuple[str, ...]] = {
    r"cluster\.topology": tuple(TOPOLOGIES["lab"]),
    r"cluster\.stack": tuple(FAMILIES),
    r"cluster\.addressing": ("dhcp", "static"),
    r"cluster\.platform": ("none", "baremetal", "external"),
    r"cluster\.arch": ("x86_64",),
    r"release\.payload": tuple(TOPOLOGIES),
    r"hypervisor\.kind": ("sandbox", "local", "ssh"),
    r"hypervisor\.domain_type": ("auto", "kvm", "qemu"),
    r"networks\.\d+\.purpose": ("machine", "extra"),
    r".*\.family": ("ipv4", "ipv6"),
    r"nodes\.\d+\.role": (*ROLES, faults.EXTRA),
    r"nodes\.\d+\.firmware": ("uefi", "bios"),
    r"nodes\.\d+\.disks\.\d+\.bus": ("scsi", "sata", "virtio"),
    r"boot\.mode": ("redfish", "cdrom", "pxe", "minimal", "manual"),
}
# The first that matches the whole path of a field; a text that none matches is one line.
_FORMATS: dict[str, str] = {
    r"cluster\.name|nodes\.\d+\.name|networks\.\d+\.reservations\.\d+\.name": "label",
    r"cluster\.(base_)?domain|networks\.\d+\.domain|.*\.wildcards\.\d+\.domain|.*\.dns\.hosts\.\d+\.names\.\d+|services\.host": "domain",
    r"hypervisor\.host": "host",
    r"hypervisor\.user": "user",
    r"hypervisor\.(state_dir|pool_dir)": "directory",
    r"networks\.\d+\.(name|bridge)": "bridge",
    r".*\.cidr|installer\.(service|machine)_network\.\d+": "cidr",
    r".*\.(ip|gateway)|.*\.dhcp\.(start|end)|vips\.(api|ingress)\.\d+|rendezvous_ip|services\.address": "ip",
    r".*\.mac": "mac",
    r"nodes\.\d+\.uuid": "uuid",
    r"nodes\.\d+\.root_device": "device",
    r"nodes\.\d+\.bmc\.address": "bmc",
    r"services\.http\.url": "url",
    r".*\.username": "login",
    r"services\..*\.password": "password",
    r"installer\.\w+_file": "file",
    r"installer\.ntp_sources\.\d+": "host",
    r"installer\.image_digest_sources\..*|release\.image": "repository",
    r"release\.(version|profile)": "version",
    r"settings\.\w+": "duration",
    r"hypervisor\.(netns|pool)|.*\.(name|domain|network|target|serial)|installer\.network_type|faults\.\d+\.(kind|node|peer|of|nic|component)": "name",
}
_TYPES = {str: "a string", int: "an integer", bool: "true or false", dict: "a mapping", list: "a list", type(None): "null"}


def findings(found: Any) -> list[Finding]:
    """Return all in which `found`, as it was read, is no plan: fields that are missing or unknown, wrong types and texts."""
    wrong = list(_walk(found, Plan, ()))
    if not wrong and not found["hypervisor"]["pool_dir"].startswith(found["hypervisor"]["state_dir"] + "/"):
        return [(("hypervisor", "pool_dir"), found["hypervisor"]["pool_dir"], "must be in hypervisor.state_dir, which is removed with the cluster")]
    return wrong or [finding for index, fault in enumerate(found["faults"]) for finding in _fault(fault, ("faults", index))]


def _fault(fault: dict[str, Any], path: Path) -> Iterator[Finding]:
    kind = faults.KINDS.get(str(fault.get("kind")))
    if kind is None:
        yield (*path, "kind"), fault.get("kind"), f"must be one of {', '.join(faults.KINDS)}"
        return
    for key in kind.required:
        if key not in fault:
            yield (*path, key), None, "is needed here"
    for key, value in fault.items():
        if isinstance(value, str):
            yield from _text(value, (*path, key))


def _walk(value: Any, kind: Any, path: Path) -> Iterator[Finding]:
    origin = typing.get_origin(kind)
    if kind is Any:
        return
    if origin in (types.UnionType, typing.Union):
        members = typing.get_args(kind)
        if value is None and type(None) in members:
            return
        (kind,) = (member for member in members if member is not type(None))
        yield from _walk(value, kind, path)
    elif typing.is_typeddict(kind):
        yield from _mapping(value, kind, path)
    elif not isinstance(value, origin or kind) or (kind is int and isinstance(value, bool)):
        yield path, value, f"must be {_TYPES[origin or kind]}"
    elif origin is list:
        for index, item in enumerate(value):
            yield from _walk(item, typing.get_args(kind)[0], (*path, index))
    elif origin is dict:
        for key, item in value.items():
            if not isinstance(key, str) or not key.isprintable():
                yield (*path, key), None, "the name of a field is one line of printable characters"
            yield from _walk(item, typing.get_args(kind)[1], (*path, key))
    elif kind is str:
        yield from _text(value, path)


def _mapping(value: Any, kind: Any, path: Path) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield path, value, "must be a mapping"
        return
    fields = typing.get_type_hints(kind)
    missing = [name for name in fields if name not in value]
    if missing:
        yield path, None, f"not a plan, it has no {', '.join(missing)}" if not path else f"it has no {', '.join(missing)}"
    for key, item in value.items():
        if key not in fields:
            yield (*path, key), None, f"unknown field; there are {', '.join(fields)}"
        else:
            yield from _walk(item, fields[key], (*path, key))


def _text(value: str, path: Path) -> Iterator[Finding]:
    name = ".".join(map(str, path))
    for pattern, choices in _ENUMS.items():
        if re.fullmatch(pattern, name):
            if value not in choices:
                yield path, value, f"must be one of {', '.join(choices)}"
            return
    kind = next((kind for pattern, kind in _FORMATS.items() if re.fullmatch(pattern, name)), "line")
    if not fits(kind, value):
        yield path, value, f"must be {FORMATS[kind][1]}"
