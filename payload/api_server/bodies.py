"""Types of requests and of agents' reports, decoded: definitions of `data/swagger.yaml` with the same fields, which a test compares.

null is absent after decoding. A type that creates or updates has the fields of both requests.
"""

from __future__ import annotations

from typing import TypedDict

from .objects import (
    BundleChoice,
    ClusterNetwork,
    DiskEncryption,
    IgnitionEndpoint,
    LoadBalancer,
    Platform,
    Proxy,
    Subnet,
    Vip,
)


class OperatorChoice(TypedDict, total=False):
    """An operator that a user selected."""

    name: str
    properties: str


class ClusterParams(TypedDict, total=False):
    """A request that creates or updates a cluster."""

    additional_ntp_source: str
    api_vip_dns_name: str
    api_vips: list[Vip]
    base_dns_domain: str
    cluster_network_cidr: str
    cluster_network_host_prefix: int
    cluster_networks: list[ClusterNetwork]
    control_plane_count: int
    cpu_architecture: str
    disk_encryption: DiskEncryption
    high_availability_mode: str
    http_proxy: str
    https_proxy: str
    hyperthreading: str
    ignition_endpoint: IgnitionEndpoint
    ingress_vips: list[Vip]
    load_balancer: LoadBalancer
    machine_network_cidr: str
    machine_networks: list[Subnet]
    name: str
    network_type: str
    no_proxy: str
    ntp_sources: str
    ocp_release_image: str
    olm_operators: list[OperatorChoice]
    openshift_version: str
    operator_bundles: list[BundleChoice]
    platform: Platform
    pull_secret: str
    schedulable_masters: bool
    service_network_cidr: str
    service_networks: list[Subnet]
    ssh_public_key: str
    tags: str
    user_managed_networking: bool
    vip_dhcp_allocation: bool


class KernelArgument(TypedDict, total=False):
    """A kernel argument of an infra-env's live system."""

    operation: str
    value: str


class MacEntry(TypedDict, total=False):
    """MAC address of an interface that a network config names."""

    logical_nic_name: str
    mac_address: str


class StaticNetwork(TypedDict, total=False):
    """The network config of one host: nmstate and the interfaces that it names."""

    mac_interface_map: list[MacEntry]
    network_yaml: str


class InfraEnvParams(TypedDict, total=False):
    """A request that creates or updates an infra-env."""

    additional_ntp_sources: str
    additional_trust_bundle: str
    cluster_id: str
    cpu_architecture: str
    ignition_config_override: str
    image_type: str
    kernel_arguments: list[KernelArgument]
    name: str
    network_discovery_delay_seconds: int
    ntp_sources: str
    openshift_version: str
    proxy: Proxy
    pull_secret: str
    rendezvous_ip: str
    ssh_authorized_key: str
    static_network_config: list[StaticNetwork]


class DiskChoice(TypedDict, total=False):
    """The role of a disk."""

    id: str
    role: str


class DiskSkip(TypedDict, total=False):
    """Whether a disk is not formatted."""

    disk_id: str
    skip_formatting: bool


class KeyValue(TypedDict, total=False):
    """A label or a header."""

    key: str
    value: str


class FencingCredentials(TypedDict, total=False):
    """Access to a host's BMC."""

    address: str
    certificate_verification: str
    mac_address: str
    password: str
    username: str


class HostParams(TypedDict, total=False):
    """A request that updates a host."""

    disks_selected_config: list[DiskChoice]
    disks_skip_formatting: list[DiskSkip]
    fencing_credentials: FencingCredentials
    host_name: str
    host_role: str
    ignition_endpoint_http_headers: list[KeyValue]
    ignition_endpoint_token: str
    machine_config_pool_name: str
    node_labels: list[KeyValue]


class Step(TypedDict, total=False):
    """An order to an agent."""

    args: list[str]
    step_id: str
    step_type: str


class Steps(TypedDict, total=False):
    """The response to a poll of an agent."""

    instructions: list[Step]
    next_instruction_seconds: int
    post_step_action: str


class StepReply(TypedDict, total=False):
    """An agent's reply to a step."""

    error: str
    exit_code: int
    output: str
    step_id: str
    step_type: str


class L2(TypedDict, total=False):
    """A layer-2 check of an address."""

    outgoing_ip_address: str
    outgoing_nic: str
    remote_ip_address: str
    remote_mac: str
    successful: bool


class L3(TypedDict, total=False):
    """A layer-3 check of an address."""

    average_rtt_ms: float
    outgoing_nic: str
    packet_loss_percentage: float
    remote_ip_address: str
    successful: bool


class MtuEntry(TypedDict, total=False):
    """A check of the MTU to an address."""

    mtu_successful: bool
    outgoing_nic: str
    remote_ip_address: str


class RemoteHost(TypedDict, total=False):
    """Checks of another host."""

    host_id: str
    l2_connectivity: list[L2]
    l3_connectivity: list[L3]
    mtu_report: list[MtuEntry]


class ConnectivityReport(TypedDict, total=False):
    """A host's checks of the others."""

    remote_hosts: list[RemoteHost]


class VerifiedVip(TypedDict, total=False):
    """Whether a VIP is free."""

    verification: str
    vip: str
    vip_type: str


class DhcpResponse(TypedDict, total=False):
    """VIPs that a DHCP server leased."""

    api_vip_address: str
    api_vip_lease: str
    ingress_vip_address: str
    ingress_vip_lease: str


class DiskSpeed(TypedDict, total=False):
    """Time of a disk for fdatasync, in ms."""

    io_sync_duration: int
    path: str


class ImageStatus(TypedDict, total=False):
    """The pull of an image."""

    download_rate: float
    name: str
    result: str
    size_bytes: float
    time: float


class ImageAvailability(TypedDict, total=False):
    """The pulls of images."""

    images: list[ImageStatus]


class UpgradeResponse(TypedDict, total=False):
    """The outcome of an upgrade of the agent."""

    agent_image: str
    result: str
