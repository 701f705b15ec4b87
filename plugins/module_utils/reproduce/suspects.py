"""What a first cause suggests that a lab should do to its machines, so that the same happens again.

Each row has the words of a cause, which are those of `report.causes` and of assisted-service's validations, and what makes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..vocabulary import STAGES, Component, Stage, Status

HOST = r"(?:[Hh]ost|VM \S+ \()\s*(?P<host>[\w.-]+)\b"


class Suspect(NamedTuple):
    """What a profile needs so that a cause shows again: faults, and fields of its nodes by the node's name.

    faults: as in a profile, with all fields that their kinds need; fields: node -> path of a field, such as
    `memory_mib` -> value.
    """

    faults: list[dict[str, Any]]
    fields: dict[str, dict[str, int]]


class _Row(NamedTuple):
    pattern: str
    faults: tuple[Mapping[str, Any], ...]
    # Path of a field of the node -> the group of the pattern with its value; see `_number`.
    fields: Mapping[str, str] = {}


_NTP = {"kind": "service_down", "service": "ntp"}  # otherwise chrony corrects the clock
_MINUTES = "60"
_TABLE = (
    _Row(r"the lab's (?P<service>registry|ntp|bmc|http) does not answer", ({"kind": "service_down", "service": "{service}"},)),
    _Row(r"(?:required RAM for any role is|Require at least) [\d.]+ GiB.*found only (?P<gib>[\d.]+) GiB", (), {"memory_mib": "gib"}),
    _Row(r"No eligible disks were found", (), {"disk_gib": "5"}),
    _Row(r"host time is ahead of service(?: at least for (?P<minutes>[\d.]+) minutes)?", (_NTP, {"kind": "clock", "node": "{host}", "offset": "+minutes"})),
    _Row(r"host time is behind service(?: at least for (?P<minutes>[\d.]+) minutes)?", (_NTP, {"kind": "clock", "node": "{host}", "offset": "-minutes"})),
    _Row(r"couldn't synchronize with any NTP server", (_NTP,)),
    _Row(r"MTU is broken", ({"kind": "mtu", "node": "{host}", "mtu": 1500, "when": Status.INSUFFICIENT},)),
    _Row(r"A total packet loss above", ({"kind": "loss", "node": "{host}", "percent": 45, "when": Status.INSUFFICIENT},)),
    _Row(r"DNS wildcard configuration was detected", ({"kind": "dns_wildcard"},)),
    _Row(r"Hostname \S+ is not unique", ({"kind": "duplicate_hostname", "node": "{host}", "of": "{peer}"},)),
    _Row(r"No connectivity to the majority of hosts", ({"kind": "arp_one_way", "node": "{host}", "peer": "{peer}"},)),
    _Row(r"never registered", ({"kind": "link_down", "node": "{host}"},)),
    _Row(r"Failed to fetch container images", ({"kind": "image_missing", "component": Component.ORCHESTRATOR, "when": Status.READY},)),
    _Row(r"is shut off", ({"kind": "power_off", "node": "{host}", "when": "{stage}"},)),
    _Row(r"is paused", ({"kind": "pause", "node": "{host}", "when": "{stage}"},)),
    _Row(r"(?i)\bmedia\b", ({"kind": "eject", "node": "{host}", "when": Status.KNOWN},)),
    _Row(r"Failed - failed after \d+ attempts", ({"kind": "disk_lost", "node": "{host}", "when": "{stage}"},)),
    _Row(r"timeout while connecting to host", ({"kind": "link_down", "node": "{host}", "when": "{stage}"},)),
    _Row(r"refuses this run's token", ({"kind": "expired_token"},)),
    _Row(r"is refused by the assisted service: .*401", ({"kind": "wrong_token", "node": "{host}"},)),
    _Row(r"is not part of this plan", ({"kind": "extra_host"},)),
    _Row(r"assisted-installer-controller-\S+: CrashLoopBackOff", ({"kind": "component_fails", "component": Component.CSR_APPROVER},)),
    _Row(r"(?:(?P<host>[\w.-]+): )?No disk of the host matches the root device hints", ({"kind": "wrong_root_device", "node": "{host}"},)),
    _Row(r"A signature was required", ({"kind": "unsigned_image"},)),
    _Row(r"assisted-service never started", ({"kind": "component_fails", "component": Component.API_SERVER},)),
    _Row(r"pending-user-action|booted from the installation image|fix boot order", ({"kind": "boot_order", "node": "{host}"},)),
)  # fmt: skip


def suspect_of(cause: str, names: Mapping[str, str]) -> Suspect | None:
    """Return what suggests itself for the text of a cause; None for one that is not known.

    names: host name in the run -> name of the lab's node. Without a host in the text the first node is taken.
    """
    first = next(iter(names.values()), "master-0")
    for row in _TABLE:
        match = re.search(row.pattern, cause)
        if not match:
            continue
        named = match if match.groupdict().get("host") else re.search(HOST, cause)
        host = names.get(named["host"], named["host"] if named["host"] in names.values() else first) if named else first
        vm = re.search(r"VM \S+ \((?P<host>[\w.-]+)\)", cause)
        host = names.get(vm["host"], vm["host"]) if vm else host
        words = {
            "peer": next((name for name in names.values() if name != host), ""),
            "stage": next((stage for stage in STAGES if f" at {stage}" in cause), Stage.INSTALLING),
            "minutes": _MINUTES,
            **{name: value for name, value in match.groupdict().items() if value},
            "host": host,
        }
        faults = [{key: _value(value, words) for key, value in fault.items()} for fault in row.faults]
        if any(fault.get("peer") == "" or fault.get("of") == "" for fault in faults):
            return None  # it takes two hosts
        fields = {key: _number(value, words) for key, value in row.fields.items()}
        return Suspect(faults, {host: fields} if fields else {})
    return None


def _value(value: object, words: Mapping[str, str]) -> object:
    """Fill in a word, or the seconds that `+minutes` means: a little more, so that the limit is passed again."""
    if isinstance(value, str) and value[:1] in "+-":
        seconds = round(float(words[value[1:]]) * 120)
        return seconds if value[0] == "+" else -seconds
    return value.format(**words) if isinstance(value, str) else value


def _number(value: str, words: Mapping[str, str]) -> int:
    """A constant, or MiB of the GiB that a host reported: firmware and kernel took some of it."""
    return int(value) if value.isdecimal() else round(float(words[value]) * 1024) + 64
