"""The types of the networks and nodes of a plan; see `model`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypedDict, cast

from .fields import (
    BondMode,
    Bridge,
    Cidr,
    Directory,
    Domain,
    Family,
    File,
    Hctl,
    Ip,
    Iqn,
    Label,
    Login,
    Mac,
    Model,
    Mtu,
    Name,
    Prefix,
    Role,
    Serial,
    Size,
    Uuid,
    Vendor,
    VlanId,
    Wwn,
    WwnHint,
)
from .fields import Link as LinkName
from .machine_options import DiskBus
from .screens import ScreenStep


class Dhcp(TypedDict):
    """The DHCP range of a subnet."""

    start: Ip
    """First address."""
    end: Ip
    """Last address."""
    lease_minutes: Size
    """For how many minutes a lease is valid."""


class Subnet(TypedDict):
    """One family's addresses of a network."""

    family: Family
    """The family."""
    cidr: Cidr
    """The range."""
    prefix: Prefix
    """Prefix length of the range."""
    gateway: Ip
    """Address of the hypervisor in it."""
    dhcp: Dhcp | None
    """The DHCP range; null: none is served."""


class DnsHost(TypedDict):
    """An address and its names."""

    ip: Ip
    """The address."""
    names: list[Domain]
    """Its names. Both the short form and the one with the network's domain are served."""


class Wildcard(TypedDict):
    """An address for all names of a domain."""

    domain: Domain
    """The domain."""
    ip: Ip
    """The address."""


class Dns(TypedDict):
    """The names that a network serves."""

    hosts: list[DnsHost]
    """Exact names."""
    wildcards: list[Wildcard]
    """Names of which only the domain is known."""


class Reservation(TypedDict):
    """A DHCP lease: by `mac` (IPv4) or by `duid` (IPv6), never both."""

    mac: Mac | None
    """MAC of the interface."""
    duid: Annotated[str, "duid"] | None
    """Link-layer DHCPv6 unique identifier of the interface."""
    ip: Ip
    """The address that it gets."""
    name: Label
    """Host name of the node."""


class Route(TypedDict):
    """A static route of the nodes."""

    destination: Cidr
    """The network that it leads to."""
    next_hop: Ip
    """Address of the next hop."""


class _Network(TypedDict):
    name: Bridge
    """Its name in libvirt."""
    bridge: Bridge
    """Name of its bridge."""
    bridge_mac: Mac
    """MAC of its bridge."""
    purpose: Literal["machine", "extra", "segment", "outside"]
    """Whether it is the machine network, another segment of it, a network in addition to it, or one without nodes."""
    mtu: Mtu
    """MTU in bytes."""
    nat: bool
    """Whether its packets leave with the hypervisor's address."""
    domain: Domain | None
    """Domain of the names that it serves; null: it serves none."""
    subnets: list[Subnet]
    """Its addresses, one entry for each family."""
    dns: Dns
    reservations: list[Reservation]
    """DHCP leases of the nodes."""


class Network(_Network, total=False):
    """A network; the first of a plan is the machine network.

    Each node has an interface in the machine network or in one segment of it, and in each extra network of its role.
    """

    vlan: VlanId | None
    """VLAN id on the nodes' interfaces; null, or not given: untagged."""
    routes: list[Route] | None
    """Static routes of the nodes through it; null, or not given: none."""


class _Disk(TypedDict):
    name: Name
    """Name of its volume."""
    size_gib: Size
    """Size in GiB."""
    bus: DiskBus
    """Its bus, or `iscsi` for a LUN."""
    target: Name
    """Name of the device in the machine."""
    serial: Name
    """Serial number."""


class Disk(_Disk, total=False):
    """A disk of a node. What it does not have here it reports as QEMU's disks do."""

    vendor: Vendor | None
    """Its vendor."""
    model: Model | None
    """Its model."""
    wwn: Wwn | None
    """Its world wide name."""
    rotational: bool | None
    """Whether it rotates."""
    iqn: Iqn | None
    """Name of the iSCSI target whose LUN it is, and of the only initiator that may use it; null, or not given: it is a local disk."""
    paths: Size | None
    """Over how many paths a LUN is reached, if over several: it is a multipath device; null, or not given: over one."""


class Hints(TypedDict, total=False):
    """Root device hints of a node, other than its device; null, or not given: there is no such hint."""

    hctl: Hctl | None
    """SCSI address: host, channel, target and LUN."""
    model: Model | None
    """Part of the model."""
    vendor: Vendor | None
    """Part of the vendor."""
    serial_number: Serial | None
    """Serial number."""
    min_size_gigabytes: Size | None
    """Least size, in units of 10^9 bytes."""
    wwn: WwnHint | None
    """World wide name."""
    rotational: bool | None
    """Whether it rotates."""


class Address(TypedDict):
    """An address of an interface."""

    family: Family
    """The family."""
    ip: Ip
    """The address."""
    prefix: Prefix
    """Prefix length of its subnet."""


class _Nic(TypedDict):
    name: Name
    """Its name."""
    network: Name
    """Name of the network that it is in, the first one if it carries several."""
    mac: Mac
    """Its MAC."""
    addresses: list[Address]
    """Its addresses, in the order of the stack's families; none if bonds or VLANs on it have them."""


class Nic(_Nic, total=False):
    """A NIC of a node."""

    port: LinkName | None
    """Name of its port on the sandbox's switch; null, or not given: it is connected to the network's bridge."""
    mtu: Mtu | None
    """MTU in bytes, of one with a port."""


class Bond(TypedDict):
    """How NICs are bonded."""

    mode: BondMode
    """Mode of the bond."""
    nics: list[Name]
    """Names of the NICs."""


class Vlan(TypedDict):
    """A VLAN on a NIC or a bond."""

    id: VlanId
    """VLAN id."""
    parent: Name
    """Name of the NIC or the bond."""


class Link(TypedDict):
    """A bond or a VLAN of a node; one of both is not null."""

    name: Name
    """Its name."""
    mac: Mac
    """MAC of its first NIC."""
    mtu: Mtu
    """MTU in bytes."""
    bond: Bond | None
    vlan: Vlan | None
    network: Name | None
    """Name of the network that it is in; null: VLANs on it are."""
    addresses: list[Address]
    """Its addresses, in the order of the stack's families."""


class _Bmc(TypedDict):
    address: Annotated[str, "bmc"]
    """Its URL, as in a BareMetalHost."""
    username: Login
    """Its user."""
    password: str | None
    """Password of that user; null: the one in secrets.json."""


class Bmc(_Bmc, total=False):
    """The BMC of a node."""

    verify_ca: bool | None
    """Whether the certificate of an existing machine's is checked; null, or not given: it is."""
    ca_file: File | None
    """File with the authority of that certificate; null, or not given: those of the host that boots the machine."""
    quirks: list[Name] | None
    """Known deviations from the Redfish specification; null, or not given: nothing."""


class Common(TypedDict):
    """What a node and a machine outside of the cluster have in common."""

    name: Label
    """Its name; a node's host name."""
    domain: Name
    """Name of the libvirt domain. An existing machine has none; the name is unused."""
    uuid: Uuid
    """UUID of the machine, by which a node's BMC knows it."""
    vcpus: Size
    """Virtual CPUs."""
    memory_mib: Size
    """Memory in MiB."""
    firmware: Literal["uefi", "bios"]
    """The machine's firmware."""
    tpm: bool
    """Whether it has a TPM 2.0."""
    disks: list[Disk]
    """Its disks, in the order of their targets."""
    nics: list[Nic]
    """Its NICs."""
    console: Directory
    """File on the hypervisor with what it writes to its serial console."""
    network_config: dict[str, Any] | None
    """Its nmstate: a node's in agent-config.yaml, that of a machine with the image `lab`; null: it has none."""


class _Node(Common):
    role: Role
    """Its role; `extra` for a machine that is not part of the cluster (fault extra_host)."""
    root_device: Annotated[str, "device"] | None
    """Path of the disk to install to, as root device hint; null: the installer chooses."""
    bmc: Bmc


class Node(_Node, total=False):
    """A machine."""

    links: list[Link] | None
    """Its bonds and VLANs, each after what it consists of; null, or not given: it has none."""
    addressing: Literal["dhcp", "static"] | None
    """How it gets its addresses; null, or not given: as the cluster."""
    secure_boot: bool | None
    """Whether its firmware starts only what is signed; null, or not given: it starts everything."""
    screen: bool | None
    """Whether it has a screen; null, or not given: it has a serial console only."""
    screen_steps: list[ScreenStep] | None
    """Steps on its screen after it was booted; null, or not given: none."""
    root_device_hints: Hints | None
    """Its root device hints other than `root_device`; null, or not given: none."""
    manufacturer: str | None
    """The manufacturer in its SMBIOS, which a platform asks for; null, or not given: the hypervisor's own."""
    hypervisor: Label | None
    """Name of the hypervisor that carries it, if it is another one; null, or not given: it is this one (`hypervisor` of the plan)."""
    bare_metal: bool | None
    """Whether it is an existing machine, which has no domain; null, or not given: it is a VM."""
    day2: bool | None
    """Whether it joins the installed cluster (`agentlab add-nodes`); null, or not given: it is one of the installation."""


def virtual(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that are VMs: those with a domain, disks and a console of the lab's."""
    return [node for node in nodes if not node.get("bare_metal")]


def own_machines(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that are VMs of the plan's own hypervisor, not of another one (`hypervisors`)."""
    return [node for node in virtual(nodes) if not node.get("hypervisor")]


def interfaces(node: Node) -> list[Nic | Link]:
    """Return all interfaces of a node: bonds and VLANs, then NICs."""
    return [*(node.get("links") or []), *node["nics"]]


def bond_of(interface: Nic | Link) -> Bond | None:
    """Return the bond that an interface is; None for a NIC and a VLAN."""
    return cast(Link, interface)["bond"] if "bond" in interface else None


def vlan_of(interface: Nic | Link) -> Vlan | None:
    """Return the VLAN that an interface is; None for a NIC and a bond."""
    return cast(Link, interface)["vlan"] if "vlan" in interface else None


def home(node: Node, networks: Sequence[Network]) -> Network:
    """Return the network in which the cluster knows a node: the segment that it is in, or the machine network.

    networks: all of the plan.
    """
    there = {one["network"] for one in interfaces(node)}
    return next(network for network in networks if network["purpose"] != "extra" and network["name"] in there)


def address_of(node: Node, networks: Sequence[Network]) -> str:
    """Return the address at which a node is reached: the first of those by which the cluster knows it. networks: all of the plan."""
    return in_network(node, home(node, networks)["name"])["addresses"][0]["ip"]


def in_network(node: Node, network: str) -> Nic | Link:
    """Return the interface with the node's addresses in `network`, which must be one of the node's."""
    return next(one for one in interfaces(node) if one["network"] == network)
