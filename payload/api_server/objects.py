"""Types of hosts, clusters and infra-envs, as JSON that is stored and answered, and of their parts.

Each is a definition of `data/swagger.yaml` with the same fields, which a test compares, and may have private fields. Every
field can be absent: users leave it unset, or a host has not reported it yet.
"""

from __future__ import annotations

from typing import Literal, TypedDict

VipKey = Literal["api_vips", "ingress_vips"]
NetworkKey = Literal["machine_networks", "service_networks", "cluster_networks"]
VIPS: tuple[VipKey, VipKey] = ("api_vips", "ingress_vips")
ProxyKey = Literal["http_proxy", "https_proxy", "no_proxy"]
NETWORKS: tuple[NetworkKey, ...] = ("machine_networks", "service_networks", "cluster_networks")
PROXIES: tuple[ProxyKey, ...] = ("http_proxy", "https_proxy", "no_proxy")


class Vip(TypedDict, total=False):
    """A virtual IP of the API or of the ingress. `verification`: of agents, whether it is free.

    `verification` is `unverified`, `succeeded` or `failed`, from the replies to `verify-vips`. `ip` has no prefix.
    """

    cluster_id: str
    ip: str
    verification: str


class ClusterNetwork(TypedDict, total=False):
    """A network of pods. `host_prefix`: the prefix length of each node's part."""

    cidr: str
    cluster_id: str
    host_prefix: int


class Subnet(TypedDict, total=False):
    """A machine or service network."""

    cidr: str
    cluster_id: str


class PlatformExternal(TypedDict, total=False):
    """Settings of the platform `external`."""

    cloud_controller_manager: str
    platform_name: str


class Platform(TypedDict, total=False):
    """The platform of a cluster."""

    external: PlatformExternal
    type: str


class DiskEncryption(TypedDict, total=False):
    """Encryption of installation disks. `enable_on`: roles; `tang_servers`: JSON.

    `enable_on` is `none`, `all` or roles joined by commas; `mode` is `tpmv2` or `tang`. `tang_servers` is a list of
    objects with `url` and `thumbprint`, as text.
    """

    enable_on: str
    mode: str
    tang_servers: str


class IgnitionEndpoint(TypedDict, total=False):
    """Where hosts that join an installed cluster get their Ignition config."""

    ca_certificate: str
    url: str


class LoadBalancer(TypedDict, total=False):
    """Who balances the load of API and ingress."""

    type: str


class BundleChoice(TypedDict, total=False):
    """A bundle of operators that a user selected."""

    id: str
    optional_operators: list[str]


class MonitoredOperator(TypedDict, total=False):
    """An operator whose status the service follows.

    `operator_type` is `builtin` or `olm`. `status` is what the controller reports (`available`, `progressing`,
    `failed`), empty before. `timeout_seconds` bounds the wait for it. `properties` is JSON as text. `dependency_only`:
    users did not select it, another operator needs it.
    """

    bundles: list[str]
    cluster_id: str
    dependency_only: bool
    name: str
    namespace: str
    operator_type: str
    properties: str
    source_bundles: list[str]
    status: str
    status_info: str
    status_updated_at: str
    subscription_name: str
    timeout_seconds: int
    version: str


class ClusterProgress(TypedDict, total=False):
    """Percentages of an installation, and its finalizing stage.

    Percentages are integers from 0 to 100; `total_percentage` is a weighted sum of the other three, and 100 when
    installed. `finalizing_stage_started_at` is an RFC 3339 time; `finalizing_stage_timed_out` does not end the
    installation by itself.
    """

    finalizing_stage: str
    finalizing_stage_percentage: int
    finalizing_stage_started_at: str
    finalizing_stage_timed_out: bool
    installing_stage_percentage: int
    preparing_for_installation_stage_percentage: int
    total_percentage: int


class Preparation(TypedDict, total=False):
    """The outcome of the last preparation for an installation."""

    reason: str
    status: str


class ImageInfo(TypedDict, total=False):
    """Times of a discovery image; infra-envs have the image itself."""

    created_at: str
    expires_at: str


class HostNetwork(TypedDict, total=False):
    """A network that all hosts of a cluster are on.

    `cidr` is the network of an interface, `host_ids` the hosts with an address in it. Derived from the inventories
    whenever a cluster is shown; it is not stored.
    """

    cidr: str
    host_ids: list[str]


class HostProgress(TypedDict, total=False):
    """The stage of a host's installation.

    `current_stage` is a name of upstream's `host-stage`, `progress_info` free text of the installer, such as a
    percentage. The times are RFC 3339; `installation_percentage` follows from the position of the stage among those of
    the role.
    """

    current_stage: str
    installation_percentage: int
    progress_info: str
    stage_started_at: str
    stage_timed_out: bool
    stage_updated_at: str


class Host(TypedDict, total=False):
    """A host. Fields with an underscore are private: times are seconds since the epoch.

    Fields named `*_info`, `inventory`, `connectivity` and other reports are JSON as text, as in upstream's model
    `host`. Times without an underscore are RFC 3339. `_clock` is service time less host time in seconds;
    `_ignition_token` is a credential. Private fields are never in a response.
    """

    api_vip_connectivity: str
    bootstrap: bool
    checked_in_at: str
    cluster_id: str
    connection_timed_out: bool
    connectivity: str
    created_at: str
    deleted_at: str
    discovery_agent_version: str
    disks_info: str
    domain_name_resolutions: str
    fencing_credentials: str
    free_addresses: str
    href: str
    id: str
    ignition_config_overrides: str
    ignition_endpoint_http_headers: str
    ignition_endpoint_token_set: bool
    images_status: str
    infra_env_id: str
    installation_disk_id: str
    installation_disk_path: str
    installer_args: str
    installer_version: str
    inventory: str
    kind: str
    logs_collected_at: str
    logs_info: str
    logs_started_at: str
    machine_config_pool_name: str
    media_status: str
    node_labels: str
    ntp_sources: str
    progress: HostProgress
    progress_stages: list[str]
    registered_at: str
    requested_hostname: str
    role: str
    skip_formatting_disks: str
    stage_started_at: str
    stage_updated_at: str
    status: str
    status_info: str
    status_updated_at: str
    suggested_role: str
    tang_connectivity: str
    timestamp: int
    updated_at: str
    user_name: str
    validations_info: str
    _addresses: list[str]
    _checked_in: float
    _clock: int
    _disk_by_user: bool
    _ignition_token: str
    _logs_at: float
    _metric_stage_at: float
    _stage_at: float
    _stage_info_at: float
    _status_at: float
    _wrong_boot: bool


_Dashed = TypedDict("_Dashed", {"last-installation-preparation": Preparation}, total=False)


class Cluster(_Dashed, total=False):
    """A cluster. Fields with an underscore are private: times are seconds since the epoch.

    `feature_usage`, `validations_info`, `connectivity_majority_groups`, `ip_collisions` and `install_config_overrides`
    are JSON as text, as in upstream's model `cluster`; times without an underscore are RFC 3339. `hosts`,
    `host_networks` and the counts exist in responses only. `_pull_secret` is a credential; `_images` maps components to
    pullspecs, `_release_version` is that of the release image; both are read from it.
    """

    additional_ntp_source: str
    api_vip_dns_name: str
    api_vips: list[Vip]
    base_dns_domain: str
    cluster_networks: list[ClusterNetwork]
    connectivity_majority_groups: str
    control_plane_count: int
    controller_logs_collected_at: str
    controller_logs_started_at: str
    cpu_architecture: str
    created_at: str
    deleted_at: str
    disk_encryption: DiskEncryption
    email_domain: str
    enabled_host_count: int
    feature_usage: str
    high_availability_mode: str
    host_networks: list[HostNetwork]
    hosts: list[Host]
    href: str
    http_proxy: str
    https_proxy: str
    hyperthreading: str
    id: str
    ignition_endpoint: IgnitionEndpoint
    ignored_cluster_validations: str
    ignored_host_validations: str
    image_info: ImageInfo
    imported: bool
    ingress_vips: list[Vip]
    install_completed_at: str
    install_config_overrides: str
    install_started_at: str
    ip_collisions: str
    kind: str
    load_balancer: LoadBalancer
    logs_info: str
    machine_networks: list[Subnet]
    monitored_operators: list[MonitoredOperator]
    name: str
    network_type: str
    no_proxy: str
    ntp_sources: str
    ocp_release_image: str
    openshift_cluster_id: str
    openshift_version: str
    operator_bundles: list[BundleChoice]
    org_soft_timeouts_enabled: bool
    platform: Platform
    progress: ClusterProgress
    pull_secret_set: bool
    ready_host_count: int
    schedulable_masters: bool
    schedulable_masters_forced_true: bool
    service_networks: list[Subnet]
    ssh_public_key: str
    status: str
    status_info: str
    status_updated_at: str
    tags: str
    total_host_count: int
    updated_at: str
    user_managed_networking: bool
    user_name: str
    validations_info: str
    vip_dhcp_allocation: bool
    _api_lease: str
    _images: dict[str, str]
    _ingress_lease: str
    _install_at: float
    _installing_at: float
    _logs_at: float
    _machine_cidr_at: float
    _pull_secret: str
    _release_version: str
    _stage_at: float
    _status_at: float
    _ui_settings: str


class Proxy(TypedDict, total=False):
    """Proxies of an infra-env's live system."""

    http_proxy: str
    https_proxy: str
    no_proxy: str


class InfraEnv(TypedDict, total=False):
    """An infra-env: what the discovery image of its hosts has.

    `static_network_config` is JSON of the hosts' nmstate configs as text, `kernel_arguments` and
    `ignition_config_override` are JSON as text. `_pull_secret` is a credential.
    """

    additional_ntp_sources: str
    additional_trust_bundle: str
    cluster_id: str
    cpu_architecture: str
    created_at: str
    download_url: str
    email_domain: str
    expires_at: str
    href: str
    id: str
    ignition_config_override: str
    kernel_arguments: str
    kind: str
    name: str
    network_discovery_delay_seconds: int
    ntp_sources: str
    openshift_version: str
    proxy: Proxy
    pull_secret_set: bool
    rendezvous_ip: str
    ssh_authorized_key: str
    static_network_config: str
    type: str
    updated_at: str
    user_name: str
    _pull_secret: str
