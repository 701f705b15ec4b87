"""What `openshift-install create cluster` refuses in an install-config, and in which words: one rule a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import ipi
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import LATEST

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPZ09izplhbJwtz5iixTX9EKIB3hvds2cHqtMO9cZAu2o5ksZcCMPBnS6AevY4z7e3N+zxb/mNFQ7ZMcTZ4FZVs= x"  # noqa: E501
FILE = 'failed to create install config: invalid "install-config.yaml" file: '
UNFIT = 'failed to generate asset "Platform Provisioning Check": '
AT = "platform.baremetal"
SHA = "0" * 64


def config() -> dict[str, Any]:
    """Return what `configure` writes for the profile compact_ipi."""
    plan = secrets.with_passwords(
        build.build(profile.load("compact_ipi", PROFILES), "ostest"),
        {"bmc": "password", "registry": "ocp-pass", "registry_http": "x", "nodes": {}},
    )
    found: dict[str, Any] = configs.install_config(plan, pull_secret={"auths": {}}, ssh_key=KEY, trust_bundle="")
    copied: dict[str, Any] = json.loads(json.dumps(found))
    return copied


def validate(given: dict[str, Any]) -> list[str]:
    log = Log(None, emit=lambda __: None)
    ipi.validate(yaml.safe_dump(given), LATEST, "4.22.0", log)
    return [text for level, text in log.lines if level == "warning"]


def refused(given: dict[str, Any]) -> str:
    with pytest.raises(InstallerError) as caught:
        validate(given)
    return str(caught.value)


def test_what_configure_writes_is_accepted() -> None:
    assert validate(config()) == []


HOST = {
    "no name": ({"name": ""}, f"{FILE}[{AT}.hosts[0].name: Required value: missing Name, {AT}.hosts[0].name: Invalid value: \"\": "),
    "name": ({"name": "Host1"}, f'{FILE}{AT}.hosts[0].name: Invalid value: "Host1": a lowercase RFC 1123 subdomain must consist of'),
    "name twice": ({"name": "master-1"}, f'{FILE}{AT}.hosts[1].name: Duplicate value: "master-1"'),
    "no mac": ({"bootMACAddress": ""}, f"{FILE}{AT}.hosts[0].bootMACAddress: Required value: missing BootMACAddress"),
    "mac twice": ({"bootMACAddress": "00:36:6B:47:86:50"}, f'{FILE}{AT}.hosts[1].bootMACAddress: Duplicate value: "00:36:6b:47:86:50"'),
    "boot mode": ({"bootMode": "x"}, f'{FILE}{AT}.hosts[0].bootMode: Unsupported value: "x": supported values: "UEFI", "UEFISecureBoot", "legacy"'),
    "secure boot": (
        {"bootMode": "UEFISecureBoot", "bmc": {"address": "ipmi://10.0.0.1", "username": "u", "password": "p"}},
        f'{FILE}{AT}.hosts[0].bootMode: Invalid value: "UEFISecureBoot": driver ipmi does not support UEFI secure boot',
    ),
    "device": ({"rootDeviceHints": {"deviceName": "sda"}}, f'{AT}.hosts[0].rootDeviceHints.deviceName: Invalid value: "sda": Device Name of root'),
    "mtu": ({"networkConfig": {"interfaces": [{"mtu": "1500"}]}}, f'{AT}.hosts[0].networkConfig.interfaces[0].mtu: Invalid value: "1500": mtu must be an integer (not quoted string)'),  # noqa: E501
    "mtu text": ({"networkConfig": {"interfaces": [{"mtu": "x"}]}}, 'networkConfig.interfaces[0].mtu: Invalid value: "x": mtu must be an integer'),
    "role": ({"role": "worker"}, f"{FILE}{AT}.hosts: Required value: not enough hosts found (2) to support all the configured ControlPlane replicas (3)"),
    "no bmc": ({"bmc": {}}, f"{UNFIT}[{AT}.hosts[0].bmc: Invalid value: \"\": driver ipmi requires provisioning network, "
               f"{AT}.hosts[0].bmc.username: Required value: missing Username, {AT}.hosts[0].bmc.password: Required value: missing Password, "
               f"{AT}.hosts[0].bmc.address: Required value: missing Address]"),
    "network boot": (
        {"bmc": {"address": "redfish://10.0.0.1/1", "username": "u", "password": "p"}},
        f'{UNFIT}{AT}.hosts[0].bmc: Invalid value: "redfish://10.0.0.1/1": driver redfish requires provisioning network',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOST)
def test_a_host_is_refused(name: str) -> None:
    change, text = HOST[name]
    given = config()
    given["platform"]["baremetal"]["hosts"][0] |= change
    assert text in refused(given)


def test_the_same_bmc_twice() -> None:
    given = config()
    first, second, __ = given["platform"]["baremetal"]["hosts"]
    second["bmc"] = first["bmc"]
    assert refused(given) == f'{UNFIT}{AT}.hosts[1].bmc.address: Duplicate value: "{first["bmc"]["address"]}"'


PLATFORM = {
    "no hosts": ({"hosts": []}, f"{FILE}[{AT}.hosts: Invalid value: null: bare metal hosts are missing, {AT}.hosts: Required value: not enough hosts found (0)"),  # noqa: E501
    "network": ({"provisioningNetwork": "x"}, f'{AT}.provisioningNetwork: Unsupported value: "x": supported values: "Disabled", "Managed", "Unmanaged"'),
    "bootstrap ip": ({"bootstrapProvisioningIP": "10.9.9.9"}, f'{UNFIT}{AT}.bootstrapProvisioningIP: Invalid value: "10.9.9.9": provisioning network is disabled, IP expected to be in one of the machine networks: 192.168.111.0/24'),  # noqa: E501
    "cluster ip": ({"clusterProvisioningIP": "10.9.9.9"}, f'{UNFIT}{AT}.clusterProvisioningIP: Invalid value: "10.9.9.9": provisioning network is disabled, IP expected to be in one of the machine networks: 192.168.111.0/24'),  # noqa: E501
    "managed": ({"provisioningNetwork": "Managed"}, f'{AT}.bootstrapProvisioningIP: Invalid value: "192.168.111.7": the IP must not be in one of the machine networks'),  # noqa: E501
    "managed outside": ({"provisioningNetwork": "Managed", "bootstrapProvisioningIP": "10.1.1.1"}, f'{UNFIT}[{AT}.bootstrapProvisioningIP: Invalid value: "10.1.1.1": "10.1.1.1" is not in the provisioning network'),  # noqa: E501
    "uri": ({"libvirtURI": "system"}, f'{UNFIT}{AT}.libvirtURI: Invalid value: "system": invalid URI "system" (no scheme)'),
    "image": ({"bootstrapOSImage": "http://a/b"}, "the sha256 parameter in the http://a/b URI is missing"),
    "image sum": ({"clusterOSImage": "http://a/b?sha256=1"}, "the sha256 parameter in the http://a/b?sha256=1 URI is invalid"),
    "image scheme": ({"clusterOSImage": f"ftp://a/b?sha256={SHA}"}, "must begin with http/https"),
    "image uri": ({"clusterOSImage": "a/b"}, f'{AT}.clusterOSImage: Invalid value: "a/b": the URI provided: a/b is invalid'),
    "macs": ({"provisioningMACAddress": "00:b8:5b:13:9a:49"}, "provisioning and external MAC addresses may not be identical"),
    "static": ({"bootstrapExternalStaticIP": "192.168.111.9"}, f"{UNFIT}{AT}: Required value: You must specify a value for BootstrapExternalStaticGateway when BootstrapExternalStaticIP is set."),  # noqa: E501
    "static dns": ({"bootstrapExternalStaticIP": "192.168.111.9", "bootstrapExternalStaticGateway": "192.168.111.1"}, "You must specify a value for BootstrapExternalStaticDNS when BootstrapExternalStaticIP is set."),  # noqa: E501
    "static ip": ({"bootstrapExternalStaticGateway": "192.168.111.1"}, "You must specify a value for BootstrapExternalStaticIP when BootstrapExternalStaticGateway is set."),  # noqa: E501
    "vip": ({"apiVIPs": []}, f"{FILE}[{AT}.apiVIPs: Required value: must specify at least one VIP for the API, "),
}  # fmt: skip


@pytest.mark.parametrize("name", PLATFORM)
def test_a_platform_is_refused(name: str) -> None:
    change, text = PLATFORM[name]
    given = config()
    given["platform"]["baremetal"] |= change
    assert text in refused(given)


def test_good_images_and_a_static_bootstrap_are_accepted() -> None:
    given = config()
    given["platform"]["baremetal"] |= {
        "bootstrapOSImage": f"http://a/b?sha256={SHA}",
        **{f"bootstrapExternalStatic{part}": "192.168.111.9" for part in ("IP", "Gateway", "DNS")},
    }
    assert validate(given) == []


def test_hosts_without_a_role_count_for_what_lacks_some() -> None:
    given = config()
    del given["platform"]["baremetal"]["hosts"][2]["role"]
    assert validate(given) == ["Host master-2 hasn't any role configured"]


def test_the_machine_api_is_required() -> None:
    given = config() | {
        "capabilities": {
            "baselineCapabilitySet": "None",
            "additionalEnabledCapabilities": ["baremetal", "Ingress", "CloudCredential", "CloudControllerManager"],
        }
    }
    assert refused(given) == f"{UNFIT}IPI requires MachineAPI capability"


def test_another_platform_is_not_provisioned() -> None:
    given = config() | {"platform": {"none": {}}}
    assert refused(given).startswith(f"{UNFIT}platform.baremetal is missing")
