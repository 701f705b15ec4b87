"""Models of requests and step outputs, as data, and the check that compiles from them.

The notation: a model's name at the left margin, below it its fields with type; `*` after a field: required, `?` after
a type: null is allowed; for a list it always is, and means none. Names, types and enums are those of the service's API description (Swagger 2.0).
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ...plugins.module_utils.documents import DocumentError, load_json
from .tables import FINALIZING_STAGES, STAGES_ALL

Check = Callable[[Any, str, bool], Any]


class Invalid(ValueError):
    """A value that the API description refuses; the text names field, value and what would be right."""


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
  verification enum(unverified|failed|succeeded)
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
  enable_on {_HYPERTHREADING}
  mode enum(tpmv2|tang)
  tang_servers str
ignition-endpoint
  url str?
  ca_certificate str?
load-balancer
  type enum(cluster-managed|user-managed)
cluster-create-params
  name* str(1..54)
  high_availability_mode enum(Full|None)
  openshift_version* str
  ocp_release_image str
  base_dns_domain str
  cluster_network_cidr cidr
  cluster_network_host_prefix int(1..128)
  service_network_cidr cidr
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
  hyperthreading {_HYPERTHREADING}
  network_type {_NETWORK_TYPE}?
  schedulable_masters bool
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
  mac_address* {_DUAL_MAC}
  logical_nic_name* str
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
  certificate_verification enum(Enabled|Disabled)
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
  current_stage enum({"|".join(STAGES_ALL)})
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
  folder enum(manifests|openshift)
  file_name* {_MANIFEST}
  content* str
update-manifest-params
  folder* enum(manifests|openshift)
  file_name* {_MANIFEST}
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

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}")


def _ip(value: str) -> bool:
    if "%" in value or (":" in value and "." in value):
        return False
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _cidr(value: str) -> bool:
    address, slash, prefix = value.partition("/")
    if not slash or not prefix.isdigit() or (len(prefix) > 1 and prefix[0] == "0") or not prefix.isascii():
        return False
    try:
        ipaddress.ip_network(value, strict=True)
    except ValueError:
        return False
    return _ip(address)


#: Format of a string -> test and what the message calls it.
FORMATS: dict[str, tuple[Callable[[str], Any], str]] = {
    "uuid": (UUID.fullmatch, "a UUID"),
    "ip": (lambda text: text == "" or _ip(text), "an IP address"),
    "rendezvous-ip": (lambda text: text == "" or _ip(text), "an IP address"),
    "cidr": (_cidr, "a network in CIDR form without host bits"),
    "mac": (_MAC.fullmatch, "a MAC address"),
    "time": (_TIME.fullmatch, "an RFC 3339 time"),
}


def _string(test: Callable[[str], Any], what: str) -> Check:
    def check(value: Any, path: str, lenient: bool) -> Any:
        if not isinstance(value, str) or not (lenient or test(value)):
            raise Invalid(f"{path} in body should be {what}, found {json.dumps(value)[:80]}")
        return value

    return check


def _number(kind: str, low: float | None, high: float | None) -> Check:
    def check(value: Any, path: str, lenient: bool) -> Any:
        good = isinstance(value, int if kind == "int" else (int, float)) and not isinstance(value, bool)
        if not good or (kind == "int" and not -(2**63) <= value < 2**63) or not math.isfinite(value):
            raise Invalid(
                f"{path} in body should be {'an integer' if kind == 'int' else 'a number'}, found {json.dumps(value)[:80]}"
            )
        if not lenient and ((low is not None and value < low) or (high is not None and value > high)):
            raise Invalid(f"{path} in body should be between {low} and {high}, found {value}")
        return value

    return check


def _bool(value: Any, path: str, lenient: bool) -> Any:
    if not isinstance(value, bool):
        raise Invalid(f"{path} in body should be a boolean, found {json.dumps(value)[:80]}")
    return value


def _any(value: Any, path: str, lenient: bool) -> Any:
    return value


def _list(item: Check) -> Check:
    def check(value: Any, path: str, lenient: bool) -> Any:
        if not isinstance(value, list):
            raise Invalid(f"{path} in body should be a list, found {json.dumps(value)[:80]}")
        return [item(entry, path, lenient) for entry in value if not (lenient and entry is None)]

    return check


def _map(item: Check) -> Check:
    def check(value: Any, path: str, lenient: bool) -> Any:
        if not isinstance(value, dict):
            raise Invalid(f"{path} in body should be an object, found {json.dumps(value)[:80]}")
        return {key: item(entry, f"{path}.{key}", lenient) for key, entry in value.items()}

    return check


class _Field(NamedTuple):
    """listed: a list; what is written in Go sends null for one that is empty."""

    check: Check
    required: bool
    nullable: bool
    listed: bool


def _object(fields: dict[str, _Field]) -> Check:
    required = [name for name, field in fields.items() if field.required]

    def check(value: Any, path: str, lenient: bool) -> Any:
        if not isinstance(value, dict):
            raise Invalid(f"{path} in body should be an object, found {json.dumps(value)[:80]}")
        found: dict[str, Any] = {}
        for name, entry in value.items():
            known = fields.get(name)
            if known is None:
                continue
            if entry is None:
                if known.nullable:
                    found[name] = None
                elif not lenient and not known.listed:
                    raise Invalid(f"{path}.{name} in body should not be null")
                continue
            found[name] = known.check(entry, f"{path}.{name}", lenient)
        for name in required:
            if name not in found:
                raise Invalid(f"{path}.{name} in body is required")
        return found

    return check


def _bounds(text: str) -> tuple[float | None, float | None]:
    low, __, high = text.partition("..")
    return (float(low) if low else None), (float(high) if high else None)


class Models:
    """Compiled models by name. `check(name, value)` gives the value with its known fields, or raises Invalid."""

    def __init__(self, text: str) -> None:
        self._lines: dict[str, list[tuple[str, str]]] = {}
        self._checks: dict[str, Check] = {}
        current: list[tuple[str, str]] = []
        for line in filter(None, text.splitlines()):
            if line.startswith("  "):
                name, __, kind = line.strip().partition(" ")
                current.append((name, kind))
            else:
                current = self._lines[line] = []

    def compile(self, kind: str) -> Check:
        done = self._checks.get(kind)
        if done is None:
            done = self._checks[kind] = self._compile(kind)
        return done

    def _compile(self, kind: str) -> Check:
        if kind in self._lines:
            fields = {}
            for name, of in self._lines[kind]:
                check = self.compile(of.removesuffix("?"))
                fields[name.rstrip("*")] = _Field(check, name.endswith("*"), of.endswith("?"), of.startswith("["))
            return _object(fields)
        if kind.startswith("["):
            return _list(self.compile(kind[1:-1]))
        if kind.startswith("{"):
            return _map(self.compile(kind[1:-1]))
        if kind in FORMATS:
            return _string(*FORMATS[kind])
        name, __, rest = kind.partition("(")
        rest = rest[:-1]
        if name == "enum":
            values = rest.split("|")
            return _string(values.__contains__, "one of " + ", ".join(values))
        if name == "re":
            return _string(re.compile(rest.removesuffix("$") + r"\Z").search, f"a string that matches {rest}")
        if name == "str":
            low, high = _bounds(rest)
            if low is None and high is None:
                return _string(lambda text: True, "a string")
            return _string(
                lambda text: (low or 0) <= len(text) and (high is None or len(text) <= high),
                f"a string of {rest.replace('..', ' to ')} characters",
            )
        if name in ("int", "num"):
            return _number(name, *_bounds(rest))
        return {"bool": _bool, "any": _any}[name]

    def check(self, kind: str, value: Any, path: str = "", lenient: bool = False) -> Any:
        """The value as the model describes it, unknown fields dropped.

        `lenient` is how agents' outputs are read (by types alone, null as absent), as Go's decoder does.
        """
        return self.compile(kind)(value, path or kind.strip("[]"), lenient)


MODELS = Models(TEXT)


def parse_json(raw: bytes | str) -> Any:
    """JSON as the service accepts it: no NaN, bounded in size, values and depth. Invalid otherwise."""
    try:
        return load_json(raw, name="the body")
    except DocumentError as err:
        raise Invalid(f"the body is not JSON: line {err.line}, column {err.column}: {err.problem}"[:250]) from None
