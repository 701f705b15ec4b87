"""Checks of a profile beyond its schema.

Each check is a generator of findings over a complete profile; `check` runs them all, so that one report names
everything. A check ignores what another one reports.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from ..vocabulary import COMPONENTS
from . import (
    access_checks,
    address_checks,
    bare_metal_checks,
    boot_modes,
    connection_checks,
    day2_checks,
    hypervisor_checks,
    ipi_checks,
    iscsi_checks,
    link_checks,
    links,
    machine_checks,
    manifests,
    network_checks,
    nmstate_checks,
    outside_checks,
    proxied,
    release_checks,
    route_checks,
    segment_checks,
    snapshots,
    tests,
    unconfigured,
)
from .build import day2_names, macs, node_names, node_roles
from .faults import KINDS, ON_BRIDGE
from .formats import LABEL
from .modes import modes_where
from .options import Profile
from .presets import ROLES, is_default
from .problems import Finding, Path, duplicates
from .topologies import TOPOLOGIES, fencing

Check = Callable[[Profile, str], Iterable[Finding]]
"""Yields what is wrong with a complete profile, for a cluster with that name."""

_BRIDGE_LENGTH = 15
_DNS = 53
_NAMES = ""  # no field has this name

# Boot modes in which each machine gets an image of its own.
_OWN_IMAGE = modes_where(lambda mode: mode.from_iso and mode.boots)
# Faults of images -> what is true of the lab payload's alone.
_OF_LAB_IMAGES = {
    "component_fails": "can be modified", "image_missing": "can be modified", "unsigned_image": "are known to have no signature",
}  # fmt: skip


def check(profile: Profile, cluster: str, withheld: Iterable[Path] = (), more: Iterable[Check] = ()) -> list[Finding]:
    """Return everything that is wrong with a complete profile, for a cluster with that name.

    withheld: fields with invalid values; findings of checks that read any of them are dropped. more:
    checks that need more than the profile.
    """
    unknown, found = list(withheld), []
    for test in (*_CHECKS, *more):
        read: set[Path] = set()
        try:
            findings = list(test(cast(Profile, _RecordingMapping(profile, (), read)), cluster))
        except KeyError:
            if not any(_related(path, other) for path in read for other in unknown):
                raise
            continue  # a field is missing, which is reported already
        if not any(_related(path, other) for path in read for other in unknown):
            found += findings
    return found


class _RecordingMapping(Mapping[str, Any]):
    """A mapping that records which of its fields were read, and, as the field `_NAMES`, that its names were."""

    def __init__(self, data: Mapping[str, object], path: Path, read: set[Path]) -> None:
        self._data, self._path, self._read = data, path, read

    def __getitem__(self, key: str) -> Any:
        path = (*self._path, key)
        value = self._data.get(key)
        if isinstance(value, Mapping):
            return _RecordingMapping(value, path, self._read)
        self._read.add(path)
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        self._read.add((*self._path, _NAMES))
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def _related(read: Path, other: Path) -> bool:
    """Return whether what was read changes with another field: it is that field, part of it, has it, or is its list of names."""
    shorter = min(len(read), len(other))
    return read[:shorter] == other[:shorter] or (read[-1] == _NAMES and read[:-1] == other[:-1])


def _check_cluster(profile: Profile, cluster: str) -> Iterator[Finding]:
    if not re.fullmatch(LABEL, cluster) or len(cluster) > 54:
        yield (
            ("cluster",),
            cluster,
            "a cluster's name is at most 54 lower-case letters, digits and `-`, such as ostest",
        )
    bridge = profile["network"]["bridge"] or f"{cluster}bm"
    if len(bridge) > _BRIDGE_LENGTH:
        yield (
            ("network", "bridge"),
            bridge,
            f"the name of a bridge has at most {_BRIDGE_LENGTH} characters, this has {len(bridge)}; "
            "choose a shorter cluster name, or set `network.bridge`",
        )


def _check_counts(profile: Profile, _cluster: str) -> Iterator[Finding]:
    later = {*day2_names(profile)}
    masters, arbiters, workers = (
        profile[role]["count"] - sum(name in later for name, of, __ in node_names(profile) if of == role)
        for role in ROLES
    )
    topology = profile["topology"]
    row = TOPOLOGIES[topology]
    for role, count in zip(ROLES, (masters, arbiters, workers), strict=True):
        group = row.group(role)
        if not group.least <= count <= group.most:
            wanted = f"from {group.least} to {group.most}" if group.least < group.most else str(group.least)
            yield (role, "count"), count, f"must be {wanted} with topology {topology}"
    if masters == 2 and arbiters != 1 and not row.fencing:
        arbitrated = ", ".join(name for name, other in TOPOLOGIES.items() if other.arbiter.number)
        remedy = f"two masters need one arbiter (topology {arbitrated}) or fencing (topology {fencing()})"
        yield ("master", "count"), 2, remedy
    if arbiters and masters != 2:
        yield ("arbiter", "count"), arbiters, f"an arbiter requires 2 masters, not {masters}: must be 0"
    if masters == 1 and workers:
        yield ("worker", "count"), workers, "a single node has no workers: must be 0, or 3 masters"


def _check_hypervisor(profile: Profile, _cluster: str) -> Iterator[Finding]:
    kind, host = profile["hypervisor"]["kind"], profile["hypervisor"]["host"]
    if kind == "ssh" and not host:
        yield ("hypervisor", "host"), None, "a hypervisor of `kind: ssh` requires its name or address"
    if profile["hypervisor"]["route"] and profile["stack"] == "ipv6":
        yield (
            ("hypervisor", "route"),
            True,
            "a route supports IPv4 addresses only, and `stack: ipv6` has none: must be false",
        )
    if kind != "ssh" and host:
        yield ("hypervisor", "host"), host, f"requires `kind: ssh`, not {kind}"


def _check_nodes(profile: Profile, cluster: str) -> Iterator[Finding]:
    names = node_roles(profile)
    for name, node in profile["nodes"].items():
        role = names.get(name, "master")
        cards = links.nics(profile, role)
        known = [*cards, *(one.name for one in links.network_links(profile, role) if one.name not in cards)]
        if name not in names:
            near = difflib.get_close_matches(str(name), list(names), n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            if not near and (numbered := re.fullmatch(r"(master|worker)-(\d{1,3})", str(name))):
                hint += f"; `{numbered[1]}.count: {int(numbered[2]) + 1}` adds it"
            yield ("nodes", name), None, f"no node has this name; {hint}"
        for nic, settings in node.get("nics", {}).items():
            if nic not in known:
                yield ("nodes", name, "nics", nic), None, f"there is no such interface; there are {', '.join(known)}"
            elif settings.get("mac") and nic not in cards:
                yield ("nodes", name, "nics", nic, "mac"), settings["mac"], "follows from its NIC, which can have one"
    yield from duplicates(_uuids(profile))
    yield from duplicates((("nodes", name, "nics", nic, "mac"), mac) for name, nic, mac in macs(profile, cluster))


def _uuids(profile: Profile) -> Iterator[tuple[Path, str]]:
    for name, node in profile["nodes"].items():
        if node.get("uuid"):
            yield ("nodes", name, "uuid"), node["uuid"].lower()


def _check_ports(profile: Profile, _cluster: str) -> Iterator[Finding]:
    services = profile["services"]
    ports = {"registry": services["registry"]["port"], "bmc": services["bmc"]["port"], "http": services["http"]["port"]}
    places: list[tuple[Path, int]] = [(("services", name, "port"), port) for name, port in ports.items()]
    places.sort(key=lambda one: not is_default(*one))  # what contradicts a default is wrong, not the default
    yield from duplicates((place, str(port)) for place, port in places)
    taken = {_DNS: "the lab's DNS"}
    if profile["network"]["connection"] == "proxied":
        taken[proxied.PORT] = "the proxy"
    for name, port in ports.items():
        if port in taken:
            yield ("services", name, "port"), port, f"is that of {taken[port]}: choose another one"


def _check_faults(profile: Profile, _cluster: str) -> Iterator[Finding]:
    roles = node_roles(profile)
    names, installer = list(roles), profile["release"]["installer"]
    for index, fault in enumerate(profile["faults"]):
        path: Path = ("faults", index)
        nics = links.nics(profile, roles.get(str(fault.get("node")), "master"))
        given = (
            ("node", fault.get("node"), names),
            ("peer", fault.get("peer"), names),
            ("of", fault.get("of"), names),
            ("nic", fault.get("nic"), nics),
            ("component", fault.get("component"), COMPONENTS),
        )
        for key, value, known in given:
            if value is not None and value not in known:
                near = difflib.get_close_matches(value, known, n=1)
                yield (*path, key), value, f"did you mean {near[0]}?" if near else f"must be one of {', '.join(known)}"
        other = fault.get("peer", fault.get("of"))
        if other and other == fault["node"]:
            yield (*path, "node"), other, "must differ from the other node of this fault"
        if fault["kind"] == "extra_host" and profile["addressing"] == "static":
            yield (
                (*path, "kind"),
                fault["kind"],
                "requires `addressing: dhcp` or `slaac`: an unplanned machine has no static address",
            )
        if fault["kind"] == "fence_fails" and not TOPOLOGIES[profile["topology"]].fencing:
            yield (*path, "kind"), fault["kind"], f"requires a topology with fencing: {fencing()}"
        if fault["kind"] in ON_BRIDGE and profile["hypervisor"]["kind"] != "sandbox":
            yield (
                (*path, "kind"),
                fault["kind"],
                "requires `hypervisor: {kind: sandbox}`: elsewhere it would change the host's own rules and bridges",
            )
        if fault["kind"] in ("expired_token", "unsigned_image") and (installer["binary"] or installer["git"]):
            yield (
                (*path, "kind"),
                fault["kind"],
                "requires agentlab's own installer, without release.installer.binary or .git",
            )
        if fault["kind"] in _OF_LAB_IMAGES and profile["release"]["payload"] != "lab":
            reason = _OF_LAB_IMAGES[fault["kind"]]
            yield (*path, "kind"), fault["kind"], f"requires `release: {{payload: lab}}`: only its images {reason}"
        if fault["kind"] == "wrong_token" and fault["node"] in names[:1]:
            yield (
                (*path, "node"),
                fault["node"],
                "is the rendezvous host, whose image has the service's own key: choose another node",
            )
        if fault["kind"] == "wrong_token" and boot_modes.boot_mode(profile) not in _OWN_IMAGE:
            yield (
                (*path, "kind"),
                fault["kind"],
                f"requires `boot: {{mode: ...}}` {', '.join(_OWN_IMAGE)}: in other modes all machines share one image",
            )
    yield from _duplicate_faults(profile)


def _duplicate_faults(profile: Profile) -> Iterator[Finding]:
    """Yield faults that are in the plan from the start, and that it has already."""
    seen: set[tuple[Any, ...]] = set()
    for index, fault in enumerate(profile["faults"]):
        same = (fault["kind"], fault.get("node"), fault.get("component"))
        if KINDS[fault["kind"]].in_plan and same in seen:
            yield ("faults", index, "kind"), fault["kind"], "is a duplicate; remove one"
        seen.add(same)


def _check_tests(profile: Profile, _cluster: str) -> Iterator[Finding]:
    names = [name for name, _role, _index in node_names(profile)]
    yield from tests.findings(profile["tests"], [*names, *(one["name"] for one in profile["machines"])])


_CHECKS = (
    _check_cluster,
    _check_counts,
    release_checks.check_platform,
    release_checks.check_release,
    release_checks.check_topology,
    _check_hypervisor,
    connection_checks.check,
    hypervisor_checks.check,
    hypervisor_checks.check_placement,
    hypervisor_checks.check_lab,
    _check_nodes,
    day2_checks.check_day2,
    bare_metal_checks.check_inventory,
    bare_metal_checks.check_machines,
    bare_metal_checks.check_lab,
    access_checks.check_fencing,
    access_checks.check_proxy,
    access_checks.check_time_servers,
    access_checks.check_balancer,
    machine_checks.check_names,
    machine_checks.check_disks,
    machine_checks.check_hints,
    machine_checks.check_firmware,
    machine_checks.check_screens,
    machine_checks.check_boot,
    unconfigured.check,
    ipi_checks.check,
    iscsi_checks.check,
    segment_checks.check_segments,
    network_checks.check_networks,
    link_checks.check_links,
    route_checks.check,
    nmstate_checks.check,
    network_checks.check_room,
    network_checks.check_slaac,
    address_checks.check_addresses,
    address_checks.check_collisions,
    outside_checks.check,
    _check_ports,
    _check_faults,
    manifests.check,
    snapshots.check,
    _check_tests,
)
