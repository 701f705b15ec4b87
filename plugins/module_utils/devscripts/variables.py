"""Every variable that dev-scripts' agent flow reads, with what becomes of it: one row each.

Read at commit 655d6bacdea8 of openshift-metal3/dev-scripts (August 2026). Importer, exporter, documentation and the
comparison with a checkout read these tables.
"""

from __future__ import annotations

import difflib
import re
from typing import Literal, NamedTuple

from ..vocabulary import DEFAULT_CLUSTER

Kind = Literal["string", "integer", "boolean", "non-empty", "list"]
"""How dev-scripts reads a value. `boolean`: `true` turns it on; `non-empty`: any text does, `false` too."""
Use = Literal["mapped", "refused", "ignored"]


class MappedVariable(NamedTuple):
    """A variable with a counterpart: the fields of a profile, how it is read, and dev-scripts' default.

    `fields` are paths in a profile, for the documentation; the code of the mapping is in `mapping`, `nodes` and
    `configs`.
    """

    fields: str
    kind: Kind = "string"
    default: str = ""


class RefusedVariable(NamedTuple):
    """A variable without a counterpart: the reason, how it is read, and the default, which changes nothing and is accepted.

    The reason is the message for a configuration that sets the variable to anything but its default.
    """

    reason: str
    kind: Kind = "string"
    default: str = ""


class Row(NamedTuple):
    """One variable for documentation: what becomes of it; its fields, or the reason; how it is read; dev-scripts' default.

    `use` is `mapped`, `refused` or `ignored`. A row of `VARIABLES` is made of `MappedVariable`, `RefusedVariable` or the note for an
    ignored one.
    """

    use: Use
    text: str
    kind: Kind = "string"
    default: str = ""


ROLE_PREFIXES = {"master": "MASTER", "arbiter": "ARBITER", "worker": "WORKER"}
SIZES = {"VCPU": "vcpus", "MEMORY": "memory_mib", "DISK": "disk_gib"}
EACH_ROLE = "master, arbiter, worker"

MAPPED: dict[str, MappedVariable] = {
    "ADDITIONAL_CAPABILITIES": MappedVariable(
        "installer.install_config.capabilities.additionalEnabledCapabilities", "list"
    ),
    "ADDITIONAL_TRUST_BUNDLE": MappedVariable(
        "installer.install_config.additionalTrustBundle, the content of the file"
    ),
    "AGENT_BM_HOSTS_IN_INSTALL_CONFIG": MappedVariable("installer.hosts_in: install-config", "boolean", "false"),
    "AGENT_BOOT_SERVER_PORT": MappedVariable("services.http.port", "integer", "8089"),
    "AGENT_E2E_TEST_BOOT_MODE": MappedVariable("boot.mode; with PXE and ISCSI also firmware bios", default="ISO"),
    "AGENT_E2E_TEST_SCENARIO": MappedVariable("topology, stack, addressing"),
    "AGENT_ISOLATED_NETWORK": MappedVariable("hypervisor.egress, the opposite", "boolean", "false"),
    "AGENT_MINIMAL_ISO": MappedVariable("boot.mode: minimal", "boolean", "false"),
    "AGENT_NMSTATE_DHCP": MappedVariable("nodes.NAME.network_config", "boolean", "false"),
    "AGENT_PLATFORM_NAME": MappedVariable("external.platform_name", default="oci"),
    "AGENT_PLATFORM_TYPE": MappedVariable("platform", default="baremetal"),
    "AGENT_ROOT_DEVICE_HINTS": MappedVariable(f"root_device of {EACH_ROLE}"),
    "AGENT_USE_APPLIANCE_MODEL": MappedVariable("boot.mode: config-image", "boolean", "false"),
    "AGENT_WAIT_FOR_INSTALL_COMPLETE": MappedVariable("the option --stop-after of agentlab deploy", "boolean", "true"),
    "ARBITER_DISK": MappedVariable("arbiter.disk_gib", "integer", "50"),
    "ARBITER_HOSTNAME_FORMAT": MappedVariable("arbiter.name_format", default="arbiter-%d"),
    "ARBITER_MEMORY": MappedVariable("arbiter.memory_mib", "integer", "8192"),
    "ARBITER_VCPU": MappedVariable("arbiter.vcpus", "integer", "4"),
    "ASSETS_EXTRA_FOLDER": MappedVariable("installer.manifests_dir"),
    "BAREMETAL_API_VIP": MappedVariable("vips.api", "list"),
    "BAREMETAL_INGRESS_VIP": MappedVariable("vips.ingress", "list"),
    "BAREMETAL_NETWORK_NAME": MappedVariable("network.bridge"),
    "BAREMETAL_OPERATOR_LOCAL_IMAGE": MappedVariable("release.payload_overrides, as any NAME_LOCAL_IMAGE"),
    "BASELINE_CAPABILITY_SET": MappedVariable("installer.install_config.capabilities.baselineCapabilitySet"),
    "BASE_DOMAIN": MappedVariable("base_domain", default="test.metalkube.org"),
    "BMC_DRIVER": MappedVariable("boot.mode: redfish; BMCs are virtual media by Redfish", default="redfish"),
    "BOND_CONFIG": MappedVariable("bonds.bond0 of eth0 and eth1, network.interface: bond0", default="none"),
    "CLUSTER_HOST_PREFIX": MappedVariable("installer.cluster_network, the family of CLUSTER_SUBNET", "integer"),
    "CLUSTER_HOST_PREFIX_V4": MappedVariable("installer.cluster_network.ipv4[0].host_prefix", "integer", "23"),
    "CLUSTER_HOST_PREFIX_V6": MappedVariable("installer.cluster_network.ipv6[0].host_prefix", "integer", "64"),
    "CLUSTER_NAME": MappedVariable("the option --cluster", default=DEFAULT_CLUSTER),
    "CLUSTER_SUBNET": MappedVariable("installer.cluster_network, the family of the value"),
    "CLUSTER_SUBNET_V4": MappedVariable("installer.cluster_network.ipv4[0].cidr", default="10.128.0.0/14"),
    "CLUSTER_SUBNET_V6": MappedVariable("installer.cluster_network.ipv6[0].cidr", default="fd01::/48"),
    "DHCP_LEASE_EXPIRY": MappedVariable("network.lease_minutes", "integer", "60"),
    "ENABLE_LOCAL_REGISTRY": MappedVariable("services.registry, which every lab has", "non-empty"),
    "ENABLE_TWO_NODE_FENCING": MappedVariable("topology: tnf", "boolean", "false"),
    "ENABLE_WORKLOAD_PARTITIONING": MappedVariable(
        "installer.install_config.cpuPartitioningMode: AllNodes", "non-empty"
    ),
    "EXTERNAL_LOADBALANCER": MappedVariable(
        "installer.install_config.platform.baremetal.loadBalancer.type: UserManaged", "non-empty"
    ),
    "EXTERNAL_SUBNET": MappedVariable("network.ipv4 or network.ipv6, the family of the value"),
    "EXTERNAL_SUBNET_V4": MappedVariable("network.ipv4", default="192.168.111.0/24"),
    "EXTERNAL_SUBNET_V6": MappedVariable("network.ipv6", default="fd2e:6f44:5dd8:c956::/120"),
    "FEATURE_GATES": MappedVariable("installer.install_config.featureGates", "list"),
    "FEATURE_SET": MappedVariable("installer.install_config.featureSet"),
    "FIPS_MODE": MappedVariable("installer.fips", "boolean", "false"),
    "INSTALLER_PROXY": MappedVariable("network.connection: proxied", "non-empty"),
    "IP_STACK": MappedVariable("stack", default="v6"),
    "IRONIC_INSPECTOR_LOCAL_IMAGE": MappedVariable("release.payload_overrides, as any NAME_LOCAL_IMAGE"),
    "IRONIC_LOCAL_IMAGE": MappedVariable("release.payload_overrides, as any NAME_LOCAL_IMAGE"),
    "IRONIC_STATIC_IP_MANAGER_LOCAL_IMAGE": MappedVariable("release.payload_overrides, as any NAME_LOCAL_IMAGE"),
    "ISCSI_NETWORK_SUBNET": MappedVariable("extra_networks[].ipv4, of the network `iscsi`", default="192.168.145"),
    "KNI_INSTALL_FROM_GIT": MappedVariable(
        "release.installer.git, the repository of OPENSHIFT_INSTALL_PATH", "non-empty"
    ),
    "LIBVIRT_FIRMWARE": MappedVariable(f"firmware of {EACH_ROLE}", default="uefi"),
    "LOCAL_REGISTRY_PORT": MappedVariable("services.registry.port", "integer", "5000"),
    "MASTER_DISK": MappedVariable("master.disk_gib", "integer", "60"),
    "MASTER_HOSTNAME_FORMAT": MappedVariable("master.name_format", default="master-%d"),
    "MASTER_MEMORY": MappedVariable("master.memory_mib", "integer", "16384"),
    "MASTER_VCPU": MappedVariable("master.vcpus", "integer", "8"),
    "MIRROR_IMAGES": MappedVariable("services.registry, in which the lab payload always is", "boolean"),
    "NETWORKING_MODE": MappedVariable("addressing"),
    "NETWORK_CONFIG_FOLDER": MappedVariable("nodes.NAME.network_config, from the file CLUSTER-NAME.yaml"),
    "NETWORK_TYPE": MappedVariable("installer.network_type", default="OVNKubernetes"),
    "NODES_FILE": MappedVariable("machines_from, with NODES_PLATFORM=baremetal"),
    "NODES_PLATFORM": MappedVariable("machines_from", default="libvirt"),
    "NTP_SERVERS": MappedVariable("installer.ntp_sources", "list"),
    "NUM_ARBITERS": MappedVariable("arbiter.count", "integer", "0"),
    "NUM_MASTERS": MappedVariable("topology, master.count", "integer", "3"),
    "NUM_WORKERS": MappedVariable("topology, worker.count", "integer", "2"),
    "OPENSHIFT_INSTALL_PATH": MappedVariable("release.installer.git, with KNI_INSTALL_FROM_GIT"),
    "OPENSHIFT_RELEASE_IMAGE": MappedVariable("release.image, with release.payload: ocp, or okd by its tag"),
    "OPENSHIFT_VERSION": MappedVariable("release.version"),
    "OS_IMAGE_STREAM": MappedVariable("installer.install_config.osImageStream"),
    "PERSONAL_PULL_SECRET": MappedVariable("installer.pull_secret_file"),
    "PULL_SECRET_FILE": MappedVariable("installer.pull_secret_file, unless PERSONAL_PULL_SECRET is set"),
    "REGISTRY_USER": MappedVariable("services.registry.username", default="ocp-user"),
    "SERVICE_SUBNET": MappedVariable("installer.service_network, the family of the value"),
    "SERVICE_SUBNET_V4": MappedVariable("installer.service_network.ipv4", default="172.30.0.0/16"),
    "SERVICE_SUBNET_V6": MappedVariable("installer.service_network.ipv6", default="fd02::/112"),
    "SSH_KEY_FILE": MappedVariable("installer.ssh_key_file"),
    "SSH_PUB_KEY": MappedVariable("installer.ssh_key_file, from `$(cat FILE)`"),
    "VM_EXTRADISKS": MappedVariable(f"extra_disks of {EACH_ROLE}", "boolean", "false"),
    "VM_EXTRADISKS_LIST": MappedVariable("extra_disks, how many", "list", "vdb"),
    "VM_EXTRADISKS_SIZE": MappedVariable("extra_disks[].size_gib", default="8G"),
    "WORKER_DISK": MappedVariable("worker.disk_gib", "integer", "60"),
    "WORKER_HOSTNAME_FORMAT": MappedVariable("worker.name_format", default="worker-%d"),
    "WORKER_MEMORY": MappedVariable("worker.memory_mib", "integer", "8192"),
    "WORKER_VCPU": MappedVariable("worker.vcpus", "integer", "4"),
    "WORKING_DIR": MappedVariable("hypervisor.state_dir, its folder `agentlab`", default="/opt/dev-scripts"),
}

_APPLIANCE = "the appliance is not built; `boot: {mode: config-image}` has an ISO with its Ignition, and the config image from the start"
_BAREMETAL = "existing machines have what NODES_FILE has of them, and the addresses of the plan or of `nodes`"
_BGP = "there is no top-of-rack BGP speaker"
_EXTRA = "machines that are added later are nodes with `day2: true` in `nodes`; see docs/add-nodes.md"
_LANDING = "machines outside of the cluster are `machines` of a profile; see docs/machines.md"
_OVE = "the ISO without a registry (OVE) cannot be built"
_ARM = "all machines are x86_64"

REFUSED: dict[str, RefusedVariable] = {
    "AGENT_APPLIANCE_HOTPLUG": RefusedVariable(_APPLIANCE, "boolean", "false"),
    "AGENT_BAREMETAL_IPS": RefusedVariable(_BAREMETAL),
    "AGENT_BAREMETAL_ISO_SERVER": RefusedVariable(_BAREMETAL),
    "AGENT_DEPLOY_MCE": RefusedVariable("no operator is installed after the cluster", "non-empty"),
    "AGENT_DISABLE_AUTOMATED": RefusedVariable(
        "services of the agent ISO cannot be disabled; `agentlab create unconfigured-ignition --interactive` is near",
        "boolean",
    ),
    "AGENT_ISO_NO_REGISTRY_BUILD_METHOD": RefusedVariable(_OVE, default="script"),
    "AGENT_OPERATORS": RefusedVariable("no operator is installed with the cluster"),
    "AGENT_STATIC_IP_NODE0_ONLY": RefusedVariable(
        "give the first node `addressing: static` in `nodes`", "boolean", "false"
    ),
    "AGENT_TEST_CASES": RefusedVariable("what a test types is `screen_steps` of a node; see docs/hosts.md"),
    "AGENT_USE_ZTP_MANIFESTS": RefusedVariable(
        "the inputs are install-config.yaml and agent-config.yaml; `agentlab create cluster-manifests` makes manifests of them",
        "boolean",
        "false",
    ),
    "APPLIANCE_IMAGE": RefusedVariable(_APPLIANCE, default="quay.io/edge-infrastructure/openshift-appliance:latest"),
    "ARM_NODES_FILE": RefusedVariable(_ARM),
    "BGP_VIP_MANAGEMENT": RefusedVariable(_BGP, "non-empty"),
    "BGP_VIP_PEER_ADDRESS": RefusedVariable(_BGP),
    "BOND_PRIMARY_INTERFACE": RefusedVariable(
        "two interfaces of a node cannot be in one network without a bond; set BOND_CONFIG", "non-empty"
    ),
    "DISABLE_MULTICAST": RefusedVariable("there is no such fault", "boolean", "false"),
    "ENABLE_BGP_TOR": RefusedVariable(_BGP, "non-empty"),
    "ENABLE_LLDP_TOR": RefusedVariable("there is no LLDP neighbor", "non-empty"),
    "EXTRA_NODES_FILE": RefusedVariable(_EXTRA),
    "HOST_IP_STACK": RefusedVariable("hosts have the addresses of `stack`, no others"),
    "IGNITION_EXTRA": RefusedVariable(
        "Ignition of the machines is not merged; `agentlab iso ignition` changes that of the ISO"
    ),
    "LOCAL_REGISTRY_DNS_NAME": RefusedVariable("the registry's name is virthost.CLUSTER.DOMAIN"),
    "NUM_ARM_WORKERS": RefusedVariable(_ARM, "integer", "0"),
    "NUM_EXTRA_WORKERS": RefusedVariable(_EXTRA, "integer", "0"),
    "NUM_LANDINGZONE": RefusedVariable(_LANDING, "integer", "0"),
    "OC_MIRROR_TO_FILE": RefusedVariable("nothing is mirrored to files", "non-empty"),
    "OPENSHIFT_INSTALLER": RefusedVariable(
        "dev-scripts' agent flow runs the installer of the release; set release.installer.binary in the profile"
    ),
    "OPENSHIFT_RELEASE_STREAM": RefusedVariable(
        "no release controller is asked for the newest release; set OPENSHIFT_RELEASE_IMAGE", default="5.1"
    ),
    "OPENSHIFT_RELEASE_TYPE": RefusedVariable(
        "no release controller is asked for the newest release; set OPENSHIFT_RELEASE_IMAGE", default="nightly"
    ),
    "REDFISH_EMULATOR_IGNORE_BOOT_DEVICE": RefusedVariable(
        "BMCs follow the boot sequence of agentlab", "boolean", "False"
    ),
    "REGISTRY_BACKEND": RefusedVariable("the registry is agentlab's own", default="podman"),
    "VM_NODES_FILE": RefusedVariable("dev-scripts refuses it too"),
}

_DERIVED = "agentlab derives it from the profile"
_HOST = "a matter of dev-scripts' host"
_IMAGE = "the image of a helper that dev-scripts runs"
_IPI = "the agent flow does not use it"
_OFF = "without effect while what it belongs to is off"
_TOOL = "a tool or version of dev-scripts"
_PROXY = (
    "dev-scripts' agent flow uses it for its own downloads only; for the cluster set installer.install_config.proxy"
)

IGNORED: dict[str, str] = {
    "ADDN_DNS": "names that are not the cluster's are resolved as this host does it",
    "AGENT_RENDEZVOUS_NODE_HOSTNAME": "the rendezvous host is master-0; only the boot mode ISO_NO_REGISTRY reads it",
    "CI_TOKEN": "a secret that makes a pull secret, which installer.pull_secret_file names",
    "DNS_VIP": "the gateway serves DNS",
    "ISCSI_DEVICE_NAME": "with boot.mode iscsi the LUN is the only disk",
    "INSTALLER_PROXY_PORT": "the lab's proxy listens on port 3128",
    "LIBVIRT_VOLUME_POOL": "each cluster has a pool of its own",
    "MIRROR_COMMAND": "agentlab fills the registry itself",
    "OPENSHIFT_CI": "there is no CI mode",
    "REGISTRY_DIR": "services keep their files below hypervisor.state_dir",
    "REGISTRY_PASS": "a secret: each cluster has a random one; services.registry.password sets it",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"), _PROXY),
    **dict.fromkeys(
        ("AGENT_NODE0_IPSV6", "ALL_REGISTRY_DNS_NAMES", "BAREMETALHOSTS_FILE", "CLUSTER_NAMESPACE",
         "EXTRA_ARM_BAREMETALHOSTS_FILE", "EXTRA_BAREMETALHOSTS_FILE", "LOGDIR", "MIRROR_IP", "OCP_DIR",
         "PROVISIONING_HOST_EXTERNAL_IP"),
        _DERIVED,
    ),
    **dict.fromkeys(
        ("CI_REGISTRY", "CI_SERVER", "DOCKER_CONFIG_FILE", "EXT_IF", "INT_IF", "MANAGE_BR_BRIDGE", "MANAGE_INT_BRIDGE",
         "MANAGE_PRO_BRIDGE", "PRO_IF", "REGISTRY_CREDS", "XDG_CONFIG_HOME"),
        _HOST,
    ),
    **dict.fromkeys(("DOCKER_REGISTRY_IMAGE", "IRONIC_IMAGE", "SUSHY_TOOLS_IMAGE", "VBMC_IMAGE"), _IMAGE),
    **dict.fromkeys(
        ("ANSIBLE_VERSION", "GO_CUSTOM_MIRROR", "GO_VERSION", "METAL3_DEV_ENV", "REPO_NAME", "REPO_PATH",
         "VBMC_BASE_PORT"),
        _TOOL,
    ),
    **dict.fromkeys(
        ("AGENT_CLEANUP_ISO_BUILDER_CACHE_LOCAL_DEV", "AGENT_OVE_ISO_SIZE", "ARM_WORKER_DISK", "ARM_WORKER_MEMORY",
         "ARM_WORKER_VCPU", "BGP_CLUSTER_ASN", "BGP_TOR_ASN", "BGP_TOR_IMAGE", "EXTRA_WORKER_DISK",
         "EXTRA_WORKER_HOSTNAME_FORMAT", "EXTRA_WORKER_MEMORY", "EXTRA_WORKER_VCPU",
         "LANDINGZONE_DISK", "LANDINGZONE_HOSTNAME_FORMAT",
         "LANDINGZONE_MEMORY", "LANDINGZONE_VCPU", "LLDP_TOR_SYSTEM_NAME", "OPENSHIFT_INSTALLER_MACHINE_OS"),
        _OFF,
    ),
    **dict.fromkeys(
        ("BMO_WATCH_ALL_NAMESPACES", "BOOTSTRAP_IN_PLACE", "BOOTSTRAP_PROVISIONING_IP", "CLUSTER_PROVISIONING_IP",
         "CLUSTER_PRO_IF", "ENABLE_BOOTSTRAP_STATIC_IP", "ENABLE_CAPI_E2E", "EXTERNAL_BOOTSTRAP_MAC",
         "EXTRA_WORKERS_NAMESPACE", "EXTRA_WORKERS_ONLINE_STATUS", "HIVE_DEPLOY_IMAGE", "IRONICCLIENT_PATH",
         "MACHINE_OS_BOOTSTRAP_IMAGE_SHA256", "MACHINE_OS_BOOTSTRAP_IMAGE_UNCOMPRESSED_SHA256",
         "MACHINE_OS_IMAGE_SHA256", "MACHINE_OS_IMAGE_URL", "MACHINE_OS_LIVE_ISO_SHA256", "MACHINE_OS_LIVE_ISO_URL",
         "PERSISTENT_IMAGEREG", "PROVISIONING_HOST_IP", "PROVISIONING_HOST_USER", "PROVISIONING_NETMASK",
         "PROVISIONING_NETWORK", "PROVISIONING_NETWORK_NAME", "PROVISIONING_NETWORK_PROFILE", "REMOTE_LIBVIRT",
         "ROOT_DISK_NAME", "SNO_INSTALLATION_DISK", "TEST_CUSTOM_MAO", "UPSTREAM_IRONIC"),
        _IPI,
    ),
}  # fmt: skip

VARIABLES: dict[str, Row] = dict(
    sorted(
        [
            *((name, Row("mapped", *mapped)) for name, mapped in MAPPED.items()),
            *((name, Row("refused", *refused)) for name, refused in REFUSED.items()),
            *((name, Row("ignored", note)) for name, note in IGNORED.items()),
        ]
    )
)
"""The variables that dev-scripts gives a default or documents, by name."""

_MIRROR = "`agentlab mirror RELEASE --image PULLSPEC` copies operators and other images; see docs/mirror.md"
LATER: dict[str, Row] = {
    "AGENT_BAREMETAL_MACS": Row("refused", _BAREMETAL),
    "AGENT_ENABLE_GUI": Row("ignored", "`agentlab forward` makes the service's page reachable"),
    "AGENT_ISO_BUILDER_IMAGE": Row("refused", _OVE),
    "AGENT_OVE_ISO_SOURCE": Row("refused", _OVE),
    "APPLY_EXTRA_WORKERS": Row("ignored", _IPI),
    "CONFIG": Row("ignored", "the configuration itself"),
    "ENABLE_METALLB_MODE": Row("refused", "no operator is installed after the cluster"),
    "ENABLE_VIRTUAL_MEDIA_VIA_EXTERNAL_NETWORK": Row("ignored", _IPI),
    "EXTRA_NETWORK_NAMES": Row("mapped", "extra_networks[].name", "list"),
    "FENCING_CREDENTIAL_IDENTIFIER": Row("mapped", "installer.fencing_by", "string", "hostname"),
    "MIRROR_CUSTOM_IMAGES": Row("refused", _MIRROR),
    "MIRROR_OLM": Row("refused", _MIRROR),
    "MIRROR_OLM_REMOTE_INDEX": Row("ignored", _OFF),
    "OVN_LOCAL_GATEWAY_MODE": Row("refused", "the network plugin has its defaults", "boolean"),
    "VM_TPM_EMULATOR": Row("mapped", f"tpm of {EACH_ROLE}", "non-empty"),
    **dict.fromkeys(("BASE_IMAGE_DIR", "BASE_IMAGE_FROM", "CUSTOM_BASE_IMAGE", "CUSTOM_REPO_FILE"), Row("ignored", _OFF)),
    **dict.fromkeys(("FILESYSTEM", "FIPS_VALIDATE", "GOPATH"), Row("ignored", _HOST)),
    **dict.fromkeys(
        ("CUSTOM_MAO_IMAGE", "ENABLE_CBO_TEST", "INSTALL_OPERATOR_SDK", "MAO_BRANCH", "MASTER_HARDWARE_PROFILE",
         "OPENSHIFT_AGENT_INSTALLER_UTILS_PATH", "WORKER_HARDWARE_PROFILE"),
        Row("ignored", _IPI),
    ),
}  # fmt: skip
"""Variables of other programs and flows that configurations of dev-scripts set, and those that are newer than the commit."""

PATTERNS: dict[str, Row] = {
    "*_NETWORK_SUBNET_V4": Row("mapped", "extra_networks[].ipv4, of the network in EXTRA_NETWORK_NAMES"),
    "*_NETWORK_SUBNET_V6": Row("mapped", "extra_networks[].ipv6, of the network in EXTRA_NETWORK_NAMES"),
    "*_LOCAL_IMAGE": Row("mapped", "release.payload_overrides.NAME, for a pullspec with a digest and the lab payload"),
    "*_LOCAL_REPO": Row("refused", "agentlab does not build images; `agentlab deploy --override` runs your build"),
    "*_EXTRA_PACKAGES": Row("refused", "agentlab does not build images"),
    "*_PR": Row("refused", "agentlab does not build images"),
    "METALLB_IMAGE_*": Row("ignored", _OFF),
    "ASSISTED_*": Row("ignored", _IPI),
    "OPENSHIFT_INSTALL_*": Row(
        "ignored", "environment of openshift-install: set it where agentlab runs, which passes it on"
    ),
    "PROV_BM_MAC": Row("ignored", _HOST),
}
"""Families of variables; `*` is the part that varies."""

_PATTERNS = [(re.compile(name.replace("*", "([A-Z0-9_]+)")), name) for name in PATTERNS]


def find(name: str) -> tuple[str, Row] | None:
    """Return the row of a variable with the row's name; None for a variable that dev-scripts does not know.

    The row's name differs for a family of variables, such as `ASSISTED_*`: it is that of the pattern.
    """
    row = VARIABLES.get(name) or LATER.get(name)
    if row is not None:
        return name, row
    return next(((key, PATTERNS[key]) for pattern, key in _PATTERNS if pattern.fullmatch(name)), None)


def nearest_variable(name: str) -> str | None:
    """Return the variable that a misspelled name is likely to mean.

    None when no name is similar enough (85 %). Families of variables are not compared.
    """
    found = difflib.get_close_matches(name, [*VARIABLES, *LATER], n=1, cutoff=0.85)
    return found[0] if found else None
