"""Models of requests and step outputs, as data.

The notation: a model's name at the left margin, below it its fields with type; `*` after a field: required, `!`: required, and an empty
one counts as missing, `?` after a type: a pointer in Go, whose zero value counts as given. Names, types and enums are those of the
service's API description (Swagger 2.0).
"""

from __future__ import annotations

from ...plugins.module_utils.vocabulary import FINALIZING_STAGES, STAGES
from .schema import UUID, Invalid, Models, parse_json, read_json

__all__ = ["MODELS", "STEP_OUTPUTS", "UUID", "Invalid", "parse_json", "read_json"]

_HYPERTHREADING = (
    "enum(none|masters|arbiters|workers|masters,arbiters|masters,workers|arbiters,workers|masters,arbiters,workers|all)"
)
_STEP_TYPES = (
    "connectivity-check",
    "execute",
    "inventory",
    "install",
    "free-network-addresses",
    "dhcp-lease-allocate",
    "api-vip-connectivity-check",
    "tang-connectivity-check",
    "ntp-synchronizer",
    "installation-disk-speed-check",
    "container-image-availability",
    "domain-resolution",
    "stop-installation",
    "logs-gather",
    "next-step-runner",
    "upgrade-agent",
    "download-boot-artifacts",
    "reboot-for-reclaim",
    "verify-vips",
)
_ARCH = "enum(x86_64|aarch64|arm64|ppc64le|s390x|multi)"
_ARCH_ENV = "enum(x86_64|aarch64|arm64|ppc64le|s390x)"
_NETWORK_TYPE = "enum(OpenShiftSDN|OVNKubernetes|CiscoACI|Cilium|Calico|None)"
_IMAGE_TYPE = "enum(full-iso|minimal-iso|disconnected-iso)"
_MANIFEST = r"re(^[^\/]*\.(json|ya?ml(\.patch_?[a-zA-Z0-9_]*)?)$)"
_KARG = r're(^(?:(?:[^ \t\n\r"]+)|(?:"[^"]*"))+$)'
_DUAL_MAC = "re(^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$)"

TEXT = f"""
network-pool
  cluster_id uuid
  cidr cidr
  host_prefix int(1..128)
subnet-entry
  cluster_id uuid
  cidr cidr
vip
  cluster_id uuid
  ip ip
  verification enum(unverified|failed|succeeded)?
platform-external
  platform_name str(1..)?
  cloud_controller_manager enum(|External)?
platform
  type* enum(baremetal|nutanix|vsphere|none|external)
  external platform-external
operator-create
  name str
  properties str
bundle-create
  id* str
  optional_operators [str]
disk-encryption
  enable_on {_HYPERTHREADING}?
  mode enum(tpmv2|tang)?
  tang_servers str
ignition-endpoint
  url str?
  ca_certificate str?
load-balancer
  type enum(cluster-managed|user-managed)
cluster-create-params
  name* str(1..54)
  high_availability_mode enum(Full|None)?
  openshift_version* str
  ocp_release_image str
  base_dns_domain str
  cluster_network_cidr cidr?
  cluster_network_host_prefix int(1..128)
  service_network_cidr cidr?
  api_vips [vip]
  ingress_vips [vip]
  pull_secret* str
  ssh_public_key str
  vip_dhcp_allocation bool?
  http_proxy str?
  https_proxy str?
  no_proxy str?
  user_managed_networking bool?
  additional_ntp_source str?
  ntp_sources str?
  olm_operators [operator-create]
  operator_bundles [bundle-create]
  hyperthreading {_HYPERTHREADING}?
  network_type {_NETWORK_TYPE}?
  schedulable_masters bool?
  cluster_networks [network-pool]
  service_networks [subnet-entry]
  machine_networks [subnet-entry]
  platform platform
  cpu_architecture {_ARCH}
  disk_encryption disk-encryption
  ignition_endpoint ignition-endpoint
  tags str?
  control_plane_count int?
  load_balancer load-balancer
v2-cluster-update-params
  name str(1..54)?
  base_dns_domain str?
  cluster_network_cidr cidr?
  platform platform
  cluster_network_host_prefix int(1..128)?
  service_network_cidr cidr?
  api_vips [vip]
  ingress_vips [vip]
  api_vip_dns_name str?
  machine_network_cidr cidr?
  pull_secret str?
  ssh_public_key str?
  vip_dhcp_allocation bool?
  http_proxy str?
  https_proxy str?
  no_proxy str?
  user_managed_networking bool?
  additional_ntp_source str?
  ntp_sources str?
  olm_operators [operator-create]
  operator_bundles [bundle-create]
  hyperthreading {_HYPERTHREADING}?
  network_type {_NETWORK_TYPE}?
  schedulable_masters bool
  cluster_networks [network-pool]
  service_networks [subnet-entry]
  machine_networks [subnet-entry]
  disk_encryption disk-encryption
  ignition_endpoint ignition-endpoint
  tags str?
  control_plane_count int?
  load_balancer load-balancer
disconnected-cluster-create-params
  name* str(1..54)
  openshift_version* str
import-cluster-params
  name* str
  api_vip_dnsname* str
  openshift_version str
  openshift_cluster_id* uuid
proxy
  http_proxy str?
  https_proxy str?
  no_proxy str?
mac-entry
  mac_address! {_DUAL_MAC}
  logical_nic_name! str
static-network
  network_yaml str
  mac_interface_map [mac-entry]
kernel-argument
  operation enum(append|replace|delete)
  value {_KARG}
infra-env-create-params
  name* str
  proxy proxy
  additional_ntp_sources str?
  ntp_sources str?
  ssh_authorized_key str?
  pull_secret* str
  static_network_config [static-network]
  rendezvous_ip rendezvous-ip?
  image_type {_IMAGE_TYPE}
  ignition_config_override str
  cluster_id uuid?
  openshift_version str
  cpu_architecture {_ARCH_ENV}
  kernel_arguments [kernel-argument]
  additional_trust_bundle str(0..65535)
  network_discovery_delay_seconds int(0..)?
infra-env-update-params
  proxy proxy
  additional_ntp_sources str?
  ntp_sources str?
  ssh_authorized_key str?
  pull_secret str
  static_network_config [static-network]
  rendezvous_ip rendezvous-ip?
  image_type {_IMAGE_TYPE}
  ignition_config_override str
  kernel_arguments [kernel-argument]
  additional_trust_bundle str(0..65535)?
  openshift_version str?
  network_discovery_delay_seconds int(0..)?
host-create-params
  host_id* uuid
  discovery_agent_version str
disk-config
  id* str
  role enum(none|install)
disk-skip-formatting
  disk_id* str
  skip_formatting* bool
key-value
  key* str
  value* str
fencing-credentials
  address* str
  username* str
  password* str
  certificate_verification enum(Enabled|Disabled)?
  mac_address str?
host-update-params
  host_role enum(auto-assign|master|arbiter|worker)?
  host_name str?
  disks_selected_config [disk-config]
  disks_skip_formatting [disk-skip-formatting]
  machine_config_pool_name str?
  ignition_endpoint_token str?
  ignition_endpoint_http_headers [key-value]
  node_labels [key-value]
  fencing_credentials fencing-credentials
bind-host-params
  cluster_id* uuid
installer-args-params
  args [str]
host-ignition-params
  config str
step-reply
  step_type enum({"|".join(_STEP_TYPES)})
  step_id str
  exit_code int
  output str
  error str
host-progress
  current_stage* enum({"|".join(STAGES)})
  progress_info str(0..2048)
cluster-finalizing-progress
  finalizing_stage enum({"|".join(FINALIZING_STAGES)})
logs-progress-params
  logs_state* enum(requested|collecting|completed|timeout|)
completion-params
  is_success* bool
  error_info str
  data {{any}}
operator-monitor-report
  name str
  version str
  status enum(failed|progressing|available)
  status_info str
create-manifest-params
  folder enum(manifests|openshift)?
  file_name* {_MANIFEST}
  content* str
update-manifest-params
  folder! enum(manifests|openshift)
  file_name! {_MANIFEST}
  updated_folder enum(manifests|openshift)?
  updated_file_name {_MANIFEST}?
  updated_content str?
event
  name str
  cluster_id uuid?
  host_id uuid?
  infra_env_id uuid?
  severity* enum(info|warning|error|critical)
  category enum(user|metrics)
  message* str
  event_time* time
  request_id uuid
  props str
ignored-validations
  cluster-validation-ids str
  host-validation-ids str
install-config-pool
  hyperthreading str
  name str
  replicas int
  fencing {{any}}
install-config-cluster-network
  cidr str
  hostPrefix int
install-config-machine-network
  cidr str
install-config-networking
  networkType str
  clusterNetwork [install-config-cluster-network]
  machineNetwork [install-config-machine-network]
  serviceNetwork [str]
install-config-metadata
  name str
install-config-proxy
  httpProxy str
  httpsProxy str
  noProxy str
install-config-platform
  baremetal {{any}}
  none {{any}}
  vsphere {{any}}
  nutanix {{any}}
  external {{any}}
install-config-sources
  source str
  mirrors [str]
install-config-capabilities
  baselineCapabilitySet str
  additionalEnabledCapabilities [str]
install-config-bootstrap
  installationDisk str
install-config
  apiVersion str
  baseDomain str
  proxy install-config-proxy
  networking install-config-networking
  metadata install-config-metadata
  compute [install-config-pool]
  controlPlane install-config-pool
  arbiter install-config-pool
  platform install-config-platform
  bootstrapInPlace install-config-bootstrap
  fips bool
  cpuPartitioningMode str
  pullSecret str
  sshKey str
  additionalTrustBundle str
  additionalTrustBundlePolicy str
  imageContentSources [install-config-sources]
  imageDigestSources [install-config-sources]
  capabilities install-config-capabilities
  featureSet str
  featureGates [str]
  osImageStream str
interface
  ipv6_addresses [str]
  vendor str
  name str
  has_carrier bool
  product str
  mtu int
  ipv4_addresses [str]
  biosdevname str
  client_id str
  mac_address str
  flags [str]
  speed_mbps int
  type str
eligibility
  eligible bool
  not_eligible_reasons [str]
io-perf
  sync_duration int
iscsi
  host_ip_address str
disk
  id str
  drive_type str
  has_uuid bool
  vendor str
  name str
  path str
  hctl str
  by_path str
  by_id str
  model str
  wwn str
  serial str
  size_bytes int
  bootable bool
  removable bool
  partitionTypes str
  is_installation_media bool
  installation_eligibility eligibility
  smart str
  io_perf io-perf
  holders str
  iscsi iscsi
boot
  current_boot_mode str
  pxe_interface str
  command_line str
  secure_boot_state str
  device_type str
system-vendor
  serial_number str
  product_name str
  manufacturer str
  virtual bool
memory
  physical_bytes int
  usable_bytes int
  physical_bytes_method str
cpu
  count int
  frequency num
  flags [str]
  model_name str
  architecture str
gpu
  vendor str
  vendor_id str
  device_id str
  name str
  address str
route
  interface str
  gateway str
  destination str
  family int
  metric int
truncation
  type str
  reasons [str]
inventory
  hostname str
  bmc_address str
  interfaces [interface]
  disks [disk]
  boot boot
  system_vendor system-vendor
  bmc_v6address str
  memory memory
  cpu cpu
  gpus [gpu]
  routes [route]
  tpm_version str
  truncation truncation
l2
  outgoing_nic str
  outgoing_ip_address str
  remote_ip_address str
  remote_mac str
  successful bool
l3
  outgoing_nic str
  remote_ip_address str
  successful bool
  average_rtt_ms num
  packet_loss_percentage num
mtu-entry
  outgoing_nic str
  remote_ip_address str
  mtu_successful bool
remote-host
  host_id str
  l2_connectivity [l2]
  l3_connectivity [l3]
  mtu_report [mtu-entry]
connectivity-report
  remote_hosts [remote-host]
free-network
  network str
  free_addresses [str]
verified-vip
  vip str
  vip_type str
  verification str
ntp-source
  source_name str
  source_state str
ntp-response
  ntp_sources [ntp-source]
resolution
  domain_name str
  ipv4_addresses [str]
  ipv6_addresses [str]
  cnames [str]
domain-resolution
  resolutions* [resolution]
dhcp-response
  api_vip_address* str
  ingress_vip_address* str
  api_vip_lease str
  ingress_vip_lease str
disk-speed-response
  io_sync_duration int
  path str
image-status
  name str
  size_bytes num
  time num
  download_rate num
  result str
image-availability
  images* [image-status]
tang-signature
  protected str
  signature str
tang-server
  tang_url str
  payload str
  signatures [tang-signature]
tang-response
  is_success bool
  tang_server_response [tang-server]
api-vip-response
  is_success bool
  url str
  download_error str
  ignition str
upgrade-agent-response
  agent_image str
  result str
"""

#: Output of a step -> its model; types that are not here have no output the service keeps.
STEP_OUTPUTS: dict[str, str] = {
    "inventory": "inventory",
    "connectivity-check": "connectivity-report",
    "free-network-addresses": "[free-network]",
    "verify-vips": "[verified-vip]",
    "ntp-synchronizer": "ntp-response",
    "domain-resolution": "domain-resolution",
    "dhcp-lease-allocate": "dhcp-response",
    "installation-disk-speed-check": "disk-speed-response",
    "container-image-availability": "image-availability",
    "tang-connectivity-check": "tang-response",
    "api-vip-connectivity-check": "api-vip-response",
    "upgrade-agent": "upgrade-agent-response",
}

#: Models whose type in Go has another name.
_GO_NAMES = {
    "network-pool": "ClusterNetwork",
    "subnet-entry": "MachineNetwork",
    "vip": "APIVip",
    "operator-create": "OperatorCreateParams",
    "v2-cluster-update-params": "V2ClusterUpdateParams",
    "static-network": "HostStaticNetworkConfig",
    "mac-entry": "MacInterfaceMapItems0",
    "disk-config": "DiskConfigParams",
    "disk-skip-formatting": "DiskSkipFormattingParams",
    "key-value": "NodeLabelParams",
    "fencing-credentials": "FencingCredentialsParams",
    "eligibility": "DiskInstallationEligibility",
    "cpu": "CPU",
    "install-config": "InstallerConfigBaremetal",
}
MODELS = Models(TEXT, _GO_NAMES)
