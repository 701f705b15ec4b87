"""Checks of the machines outside of the cluster, and of their networks; see `checks`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Literal

from ..addresses import family as family_of
from ..releases import LATEST, RELEASES
from ..vocabulary import WITH_VIPS
from . import build, ipi
from .fields import Family
from .files import FileError
from .network_checks import misplacement
from .options import Profile
from .outside import LAB, MACHINE_NETWORK, complete
from .presets import FAMILIES
from .problems import Finding, Path, duplicates
from .tests import PLACES

TEXTS = 64 * 1024
"""Most bytes of the files and units of a machine together: its image has space for 256 KiB of Ignition config."""
_QCOW2, _SECTOR, _SIGNATURE = b"QFI\xfb", 512, b"\x55\xaa"
_OWN = ("load_balancer", "files", "units")
_MEMORY = 512
_WRITABLE = ("/etc/", "/var/", "/opt/", "/srv/", "/home/", "/root/", "/usr/local/")


def check(profile: Profile, cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with the machines outside of the cluster: names, networks, addresses, images, and the load balancer."""
    for index, network in enumerate(profile["outside_networks"]):
        if not network.get("ipv4") and not network.get("ipv6"):
            yield ("outside_networks", index), None, "needs `ipv4`, `ipv6` or both, such as `ipv4: 192.168.230.0/24`"
    machines = [complete(given) for given in profile["machines"]]
    nodes = [name for name, _role, _number in build.node_names(profile)]
    yield from duplicates((("machines", index, "name"), one["name"]) for index, one in enumerate(machines))
    for index, one in enumerate(machines):
        path: Path = ("machines", index)
        if one["name"] in nodes:
            yield (*path, "name"), one["name"], "is the name of a node; choose another one"
        if one["name"] in (*PLACES, "api-int", "virthost", *([ipi.NAME] if profile["flow"] == "ipi" else [])):
            yield (*path, "name"), one["name"], "has another meaning in the lab; choose another one"
        if one["memory_mib"] < _MEMORY:
            yield (*path, "memory_mib"), one["memory_mib"], f"must be at least {_MEMORY}"
        yield from _image(profile, path, one)
        yield from _networks(profile, path, one)
    yield from _addresses(profile, machines)
    yield from _balancer(profile, machines)


def _image(profile: Profile, path: Path, one: Mapping[str, Any]) -> Iterator[Finding]:
    if one["image"] != LAB:
        for field in _OWN:
            if one[field]:
                yield (*path, field), None, "requires `image: lab`: agentlab does not change another image"
        return
    if (payload := profile["release"]["payload"]) != "lab":
        remedy = f"requires `release: {{payload: lab}}`, not {payload}; use the path of an image of your own"
        yield (*path, "image"), LAB, remedy
    if (kind := profile["hypervisor"]["kind"]) == "ssh":
        remedy = (
            f"requires `hypervisor: {{kind: sandbox}}` or `local`, not {kind}; use the path of an image that is there"
        )
        yield (*path, "image"), LAB, remedy
    for name in one["files"]:
        if not name.startswith(_WRITABLE):
            yield (
                (*path, "files", name),
                None,
                f"must be below {', '.join(_WRITABLE)}: the rest of its system is read-only",
            )
    size = sum(len(text.encode()) for field in ("files", "units") for text in one[field].values())
    if size > TEXTS:
        yield (*path, "files"), None, f"has with `units` {size} bytes, at most {TEXTS} fit into its image"


def _known(profile: Profile) -> dict[str, dict[Family, Any]]:
    """Return the networks that a machine can be in, by name, with their subnets."""

    def subnets(given: Mapping[str, Any], families: tuple[Family, ...] = ("ipv4", "ipv6")) -> dict[Family, Any]:
        return {family: ipaddress.ip_network(given[family]) for family in families if given.get(family)}

    stack = FAMILIES[profile["stack"]]
    return {
        MACHINE_NETWORK: subnets(profile["network"], stack),
        **{one["name"]: subnets(one) for one in profile["extra_networks"]},
        **{name: subnets(one, stack) for name, one in profile["segments"].items()},
        **{one["name"]: subnets(one) for one in profile["outside_networks"]},
    }


def _networks(profile: Profile, path: Path, one: Mapping[str, Any]) -> Iterator[Finding]:
    known = _known(profile)
    if not one["networks"]:
        yield (*path, "networks"), None, "must not be empty"
    yield from duplicates(((*path, "networks", nth, "name"), net["name"]) for nth, net in enumerate(one["networks"]))
    tagged = [MACHINE_NETWORK] if _switched(profile["network"]) else []
    tagged += [net["name"] for net in profile["extra_networks"] if _switched(net)]
    for nth, network in enumerate(one["networks"]):
        name, place = network["name"], (*path, "networks", nth)
        if name not in known:
            yield (*place, "name"), name, f"there is no such network; there is {', '.join(known)}"
            continue
        if name in tagged:
            yield (*place, "name"), name, "has bonds or VLANs, which machines outside of the cluster do not have"
        given, subnets = network.get("addresses"), known[name]
        if given is None:
            continue
        if [family_of(text) for text in given] != [*subnets]:
            wanted = " and one ".join("IPv4" if family == "ipv4" else "IPv6" for family in subnets)
            yield (*place, "addresses"), given, f"must be one {wanted} address, in this order"
        for position, text in enumerate(given):
            inside = subnets.get(family_of(text))
            if inside is not None and (wrong := misplacement(text, inside)):
                yield (*place, "addresses", position), text, wrong


def _switched(network: Mapping[str, Any]) -> bool:
    return bool(network.get("vlan") or str(network.get("interface") or "").startswith("bond"))


def _taken(profile: Profile, known: Mapping[str, Mapping[Family, Any]]) -> dict[str, str]:
    """Return whose the addresses are that something else than a machine has: gateways, nodes, API and ingress."""
    offsets, nodes = profile["network"]["offsets"], build.node_names(profile)
    what = [("the gateway", offsets["gateway"])]
    for number, (name, role, __) in enumerate(nodes):
        static = build.addressing_of(profile, name, role) == "static"
        what.append((f"node {name}", offsets["static_nodes" if static else "dhcp_nodes"] + number))
    subnets = [network for found in known.values() for network in found.values()]
    taken = {str(net[offset]): owner for net in subnets for owner, offset in what if offset < net.num_addresses}
    for name, node in profile["nodes"].items():
        for nic in node.get("nics", {}).values():
            taken |= {str(ipaddress.ip_address(ip)): f"node {name}" for ip in nic.get("addresses") or ()}
    vips: tuple[Literal["api", "ingress"], ...] = ("api", "ingress")
    for vip in vips:
        machine = [net for net in known[MACHINE_NETWORK].values() if offsets[vip] < net.num_addresses]
        given = profile["vips"][vip] or [str(net[offsets[vip]]) for net in machine]
        taken |= {str(ipaddress.ip_address(ip)): f"the {'API' if vip == 'api' else vip}" for ip in given}
    return taken


def _addresses(profile: Profile, machines: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield addresses of machines that something else has, or, of static ones, the DHCP servers may give away."""
    offsets, known = profile["network"]["offsets"], _known(profile)
    dhcp = any(build.addressing_of(profile, name, role) != "static" for name, role, __ in build.node_names(profile))
    served = [*known] if dhcp else [one["name"] for one in profile["outside_networks"]]
    taken = _taken(profile, known)
    for index, one in enumerate(machines):
        once = {network["name"]: (nth, network) for nth, network in reversed([*enumerate(one["networks"])])}
        for nth, network in once.values():
            subnets = known.get(network["name"], {})
            place: Path = ("machines", index)
            if network.get("addresses"):
                place = (*place, "networks", nth, "addresses")
            own = _own_addresses(network, subnets, offsets["machines"] + index)
            if own is None:
                yield (
                    place,
                    None,
                    f"has no address in {network['name']}, which ends before offset {offsets['machines'] + index}",
                )
            for ip in own or ():
                if ip in taken:
                    yield place, ip, f"is the address of {taken[ip]}; choose another"
                taken.setdefault(ip, f"machine {one['name']}")
                subnet = subnets.get(family_of(ip)) if one["image"] == LAB and network["name"] in served else None
                first, last = offsets["dhcp_start"], offsets["dhcp_end"]
                if subnet is None or last >= subnet.num_addresses:
                    continue
                if subnet[first] <= ipaddress.ip_address(ip) <= subnet[last]:
                    yield place, ip, f"is in the DHCP range, {subnet[first]} to {subnet[last]}; choose one outside"


def _own_addresses(network: Mapping[str, Any], subnets: Mapping[Family, Any], offset: int) -> list[str] | None:
    """Return the addresses of a machine in a network; None where the network has none at its offset."""
    if network.get("addresses"):
        return [str(ipaddress.ip_address(text)) for text in network["addresses"]]
    if any(offset >= subnet.num_addresses - 1 for subnet in subnets.values()):
        return None
    return [str(subnet[offset]) for subnet in subnets.values()]


def _balancer(profile: Profile, machines: list[dict[str, Any]]) -> Iterator[Finding]:
    found = [index for index, one in enumerate(machines) if one["load_balancer"]]
    for index in found[1:]:
        yield ("machines", index, "load_balancer"), True, "is a duplicate; a cluster has one load balancer"
    for index in found[:1]:
        path: Path = ("machines", index, "load_balancer")
        platform = build.platform_of(profile)
        if profile["master"]["count"] == 1:
            yield path, True, "requires several masters: a single node is reached by its own address"
        elif platform in WITH_VIPS and platform != "baremetal":
            yield path, True, f"requires platform baremetal, none or external, not {platform}"
        elif platform == "baremetal":
            yield from _user_managed(profile, path)
        if all(network["name"] != MACHINE_NETWORK for network in machines[index]["networks"]):
            yield (
                ("machines", index, "networks"),
                None,
                "requires the network `machine`, which has the addresses of API and ingress",
            )


def _user_managed(profile: Profile, path: Path) -> Iterator[Finding]:
    release = RELEASES[profile["release"]["profile"] or LATEST.name]
    if not release.load_balancer:
        first, *__ = (name for name, one in RELEASES.items() if one.load_balancer)
        yield path, True, f"requires a release from {first} on, not {release.name}, which ignores `loadBalancer`"


def check_files(profile: Profile, _cluster: str = "") -> Iterator[Finding]:
    """Yield what is wrong with the images of machines: files that are not there, no disk images, or larger than their disks."""
    for index, one in enumerate(map(complete, profile["machines"])):
        if one["image"] in (None, LAB):
            continue
        path: Path = ("machines", index, "image")
        try:
            kind, size = disk_image(one["image"])
        except FileError as error:
            yield path, one["image"], str(error)
            continue
        if size > one["disk_gib"] << 30:
            yield (
                ("machines", index, "disk_gib"),
                one["disk_gib"],
                f"must be at least {-(-size >> 30)}, the size of the {kind} image in GiB",
            )


def disk_image(name: str) -> tuple[str, int]:
    """Return the format of a disk image, `qcow2` or `raw`, and the size of its disk in bytes. Raises `FileError`.

    A raw image begins with a boot sector or a protective MBR; anything else is taken for a wrong file.
    """
    path = FilePath(name).expanduser()
    try:
        if not path.is_file():
            raise FileError("is not a file" if path.exists() else "cannot be read: No such file or directory")
        with path.open("rb") as stream:
            head = stream.read(_SECTOR)
        size = path.stat().st_size
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror}") from error
    if head[:4] == _QCOW2 and len(head) >= 32:
        if int.from_bytes(head[8:16]):
            raise FileError("has a backing file, which may not be there: convert it with `qemu-img convert`")
        return "qcow2", int.from_bytes(head[24:32])
    if len(head) == _SECTOR and head[-2:] == _SIGNATURE and size % _SECTOR == 0:
        return "raw", size
    raise FileError("is not a disk image in the format qcow2 or raw")
