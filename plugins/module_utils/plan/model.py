"""The types of a plan.

A plan is plain data (dicts, lists, strings, numbers), so that it is the same in memory, in `plan.yaml` and as an Ansible
fact. Its shape is in docs/architecture.md, its values by example in tests/unit/plan/golden/.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

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


class Cluster(TypedDict):
    name: str
    base_domain: str
    domain: str
    topology: str
    stack: str
    addressing: str
    platform: str
    arch: str


class Release(TypedDict):
    payload: str
    version: str | None
    profile: str
    image: str | None
    payload_overrides: dict[str, str]


class Hypervisor(TypedDict):
    kind: str
    host: str | None
    user: str | None
    netns: str
    state_dir: str
    pool: str
    pool_dir: str
    egress: bool
    route: bool
    domain_type: str


class Dhcp(TypedDict):
    start: str
    end: str
    lease_minutes: int


class Subnet(TypedDict):
    family: str
    cidr: str
    prefix: int
    gateway: str
    dhcp: Dhcp | None


class DnsHost(TypedDict):
    ip: str
    names: list[str]


class Wildcard(TypedDict):
    domain: str
    ip: str


class Dns(TypedDict):
    hosts: list[DnsHost]
    wildcards: list[Wildcard]


class Reservation(TypedDict):
    """A DHCP lease: by `mac` (IPv4) or by `duid` (IPv6), never both."""

    mac: str | None
    duid: str | None
    ip: str
    name: str


class Network(TypedDict):
    name: str
    bridge: str
    purpose: str
    mtu: int
    nat: bool
    domain: str | None
    subnets: list[Subnet]
    dns: Dns
    reservations: list[Reservation]


class Vips(TypedDict):
    api: list[str]
    ingress: list[str]


class Disk(TypedDict):
    name: str
    size_gib: int
    bus: str
    target: str
    serial: str


class Address(TypedDict):
    family: str
    ip: str
    prefix: int


class Nic(TypedDict):
    name: str
    network: str
    mac: str
    addresses: list[Address]


class Bmc(TypedDict):
    address: str
    username: str
    password: str


class Node(TypedDict):
    name: str
    domain: str
    role: str
    uuid: str
    vcpus: int
    memory_mib: int
    firmware: str
    tpm: bool
    disks: list[Disk]
    nics: list[Nic]
    network_config: dict[str, Any] | None
    root_device: str | None
    bmc: Bmc


class Registry(TypedDict):
    port: int
    username: str
    password: str


class BmcService(TypedDict):
    port: int
    username: str
    password: str


class HttpService(TypedDict):
    port: int
    url: str


class PortService(TypedDict):
    port: int


class Services(TypedDict):
    address: str
    host: str
    registry: Registry
    bmc: BmcService
    http: HttpService
    ntp: PortService


class Boot(TypedDict):
    mode: str


class ClusterNetwork(TypedDict):
    cidr: str
    host_prefix: int


class DigestSource(TypedDict):
    source: str
    mirrors: list[str]


class Installer(TypedDict):
    """What the installer's input files need beyond the machines; `install_config`, `agent_config` are laid over them."""

    ssh_key_file: str | None
    pull_secret_file: str | None
    network_type: str
    cluster_network: list[ClusterNetwork]
    service_network: list[str]
    machine_network: list[str]
    ntp_sources: list[str]
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
    rendezvous_ip: str
    nodes: list[Node]
    services: Services
    boot: Boot
    installer: Installer
    settings: dict[str, str]
    faults: list[dict[str, Any]]
