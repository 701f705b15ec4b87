"""Networks, machines, services and faults without a cluster, from a few lines of YAML: what is not given is completed, as in a plan.

The shapes are those of `machines`, with fields that may be missing. Who owns them and where that is recorded: `sandbox.standalone`.
For modules that need less of a plan: `partial`.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict, cast

from ..addresses import family
from . import build, disks, names
from .faults import KINDS, ProfileFault, complete
from .fields import Bridge, Cidr, Directory, Domain, Host, Ip, Label, Mac, Mtu, Name, Size
from .machine_options import Bus
from .machines import Dhcp, DnsHost, Network, Node, Reservation, Subnet, Wildcard
from .model import Plan
from .options import ServicesOptions
from .outside import DISK_GIB, LAB, Image, Machine
from .presets import DEFAULTS, MTU
from .problems import Finding, Problem, ProfileError
from .stored import part

_SIZE = {"vcpus": 2, "memory_mib": 4096, "firmware": "uefi", "tpm": False}


class _Cidr(TypedDict):
    cidr: Cidr
    """The range."""


class ShortSubnet(_Cidr, total=False):
    """One family's addresses of a network."""

    gateway: Ip
    """Address of the hypervisor in it; the first of the range unless given."""
    dhcp: Dhcp
    """The DHCP range; none is served unless given."""


class ShortDns(TypedDict, total=False):
    """The names that a network serves."""

    hosts: list[DnsHost]
    """Exact names."""
    wildcards: list[Wildcard]
    """Names of which only the domain is known."""


class _Reservation(TypedDict):
    ip: Ip
    """The address that it gets."""
    name: Label
    """Host name of the node."""


class ShortReservation(_Reservation, total=False):
    """A DHCP lease: by MAC (IPv4) or by DUID (IPv6), never both."""

    mac: Mac
    """MAC of the interface."""
    duid: str
    """Link-layer DHCPv6 unique identifier of the interface."""


class _Network(TypedDict):
    name: Bridge
    """Its name in libvirt."""
    subnets: list[ShortSubnet]
    """Its addresses, one entry for each family."""


class ShortNetwork(_Network, total=False):
    """A network."""

    bridge: Bridge
    """Name of its bridge; that of the network unless given."""
    mtu: Mtu
    """MTU in bytes; 1500 unless given."""
    nat: bool
    """Whether its packets leave with the hypervisor's address; they do unless it is false."""
    domain: Domain
    """Domain of the names that it serves; `<cluster>.test` unless given."""
    dns: ShortDns
    """The names that it serves."""
    reservations: list[ShortReservation]
    """DHCP leases."""


class _Disk(TypedDict):
    size_gib: Size
    """Size in GiB."""


class ShortDisk(_Disk, total=False):
    """A disk of a node."""

    bus: Bus
    """Its bus; virtio unless given."""


class _Nic(TypedDict):
    network: Name
    """Name of the network that it is in."""


class ShortNic(_Nic, total=False):
    """An interface of a node."""

    mac: Mac
    """Its MAC; made of cluster, node and interface unless given."""


class _Node(TypedDict):
    name: Label
    """Host name."""


class ShortNode(_Node, total=False):
    """A machine."""

    vcpus: Size
    """Virtual CPUs; 2 unless given."""
    memory_mib: Size
    """Memory in MiB; 4096 unless given."""
    firmware: Literal["uefi", "bios"]
    """The machine's firmware; uefi unless given."""
    tpm: bool
    """Whether it has a TPM 2.0; it has none unless given."""
    disks: list[ShortDisk]
    """Its disks, in the order of their targets; none unless given."""
    nics: list[ShortNic]
    """Its interfaces; none unless given."""


class ShortMachine(ShortNode, total=False):
    """A machine that is switched on once it is made."""

    image: Image
    """'lab' unless given: the lab's operating system, which it boots from a CD; or the path of an image (qcow2 or raw) below its first
    disk, which is not changed. Such a disk has 10 GiB unless `disks` has another size."""
    network_config: dict[str, Any]
    """nmstate of one with the image 'lab'."""
    files: dict[Directory, Annotated[str, "word"]]
    """Small files of one with the image 'lab': path and text."""
    units: dict[Annotated[str, "unit"], Annotated[str, "word"]]
    """Units of systemd that one with the image 'lab' enables: name and text."""


class ShortTunnel(TypedDict):
    """A tunnel to another host."""

    local: Ip
    """Address of this host."""
    remote: Ip
    """Address of the other host."""


class ShortHost(TypedDict):
    """A host of an installation."""

    name: Label
    """Its name, that of a folder of the report."""
    address: Host
    """Its name in DNS, or its address."""


def hosts(given: Sequence[ShortHost]) -> dict[str, str]:
    """Return the addresses of hosts by name. Raises `ProfileError` as `plan`.

    Each of `given` has `name` and `address`, as `ShortHost`. Of two with one name the last counts.
    """
    refuse([("hosts", finding) for finding in part(given, list[ShortHost])])
    return {host["name"]: host["address"] for host in given}


def plan(given: Mapping[str, object]) -> Plan:
    """Return what `given` has of the options of modules without a plan as a plan with the lab's side only.

    They are `cluster`, `state_dir`, `domain_type`, `egress`, `route`, `networks`, `tunnels`, `nodes`, `machines`, `ssh_key_file`, `services`
    and `faults`; `cluster` is required. Raises `ProfileError` with the field, the value and what would be right.
    """
    cluster = str(given["cluster"])
    networks, nodes = present(given.get("networks")) or [], present(given.get("nodes")) or []
    machines, tunnels = present(given.get("machines")) or [], present(given.get("tunnels")) or []
    problems = [("cluster", finding) for finding in part(cluster, Label)]
    problems += [("networks", finding) for finding in part(networks, list[ShortNetwork])]
    problems += [("nodes", finding) for finding in part(nodes, list[ShortNode])]
    problems += [("machines", finding) for finding in part(machines, list[ShortMachine])]
    problems += [("tunnels", finding) for finding in part(tunnels, list[ShortTunnel])]
    services, faults = present(given.get("services")) or {}, present(given.get("faults")) or []
    problems += [("services", finding) for finding in part(services, ServicesOptions)]
    problems += [("faults", finding) for finding in part(faults, list[ProfileFault]) or _unusable(faults, nodes)]
    refuse(problems)
    state_dir = directory(given)
    served = [_network(entry, cluster) for entry in networks]
    ports = {name: {**default, **services.get(name, {})} for name, default in DEFAULTS["services"].items()}
    gateway = served[0]["subnets"][0]["gateway"] if served else ""
    parts = {
        "cluster": {"name": cluster, "domain": f"{cluster}.test", "arch": "x86_64"},
        "hypervisor": {"kind": "local", "state_dir": state_dir, "pool": cluster, "pool_dir": names.pool_dir(state_dir),
                       "console_dir": names.console_dir(state_dir), "netns": names.netns(cluster),
                       "uplink": names.uplink(cluster), "egress": bool(given.get("egress")), "route": bool(given.get("route")),
                       "domain_type": given.get("domain_type") or "auto"},
        "networks": served,
        "nodes": [_node(entry, cluster, index, state_dir) for index, entry in enumerate(nodes)],
        "rendezvous": {"node": ""},
        "boot": {"mode": "cdrom"},
        "services": build.lab_services(cast(ServicesOptions, ports), gateway, f"{cluster}.test", state_dir),
        "faults": [complete(fault) for fault in faults],
    }  # fmt: skip
    if tunnels:
        parts["hypervisors"] = [_joined(tunnel, cluster, networks) for tunnel in tunnels]
    if machines:
        parts["machines"] = [_machine(entry, cluster, index, state_dir) for index, entry in enumerate(machines)]
        parts["installer"] = {"ssh_key_file": given.get("ssh_key_file")}
    return cast(Plan, parts)


def directory(given: Mapping[str, object]) -> str:
    """Return the state directory that the options `cluster` and `state_dir` name.

    `given` are the options of a module or a role; the directory is on the hypervisor.
    """
    return str(given.get("state_dir") or names.state_dir(str(given["cluster"])))


def refuse(problems: Sequence[tuple[str, Finding]]) -> None:
    """Raise `ProfileError` with problems, if there are any: each an option, and what is wrong in it."""
    if problems:
        raise ProfileError([Problem.of(option, *finding) for option, finding in problems])


def _unusable(faults: Sequence[Mapping[str, Any]], nodes: Sequence[Mapping[str, object]]) -> list[Finding]:
    """Return the faults that need a plan, and those of nodes that there are not."""
    known = [str(node.get("name")) for node in nodes]
    found: list[Finding] = []
    for index, fault in enumerate(faults):
        if KINDS[fault["kind"]].in_plan:
            kinds = ", ".join(name for name, kind in KINDS.items() if not kind.in_plan)
            found.append(((index, "kind"), fault["kind"], f"requires a plan; without one: {kinds}"))
        found += [
            ((index, key), fault[key], f"must be one of {', '.join(known) or 'the nodes, and there are none'}")
            for key in ("node", "peer")
            if key in fault and fault[key] not in known
        ]
    return found


def present(value: object) -> Any:
    """Return `value` without the nulls that Ansible gives to what is missing."""
    if isinstance(value, Mapping):
        return {key: present(item) for key, item in value.items() if item is not None}
    return [present(item) for item in value] if isinstance(value, list) else value


def _network(given: ShortNetwork, cluster: str) -> Network:
    return {
        "name": given["name"],
        "bridge": given.get("bridge", given["name"]),
        "bridge_mac": names.bridge_mac(cluster, given["name"]),
        "purpose": "machine",
        "mtu": given.get("mtu", MTU),
        "nat": given.get("nat", True),
        "domain": given.get("domain", f"{cluster}.test"),
        "subnets": [_subnet(entry) for entry in given["subnets"]],
        "dns": {"hosts": [], "wildcards": [], **given.get("dns", {})},
        "reservations": [
            cast(Reservation, {"mac": None, "duid": None, **entry}) for entry in given.get("reservations", [])
        ],
    }


def _subnet(given: ShortSubnet) -> Subnet:
    network = ipaddress.ip_network(given["cidr"])
    return {
        "family": family(given["cidr"].partition("/")[0]),
        "cidr": given["cidr"],
        "prefix": network.prefixlen,
        "gateway": given.get("gateway", str(network[1])),
        "dhcp": given.get("dhcp"),
    }


def _node(given: ShortNode, cluster: str, index: int, state_dir: str) -> Node:
    name = given["name"]
    domain = f"{cluster}_{name}"
    return {
        "name": name,
        "domain": domain,
        "role": "worker",
        "uuid": names.node_uuid(cluster, name),
        **{key: given.get(key, default) for key, default in _SIZE.items()},  # type: ignore[typeddict-item]
        "disks": disks.disks(domain, given.get("disks", [])),
        "nics": [
            {
                "name": f"eth{position}",
                "network": nic["network"],
                "mac": nic.get("mac", "").lower() or names.mac_address(f"{cluster}/{name}", f"eth{position}", index),
                "addresses": [],
            }
            for position, nic in enumerate(given.get("nics", []))
        ],
        "console": names.console(state_dir, domain),
        "network_config": None,
        "root_device": None,
        "bmc": {"address": "", "username": "", "password": None},
    }


def _machine(given: ShortMachine, cluster: str, index: int, state_dir: str) -> Machine:
    image = given.get("image", LAB)
    sizes: list[ShortDisk] = given.get("disks") or ([] if image == LAB else [{"size_gib": DISK_GIB}])
    made = _node(cast(ShortNode, {**given, "disks": sizes}), cluster, index, state_dir)
    return {
        "name": made["name"],
        "domain": made["domain"],
        "uuid": made["uuid"],
        "vcpus": made["vcpus"],
        "memory_mib": made["memory_mib"],
        "firmware": made["firmware"],
        "tpm": made["tpm"],
        "disks": made["disks"],
        "nics": made["nics"],
        "console": made["console"],
        "image": image,
        "network_config": given.get("network_config"),
        "files": given.get("files", {}),
        "units": given.get("units", {}),
    }


def _joined(given: ShortTunnel, cluster: str, networks: Sequence[ShortNetwork]) -> dict[str, Any]:
    """Return another host as a hypervisor of the plan. Both hosts find the same identifiers of VXLANs (24 bits, not 0)."""
    pair = "/".join(sorted([given["local"], given["remote"]]))
    ids = {}
    for network in networks:
        digest = hashlib.sha256(f"{cluster}/{pair}/{network['name']}".encode()).digest()
        ids[network["name"]] = int.from_bytes(digest[:3], "big") or 1
    return {
        "kind": "ssh",
        "further": {"tunnel": {"address": given["remote"], "peer": given["local"], "paired": False, "ids": ids}},
    }
