"""Checks of profiles whose machines boot from iSCSI LUNs; see `iscsi` and `checks`."""

from __future__ import annotations

from collections.abc import Iterator

from ..releases import LATEST, RELEASES
from .build import addressing_of, machine, node_names
from .faults import EXTRA
from .iscsi import PORT, networks
from .options import Profile
from .problems import Finding, Path

_UNIT = "iscsistart.service"
_FAULTS = ("disk_lost", "extra_host")


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what cannot be with LUNs; a finding is path, value, and what would be right."""
    mode = profile["boot"]["mode"]
    if not networks(profile):
        if profile["boot"]["paths"] > 1:
            remedy = (
                "requires `mode: iscsi`: the service installs to a multipath device only if its paths are iSCSI or FC"
            )
            yield ("boot", "paths"), profile["boot"]["paths"], remedy
        return
    place: Path = ("boot", "mode")
    release = RELEASES[profile["release"]["profile"] or LATEST.name]
    if _UNIT in release.units_absent:
        yield place, mode, f"requires a release from 4.18 on, whose live system connects to LUNs, not {release.name}"
    if profile["stack"] == "ipv6":
        yield ("stack",), "ipv6", "must have IPv4: with `boot: {mode: iscsi}` machines boot over it"
    if profile["flow"] != "agent":
        yield place, mode, f"requires `flow: agent`, not {profile['flow']}"
    if profile["hypervisor"]["kind"] != "sandbox":
        yield place, mode, f"requires `hypervisor: {{kind: sandbox}}`, not {profile['hypervisor']['kind']}"
    for name in ("registry", "bmc", "http"):
        if profile["services"][name]["port"] == PORT:
            yield ("services", name, "port"), PORT, "is that of the iSCSI targets: choose another one"
    for index, fault in enumerate(profile["faults"]):
        if fault["kind"] in _FAULTS:
            yield ("faults", index, "kind"), fault["kind"], "requires another boot mode than iscsi"
    yield from _network(profile)
    yield from _machines(profile)


def _network(profile: Profile) -> Iterator[Finding]:
    for index, network in enumerate(profile["extra_networks"]):
        place: Path = ("extra_networks", index)
        if network.get("roles"):
            yield (*place, "roles"), network["roles"], "must be left out: iPXE has one script for machines of all roles"
        if network["name"] not in networks(profile):
            continue
        if not network.get("ipv4"):
            yield (*place, "ipv4"), None, "is required: machines boot from LUNs over IPv4"
        for field in ("vlan", "ipv6"):
            if network.get(field):
                yield (*place, field), network[field], "must be left out of the network that machines boot over"
        if str(network.get("interface")).startswith("bond"):
            yield (*place, "interface"), network["interface"], "must be a NIC: machines boot over this network"


def _machines(profile: Profile) -> Iterator[Finding]:
    seen: set[Path] = set()
    for name, role, _number in node_names(profile):
        path: Path = ("nodes", name) if profile["nodes"].get(name) else (role,)
        if role == EXTRA or path in seen:
            continue
        seen.add(path)
        size = machine(profile, name, role)
        if size["firmware"] != "bios":
            yield (*path, "firmware"), size["firmware"], "must be bios: with `boot: {mode: iscsi}` iPXE starts the LUN"
        if size["extra_disks"]:
            yield (*path, "extra_disks"), size["extra_disks"], "must be empty: the LUN is the machine's only disk"
        if (way := addressing_of(profile, name, role)) != "dhcp":
            yield (*path, "addressing"), way, "must be dhcp: the initramfs has no other way to an address"
        if size.get("network_config"):
            yield (*path, "network_config"), None, "must be left out: the connection to the LUN would end with it"
