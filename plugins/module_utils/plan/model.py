"""The types of a plan.

A plan is plain data (dicts, lists, strings, numbers), so that it is the same in memory, in `plan.yaml` and as an Ansible
fact. Its shape is in docs/architecture.md, its values by example in tests/unit/plan/golden/.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, TypedDict

Path = tuple[Any, ...]
"""Where a field stands in a profile: keys, and indices in lists."""

Finding = tuple[Path, Any, str]
"""Path of a field, its value (None: not worth showing), and what would be right."""


class Problem(NamedTuple):
    """One thing that is wrong with a profile.

    `source` is the file, with `:line:column` where it is known; `field` the path in it (`nodes.master-0.vcpus`, or `-`
    for the file as a whole); `value` what stands there; `remedy` what would be right.
    """

    source: str
    field: str
    value: Any
    remedy: str

    @classmethod
    def of(cls, source: str, path: Path, value: Any, remedy: str) -> Problem:
        """Return a finding in `source` as a problem."""
        return cls(source, ".".join(str(part) for part in path) or "-", value, remedy)

    def __str__(self) -> str:
        shown = "" if self.value is None else f" is {self.value!r}"
        field = "" if self.field == "-" else f"{self.field}{shown}: "
        return f"{self.source}: {field}{self.remedy}"


class ProfileError(ValueError):
    """Everything that is wrong with a profile, in one report (`problems`)."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class Range(NamedTuple):
    """The least and the most that an integer may be."""

    least: int
    most: int


Family = Literal["ipv4", "ipv6"]
Platform = Literal["none", "baremetal", "external"]
Role = Literal["master", "arbiter", "worker", "extra"]

# Strings with the name of their format (`formats`); a plain `str` has the format "line".
Bridge = Annotated[str, "bridge"]
Cidr = Annotated[str, "cidr"]
Directory = Annotated[str, "directory"]
Domain = Annotated[str, "domain"]
Duration = Annotated[str, "duration"]
File = Annotated[str, "file"]
Host = Annotated[str, "host"]
Ip = Annotated[str, "ip"]
Label = Annotated[str, "label"]
Login = Annotated[str, "login"]
Mac = Annotated[str, "mac"]
Name = Annotated[str, "name"]
Password = Annotated[str, "password"]
Repository = Annotated[str, "repository"]
Version = Annotated[str, "version"]

Port = Annotated[int, Range(1, 65535)]
Prefix = Annotated[int, Range(0, 128)]
Size = Annotated[int, Range(1, 1 << 32)]


class Cluster(TypedDict):
    name: Label
    base_domain: Domain
    domain: Domain
    topology: Literal["sno", "snomin", "compact", "ha", "4control", "5control", "tna", "tnf"]
    stack: Literal["ipv4", "ipv6", "dualstack"]
    addressing: Literal["dhcp", "static"]
    platform: Platform
    arch: Literal["x86_64"]


class Release(TypedDict):
    payload: Literal["lab", "ocp"]
    version: Version | None
    profile: Version
    image: Repository | None
    payload_overrides: dict[str, str]


class Hypervisor(TypedDict):
    kind: Literal["sandbox", "local", "ssh"]
    host: Host | None
    user: Annotated[str, "user"] | None
    netns: Name
    state_dir: Directory
    pool: Name
    pool_dir: Directory
    egress: bool
    route: bool
    domain_type: Literal["auto", "kvm", "qemu"]


class Dhcp(TypedDict):
    start: Ip
    end: Ip
    lease_minutes: Size


class Subnet(TypedDict):
    family: Family
    cidr: Cidr
    prefix: Prefix
    gateway: Ip
    dhcp: Dhcp | None


class DnsHost(TypedDict):
    ip: Ip
    names: list[Domain]


class Wildcard(TypedDict):
    domain: Domain
    ip: Ip


class Dns(TypedDict):
    hosts: list[DnsHost]
    wildcards: list[Wildcard]


class Reservation(TypedDict):
    """A DHCP lease: by `mac` (IPv4) or by `duid` (IPv6), never both."""

    mac: Mac | None
    duid: str | None
    ip: Ip
    name: Label


class Network(TypedDict):
    name: Bridge
    bridge: Bridge
    purpose: Literal["machine", "extra"]
    mtu: Size
    nat: bool
    domain: Domain | None
    subnets: list[Subnet]
    dns: Dns
    reservations: list[Reservation]


class Vips(TypedDict):
    api: list[Ip]
    ingress: list[Ip]


class Disk(TypedDict):
    name: Name
    size_gib: Size
    bus: Literal["scsi", "sata", "virtio"]
    target: Name
    serial: Name


class Address(TypedDict):
    family: Family
    ip: Ip
    prefix: Prefix


class Nic(TypedDict):
    name: Name
    network: Name
    mac: Mac
    addresses: list[Address]


class Bmc(TypedDict):
    address: Annotated[str, "bmc"]
    username: Login
    password: str | None


class Node(TypedDict):
    name: Label
    domain: Name
    role: Role
    uuid: Annotated[str, "uuid"]
    vcpus: Size
    memory_mib: Size
    firmware: Literal["uefi", "bios"]
    tpm: bool
    disks: list[Disk]
    nics: list[Nic]
    network_config: dict[str, Any] | None
    root_device: Annotated[str, "device"] | None
    bmc: Bmc


class Registry(TypedDict):
    port: Port
    username: Login
    password: Password | None


class BmcService(TypedDict):
    port: Port
    username: Login
    password: Password | None


class HttpService(TypedDict):
    port: Port
    url: Annotated[str, "url"]


class PortService(TypedDict):
    port: Port


class Services(TypedDict):
    address: Ip
    host: Domain
    registry: Registry
    bmc: BmcService
    http: HttpService
    ntp: PortService


BootMode = Literal["redfish", "cdrom", "pxe", "minimal", "manual"]


class Boot(TypedDict):
    mode: BootMode


class ClusterNetwork(TypedDict):
    cidr: Cidr
    host_prefix: Prefix


class DigestSource(TypedDict):
    source: Repository
    mirrors: list[Repository]


class Installer(TypedDict):
    """What the installer's input files need beyond the machines; `install_config`, `agent_config` are laid over them."""

    ssh_key_file: File | None
    pull_secret_file: File | None
    network_type: Name
    cluster_network: list[ClusterNetwork]
    service_network: list[Cidr]
    machine_network: list[Cidr]
    ntp_sources: list[Host]
    image_digest_sources: list[DigestSource]
    fips: bool
    install_config: dict[str, Any]
    agent_config: dict[str, Any]


class Plan(TypedDict):
    cluster: Cluster
    release: Release
    hypervisor: Hypervisor
    networks: list[Network]
    vips: Vips
    rendezvous_ip: Ip
    nodes: list[Node]
    services: Services
    boot: Boot
    installer: Installer
    settings: dict[str, Duration]
    faults: list[dict[str, Any]]
