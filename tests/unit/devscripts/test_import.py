"""Every variable of dev-scripts is mapped, refused by name, or ignored with a note."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import exporter, importer, shell, variables
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, checks, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import TOPOLOGIES

KNOWN = {"HOME": "~", "USER": "me"}
COMPACT = "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4\n"
HA = "AGENT_E2E_TEST_SCENARIO=HA_IPV4V6\n"
IMAGE = "quay.io/ocp/release@sha256:" + "0" * 64
OKD = "quay.io/okd/scos-release:4.20.0-okd-scos.13"
REAL = COMPACT + f"OPENSHIFT_RELEASE_IMAGE={IMAGE}\n"
AUTO = {"enabled": True, "dhcp": True, "auto-dns": True, "auto-gateway": True, "auto-routes": True}
NMSTATE = {
    "interfaces": [{"name": "eth0", "type": "ethernet", "state": "up", "ipv4": AUTO, "ipv6": {"enabled": False}}]
}


def read(text: str, *, partial: bool = False, folder: Path | None = None) -> importer.Import:
    return importer.read([("config.sh", text)], KNOWN, partial=partial, folder=folder)


def at(raw: dict[str, Any], path: str) -> Any:
    value: Any = raw
    for key in path.split("."):
        value = value[key]
    return value


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "ADDITIONAL_CAPABILITIES": (
        COMPACT + "BASELINE_CAPABILITY_SET=None\nADDITIONAL_CAPABILITIES=baremetal,Console",
        {"installer.install_config.capabilities.additionalEnabledCapabilities": ["baremetal", "Console"]},
    ),
    "ADDITIONAL_TRUST_BUNDLE": (
        REAL + "ADDITIONAL_TRUST_BUNDLE=ca.pem",
        {"installer.install_config.additionalTrustBundle": "a bundle\n"},
    ),
    "AGENT_BM_HOSTS_IN_INSTALL_CONFIG": (
        COMPACT + "AGENT_BM_HOSTS_IN_INSTALL_CONFIG=true",
        {"installer.hosts_in": "install-config"},
    ),
    "AGENT_BOOT_SERVER_PORT": (COMPACT + "AGENT_BOOT_SERVER_PORT=8090", {"services.http.port": 8090}),
    "AGENT_E2E_TEST_BOOT_MODE": (
        COMPACT + "AGENT_E2E_TEST_BOOT_MODE=pxe\nLIBVIRT_FIRMWARE=uefi",
        {"boot.mode": "pxe", "master.firmware": "bios"},
    ),
    "AGENT_E2E_TEST_SCENARIO": (
        "AGENT_E2E_TEST_SCENARIO=ha_ipv4v6_dhcp",
        {"topology": "ha", "stack": "dualstack", "addressing": "dhcp"},
    ),
    "AGENT_ISOLATED_NETWORK": (COMPACT + "AGENT_ISOLATED_NETWORK=false", {"hypervisor.egress": True}),
    "AGENT_USE_APPLIANCE_MODEL": (COMPACT + "AGENT_USE_APPLIANCE_MODEL=true", {"boot.mode": "config-image"}),
    "AGENT_MINIMAL_ISO": (COMPACT + "AGENT_MINIMAL_ISO=True", {"boot.mode": "minimal"}),
    "FENCING_CREDENTIAL_IDENTIFIER": (
        "AGENT_E2E_TEST_SCENARIO=TNF_IPV4\nFENCING_CREDENTIAL_IDENTIFIER=macAddress",
        {"topology": "tnf", "installer.fencing_by": "macAddress"},
    ),
    "AGENT_NMSTATE_DHCP": (
        "AGENT_E2E_TEST_SCENARIO=SNO_IPV4_DHCP\nAGENT_NMSTATE_DHCP=true",
        {"nodes.master-0.network_config": NMSTATE},
    ),
    "AGENT_PLATFORM_NAME": (
        COMPACT + "AGENT_PLATFORM_TYPE=external\nAGENT_PLATFORM_NAME=other",
        {"external.platform_name": "other"},
    ),
    "AGENT_PLATFORM_TYPE": (
        COMPACT + "AGENT_PLATFORM_TYPE=external",
        {
            "platform": "external",
            "external.platform_name": "oci",
        },
    ),
    "AGENT_ROOT_DEVICE_HINTS": (
        HA + "AGENT_ROOT_DEVICE_HINTS=/dev/sda",
        {"master.root_device": "/dev/sda", "worker.root_device": "/dev/sda"},
    ),
    "AGENT_WAIT_FOR_INSTALL_COMPLETE": (COMPACT + "AGENT_WAIT_FOR_INSTALL_COMPLETE=false", {}),
    "ARBITER_DISK": ("AGENT_E2E_TEST_SCENARIO=TNA_IPV4\nARBITER_DISK=60", {"arbiter.disk_gib": 60}),
    "ARBITER_MEMORY": ("AGENT_E2E_TEST_SCENARIO=TNA_IPV4\nARBITER_MEMORY=9000", {"arbiter.memory_mib": 9000}),
    "ARBITER_VCPU": ("AGENT_E2E_TEST_SCENARIO=TNA_IPV4\nARBITER_VCPU=3", {"arbiter.vcpus": 3}),
    "BAREMETAL_API_VIP": (COMPACT + "BAREMETAL_API_VIP=192.168.111.10", {"vips.api": ["192.168.111.10"]}),
    "BAREMETAL_INGRESS_VIP": (COMPACT + "BAREMETAL_INGRESS_VIP=192.168.111.11", {"vips.ingress": ["192.168.111.11"]}),
    "BAREMETAL_NETWORK_NAME": (COMPACT + "BAREMETAL_NETWORK_NAME=lab0", {"network.bridge": "lab0"}),
    "BASELINE_CAPABILITY_SET": (
        COMPACT + "BASELINE_CAPABILITY_SET=None",
        {"installer.install_config.capabilities.baselineCapabilitySet": "None"},
    ),
    "BASE_DOMAIN": (COMPACT + "BASE_DOMAIN=example.com", {"base_domain": "example.com"}),
    "BMC_DRIVER": (COMPACT + "BMC_DRIVER=redfish-virtualmedia", {}),
    "BOND_CONFIG": (
        COMPACT + "BOND_CONFIG=active-backup",
        {"bonds": {"bond0": {"mode": "active-backup", "nics": ["eth0", "eth1"]}}, "network.interface": "bond0"},
    ),
    "CLUSTER_HOST_PREFIX": (
        COMPACT + "CLUSTER_SUBNET=10.200.0.0/16\nCLUSTER_HOST_PREFIX=24",
        {"installer.cluster_network.ipv4": [{"cidr": "10.200.0.0/16", "host_prefix": 24}]},
    ),
    "CLUSTER_HOST_PREFIX_V4": (
        COMPACT + "CLUSTER_HOST_PREFIX_V4=24",
        {"installer.cluster_network.ipv4": [{"cidr": "10.128.0.0/14", "host_prefix": 24}]},
    ),
    "CLUSTER_HOST_PREFIX_V6": (
        HA + "CLUSTER_HOST_PREFIX_V6=65",
        {"installer.cluster_network.ipv6": [{"cidr": "fd01::/48", "host_prefix": 65}]},
    ),
    "CLUSTER_NAME": (COMPACT + "CLUSTER_NAME=two", {}),
    "CLUSTER_SUBNET": (
        HA + "CLUSTER_SUBNET=fd05::/48",
        {"installer.cluster_network.ipv6": [{"cidr": "fd05::/48", "host_prefix": 64}]},
    ),
    "CLUSTER_SUBNET_V4": (
        COMPACT + "CLUSTER_SUBNET_V4=10.200.0.0/16",
        {"installer.cluster_network.ipv4": [{"cidr": "10.200.0.0/16", "host_prefix": 23}]},
    ),
    "CLUSTER_SUBNET_V6": (
        HA + "CLUSTER_SUBNET_V6=fd05::/48",
        {"installer.cluster_network.ipv6": [{"cidr": "fd05::/48", "host_prefix": 64}]},
    ),
    "DHCP_LEASE_EXPIRY": (COMPACT + "DHCP_LEASE_EXPIRY=30", {"network.lease_minutes": 30}),
    "ENABLE_LOCAL_REGISTRY": (COMPACT + "ENABLE_LOCAL_REGISTRY=true", {}),
    "ENABLE_TWO_NODE_FENCING": (
        "IP_STACK=v4\nNUM_MASTERS=2\nNUM_WORKERS=0\nENABLE_TWO_NODE_FENCING=true",
        {"topology": "tnf"},
    ),
    "ENABLE_WORKLOAD_PARTITIONING": (
        COMPACT + "ENABLE_WORKLOAD_PARTITIONING=false",
        {"installer.install_config.cpuPartitioningMode": "AllNodes"},
    ),
    "EXTERNAL_LOADBALANCER": (
        COMPACT + "EXTERNAL_LOADBALANCER=true",
        {"installer.install_config.platform.baremetal.loadBalancer.type": "UserManaged"},
    ),
    "EXTERNAL_SUBNET": (COMPACT + "EXTERNAL_SUBNET=192.168.130.0/24", {"network.ipv4": "192.168.130.0/24"}),
    "EXTERNAL_SUBNET_V4": (COMPACT + "EXTERNAL_SUBNET_V4=192.168.130.0/24", {"network.ipv4": "192.168.130.0/24"}),
    "EXTERNAL_SUBNET_V6": (HA + "EXTERNAL_SUBNET_V6=fd10::/64", {"network.ipv6": "fd10::/64"}),
    "EXTRA_NETWORK_NAMES": (
        HA
        + 'EXTRA_NETWORK_NAMES="nmstate1 nmstate2"\nNMSTATE1_NETWORK_SUBNET_V4=192.168.221.0/24\n'
        + "NMSTATE1_NETWORK_SUBNET_V6=fd20::/64\nNMSTATE2_NETWORK_SUBNET_V4=192.168.222.0/24",
        {
            "extra_networks": [
                {"name": "nmstate1", "ipv4": "192.168.221.0/24", "ipv6": "fd20::/64"},
                {"name": "nmstate2", "ipv4": "192.168.222.0/24"},
            ]
        },
    ),
    "FEATURE_GATES": (
        COMPACT + 'FEATURE_GATES="A=true,B=false"',
        {"installer.install_config.featureGates": ["A=true", "B=false"]},
    ),
    "FEATURE_SET": (
        COMPACT + "FEATURE_SET=TechPreviewNoUpgrade",
        {"installer.install_config.featureSet": "TechPreviewNoUpgrade"},
    ),
    "FIPS_MODE": (COMPACT + "FIPS_MODE=true", {"installer.fips": True}),
    "INSTALLER_PROXY": (COMPACT + "INSTALLER_PROXY=true", {"network.connection": "proxied"}),
    "IP_STACK": ("IP_STACK=v4v6", {"stack": "dualstack"}),
    "ISCSI_NETWORK_SUBNET": (
        "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4_DHCP\nAGENT_E2E_TEST_BOOT_MODE=ISCSI\nISCSI_NETWORK_SUBNET=10.9.0",
        {"boot.mode": "iscsi", "master.firmware": "bios", "extra_networks": [{"name": "iscsi", "ipv4": "10.9.0.0/24"}]},
    ),
    "KNI_INSTALL_FROM_GIT": (
        COMPACT + "KNI_INSTALL_FROM_GIT=true\nOPENSHIFT_INSTALL_PATH=/src/installer",
        {"release.installer.git": "/src/installer"},
    ),
    "LIBVIRT_FIRMWARE": (HA + "LIBVIRT_FIRMWARE=bios", {"master.firmware": "bios", "worker.firmware": "bios"}),
    "LOCAL_REGISTRY_PORT": (COMPACT + "LOCAL_REGISTRY_PORT=5001", {"services.registry.port": 5001}),
    "MASTER_DISK": (COMPACT + "MASTER_DISK=120", {"master.disk_gib": 120}),
    "MASTER_MEMORY": (COMPACT + "MASTER_MEMORY=16384", {"master.memory_mib": 16384}),
    "MASTER_VCPU": (COMPACT + "MASTER_VCPU=8", {"master.vcpus": 8}),
    "MIRROR_IMAGES": (COMPACT + "MIRROR_IMAGES=true", {}),
    "NETWORKING_MODE": (COMPACT + "NETWORKING_MODE=DHCP", {"addressing": "dhcp"}),
    "NETWORK_CONFIG_FOLDER": (
        COMPACT + "NETWORK_CONFIG_FOLDER=configs",
        {"nodes": {"master-1": {"network_config": {"interfaces": [{"name": "eth0", "ipv4": AUTO}]}}}},
    ),
    "NETWORK_TYPE": (COMPACT + "NETWORK_TYPE=Calico", {"installer.network_type": "Calico"}),
    "NTP_SERVERS": (COMPACT + 'NTP_SERVERS="a.example;b.example"', {"installer.ntp_sources": ["a.example", "b.example"]}),
    "NUM_ARBITERS": ("IP_STACK=v4\nNUM_MASTERS=2\nNUM_ARBITERS=1\nNUM_WORKERS=0", {"topology": "tna"}),
    "NUM_MASTERS": ("IP_STACK=v4\nNUM_MASTERS=5\nNUM_WORKERS=0", {"topology": "5control"}),
    "NUM_WORKERS": ("AGENT_E2E_TEST_SCENARIO=TNA_IPV4\nNUM_WORKERS=3", {"topology": "tna", "worker.count": 3}),
    "OPENSHIFT_INSTALL_PATH": (
        COMPACT + "OPENSHIFT_INSTALL_PATH=~/installer\nKNI_INSTALL_FROM_GIT=1",
        {"release.installer.git": "~/installer"},
    ),
    "OPENSHIFT_RELEASE_IMAGE": (
        REAL,
        {"release": {"payload": "ocp", "image": IMAGE}, "hypervisor.egress": True,
         "installer.pull_secret_file": "/opt/dev-scripts/pull_secret.json"},
    ),
    "OPENSHIFT_VERSION": (REAL + "OPENSHIFT_VERSION=4.20", {"release.version": "4.20"}),
    "OS_IMAGE_STREAM": (COMPACT + "OS_IMAGE_STREAM=rhel-10", {"installer.install_config.osImageStream": "rhel-10"}),
    "PERSONAL_PULL_SECRET": (
        REAL + "PULL_SECRET_FILE=/a\nPERSONAL_PULL_SECRET=$HOME/b",
        {"installer.pull_secret_file": "~/b"},
    ),
    "PULL_SECRET_FILE": (REAL + "PULL_SECRET_FILE=/a", {"installer.pull_secret_file": "/a"}),
    "REGISTRY_USER": (COMPACT + "REGISTRY_USER=me", {"services.registry.username": "me"}),
    "SERVICE_SUBNET": (HA + "SERVICE_SUBNET=172.29.0.0/16", {"installer.service_network.ipv4": "172.29.0.0/16"}),
    "SERVICE_SUBNET_V4": (COMPACT + "SERVICE_SUBNET_V4=172.29.0.0/16", {"installer.service_network.ipv4": "172.29.0.0/16"}),
    "SERVICE_SUBNET_V6": (HA + "SERVICE_SUBNET_V6=fd07::/112", {"installer.service_network.ipv6": "fd07::/112"}),
    "ASSETS_EXTRA_FOLDER": (COMPACT + "ASSETS_EXTRA_FOLDER=/root/manifests", {"installer.manifests_dir": "/root/manifests"}),
    "SSH_KEY_FILE": (COMPACT + "SSH_KEY_FILE=/root/key.pub", {"installer.ssh_key_file": "/root/key.pub"}),
    "SSH_PUB_KEY": (COMPACT + 'SSH_PUB_KEY="$(cat ~/.ssh/id_rsa.pub)"', {"installer.ssh_key_file": "~/.ssh/id_rsa.pub"}),
    "ARBITER_HOSTNAME_FORMAT": ("AGENT_E2E_TEST_SCENARIO=TNA_IPV4\n" + "ARBITER_HOSTNAME_FORMAT=arb-%d", {"arbiter.name_format": "arb-%d"}),
    "MASTER_HOSTNAME_FORMAT": (COMPACT + "MASTER_HOSTNAME_FORMAT=control-%d", {"master.name_format": "control-%d"}),
    "WORKER_HOSTNAME_FORMAT": (HA + "WORKER_HOSTNAME_FORMAT=compute-%d", {"worker.name_format": "compute-%d"}),
    "NODES_PLATFORM": (COMPACT + "NODES_PLATFORM=baremetal\nNODES_FILE=configs/ironic_nodes.json", {"topology": "compact"}),
    "NODES_FILE": (COMPACT + "NODES_PLATFORM=baremetal\nNODES_FILE=configs/ironic_nodes.json", {"topology": "compact"}),
    "VM_EXTRADISKS": (COMPACT + "VM_EXTRADISKS=true", {"master.extra_disks": [{"size_gib": 8, "bus": "virtio"}]}),
    "VM_EXTRADISKS_LIST": (
        HA + 'VM_EXTRADISKS=true\nVM_EXTRADISKS_LIST="vdb vdc"',
        {"worker.extra_disks": [{"size_gib": 8, "bus": "virtio"}] * 2},
    ),
    "VM_EXTRADISKS_SIZE": (
        COMPACT + "VM_EXTRADISKS=true\nVM_EXTRADISKS_SIZE=10G",
        {"master.extra_disks": [{"size_gib": 10, "bus": "virtio"}]},
    ),
    "VM_TPM_EMULATOR": (HA + "VM_TPM_EMULATOR=1", {"master.tpm": True, "worker.tpm": True}),
    "WORKER_DISK": (HA + "WORKER_DISK=110", {"worker.disk_gib": 110}),
    "WORKER_MEMORY": (HA + "WORKER_MEMORY=24576", {"worker.memory_mib": 24576}),
    "WORKER_VCPU": (HA + "WORKER_VCPU=6", {"worker.vcpus": 6}),
    "WORKING_DIR": (COMPACT + "WORKING_DIR=/home/dev-scripts/", {"hypervisor.state_dir": "/home/dev-scripts/agentlab"}),
    "NMSTATE1_NETWORK_SUBNET_V4": (
        COMPACT + "EXTRA_NETWORK_NAMES=nmstate1\nNMSTATE1_NETWORK_SUBNET_V4=192.168.221.0/24",
        {"extra_networks": [{"name": "nmstate1", "ipv4": "192.168.221.0/24"}]},
    ),
    "NMSTATE1_NETWORK_SUBNET_V6": (
        HA + "EXTRA_NETWORK_NAMES=nmstate1\nNMSTATE1_NETWORK_SUBNET_V6=fd20::/64",
        {"extra_networks": [{"name": "nmstate1", "ipv6": "fd20::/64"}]},
    ),
    "AGENT_INSTALLER_NODE_AGENT_LOCAL_IMAGE": (
        COMPACT + f"AGENT_INSTALLER_NODE_AGENT_LOCAL_IMAGE={IMAGE}",
        {"release.payload_overrides.agent-installer-node-agent": IMAGE},
    ),
}  # fmt: skip
# Their only value that is mapped would name a component; the lab payload has none of these.
NO_COMPONENT = {name for name in variables.MAPPED if name.endswith("_LOCAL_IMAGE")}


def _machine(number: int) -> dict[str, Any]:
    driver = {
        "address": f"redfish+https://192.0.2.{number}/redfish/v1/Systems/1",
        "username": "root",
        "password": "calvin",
    }
    return {"driver": "redfish", "driver_info": driver, "ports": [{"address": f"00:1a:2b:3c:4d:5{number}"}]}


def test_existing_machines(tmp_path: Path) -> None:
    """As dev-scripts reads them; with VMs it writes that file itself."""
    path = tmp_path / "ironic_nodes.json"
    path.write_text(json.dumps({"nodes": [_machine(number) for number in range(3)]}))
    found = read(COMPACT + "NODES_PLATFORM=baremetal\nNODES_FILE=ironic_nodes.json\n", folder=tmp_path)
    assert found.raw["machines_from"] == str(path) and not found.refused
    plan = build.build(profile.complete(found.raw), "ostest")
    assert [node["nics"][0]["mac"] for node in plan["nodes"]] == [f"00:1a:2b:3c:4d:5{number}" for number in range(3)]
    again = exporter.config(profile.complete(found.raw), "ostest")
    assert (again.values["NODES_PLATFORM"], again.values["NODES_FILE"]) == ("baremetal", str(path))
    assert not [lost for lost in again.lost if lost.field.startswith("nodes")]
    assert "machines_from" not in read(COMPACT + f"NODES_FILE={path}\n").raw


@pytest.mark.parametrize("name", CASES)
def test_mapped(name: str, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/ostest-master-1.yaml").write_text(
        json.dumps({"networkConfig": {"interfaces": [{"name": "eth0", "ipv4": AUTO}]}})
    )
    (tmp_path / "ca.pem").write_text("a bundle\n")
    (tmp_path / "configs/ironic_nodes.json").write_text(
        json.dumps({"nodes": [_machine(number) for number in range(3)]})
    )
    text, fields = CASES[name]
    found = read(text, folder=tmp_path)
    assert name in found.mapped
    assert {path: at(found.raw, path) for path in fields} == fields
    assert not found.refused
    build.build(profile.complete(found.raw), found.options.get("cluster", "ostest"))


def test_a_release_of_okd_needs_no_pull_secret() -> None:
    found = read(COMPACT + f"OPENSHIFT_RELEASE_IMAGE={OKD}\n")
    assert found.raw["release"] == {"payload": "okd", "image": OKD}
    assert "installer" not in found.raw and not found.refused
    assert checks.check(profile.complete(found.raw), "ostest") == []
    found = read(COMPACT + f"OPENSHIFT_RELEASE_IMAGE={OKD}\nPERSONAL_PULL_SECRET=/a\nOPENSHIFT_VERSION=4.20\n")
    assert found.raw["installer"] == {"pull_secret_file": "/a"}
    assert found.raw["release"] == {"payload": "okd", "image": OKD}
    assert found.ignored["OPENSHIFT_VERSION"] == "it is not a version of OKD; the image has one"
    version = OKD.rpartition(":")[2]
    found = read(COMPACT + f"OPENSHIFT_RELEASE_IMAGE={OKD}\nOPENSHIFT_VERSION={version}\n")
    assert found.raw["release"]["version"] == version


def test_a_release_of_okd_elsewhere_has_the_pull_secret_of_dev_scripts() -> None:
    """As in its own example: only quay.io lets everyone pull."""
    image = "registry.ci.openshift.org/origin/release:4.15.0-0.okd-2023-08-29-101209"
    found = read(COMPACT + f"OPENSHIFT_RELEASE_IMAGE={image}\n")
    assert found.raw["release"] == {"payload": "okd", "image": image}
    assert found.raw["installer"] == {"pull_secret_file": "/opt/dev-scripts/pull_secret.json"}


def test_every_mapped_row_has_a_case() -> None:
    rows = set(variables.MAPPED) | {name for name, row in variables.LATER.items() if row.use == "mapped"}
    assert rows - NO_COMPONENT <= set(CASES)
    patterns = {name for name, row in variables.PATTERNS.items() if row.use == "mapped"}
    found = [variables.find(name) for name in CASES]
    assert patterns <= {one[0] for one in found if one}


@pytest.mark.parametrize("name", sorted(NO_COMPONENT))
def test_images_of_no_component(name: str) -> None:
    with pytest.raises(importer.ConfigError, match="is not a component of the lab payload"):
        read(COMPACT + f"{name}={IMAGE}")


def test_there_are_214_variables() -> None:
    assert len(variables.VARIABLES) == 214
    assert len(variables.MAPPED) + len(variables.REFUSED) + len(variables.IGNORED) == 214


@pytest.mark.parametrize("name", variables.REFUSED)
def test_refused(name: str) -> None:
    row = variables.REFUSED[name]
    value = {"integer": "1", "boolean": "true"}.get(row.kind, "other")
    with pytest.raises(importer.ConfigError) as caught:
        read(COMPACT + f"\n{name}={value}")
    assert str(caught.value) == f"config.sh:3: {name} is {value!r}: {row.reason}"
    for accepted in ("", row.default):
        assert name in read(f"{COMPACT}{name}='{accepted}'").ignored


@pytest.mark.parametrize("name", variables.IGNORED)
def test_ignored(name: str) -> None:
    assert read(COMPACT + f"{name}=anything").ignored == {name: variables.IGNORED[name]}


CI = {
    "AGENT_E2E_TEST_BOOT_MODE=DISKIMAGE": "is 'DISKIMAGE': the appliance's disk image cannot be built or booted",
    "AGENT_E2E_TEST_BOOT_MODE=ISO_NO_REGISTRY": "is 'ISO_NO_REGISTRY': the ISO without a registry (OVE) cannot",
    "ENABLE_LLDP_TOR=false": "there is no LLDP neighbor (any text turns it on, `false` too)",
    "KNI_INSTALL_FROM_GIT=true": "KNI_INSTALL_FROM_GIT is 'true': name the checkout of the installer in OPENSHIFT_INSTALL_PATH",
    "NUM_EXTRA_WORKERS=2": "NUM_EXTRA_WORKERS is '2': machines that are added later are nodes with `day2: true`",
    "AGENT_ISO_BUILDER_IMAGE=quay.io/x": "the ISO without a registry (OVE) cannot be built",
    "APPLIANCE_IMAGE=quay.io/x": "the appliance is not built",
    "BOND_CONFIG=balance-rr": "is 'balance-rr': the lab's switch has no link aggregation for it; there are active-backup, ",
    "NODES_PLATFORM=baremetal": "requires NODES_FILE, the inventory of the machines",
    "NODES_PLATFORM=equinix": "must be libvirt or baremetal",
    "BMC_DRIVER=ipmi": "BMCs support Redfish only; there are redfish and redfish-virtualmedia",
}


@pytest.mark.parametrize("line", CI)
def test_what_ci_uses_and_is_refused(line: str) -> None:
    with pytest.raises(importer.ConfigError) as caught:
        read(COMPACT + line)
    assert CI[line] in str(caught.value)


# What the setup step of CI writes before the lines of a job (baremetalds-devscripts-setup).
CI_SETUP = (
    "export ADDN_DNS=192.0.2.53\nexport OPENSHIFT_CI=true\nexport NUM_WORKERS=3\nexport WORKER_MEMORY=16384\n"
    f"export ENABLE_LOCAL_REGISTRY=true\nexport OPENSHIFT_RELEASE_IMAGE={IMAGE}\n"
)
JOBS: dict[str, tuple[str, set[str]]] = {
    "compact-ipv4": ("AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4", set()),
    "compact-ipv4-none-platform": (
        "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4\nAGENT_PLATFORM_TYPE=none\nNETWORK_TYPE=OVNKubernetes",
        set(),
    ),
    "sno-ipv6": ("AGENT_E2E_TEST_SCENARIO=SNO_IPV6", set()),
    "sno-ipv4-iscsi": (
        "AGENT_E2E_TEST_SCENARIO=SNO_IPV4_DHCP\nAGENT_E2E_TEST_BOOT_MODE=ISCSI\nAGENT_MINIMAL_ISO=true",
        set(),
    ),
    "sno-ipv4-pxe": ("AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nAGENT_E2E_TEST_BOOT_MODE=PXE", set()),
    "ha-dualstack": ("AGENT_E2E_TEST_SCENARIO=HA_IPV4V6_DHCP\nMIRROR_IMAGES=true", {"MIRROR_IMAGES"}),
    "ha-dualstack-conformance": ("AGENT_E2E_TEST_SCENARIO=HA_IPV4V6\nWORKER_MEMORY=24576", set()),
    "4control-ipv4": ("AGENT_E2E_TEST_SCENARIO=4CONTROL_IPV4", set()),
    "5control-ipv4": ("AGENT_E2E_TEST_SCENARIO=5CONTROL_IPV4", set()),
    "compact-fips": ("AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4\nFIPS_MODE=true\nMASTER_VCPU=8", set()),
    "compact-ipv6-minimaliso": (
        "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV6\nMIRROR_IMAGES=true\nAGENT_MINIMAL_ISO=true",
        {"MIRROR_IMAGES"},
    ),
    "two-node-arbiter-ipv4": ("AGENT_E2E_TEST_SCENARIO=TNA_IPV4\nFEATURE_SET=TechPreviewNoUpgrade", set()),
    "two-node-fencing-ipv4": ("AGENT_E2E_TEST_SCENARIO=TNF_IPV4\nBMC_DRIVER=redfish", set()),
    "two-node-fencing-ipv4-mac": (
        "AGENT_E2E_TEST_SCENARIO=TNF_IPV4\nBMC_DRIVER=redfish\nNUM_WORKERS=0\nFENCING_CREDENTIAL_IDENTIFIER=macAddress",
        set(),
    ),
    "bad-dns": ("AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nAGENT_TEST_CASES=bad_dns", {"AGENT_TEST_CASES"}),
    "appliance-dualstack": (
        "AGENT_E2E_TEST_SCENARIO=SNO_IPV4V6_DHCP\nAGENT_E2E_TEST_BOOT_MODE=DISKIMAGE\nNETWORK_TYPE=OVNKubernetes\nINSTALLER_PROXY=true",
        {"AGENT_E2E_TEST_BOOT_MODE"},
    ),
    "sno-ipv4-iso-no-registry": (
        "AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nAGENT_E2E_TEST_BOOT_MODE=ISO_NO_REGISTRY\nAGENT_PLATFORM_TYPE=none",
        {"AGENT_E2E_TEST_BOOT_MODE"},
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_jobs_of_ci(job: str) -> None:
    """A job moves with its lines unchanged, or the variables that it cannot have are named."""
    lines, refused = JOBS[job]
    found = importer.read([("config_root.sh", CI_SETUP), ("DEVSCRIPTS_CONFIG", lines)], KNOWN, partial=True)
    assert {refusal.variable for refusal in found.refused} == refused
    plan = build.build(profile.complete(found.raw), "ostest")
    workers = sum(node["role"] == "worker" for node in plan["nodes"])
    assert workers == {"ha": 2, "tna": 3, "tnf": 0 if "NUM_WORKERS=0" in lines else 3}.get(found.raw["topology"], 0)
    assert plan["release"]["image"] == IMAGE and plan["hypervisor"]["egress"]


def test_credentials_for_fencing_are_ignored_where_no_node_is_fenced() -> None:
    found = read(COMPACT + "FENCING_CREDENTIAL_IDENTIFIER=macAddress")
    assert found.ignored["FENCING_CREDENTIAL_IDENTIFIER"] == "no node of this topology is fenced"


def test_ci_default_of_the_bmc_driver() -> None:
    assert "no machine through its BMC" in read(COMPACT + "OPENSHIFT_CI=true\nBMC_DRIVER=mixed").mapped["BMC_DRIVER"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("MASTER_MEMORY=lots", "MASTER_MEMORY is 'lots': must be an integer"),
        ("MASTER_MEMORY=1", "MASTER_MEMORY is '1': master.memory_mib is 1: must be from 512 to 4194304"),
        ("FIPS_MODE=yes", "FIPS_MODE is 'yes': must be true or false: dev-scripts reads any other value as false"),
        ("EXTERNAL_SUBNET_V4=here", "network.ipv4 is 'here': must be a network in CIDR form"),
        ("EXTERNAL_SUBNET_V4=192.168.1.0/29", "network.ipv4 is '192.168.1.0/29': is too small"),
        ("NETWORK_TYPE=OpenShiftSDN", "installer.network_type is 'OpenShiftSDN': "),
        ("AGENT_PLATFORM_TYPE=aws", "must be one of none, baremetal, external, vsphere, nutanix"),
        ("AGENT_E2E_TEST_SCENARIO=HA", "AGENT_E2E_TEST_SCENARIO is 'HA': must be SNO, SNOMIN, COMPACT, "),
        ("AGENT_E2E_TEST_SCENARIO=HA_IPV6V4", "AGENT_E2E_TEST_SCENARIO is 'HA_IPV6V4': must be"),
        ("AGENT_E2E_TEST_SCENARIO=\nIP_STACK=v4v4", "must be one of v4, v6, v4v6, v6v4"),
        ("AGENT_E2E_TEST_SCENARIO=\nIP_STACK=v4\nNUM_MASTERS=999999999", "must be from 0 to 100"),
        ("AGENT_E2E_TEST_SCENARIO=TNF_IPV4\nBMC_DRIVER=mixed", "only redfish is supported for two-node fencing"),
        ("AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nAGENT_PLATFORM_TYPE=baremetal", "Only platform none and external supports 1 ControlPlane"),
        ("NETWORKING_MODE=static", "must be DHCP or empty"),
        ("HOST_IP_STACK=v4v6", "hosts have the addresses of `stack`, no others"),
        ("LOCAL_REGISTRY_DNS_NAME=registry.example", "the registry's name is virthost.CLUSTER.DOMAIN"),
        ("CLUSTER_NAME=Upper", "CLUSTER_NAME is 'Upper': "),
        ("SSH_PUB_KEY='ssh-rsa AAAA me'", "config.sh:2: SSH_PUB_KEY: a profile names a file with keys: set SSH_KEY_FILE"),
        ("CI_TOKEN=$(cat /x)\nFEATURE_SET=$(cat /y)", "config.sh:3: FEATURE_SET: a command substitution"),
        ("ADDITIONAL_CAPABILITIES=Console", "needs BASELINE_CAPABILITY_SET"),
        ("CLUSTER_SUBNET=10.0.0.0/14\nCLUSTER_SUBNET_V4=10.0.0.0/14", "has been removed in favor of CLUSTER_SUBNET_V4"),
        ("VM_EXTRADISKS=true\nVM_EXTRADISKS_SIZE=8T", "must be a number of gigabytes, such as 8G"),
        ("NETWORK_CONFIG_FOLDER=/nowhere", "has no file ostest-master-0.yaml"),
        ("MACHINE_CONFIG_OPERATOR_LOCAL_IMAGE=https://github.com/x", "must be a pullspec with a digest"),
        ("IRONIC_LOCAL_REPO=/x", "agentlab does not build images"),
        ("ADDITIONAL_TRUST_BUNDLE=/nowhere", "the lab payload's registry has a certificate authority of its own"),
        (f"OPENSHIFT_RELEASE_IMAGE={IMAGE}\nADDITIONAL_TRUST_BUNDLE=/nowhere", "cannot be read: No such file"),
        (f"OPENSHIFT_RELEASE_IMAGE={IMAGE}\nMIRROR_IMAGES=true", "a real payload is not mirrored"),
        ("AGENT_E2E_TEST_SCENARIO=TNF_IPV4\nFENCING_CREDENTIAL_IDENTIFIER=ip",
         "installer.fencing_by is 'ip': must be one of hostName, macAddress"),
    ],
)  # fmt: skip
def test_values_that_are_refused(text: str, problem: str) -> None:
    with pytest.raises(importer.ConfigError) as caught:
        read(COMPACT + text)
    assert problem in str(caught.value)


def test_values_that_are_the_default_because_of_others() -> None:
    found = read(
        "AGENT_E2E_TEST_SCENARIO=SNO_IPV4V6\nCLUSTER_NAME=two\nBASE_DOMAIN=example.com\nHOST_IP_STACK=v4v6\n"
        "LOCAL_REGISTRY_DNS_NAME=virthost.${CLUSTER_NAME}.${BASE_DOMAIN}\n"
    )
    assert {"HOST_IP_STACK", "LOCAL_REGISTRY_DNS_NAME"} <= set(found.ignored)
    assert found.options == {"cluster": "two"}
    assert found.profile_text().startswith(
        "# From a configuration of dev-scripts.\n# agentlab deploy PROFILE --cluster two\n"
    )


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_counts_of_a_scenario(topology: str) -> None:
    """CI exports NUM_WORKERS=3 for every job; only scenarios with two masters take it."""
    scenario = TOPOLOGIES[topology].scenario
    found = read(f"NUM_WORKERS=3\nWORKER_MEMORY=16384\nNUM_MASTERS=7\nAGENT_E2E_TEST_SCENARIO={scenario}_IPV4")
    complete = profile.complete(found.raw)
    two = TOPOLOGIES[topology].master.number == 2
    assert complete["worker"]["count"] == (3 if two else TOPOLOGIES[topology].worker.number)
    assert complete["master"]["count"] == TOPOLOGIES[topology].master.number
    assert f"sets it to {TOPOLOGIES[topology].master.number}" in found.ignored["NUM_MASTERS"]
    if not complete["worker"]["count"]:
        assert found.ignored["WORKER_MEMORY"] == "there are no workers"


def test_sizes_without_a_scenario() -> None:
    """With a real payload the machines have the sizes that dev-scripts gives them, which are not those of a scenario."""
    found = profile.complete(read(f"IP_STACK=v4\nOPENSHIFT_RELEASE_IMAGE={IMAGE}").raw)
    sizes = {
        role: (found[role]["vcpus"], found[role]["memory_mib"], found[role]["disk_gib"])
        for role in ("master", "worker")
    }
    assert sizes == {"master": (8, 16384, 60), "worker": (4, 8192, 60)}
    assert found["topology"] == "ha" and found["addressing"] == "dhcp"


def test_later_configurations_win() -> None:
    """As in CI: config_root.sh, and after it the lines of DEVSCRIPTS_CONFIG, without `export`."""
    first = "export OPENSHIFT_CI=true\nexport NUM_WORKERS=3\nexport MASTER_MEMORY=16384\n"
    second = "AGENT_E2E_TEST_SCENARIO=TNF_IPV4\nBMC_DRIVER=redfish\nNUM_WORKERS=0\nMASTER_MEMORY=$MASTER_MEMORY"
    found = importer.read([("config_root.sh", first), ("DEVSCRIPTS_CONFIG", second)], {})
    assert found.raw == {
        "topology": "tnf",
        "stack": "ipv4",
        "addressing": "static",
        "master": {"memory_mib": 16384},
    }


def test_everything_that_is_wrong_at_once() -> None:
    with pytest.raises(importer.ConfigError) as caught:
        read("AGENT_E2E_TEST_SCENARIO=HA_IPV4\nBOND_CONFIG=balance-rr\nMASTER_VCPU=x\nBASE_DOMAIN=A_B")
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["2", "3", "4"]
    with pytest.raises(shell.ShellError) as shown:
        importer.read([("a", "x y"), ("b", "A=$(id)")], {})
    assert [line.split(":")[0] for line in str(shown.value).splitlines()] == ["a", "b"]


def test_partial() -> None:
    found = read(COMPACT + "BOND_CONFIG=balance-rr\nMASTER_MEMORY=20000", partial=True)
    assert found.raw["master"] == {"memory_mib": 20000}
    assert "# Refused: config.sh:2: BOND_CONFIG is 'balance-rr': the lab's switch" in found.profile_text()
    assert profile.parse(found.profile_text(), "p").raw == found.raw


def test_secrets_are_not_shown() -> None:
    text = (
        COMPACT + "CI_TOKEN=hush1\nREGISTRY_PASS=hush2\nINSTALLER_PROXY=http://me:hush3@proxy\nTOKEN_LOCAL_REPO=hush4"
    )
    found = read(text, partial=True)
    shown = found.report() + found.profile_text()
    assert "hush1" not in shown and "hush2" not in shown and "hush3" not in shown


def test_unknown_variables() -> None:
    found = read(COMPACT + "MASTER_MEMROY=1\nMINE=2")
    assert found.ignored["MASTER_MEMROY"].endswith("did you mean MASTER_MEMORY?")
    assert found.ignored["MINE"] == "dev-scripts' agent flow does not read it"
