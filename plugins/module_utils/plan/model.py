"""The types of a plan: every field that there is, with its meaning.

A plan is plain data (mappings, lists, strings, numbers), so that it is the same in memory, in `plan.yaml` and as an
Ansible fact. Values by example are in tests/unit/plan/golden/. A string below a field is its documentation, for the JSON
schema, Ansible's options and the reference page (`describe`).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from ..releases import RELEASES
from .balancer import Balancer
from .faults import PlanFault
from .fields import (
    Addressing,
    BootMode,
    Directory,
    Domain,
    Duration,
    Eject,
    File,
    Host,
    Ip,
    Label,
    Login,
    Name,
    OneOf,
    Password,
    Platform,
    Port,
    Ref,
    Repository,
    SavePoint,
    Source,
    Stack,
    Url,
    Version,
)  # fmt: skip
from .hypervisor_model import Hypervisor
from .installer_inputs import Installer
from .machines import Network, Node
from .outside import Machine
from .settings import SETTINGS
from .tests import Test
from .topologies import PAYLOADS, TOPOLOGIES


class External(TypedDict):
    """The platform `external`."""

    platform_name: str
    """Name of the infrastructure provider."""
    cloud_controller_manager: Literal["External", "None"]
    """Whether the provider brings a cloud controller manager, which nodes wait for."""


class _Cluster(TypedDict):
    name: Label
    """Its name."""
    base_domain: Domain
    """The domain that its own is in."""
    domain: Domain
    """Its domain: name and base domain."""
    topology: Annotated[str, OneOf(TOPOLOGIES)]
    """How many nodes of which role and size it was planned with."""
    stack: Stack
    """The families of its addresses."""
    addressing: Addressing
    """How its nodes get their addresses."""
    platform: Platform
    """The platform of install-config.yaml."""
    arch: Literal["x86_64"]
    """Architecture of its nodes."""


class Cluster(_Cluster, total=False):
    """The cluster as a whole."""

    external: External | None
    """What the platform `external` has; null, or not given: the platform is another one."""


class InstallerBuild(TypedDict):
    """The openshift-install of the stages `image` and `wait`."""

    binary: File | None
    """A build of it, which both stages run; null, and without `git`: agentlab's own installer."""
    git: Source | None
    """A repository of it, which is built with the Go toolchain of this host."""
    ref: Ref
    """The branch, tag or commit of `git`."""


class Release(TypedDict):
    """What is installed."""

    payload: Annotated[str, OneOf(PAYLOADS)]
    """`lab` for the simulated payload that agentlab builds, `ocp` or `okd` for a real release of that distribution."""
    version: Version | None
    """Version of the release; null: the one that the release image has."""
    profile: Annotated[str, OneOf(RELEASES)]
    """The release whose installer is followed."""
    image: Repository | None
    """Pullspec of the release image of a real payload."""
    payload_overrides: dict[str, str]
    """Other content for components of the lab payload: component, and directory or pullspec with digest."""
    installer: InstallerBuild


class Vips(TypedDict):
    """The addresses that api and *.apps resolve to."""

    api: list[Ip]
    """Of the API."""
    ingress: list[Ip]
    """Of the ingress."""


class Endpoint(TypedDict):
    """Something that a client of the cluster connects to."""

    host: Host
    """Its name, or its address where it has none."""
    addresses: list[Ip]
    """What the name resolves to."""
    port: Port
    """Its TCP port."""
    url: Url
    """Its URL."""


class Endpoints(TypedDict):
    """Where the cluster is reached."""

    api: Endpoint
    """The API, for every user."""
    api_int: Endpoint
    """The API, for the nodes."""
    console: Endpoint
    """The web console, for all that the ingress serves."""
    service: Endpoint
    """The assisted service, as long as the rendezvous host runs it."""


class Rendezvous(TypedDict):
    """The node that runs the assisted service and boots first."""

    node: Label
    """Its name."""
    ip: Ip
    """Its address, of the rendezvousIP in agent-config.yaml."""


class Registry(TypedDict):
    """The mirror registry."""

    port: Port
    """Its port."""
    username: Login
    """Its user."""
    password: Password | None
    """Password of that user; null: the one in secrets.json."""
    storage: Directory
    """Directory on the hypervisor with its content."""


class BmcService(TypedDict):
    """The BMC emulator."""

    port: Port
    """Its port."""
    username: Login
    """User of all BMCs."""
    password: Password | None
    """Password of that user; null: the one in secrets.json."""
    url: Url
    """URL of its collection of systems."""


class HttpService(TypedDict):
    """The file server."""

    port: Port
    """Its port."""
    url: Url
    """Its URL."""
    root: Directory
    """Directory on the hypervisor with what it serves."""


class PortService(TypedDict):
    """The time server."""

    port: Port
    """Its port."""


class _ProxyService(TypedDict):
    port: Port
    """Its port."""
    url: Url
    """Its URL."""
    environment: dict[Annotated[str, "word"], Annotated[str, "word"]]
    """The variables with which a program of the lab reaches outside through it, and the lab itself without it."""


class ProxyService(_ProxyService, total=False):
    """The proxy (squid)."""

    registry: Host
    """Name at port 443 by which it reaches the lab's registry, whose images have no other mirror."""


class _IscsiService(TypedDict):
    address: Ip
    """Its address, in the network `iscsi`."""
    port: Port
    """Its port."""
    lun: Literal[1]
    """Number of the LUN in each target; tgtd has its controller at 0."""


class IscsiService(_IscsiService, total=False):
    """The iSCSI targets (tgtd), one with one LUN for each machine."""

    second: Ip | None
    """Its address in the network `iscsi2`, the second path; null, or not given: there is one path."""


class _Services(TypedDict):
    """Of the services, what each plan has."""

    address: Ip
    """The first address of the gateway."""
    host: Domain
    """Its name."""
    directory: Directory
    """Directory on the hypervisor in which each service has one."""
    process_dir: Directory
    """Directory on the hypervisor with a file for each process of the lab, by which `destroy` finds it."""
    registry: Registry
    bmc: BmcService
    http: HttpService
    ntp: PortService


class Services(_Services, total=False):
    """What the gateway of the machine network serves."""

    proxy: ProxyService | None
    """The only way out of the lab's networks; null, or not given: there is no proxy."""
    iscsi: IscsiService | None
    """The iSCSI targets; null, or not given: no machine has a LUN."""
    balancer: Balancer | None
    """What api, api-int and *.apps resolve to; null, or not given: the cluster, or a load balancer of your own, has the addresses."""


class _Boot(TypedDict):
    mode: BootMode
    """How they get it; profile.md has the meaning of each mode."""
    image: Name
    """Name of the agent ISO in the run directory."""
    script: Name
    """Name of the iPXE script, in `boot-artifacts` of the run directory."""
    script_url: Url
    """URL of the iPXE script once it is published."""


class Boot(_Boot, total=False):
    """How the machines boot the agent ISO."""

    eject: Eject | None
    """When a machine loses its medium; null, or not given: never."""


class _Plan(TypedDict):
    cluster: Cluster
    release: Release
    hypervisor: Hypervisor
    networks: list[Network]
    """The networks; the first is the machine network."""
    vips: Vips
    endpoints: Endpoints
    rendezvous: Rendezvous
    nodes: list[Node]
    """The machines, in the order of their addresses."""
    services: Services
    boot: Boot
    installer: Installer
    settings: dict[Annotated[str, OneOf(SETTINGS)], Duration]
    """Intervals of the lab payload's programs."""
    faults: list[PlanFault]
    """What goes wrong on purpose; see faults.md."""
    snapshots: list[SavePoint]
    """When the lab is saved during the wait, as a snapshot of that name."""
    tests: list[Test]
    """What `validate` executes in addition to its own checks."""


class Plan(_Plan, total=False):
    """A cluster: everything that follows from a profile and a name."""

    machines: list[Machine] | None
    """Machines that are not part of the cluster; null, or not given: there are none."""
    hypervisors: list[Hypervisor] | None
    """Further hypervisors, which carry the nodes that name them; null, or not given: there are none."""
