"""The types of a profile: every field that there is, with its meaning. Its defaults are in `presets`.

Everything is optional but what a class named `_Required...` has. A string below a field is its documentation, for the
JSON schema, the reference page and editors (`describe`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from ..releases import RELEASES
from .faults import ProfileFault
from .fields import (
    Addressing,
    BondMode,
    BootMode,
    Bridge,
    Cidr,
    ClusterRole,
    Domain,
    Eject,
    Host,
    Ip,
    Label,
    Login,
    Mtu,
    Name,
    OneOf,
    OwnFile,
    Password,
    Platform,
    Port,
    Range,
    Ref,
    Repository,
    SavePoint,
    Source,
    Stack,
    Version,
    VlanId,
)
from .hypervisor_options import FurtherOptions, HypervisorOptions
from .installer_inputs import DigestSource
from .machine_options import NodeOptions, RoleOptions
from .outside import OutsideMachineOptions, OutsideNetworkOptions
from .settings import SETTINGS
from .tests import TestOptions
from .topologies import PAYLOADS, TOPOLOGIES

Offset = Annotated[int, Range(1, 1 << 24)]


class InstallerBuildOptions(TypedDict, total=False):
    """The openshift-install of the stages `image` and `wait`."""

    binary: OwnFile | None
    """Your build of it, which both stages run. Null, and without `git`: agentlab's own installer."""
    git: Source | None
    """A repository of it, which is built with the Go toolchain of this host; `binary` is null then."""
    ref: Ref
    """The branch, tag or commit of `git`. A build is kept by its commit."""


class ReleaseOptions(TypedDict, total=False):
    """What is installed."""

    payload: Annotated[str, OneOf(PAYLOADS)]
    """`lab` for the simulated payload that agentlab builds; `ocp` for a real release of OpenShift, `okd` for one of OKD."""
    version: Version | None
    """Version of the release; with the lab payload such as 4.18.0-lab, which chooses units, features, thresholds and
    manifests. Null: the newest of the lab payload, or the one that the release image has."""
    profile: Annotated[str, OneOf(RELEASES)] | None
    """The release whose installer is followed. Null: that of `version`, or the newest."""
    image: Repository | None
    """Pullspec of the release image of a real payload. Null: the public image of `version`."""
    payload_overrides: dict[str, str]
    """Replacements of components of the lab payload: a directory with the component's programs or files, an OCI layout,
    `containers-storage:IMAGE`, or a pullspec with a digest. With another agent or service, intervals are upstream's."""
    installer: InstallerBuildOptions


class Offsets(TypedDict, total=False):
    """Which addresses of a network are given to what, counted from its first."""

    gateway: Offset
    """The gateway, which carries the lab's services."""
    ingress: Offset
    """Virtual address of the ingress."""
    api: Offset
    """Virtual address of the API."""
    dhcp_start: Offset
    """First address of the DHCP range."""
    dhcp_end: Offset
    """Last address of the DHCP range."""
    dhcp_nodes: Offset
    """First node, with `addressing: dhcp`."""
    static_nodes: Offset
    """First node, with `addressing: static`."""
    machines: Offset
    """First machine outside of the cluster (`machines`)."""


class _RequiredDestination(TypedDict):
    destination: Cidr
    """The network that it leads to."""


class RouteOptions(_RequiredDestination, total=False):
    """A static route of each node, through its interface in this network."""

    next_hop: Ip | None
    """Address of the next hop in this network. Null: the gateway."""


class BondOptions(TypedDict):
    """A bond of NICs, with the link aggregation that its mode needs on the switch."""

    mode: BondMode
    """`active-backup`; `balance-xor`, for which the switch has a static link aggregation; `802.3ad`, with LACP."""
    nics: list[Annotated[str, "nic"]]
    """The NICs, at least two. The bond has the MAC of the first."""


class LinkOptions(TypedDict, total=False):
    """How the nodes' interfaces in a network are connected."""

    interface: Annotated[str, "parent"] | None
    """The NIC or the bond that carries the network. Null: a NIC of its own, the next one that nothing else uses."""
    vlan: VlanId | None
    """VLAN id with which the NIC or the bond carries the network. Null: untagged."""
    routes: list[RouteOptions]
    """Static routes through this network."""


class NetworkOptions(LinkOptions, total=False):
    """The machine network, which each node's eth0 is in unless `interface` names another."""

    bridge: Bridge | None
    """Name of its bridge. Null: the cluster's name and `bm`."""
    mtu: Mtu
    """MTU in bytes."""
    nat: bool | None
    """Whether its packets leave with the host's address. Null: as `hypervisor.egress`."""
    connection: Literal["disconnected", "connected", "proxied"] | None
    """What the machines reach outside of the lab: nothing, what this host reaches, or what a proxy at the gateway reaches
    for them, which is then the only way out. Null: by `hypervisor.egress`."""
    ipv4: Cidr
    """Its IPv4 network, unless the stack is `ipv6`."""
    ipv6: Cidr
    """Its IPv6 network, unless the stack is `ipv4`."""
    lease_minutes: Annotated[int, Range(2, 525600)]
    """For how many minutes a DHCP lease is valid."""
    offsets: Offsets


class _RequiredName(TypedDict):
    name: Bridge
    """Its name, and that of its bridge unless that has one of its own."""


class ExtraNetworkOptions(_RequiredName, LinkOptions, total=False):
    """One more network: the eth1 and so on of its nodes, unless `interface` names another. It needs `ipv4`, `ipv6` or both."""

    bridge: Bridge | None
    """Name of its bridge. Null: its own name."""
    mtu: Mtu
    """MTU in bytes; that of the machine network unless given."""
    nat: bool
    """Whether its packets leave with the host's address."""
    roles: list[ClusterRole]
    """The roles whose nodes are in it. All unless given."""
    ipv4: Cidr
    """Its IPv4 network."""
    ipv6: Cidr
    """Its IPv6 network."""


class SegmentOptions(TypedDict, total=False):
    """One more L2 segment of the machine network, for workers that are elsewhere. The hypervisor routes between segments."""

    bridge: Bridge | None
    """Name of its bridge. Null: its own name."""
    ipv4: Cidr
    """Its IPv4 network, unless the stack is `ipv6`."""
    ipv6: Cidr
    """Its IPv6 network, unless the stack is `ipv4`."""


class VipsOptions(TypedDict, total=False):
    """Virtual addresses."""

    api: list[Ip] | None
    """Of the API, one for each family. Null: by `network.offsets`, or the masters' own addresses with platform none or external."""
    ingress: list[Ip] | None
    """Of the ingress, likewise."""


class RegistryOptions(TypedDict, total=False):
    """The mirror registry."""

    port: Port
    """Its port."""
    username: Login
    """Its user."""
    password: Password | None
    """Password of that user. Null: a random one for each cluster."""


class BmcOptions(TypedDict, total=False):
    """The BMC emulator."""

    port: Port
    """Its port."""
    username: Login
    """User of all BMCs."""
    password: Password | None
    """Password of that user. Null: a random one for each cluster."""


class HttpOptions(TypedDict, total=False):
    """The file server."""

    port: Port
    """Its port."""


class NtpOptions(TypedDict, total=False):
    """The time server."""

    port: Literal[123]
    """Its port. NTP clients always use this one."""


class ServicesOptions(TypedDict, total=False):
    """What the gateway of the machine network serves."""

    registry: RegistryOptions
    bmc: BmcOptions
    http: HttpOptions
    ntp: NtpOptions


class BootOptions(TypedDict, total=False):
    """How the machines boot the agent ISO."""

    mode: BootMode
    """How they get it; profile.md has the meaning of each mode."""
    eject: Eject
    """When a machine loses its medium: `never`; `on_rebooting`, when its host reaches that stage; `after` the installation."""
    paths: Annotated[int, Range(1, 2)]
    """Over how many networks a machine reaches its LUN (`mode: iscsi`): with 2 its disk is a multipath device. The firmware's table has two
    entries."""


class _ClusterNetworkOptions(TypedDict):
    """A range of pod addresses."""

    cidr: Cidr
    """The range."""
    host_prefix: Annotated[int, Range(1, 128)]
    """Prefix length of the part that each node gets."""


class ClusterNetworksOptions(TypedDict, total=False):
    """Ranges of pod addresses, by family; those of the stack are used."""

    ipv4: list[_ClusterNetworkOptions]
    """IPv4 ranges."""
    ipv6: list[_ClusterNetworkOptions]
    """IPv6 ranges."""


class ServiceNetworkOptions(TypedDict, total=False):
    """Range of service addresses, by family; those of the stack are used."""

    ipv4: Cidr
    """IPv4 range."""
    ipv6: Cidr
    """IPv6 range."""


class ExternalOptions(TypedDict, total=False):
    """The platform `external`."""

    platform_name: str
    """Name of the infrastructure provider. With `oci`, the nodes have a serial console, and no screen to set up their network."""
    cloud_controller_manager: Literal["External", "None"] | None
    """Whether the provider brings a cloud controller manager, which nodes wait for. Null: `External` with `oci`, else `None`."""


class InstallerOptions(TypedDict, total=False):
    """What goes into install-config.yaml and agent-config.yaml beyond the machines."""

    hosts_in: Literal["agent-config", "install-config"]
    """The file that describes the machines. `install-config`: `platform.baremetal.hosts`, with their BMCs."""
    fencing_by: Literal["hostName", "macAddress"]
    """What names the node in each of `controlPlane.fencing.credentials`."""
    ssh_key_file: OwnFile | None
    """File with public keys that may log in to the nodes, in addition to the key of the run."""
    pull_secret_file: OwnFile | None
    """File with the pull secret of a real payload's registries. OKD's public images need none."""
    network_type: Literal["OVNKubernetes", "Calico", "Cilium", "Contrail"]
    """The network plugin."""
    cluster_network: ClusterNetworksOptions
    service_network: ServiceNetworkOptions
    ntp_sources: list[Host] | None
    """Time servers of the nodes. Null: that of the lab."""
    image_digest_sources: list[DigestSource] | None
    """Mirrors of the release. Null: those of the lab payload."""
    mirrors_file: OwnFile | None
    """File with more mirrors: `idms-oc-mirror.yaml` of oc-mirror v2, or what `agentlab mirror` wrote."""
    manifests: dict[Name, dict[str, Any]]
    """Extra manifests, by name: `configure` writes each object to `openshift/NAME.yaml`, and MachineConfigs change the nodes."""
    manifests_dir: OwnFile | None
    """Folder with more of them, `*.yaml` and `*.yml`."""
    fips: bool
    """Whether the cluster is installed in FIPS mode."""
    install_config: dict[str, Any]
    """Laid over install-config.yaml as it stands: mappings are merged, everything else is replaced."""
    agent_config: dict[str, Any]
    """Laid over agent-config.yaml, likewise."""


class Profile(TypedDict, total=False):
    """A cluster: what differs from the defaults."""

    flow: Literal["agent", "ipi"]
    """How it is installed: by the agent-based installer, or `ipi` (installer-provisioned infrastructure): from a bootstrap machine whose
    Ironic provisions the control plane by the BMCs; see ipi.md."""
    topology: Annotated[str, OneOf(TOPOLOGIES)]
    """How many nodes of which role and size."""
    stack: Stack
    """The families of addresses. `dualstack`: both, IPv4 first; `v6v4`: both, IPv6 first."""
    addressing: Addressing
    """How nodes get their addresses: by DHCP, static by nmstate in agent-config.yaml, or IPv6 by SLAAC (router advertisements and
    their MACs) and IPv4 by DHCP. With `slaac` the machine network is a /64."""
    platform: Platform | None
    """The platform of install-config.yaml. Null: `none` with one master, else `baremetal`. What `vsphere` and `nutanix` need
    beyond virtual addresses is in `installer.install_config`."""
    external: ExternalOptions
    base_domain: Domain
    """The cluster's domain is its name below this one."""
    arch: Literal["x86_64"]
    """Architecture of the nodes."""
    release: ReleaseOptions
    hypervisor: HypervisorOptions
    hypervisors: list[FurtherOptions]
    """Further hypervisors, which carry machines; services and gateway are those of `hypervisor`. See hypervisors.md."""
    network: NetworkOptions
    bonds: dict[Annotated[str, "bond"], BondOptions]
    """Bonds of the nodes, by name (bond0). A node has those that carry a network of its role."""
    extra_networks: list[ExtraNetworkOptions]
    """Networks in addition to the machine network."""
    segments: dict[Bridge, SegmentOptions]
    """More segments of the machine network, by name; the nodes with `segment: NAME` are in it."""
    master: RoleOptions
    arbiter: RoleOptions
    worker: RoleOptions
    machines_from: OwnFile | None
    """Inventory of existing machines (bare metal), as dev-scripts' `ironic_nodes.json`: its first one is the first node, and so on. What
    `nodes` has is laid over it."""
    nodes: dict[Label, NodeOptions]
    """What single nodes have other than their role, by host name (master-0, or as `name_format` has it)."""
    machines: list[OutsideMachineOptions]
    """Machines that are not part of the cluster; see machines.md."""
    outside_networks: list[OutsideNetworkOptions]
    """Networks that no node is in, for `machines`."""
    vips: VipsOptions
    services: ServicesOptions
    boot: BootOptions
    installer: InstallerOptions
    settings: dict[Annotated[str, OneOf(SETTINGS)], Annotated[int | str, "duration"]]
    """Intervals of the lab payload's programs; a number without unit is seconds."""
    faults: list[ProfileFault]
    """What goes wrong on purpose; see faults.md."""
    snapshots: list[SavePoint]
    """When the lab is saved during the wait, as a snapshot of that name: `ready`, before the installation starts, or `installed`."""
    tests: list[TestOptions]
    """What `validate` executes in addition to its own checks; see tests.md."""
