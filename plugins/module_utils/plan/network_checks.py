"""Checks of the networks of a profile; see `checks`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from . import build
from .boot_modes import mode_of
from .build import node_names
from .fields import Family
from .options import Profile
from .outside import MACHINE_NETWORK
from .presets import FAMILIES, MTU, is_default
from .problems import Finding, Path, duplicates

VERSIONS: dict[Family, int] = {"ipv4": 4, "ipv6": 6}

_VIPS: tuple[Literal["ingress", "api"], ...] = ("ingress", "api")

# Subnets that OVN-Kubernetes reserves (join, transit and masquerade).
_OVN_INTERNAL = (
    "100.64.0.0/16",
    "100.88.0.0/16",
    "169.254.0.0/17",
    "fd98::/64",
    "fd97::/64",
    "fd69::/112",
)

# Links that the kernel, libvirt, the switch, tunnels and the uplink have in a sandbox.
_LINKS = re.compile(r"lo|all|default|uplink|(vnet|line|ifb)\d+|vx[0-9a-f]{6}|ovs-.*|sw-.*|n\d+-.*")

IpNetwork: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"


class _NamedNetwork(NamedTuple):
    path: Path
    family: Family
    network: Any


def lan(profile: Profile) -> list[_NamedNetwork]:
    """Return the subnets of bridges: machine network, extra networks, outside networks and segments."""
    found = [_NamedNetwork(("network", f), f, profile["network"][f]) for f in FAMILIES[profile["stack"]]]
    for index, extra in enumerate(profile["extra_networks"]):
        found += [_NamedNetwork(("extra_networks", index, f), f, extra[f]) for f in VERSIONS if extra.get(f)]
    for index, outside in enumerate(profile["outside_networks"]):
        found += [_NamedNetwork(("outside_networks", index, f), f, outside[f]) for f in VERSIONS if outside.get(f)]
    for name, segment in profile["segments"].items():
        found += [
            _NamedNetwork(("segments", name, f), f, segment[f]) for f in FAMILIES[profile["stack"]] if segment.get(f)
        ]
    return [named._replace(network=ipaddress.ip_network(named.network)) for named in found]


def cluster_ranges(profile: Profile) -> list[_NamedNetwork]:
    """Return the ranges of pods and services."""
    installer, found = profile["installer"], []
    for family in FAMILIES[profile["stack"]]:
        found += [
            _NamedNetwork(("installer", "cluster_network", family, index, "cidr"), family, entry["cidr"])
            for index, entry in enumerate(installer["cluster_network"][family])
        ]
        found.append(
            _NamedNetwork(("installer", "service_network", family), family, installer["service_network"][family])
        )
    return [named._replace(network=ipaddress.ip_network(named.network)) for named in found]


def check_networks(profile: Profile, cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with networks: their family, overlaps with each other, and with those inside of OVN-Kubernetes.

    Networks are those of the machines, pods and services. A finding is path, value, and what would be right.
    """
    # What contradicts a default is wrong, not the default.
    named = sorted(lan(profile) + cluster_ranges(profile), key=lambda one: not is_default(one.path, str(one.network)))
    for path, family, network in named:
        if network.version != VERSIONS[family]:
            yield path, str(network), f"must be an {'IPv4' if family == 'ipv4' else 'IPv6'} network"
    for index, (path, _family, network) in enumerate(named):
        for other in named[:index]:
            if _overlap(network, other.network):
                first = ".".join(str(part) for part in other.path)
                yield path, str(network), f"overlaps with {first} ({other.network}); choose another range"
        for internal in _OVN_INTERNAL if profile["installer"]["network_type"] == "OVNKubernetes" else ():
            if _overlap(network, ipaddress.ip_network(internal)):
                yield path, str(network), f"overlaps with {internal}, which OVN-Kubernetes reserves"
    for index, extra in enumerate(profile["extra_networks"]):
        if not extra.get("ipv4") and not extra.get("ipv6"):
            yield ("extra_networks", index), None, "needs `ipv4`, `ipv6` or both, such as `ipv4: 192.168.221.0/24`"
    yield from _names(profile, cluster)
    for family in FAMILIES[profile["stack"]]:
        entries = profile["installer"]["cluster_network"][family]
        if not entries:
            yield ("installer", "cluster_network", family), [], f"must not be empty with `stack: {profile['stack']}`"
        for index, entry in enumerate(entries):
            prefix = ipaddress.ip_network(entry["cidr"]).prefixlen
            if entry["host_prefix"] < prefix:
                yield (
                    ("installer", "cluster_network", family, index, "host_prefix"),
                    entry["host_prefix"],
                    f"must be at least {prefix}, the length of {entry['cidr']}: each node gets a part of it",
                )


def _names(profile: Profile, cluster: str) -> Iterator[Finding]:
    """Yield names of networks and bridges that another one has, and those that have another meaning."""
    named: list[tuple[Path, str]] = [
        *((("extra_networks", index, "name"), one["name"]) for index, one in enumerate(profile["extra_networks"])),
        *((("outside_networks", index, "name"), one["name"]) for index, one in enumerate(profile["outside_networks"])),
        *((("segments", name), name) for name in profile["segments"]),
    ]
    bridges: list[tuple[Path, str]] = [(("network", "bridge"), profile["network"]["bridge"] or f"{cluster}bm")]
    own: list[tuple[Path, Mapping[str, Any]]] = [
        *((("extra_networks", index), one) for index, one in enumerate(profile["extra_networks"])),
        *((("segments", name), one) for name, one in profile["segments"].items()),
    ]
    for path, given in own:
        bridge = given.get("bridge")
        if bridge and bridge != given.get("name", path[-1]):
            bridges.append(((*path, "bridge"), bridge))
    yield from duplicates(iter([*bridges, *named]))
    for path, name in [*bridges, *named]:
        if _LINKS.fullmatch(name):
            yield path, name, "is the name of a link of the lab itself; choose another one"
    for path, name in named:
        if name == MACHINE_NETWORK:
            yield path, name, "is the name of the machine network in `machines`; choose another one"


def misplacement(text: str, network: IpNetwork) -> str:
    """Return why an address cannot be one of a machine in a network; "" if it can."""
    address = ipaddress.ip_address(text)
    if address not in network:
        return f"is outside of its network, {network}"
    if address == network.network_address and network.num_addresses > 2:
        return f"is the address of its network, {network}, itself; choose another"
    if address == network.broadcast_address and network.version == 4 and network.num_addresses > 2:
        return f"is the broadcast address of its network, {network}; choose another"
    return ""


def _overlap(one: IpNetwork, other: IpNetwork) -> bool:
    return bool(one.version == other.version and one.overlaps(other))


def check_room(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Each address that is derived by offset must exist in its network, and be unique."""
    offsets = profile["network"]["offsets"]
    ways = [build.addressing_of(profile, name, role) for name, role, __ in node_names(profile)]
    dhcp, count = {"dhcp", "slaac"} & set(ways), len(ways)
    firsts = {way: offsets["static_nodes" if way == "static" else "dhcp_nodes"] for way in ways}
    nodes = [firsts[way] + index for index, way in enumerate(ways)]
    last = max(*nodes, *(offsets[name] for name in ("gateway", "ingress", "api")))
    if dhcp:
        last = max(last, offsets["dhcp_end"])
        fixed = [node for node, way in zip(nodes, ways, strict=True) if way == "static"]
        if any(offsets["dhcp_start"] <= node <= offsets["dhcp_end"] or nodes.count(node) > 1 for node in fixed):
            remedy = f"must be greater than dhcp_end, {offsets['dhcp_end']}, and than all nodes with DHCP"
            yield ("network", "offsets", "static_nodes"), offsets["static_nodes"], remedy
    for path, _family, network in lan(profile):
        # The last address of an IPv4 network is its broadcast address.
        top = network.num_addresses - (2 if network.version == 4 else 1)
        if last > top:
            yield (
                path,
                str(network),
                f"is too small: addresses up to offset {last} are used (network.offsets, {count} nodes), "
                f"it ends at {top}",
            )
    if offsets["dhcp_start"] > offsets["dhcp_end"]:
        yield (
            ("network", "offsets", "dhcp_start"),
            offsets["dhcp_start"],
            f"must not be greater than dhcp_end, {offsets['dhcp_end']}",
        )
    names: list[Literal["gateway", "ingress", "api"]] = ["gateway"]
    if profile["master"]["count"] > 1:
        names += [name for name in _VIPS if profile["vips"][name] is None]
    for index, name in enumerate(names):
        path, value = ("network", "offsets", name), offsets[name]
        for other in names[:index]:
            if value == offsets[other]:
                yield path, value, f"is already the offset of {other}"
        if value in nodes:
            yield path, value, f"is the address of a node: nodes have the offsets {min(nodes)} to {max(nodes)}"
        if dhcp and offsets["dhcp_start"] <= value <= offsets["dhcp_end"]:
            yield (
                path,
                value,
                f"is in the DHCP range, {offsets['dhcp_start']} to {offsets['dhcp_end']}; choose one outside",
            )


def check_slaac(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """SLAAC is of IPv6, in networks of 64 bits, and of NICs as NetworkManager configures them by itself."""
    if profile["addressing"] != "slaac":
        return
    if "ipv6" not in FAMILIES[profile["stack"]]:
        yield ("addressing",), "slaac", f"requires a stack with IPv6, not {profile['stack']}: IPv4 has no SLAAC"
        return
    for path, family, network in lan(profile):
        if family == "ipv6" and network.prefixlen != 64 and path[0] != "outside_networks":
            yield path, str(network), "must be a /64 with `addressing: slaac`: interface identifiers have 64 bits"
    nmstate = "requires nmstate, which has no SLAAC without DHCPv6; use dhcp or static addressing"
    for where, value in of_nmstate(profile):
        yield where, value, nmstate
    if FAMILIES[profile["stack"]][0] == "ipv6" and mode_of(profile).fetches:
        yield ("addressing",), "slaac", "must be dhcp or static: machines boot from the network by DHCPv6"
    yield from _slaac_of_nodes(profile)


def of_nmstate(profile: Profile) -> Iterator[tuple[Path, Any]]:
    """Yield the fields, with their values, that hosts only get by nmstate: bonds, VLANs, routes, and MTUs that no lease has."""
    if profile["bonds"]:
        yield ("bonds",), sorted(profile["bonds"])
    given: list[tuple[Path, Mapping[str, Any], Collection[str]]] = [
        (("network",), profile["network"], FAMILIES[profile["stack"]]),
        *(
            (("extra_networks", at), one, one.keys() & set(VERSIONS))
            for at, one in enumerate(profile["extra_networks"])
        ),
    ]
    for path, network, families in given:
        for field in ("vlan", "routes"):
            if network.get(field):
                yield (*path, field), network[field]
        mtu = network.get("mtu", profile["network"]["mtu"])
        if mtu != MTU and "ipv4" not in families:  # an IPv4 lease has it
            yield (*path, "mtu"), mtu


def _slaac_of_nodes(profile: Profile) -> Iterator[Finding]:
    ways = {}
    for name, role, _number in node_names(profile):
        own = profile["nodes"].get(name, {})
        place: Path = ("nodes", name) if own.get("addressing") else (role,)
        ways[(*place, "addressing")] = way = build.addressing_of(profile, name, role)
        for nic, settings in own.get("nics", {}).items():
            if settings.get("addresses") and way != "static":
                place = ("nodes", name, "nics", nic, "addresses")
                yield place, settings["addresses"], "follow from the MAC with `addressing: slaac`; leave them out"
    for place, way in ways.items():
        if way == "dhcp":
            yield place, way, "must be static, or as the cluster: slaac has no DHCPv6"
