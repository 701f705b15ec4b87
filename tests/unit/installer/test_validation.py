"""What is refused, and in which words: one rule a line, a change of good input and the error that it must give."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.run import exit_code
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.schema import INT64, STR, Map, Struct, decode_file
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.yamlio import dump
from ansible_collections.agentlab.ocp.plugins.module_utils.releases.distributions import DISTRIBUTIONS

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINS7en3jGSyO+WKV4SMs5aLrrhBVWqFUbW0rMrtFbhGz"
VIPS = {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"]}
COMPACT: dict[str, Any] = {"controlPlane": {"replicas": 3}, "platform": {"none": None, "baremetal": VIPS}}
VCENTER = {"server": "vcenter.test", "user": "u", "password": "p", "datacenters": ["dc"]}
DOMAIN = {
    "name": "fd", "server": "vcenter.test", "region": "r", "zone": "z",
    "topology": {
        "datacenter": "dc", "datastore": "/dc/datastore/d", "computeCluster": "/dc/host/c", "folder": "/dc/vm/f",
        "networks": ["n"],
    },
}  # fmt: skip
BMC = {"address": "redfish://192.168.111.1/1", "username": "u", "password": "p"}
BARE_HOST = {"name": "m0", "bootMACAddress": "52:54:00:00:00:01", "bmc": BMC}
CREDENTIAL = {
    "hostName": "m0", "username": "u", "password": "p", "address": "redfish+https://192.168.111.1:8000/redfish/v1/Systems/1"
}  # fmt: skip
PEM = "-----BEGIN CERTIFICATE-----\nname: x\n\n{}\n-----END CERTIFICATE-----\n"


def merged(base: Any, change: Any) -> Any:
    """JSON merge patch (RFC 7386)."""
    if not isinstance(change, dict) or not isinstance(base, dict):
        return change
    found = copy.deepcopy(base)
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key, {}), value)
    return found


def bare(**section: Any) -> dict[str, Any]:
    """Three masters on baremetal with VIPs; keyword arguments are fields of the platform."""
    return merged(COMPACT, {"platform": {"baremetal": section}})


def platform(name: str, **section: Any) -> dict[str, Any]:
    """Three masters on another platform with VIPs."""
    return {"controlPlane": {"replicas": 3}, "platform": {"none": None, name: {**VIPS, **section}}}


def networking(**changes: Any) -> dict[str, Any]:
    return {"networking": changes}


def credentials(*entries: dict[str, Any]) -> dict[str, Any]:
    return merged(COMPACT, {"controlPlane": {"replicas": 2, "fencing": {"credentials": list(entries)}}})


REFUSED = {
    # general
    "key": ({"sshKey": "nonsense"}, 'sshKey: Invalid value: "nonsense": ssh: no key found'),
    "key no ascii": ({"sshKey": "ssh-rsa é"}, 'sshKey: Invalid value: "ssh-rsa é": ssh: no key found'),
    "fips key": ({"sshKey": ED25519, "fips": True}, "SSH key type ssh-ed25519 unavailable when FIPS is enabled. Please use rsa or ecdsa."),
    "bundle": ({"additionalTrustBundle": "x"}, 'additionalTrustBundle: Invalid value: "x": invalid block'),
    "bundle base64": ({"additionalTrustBundle": PEM.format("a!")}, ": invalid block"),
    "bundle no certificate": ({"additionalTrustBundle": PEM.format("AAAA")}, ": x509: malformed certificate"),
    "bundle policy": ({"additionalTrustBundlePolicy": "x"}, 'additionalTrustBundlePolicy: Invalid value: "x": supported values "Proxyonly", "Always"'),
    "name dot": (merged(COMPACT, {"metadata": {"name": "a.b"}}), "metadata.name: Invalid value: \"a.b\": cluster name must not contain '.'"),
    "name long": ({"metadata": {"name": "a" * 55}}, "must be no more than 54 characters"),
    "domain": ({"baseDomain": "Test"}, 'baseDomain: Invalid value: "Test": a lowercase RFC 1123 subdomain must consist of'),
    "pull secret": ({"pullSecret": "{}"}, "auths required"),
    "pull secret text": ({"pullSecret": "foo"}, "pullSecret: Invalid value: \"<hidden>\": invalid character 'o' in literal false (expecting 'a')"),
    "pull secret empty": ({"pullSecret": ""}, 'pullSecret: Invalid value: "": unexpected end of JSON input'),
    "pull secret list": ({"pullSecret": "[]"}, "json: cannot unmarshal array into Go value of type validate.imagePullSecret"),
    "pull secret auths": ({"pullSecret": '{"auths": "x"}'}, "json: cannot unmarshal string into Go struct field imagePullSecret.auths of type map[string]map[string]interface {}"),  # noqa: E501
    "pull secret entry": ({"pullSecret": '{"auths": {"quay.io": 1}}'}, "json: cannot unmarshal number into Go struct field imagePullSecret.auths of type map[string]interface {}"),  # noqa: E501
    "pull secret null": ({"pullSecret": "null"}, "auths required"),
    "pull secret host": ({"pullSecret": '{"auths": {"quay.io": {}}}'}, '"quay.io" requires either auth or credsStore'),
    "publish": ({"publish": "Internal"}, 'Internal publish strategy is not supported on "none" platform'),
    # networking
    "sdn": (networking(networkType="OpenShiftSDN"), "networkType OpenShiftSDN is not supported, please use OVNKubernetes"),
    "cidr host bits": (networking(machineNetwork=[{"cidr": "192.168.111.1/24"}]), "invalid network address. got 192.168.111.1/24, expecting 192.168.111.0/24"),
    "service large": (networking(serviceNetwork=["172.0.0.0/11"]), "subnet size for IPv4 service network must be /12 or greater (/16 is recommended)"),
    "service overlap": (networking(serviceNetwork=["192.168.111.0/25"]), 'networking.serviceNetwork[0]: Invalid value: "192.168.111.0/25": service network must not overlap with any of the machine networks'),  # noqa: E501
    "cluster overlap": (networking(clusterNetwork=[{"cidr": "172.30.0.0/16", "hostPrefix": 23}]), "cluster network must not overlap with service network 0"),
    "machine overlap": (networking(machineNetwork=[{"cidr": "192.168.111.0/24"}, {"cidr": "192.168.0.0/16"}]), "machine network must not overlap with machine network 0"),  # noqa: E501
    "ovn": (networking(machineNetwork=[{"cidr": "100.64.0.0/24"}]), "must not overlap with OVNKubernetes default internal subnet 100.64.0.0/16: please run 'openshift-install explain"),  # noqa: E501
    "prefix": (networking(clusterNetwork=[{"cidr": "10.128.0.0/14", "hostPrefix": 12}]), "cluster network host subnetwork prefix must not be larger size than CIDR 10.128.0.0/14"),  # noqa: E501
    "prefix v6": (networking(clusterNetwork=[{"cidr": "fd01::/48", "hostPrefix": 72}]), "cluster network host subnetwork prefix must be 64 for IPv6 networks"),
    "dual service": (networking(serviceNetwork=["172.30.0.0/16", "fd02::/112", "fd03::/112"]), "when installing dual-stack IPv4/IPv6 you must provide two service networks, one for each IP address type"),  # noqa: E501
    "dual machine": (networking(serviceNetwork=["172.30.0.0/16", "fd02::/112"], clusterNetwork=[{"cidr": "10.128.0.0/14"}, {"cidr": "fd01::/48"}]), "dual-stack IPv4/IPv6 requires an IPv6 network in this list"),  # noqa: E501
    "host prefix": (networking(clusterNetwork=[{"cidr": "10.128.0.0/14"}]), "networking.clusterNetwork[0].hostPrefix: Invalid value: 0: cluster network host subnetwork prefix must not be larger size than CIDR 10.128.0.0/14"),  # noqa: E501
    "machine path": (networking(machineNetwork=[{"cidr": "192.168.111.7/24"}]), 'networking.machineNetwork[0]: Invalid value: "192.168.111.7/24": invalid network address. got 192.168.111.7/24, expecting 192.168.111.0/24'),  # noqa: E501
    "transit": (networking(machineNetwork=[{"cidr": "100.88.0.0/24"}]), 'networking.machineNetwork[0]: Invalid value: "100.88.0.0/24": must not overlap with OVNKubernetes default transit subnet 100.88.0.0/16'),  # noqa: E501
    "join v6": (networking(machineNetwork=[{"cidr": "fd98::/64"}]), "default internal subnet fd98::/64: please run 'openshift-install explain installconfig.networking.ovnKubernetesConfig.ipv6' for further documentation"),  # noqa: E501
    "join size": (networking(ovnKubernetesConfig={"ipv4": {"internalJoinSubnet": "101.64.0.0/23"}}), "ipv4InternalJoinSubnet is not large enough for the maximum number of nodes which can be supported by ClusterNetwork"),  # noqa: E501
    "join size for a prefix beyond addresses": (networking(clusterNetwork=[{"cidr": "10.128.0.0/14", "hostPrefix": 2**31 - 1}], ovnKubernetesConfig={"ipv4": {"internalJoinSubnet": "101.64.0.0/16"}}), "ipv4InternalJoinSubnet is not large enough"),  # noqa: E501
    "join overlap": (networking(ovnKubernetesConfig={"ipv4": {"internalJoinSubnet": "192.168.0.0/16"}}), "must not overlap with machineNetwork 192.168.111.0/24"),  # noqa: E501
    "mtu": (networking(clusterNetworkMTU=1400), "cluster network MTU is allowed only in AWS deployments"),
    # platform
    "no platform": ({"platform": {"none": None}}, "must specify one of the platforms (aws, azure, baremetal, external, gcp, ibmcloud, none, nutanix, openstack, powervc, powervs, vsphere)"),  # noqa: E501
    "two platforms": ({"platform": {"external": {}}}, "must only specify a single type of platform; cannot use both"),
    "aws": ({"platform": {"none": None, "aws": {"region": "x"}}}, 'platform: Unsupported value: "aws": supported values: "baremetal", "vsphere", "nutanix", "none", "external"'),  # noqa: E501
    "power": (merged(COMPACT, {"controlPlane": {"architecture": "ppc64le"}, "compute": [{"name": "worker", "replicas": 0, "architecture": "ppc64le"}]}), 'platform: Invalid value: "baremetal": CPU architecture "ppc64le" only supports platform "none".'),  # noqa: E501
    "oci": ({"platform": {"none": None, "external": {"platformName": "oci"}}}, "When using external oci platform, platform.external.cloudControllerManager must be set to External"),  # noqa: E501
    "no vips": ({"controlPlane": {"replicas": 3}, "platform": {"none": None, "vsphere": {}}}, "platform.vsphere.apiVIPs: Required value: must specify at least one VIP for the API"),  # noqa: E501
    "vip outside": (bare(apiVIPs=["10.0.0.1"]), "IP expected to be in one of the machine networks: 192.168.111.0/24"),
    "vip same": (bare(apiVIPs=["192.168.111.4"]), "VIP for API must not be one of the Ingress VIPs"),
    "vip text": (bare(apiVIPs=["x"]), '"x" is not a valid IP'),
    "vip two v4": (bare(apiVIPs=["192.168.111.5", "192.168.111.6"]), "one must be an IPv4 address, the other an IPv6"),
    "vip many": (bare(apiVIPs=["192.168.111.5", "192.168.111.6", "192.168.111.7"]), "platform.baremetal.apiVIPs: Too many: 3: must have at most 2 items"),
    "provisioning": (bare(hosts=[BARE_HOST], provisioningNetwork="UNMANAGED"), 'platform.baremetal.provisioningNetwork: Unsupported value: "UNMANAGED": supported values: "Disabled", "Managed", "Unmanaged"'),  # noqa: E501
    "provisioning range": (bare(hosts=[BARE_HOST], provisioningDHCPRange="x"), "provisioning DHCP range should be in format: start_ip,end_ip"),
    "provisioning ip": (bare(hosts=[BARE_HOST], clusterProvisioningIP="172.22.0.20"), '"172.22.0.20" overlaps with the allocated DHCP range'),
    "bmc twice": (bare(hosts=[BARE_HOST, {**BARE_HOST, "bootMACAddress": "52:54:00:00:00:02"}]),
                  'platform.baremetal.hosts[1].bmc.address: Duplicate value: "redfish://192.168.111.1/1"'),
    "vsphere folder": (platform("vsphere", vcenters=[VCENTER], failureDomains=[merged(DOMAIN, {"topology": {"folder": None}})]), "platform.vsphere.failureDomains[0].topology.folder: Required value: must specify a folder for agent-based installs"),  # noqa: E501
    "vsphere user": (platform("vsphere", vcenters=[{"server": "v", "user": "u"}]), "platform.vsphere.vcenters[0].password: Required value: All credential fields are required if any one is specified"),  # noqa: E501
    "vsphere old": (platform("vsphere", vCenter="v", username="u"), "platform.vsphere.vcenters[0].password: Required value: All credential fields are required"),  # noqa: E501
    "vsphere server": (platform("vsphere", vcenters=[VCENTER], failureDomains=[{**DOMAIN, "server": "other"}]), 'platform.vsphere.failureDomains.server: Invalid value: "other": server does not exist in vcenters'),  # noqa: E501
    "nutanix": (platform("nutanix"), "platform.nutanix.prismCentral.endpoint.address: Required value: must specify the Prism Central endpoint address"),
    "nutanix vips": (platform("nutanix", apiVIPs=["192.168.111.5", "fd2e::5", "fd2e::6"]), 'platform.nutanix.apiVIPs: Invalid value: ["192.168.111.5","fd2e::5","fd2e::6"]: wrong number of VIPs given. Expecting 2 VIPs for dual stack'),  # noqa: E501
    "nutanix subnets": (platform("nutanix", subnetUUIDs=["a", "a"]), "should not configure duplicate value"),
    # pools
    "replicas": ({"controlPlane": {"replicas": 6}, "platform": {"none": {}}}, 'controlPlane.replicas: Unsupported value: 6: supported values: "3", "1", "4", "5", "2 (with arbiter)", "2 (with fencing)"'),  # noqa: E501
    "sno workers of baremetal": (merged(COMPACT, {"controlPlane": {"replicas": 1}, "compute": [{"name": "worker", "replicas": 2}]}), "compute.replicas: Forbidden: Total number of compute replicas must be 0 when controlPlane.replicas is 1 for platform none or external. Found 2"),  # noqa: E501
    "edge": ({"compute": [{"name": "edge", "replicas": 0}]}, 'compute[0].name: Unsupported value: "edge": supported values: "worker"'),
    "pool platform": ({"controlPlane": {"platform": {"aws": {}}}}, 'controlPlane.platform.aws: Invalid value: {}: cannot specify "aws" for machine pool when cluster is using "none"'),  # noqa: E501
    "credentials mode": ({"credentialsMode": "Manual"}, 'credentialsMode: Invalid value: "Manual": cannot be set when using the "none" platform'),
    "mixed": ({"publish": "Mixed"}, 'publish: Invalid value: "Mixed": mixed publish strategy is not supported on "none" platform'),
    "second ssh key": ({"sshKey": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAwAAAAE=\nssh-rsa foo"}, 'sshKey: Invalid value: "ssh-rsa foo": ssh: no key found'),
    "repository tag": ({"imageDigestSources": [{"source": "quay.io/a/b:latest"}]}, 'imageDigestSources[0].source: Invalid value: "quay.io/a/b:latest": must be repository--not reference'),  # noqa: E501
    "repository case": ({"imageDigestSources": [{"source": "quay.io/A/b"}]}, "failed to parse: invalid reference format: repository name must be lowercase"),
    "repository host": ({"imageDigestSources": [{"source": "a/b"}]}, "imageDigestSources[0].source: Invalid value: \"a/b\": the repository provided is invalid: a lowercase RFC 1123 subdomain"),  # noqa: E501
    "old baseline": ({"capabilities": {"baselineCapabilitySet": "v4.11"}}, "additionalEnabledCapabilities: Invalid value: null: the marketplace capability requires the OperatorLifecycleManager capability"),  # noqa: E501
    "no proxy end": ({"proxy": {"httpProxy": "http://p", "noProxy": "a,"}}, 'violated by element 1 ""'),
    "sno workers": ({"compute": [{"name": "worker", "replicas": 1}]}, "Total number of compute replicas must be 0 when controlPlane.replicas is 1 for platform none or external. Found 1"),  # noqa: E501
    "sno baremetal": (merged(COMPACT, {"controlPlane": {"replicas": 1}}), "Only platform none and external supports 1 ControlPlane and 0 Compute nodes"),
    "pool arch": ({"controlPlane": {"architecture": "mips"}}, 'controlPlane.architecture: Unsupported value: "mips": supported values: "amd64", "arm64", "ppc64le", "s390x"'),  # noqa: E501
    "mixed arch": ({"compute": [{"name": "worker", "replicas": 0, "architecture": "arm64"}]}, "heteregeneous multi-arch is not supported; compute pool architecture must match control plane"),  # noqa: E501
    "compute twice": ({"compute": [{"name": "worker", "replicas": 0}, {"name": "worker", "replicas": 0}]}, 'compute[1].name: Duplicate value: "worker"'),
    "two arbiters": (merged(COMPACT, {"controlPlane": {"replicas": 2}, "arbiter": {"name": "arbiter", "replicas": 2}}), "TNA (Two Node with Arbiter) configuration requires exactly 1 arbiter replica"),  # noqa: E501
    "arbiter vsphere": (merged(platform("vsphere"), {"controlPlane": {"replicas": 2}, "arbiter": {"name": "arbiter", "replicas": 1}}), 'platform: Unsupported value: "vsphere": supported values: "baremetal", "external", "none"'),  # noqa: E501
    "no credentials": (merged(COMPACT, {"controlPlane": {"replicas": 2}}), "controlPlane.fencing.credentials: Forbidden: there should be exactly two fencing credentials to support the two node cluster, instead 0 credentials were found"),  # noqa: E501
    "credential": (credentials({}, CREDENTIAL), "at least one of hostname or macaddress must be provided"),
    "credential ipmi": (credentials({**CREDENTIAL, "address": "ipmi://1.2.3.4:623"}, CREDENTIAL), "fencing only supports redfish-compatible BMC addresses, IPMI is not supported"),  # noqa: E501
    "credential ipmi without port": (credentials({**CREDENTIAL, "address": "ipmi://1.2.3.4"}, CREDENTIAL), 'IPMI is not supported, controlPlane.fencing.credentials[0].address: Invalid value: "ipmi://1.2.3.4": failed to parse redfish address, no port number found'),  # noqa: E501
    "credential twice": (credentials(CREDENTIAL, CREDENTIAL), 'controlPlane.fencing.credentials[1].hostName: Duplicate value: "m0"'),
    # proxy and mirrors
    "proxy": ({"proxy": {"noProxy": "a"}}, "proxy: Required value: must include httpProxy or httpsProxy"),
    "proxy uri": ({"proxy": {"httpProxy": "localhost"}}, 'proxy.httpProxy: Invalid value: "localhost": parse "localhost": invalid URI for request'),
    "proxy scheme": ({"proxy": {"httpProxy": "ftp://x"}}, 'proxy.httpProxy: Unsupported value: "ftp": supported values: "http"'),
    "proxy network": ({"proxy": {"httpProxy": "http://172.30.0.9:1"}}, "proxy value is part of the service networks"),
    "no proxy": ({"proxy": {"httpProxy": "http://x", "noProxy": "a, b"}}, "noProxy must not have spaces"),
    "no proxy item": ({"proxy": {"httpProxy": "http://x", "noProxy": "a,*.b"}}, 'which is violated by element 1 "*.b"'),
    "sources": ({"imageDigestSources": [{"source": "UPPER/x"}]}, "imageDigestSources[0].source: Invalid value: \"UPPER/x\""),
    "sources both": ({"imageDigestSources": [{"source": "q.io/a"}], "imageContentSources": [{"source": "q.io/a"}]}, "cannot set imageContentSources and imageDigestSources at the same time"),  # noqa: E501
    "policy": ({"imageDigestSources": [{"source": "q.io/a", "sourcePolicy": "NeverContactSource"}]}, "sourcePolicy cannot be configured without a mirror"),
    # features
    "feature set": ({"featureSet": "x"}, 'featureSet: Unsupported value: "x": supported values: "CustomNoUpgrade"'),
    "okd": ({"featureSet": "OKD"}, "OKD featureset is not supported on OpenShift clusters"),
    "gates": ({"featureGates": ["a=true"]}, "featureGates can only be used with the CustomNoUpgrade feature set"),
    "gate": ({"featureSet": "CustomNoUpgrade", "featureGates": ["a=x"]}, "must match the format <feature-name>=<bool>, could not parse boolean value"),
    "capability": ({"capabilities": {"baselineCapabilitySet": "v1"}}, 'capabilities.baselineCapabilitySet: Unsupported value: "v1"'),
    "marketplace": ({"capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["marketplace", "Ingress"]}}, "the marketplace capability requires the OperatorLifecycleManager capability"),  # noqa: E501
    "partitioning": ({"cpuPartitioningMode": "x"}, 'cpuPartitioningMode: Unsupported value: "x": supported values: "AllNodes", "None"'),
    "gated dns": (bare(dnsRecordsType="External", loadBalancer={"type": "UserManaged"}), "platform.baremetal.dnsRecordsType: Forbidden: this field is protected by the OnPremDNSRecords feature gate"),  # noqa: E501
    "gated dns vsphere": (platform("vsphere", dnsRecordsType="External"), "[platform.vsphere.dnsRecordsType: Invalid value: \"External\": external DNS records can only be configured with user-managed loadbalancers, platform.vsphere.dnsRecordsType: Forbidden: "),  # noqa: E501
    "gated disks": ({"controlPlane": {"diskSetup": [{"type": "etcd"}]}}, "controlPlane.diskSetup: Forbidden: this field is protected by the MultiDiskSetup feature gate"),  # noqa: E501
    "gated disks of workers": ({"compute": [{"name": "worker", "replicas": 0, "diskSetup": [{"type": "etcd"}]}]}, "compute.diskSetup: Forbidden: "),
    "gated management": ({"controlPlane": {"management": "ClusterAPI"}, "featureSet": "TechPreviewNoUpgrade"}, "controlPlane.management: Forbidden: this field is protected by the ClusterAPIControlPlaneInstall feature gate"),  # noqa: E501
    "gated management of workers": ({"compute": [{"name": "worker", "replicas": 0, "management": "ClusterAPI"}]}, "compute.management: Forbidden: this field is protected by the ClusterAPIComputeInstall feature gate"),  # noqa: E501
    "gate off": ({"controlPlane": {"diskSetup": [1]}, "featureSet": "CustomNoUpgrade", "featureGates": ["MultiDiskSetup=F"]}, "controlPlane.diskSetup: Forbidden"),  # noqa: E501
    "no capabilities": (merged(COMPACT, {"capabilities": {"baselineCapabilitySet": "None"}}), "additionalEnabledCapabilities: Invalid value: null: platform baremetal requires the baremetal capability"),  # noqa: E501
    "publish after credentials": (merged(COMPACT, {"publish": "Internal", "credentialsMode": "Manual"}), '[credentialsMode: Invalid value: "Manual": cannot be set when using the "baremetal" platform, publish: Invalid value: "Internal": Internal publish'),  # noqa: E501
    "both sources": ({"imageContentSources": [{"source": "A"}], "imageDigestSources": [{"source": "B"}]}, 'imageDigestSources[0].source: Invalid value: "B": failed to parse: invalid reference format, imageContentSources: Invalid value: "External": cannot set imageContentSources and imageDigestSources at the same time'),  # noqa: E501
    "stream": ({"osImageStream": "x"}, 'osImageStream: Unsupported value: "x": supported values: "rhel-9", "rhel-10"'),
}  # fmt: skip


@pytest.mark.parametrize(("change", "error"), REFUSED.values(), ids=REFUSED)
def test_install_config_is_refused(directory: Any, make: Any, change: dict[str, Any], error: str) -> None:
    directory.write("install-config.yaml", merged(make.install_config(), change))
    directory.write("agent-config.yaml", make.agent_config())
    with pytest.raises(InstallerError, match=re.escape(error)) as caught:
        directory.create("cluster-manifests")
    assert str(caught.value).startswith(
        'failed to fetch Agent Manifests: failed to load asset "Install Config": invalid install-config configuration: '
    )


ACCEPTED = {
    "compact": COMPACT,
    "four": merged(COMPACT, {"controlPlane": {"replicas": 4}}),
    "five workers": merged(COMPACT, {"controlPlane": {"replicas": 5}, "compute": [{"name": "worker", "replicas": 2}]}),
    "arbiter": merged(COMPACT, {"controlPlane": {"replicas": 2}, "arbiter": {"name": "arbiter", "replicas": 1}}),
    "fencing": credentials(CREDENTIAL, {**CREDENTIAL, "hostName": "m1", "address": "redfish://[fd00::1]:80/x"}),
    "external": {"platform": {"none": None, "external": {"platformName": "oci", "cloudControllerManager": "External"}}},
    "vsphere": platform("vsphere", vcenters=[VCENTER], failureDomains=[DOMAIN]),
    "arm": {"controlPlane": {"architecture": "arm64"}, "compute": [{"name": "worker", "replicas": 0, "architecture": "arm64"}]},
    "s390x": {"controlPlane": {"architecture": "s390x"}, "compute": [{"name": "worker", "replicas": 0, "architecture": "s390x"}]},
    "ipv6": networking(machineNetwork=[{"cidr": "fd2e::/64"}], serviceNetwork=["fd02::/112"], clusterNetwork=[{"cidr": "fd01::/48", "hostPrefix": 64}]),
    "calico": merged(COMPACT, {"networking": {"networkType": "Calico"}}),
    "dual": merged(COMPACT, {
        "networking": {
            "machineNetwork": [{"cidr": "192.168.111.0/24"}, {"cidr": "fd2e::/64"}],
            "serviceNetwork": ["172.30.0.0/16", "fd02::/112"],
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}, {"cidr": "fd01::/48", "hostPrefix": 64}],
        },
        "platform": {"baremetal": {"apiVIPs": ["192.168.111.5", "fd2e::5"], "ingressVIPs": ["192.168.111.4", "fd2e::4"]}},
    }),
    "old names": {"networking": {
        "networkType": None, "type": "OVNKubernetes", "machineCIDR": "192.168.111.0/24", "machineNetwork": None,
        "clusterNetwork": None, "clusterNetworks": [{"cidr": "10.128.0.0/14", "hostSubnetLength": 9}],
    }},
    "tech preview": {"featureSet": "TechPreviewNoUpgrade", "cpuPartitioningMode": "AllNodes", "fips": True},
    "gates on": {
        "controlPlane": {"diskSetup": [{"type": "etcd"}], "management": "ClusterAPI"}, "featureSet": "CustomNoUpgrade",
        "featureGates": ["MultiDiskSetup=true", "ClusterAPIControlPlaneInstall=1"],
    },
    "dev preview": {"controlPlane": {"management": "ClusterAPI"}, "featureSet": "DevPreviewNoUpgrade"},
    "vcenters alone": platform("vsphere", vcenters=[{}]),
}  # fmt: skip


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED)
def test_install_config_is_taken(directory: Any, make: Any, change: dict[str, Any]) -> None:
    directory.write("install-config.yaml", merged(make.install_config(), change))
    ip = "fd2e::20" if "fd2e::/64" in str(change) and "192.168.111" not in str(change) else "192.168.111.20"
    directory.write("agent-config.yaml", make.agent_config(rendezvousIP=ip))
    directory.create("cluster-manifests", "image")
    assert (directory.path / "cluster-manifests" / "agent-cluster-install.yaml").exists()
    assert directory.files()


HOST: dict[str, Any] = {"hostname": "m0", "interfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:01"}]}
AGENT_REFUSED = {
    "version": ({"apiVersion": "v2"}, 'apiVersion: Invalid value: "v2": cannot upconvert from version v2'),
    "no version": ({"apiVersion": None}, "apiVersion: Required value: no version was provided"),
    "field": ({"wrongField": 1}, 'failed to unmarshal agent-config.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "wrongField" (wrongField, line '),  # noqa: E501
    "ip": ({"rendezvousIP": "x"}, 'invalid Agent Config configuration: rendezvousIP: Invalid value: "x": "x" is not a valid IP'),
    "ntp": ({"additionalNTPSources": ["a_b"]}, 'additionalNTPSources: Invalid value: "a_b": NTP server is not a valid IP or domain name'),
    "url": ({"bootArtifactsBaseURL": "not-a-url"}, 'bootArtifactsBaseURL: Invalid value: "not-a-url": invalid URI "not-a-url" (no scheme)'),
    "no nic": ({"hosts": [{"hostname": "a"}]}, "invalid Hosts configuration: hosts[0].interfaces: Required value: at least one interface must be defined for each node"),  # noqa: E501
    "no mac": ({"hosts": [{"interfaces": [{"name": "eth0"}]}]}, "hosts[0].interfaces[0].macAddress: Required value: each interface must have a MAC address defined"),  # noqa: E501
    "mac": ({"hosts": [{"interfaces": [{"macAddress": "x"}]}]}, 'hosts[0].interfaces[0].macAddress: Invalid value: "x": address x: invalid MAC address'),
    "multicast": ({"hosts": [{"interfaces": [{"macAddress": "01:00:5e:00:00:01"}]}]}, "expected unicast mac address, found multicast"),
    "mac twice": ({"hosts": [HOST, {"interfaces": [{"macAddress": "52:54:00:00:00:01"}]}]}, "hosts[1].interfaces[0].macAddress: Invalid value: \"52:54:00:00:00:01\": duplicate MAC address found"),  # noqa: E501
    "device": ({"hosts": [{**HOST, "rootDeviceHints": {"deviceName": "sda"}}]}, "Device Name of root device hint must be a /dev/ path"),
    "device path": ({"hosts": [{**HOST, "rootDeviceHints": {"deviceName": "/dev/disk/by-id/x"}}]}, "Device Name of root device hint must be path in /dev/ or /dev/disk/by-path/"),  # noqa: E501
    "wwn": ({"hosts": [{**HOST, "rootDeviceHints": {"wwnWithExtension": "x"}}]}, "hosts[0].rootDeviceHints.wwnWithExtension: Forbidden: WWN extensions are not supported in root device hints"),  # noqa: E501
    "role": ({"hosts": [{**HOST, "role": "x"}]}, 'hosts[0].role: Unsupported value: "x": supported values: "master", "worker", "arbiter"'),
    "worker": ({"hosts": [HOST, {"hostname": "w", "role": "worker", "interfaces": [{"macAddress": "52:54:00:00:00:02"}]}]}, "the number of worker hosts defined (1) exceeds the configured Compute replicas (0)"),  # noqa: E501
    "too many": ({"hosts": [{**HOST, "role": "master"}, {"role": "master", "interfaces": [{"macAddress": "52:54:00:00:00:02"}]}]}, "the number of master hosts defined (2) exceeds the configured ControlPlane replicas (1)"),  # noqa: E501
    "rendezvous worker": ({"hosts": [{**HOST, "role": "worker", "networkConfig": {"interfaces": [{"name": "eth0", "ipv4": {"address": [{"ip": "192.168.111.20", "prefix-length": 24}]}}]}}]}, "Host m0 has role 'worker' and has the rendezvousIP assigned to it."),  # noqa: E501
    "no network": ({"hosts": [{**HOST, "networkConfig": {}}]}, "1 error occurred:\n\t* failed to validate network yaml for host 0, nmstate generated an empty NetworkManager config file content\n\n"),  # noqa: E501
    "nmstate": ({"hosts": [{**HOST, "networkConfig": {"interfaces": [{"name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": True, "address": [{"ip": "x", "prefix-length": 24}]}}]}}]}, "staticNetwork configuration is not valid: 1 error occurred:\n\t* failed to validate network yaml for host 0, failed to execute 'nmstatectl gc', error: "),  # noqa: E501
}  # fmt: skip


@pytest.mark.parametrize(("change", "error"), AGENT_REFUSED.values(), ids=AGENT_REFUSED)
def test_agent_config_is_refused(directory: Any, make: Any, change: dict[str, Any], error: str) -> None:
    directory.write("install-config.yaml", make.install_config())
    directory.write("agent-config.yaml", merged(make.agent_config(), change))
    with pytest.raises(InstallerError, match=re.escape(error)):
        directory.create("cluster-manifests")


def test_all_errors_of_a_file_in_one_report(directory: Any, make: Any) -> None:
    config = merged(make.install_config(), {"sshKey": "x", "baseDomain": "-", "networking": {"serviceNetwork": ["x"]}})
    directory.write("install-config.yaml", config)
    with pytest.raises(InstallerError) as caught:
        directory.create("image")
    for field in ("sshKey", "baseDomain", "networking.serviceNetwork[0]"):
        assert f"{field}: Invalid value" in str(caught.value)


def test_unknown_fields_all_with_their_places(directory: Any, make: Any) -> None:
    directory.write("install-config.yaml", make.install_config() | {"wrong": 1, "platform": {"none": {}, "odd": {}}})
    with pytest.raises(InstallerError) as caught:
        directory.create("image")
    text = str(caught.value)
    assert "failed to create install config: failed to parse first occurrence of unknown field: " in text
    assert re.search(r'json: unknown field "odd" \(platform\.odd, line \d+, column \d+\)', text)
    assert re.search(r'json: unknown field "wrong" \(wrong, line \d+, column \d+\)', text)
    assert exit_code(caught.value) == 3
    directory.create("cluster-manifests", lenient=True)
    assert any("unknown field" in text for text in directory.reported("warning"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: b: c", "yaml: line 1: mapping values are not allowed in this context (column 5)"),
        ("apiVersion: v1\napiVersion: v1", 'line 2: key "apiVersion" already set in map (column 1)'),
        ("metadata: [1", "yaml: line "),
    ],
)
def test_yaml_errors_have_line_and_column(directory: Any, text: str, error: str) -> None:
    directory.write("install-config.yaml", text)
    with pytest.raises(InstallerError, match=re.escape(error)):
        directory.create("image")


@pytest.mark.parametrize(
    ("profile", "change", "error"),
    [
        ("4.18", {"featureSet": "TechPreviewNoUpgrade"}, 'FeatureSet: Unsupported value: "TechPreviewNoUpgrade": supported values: ""'),
        ("4.18", platform("nutanix"), 'Platform: Unsupported value: "nutanix": supported values: "baremetal", "vsphere", "none", "external"'),
        ("4.20", merged(COMPACT, {"controlPlane": {"replicas": 2}}), 'controlPlane.replicas: Unsupported value: 2: supported values: "3", "1", "4", "5"'),
        ("4.21", {"osImageStream": "rhel-9"}, "osImageStream: Forbidden: is not known to release 4.21"),
    ],
)  # fmt: skip
def test_older_releases_refuse_more(directory: Any, make: Any, profile: str, change: Any, error: str) -> None:
    directory.write("install-config.yaml", merged(make.install_config(), change))
    with pytest.raises(InstallerError, match=re.escape(error)):
        directory.create("cluster-manifests", release_profile=profile)


@pytest.mark.parametrize(
    ("version", "change", "error"),
    [
        ("4.22.0-okd-scos.1", {"featureSet": "OKD"}, ""),
        ("4.22.0-okd-scos.1", {"featureSet": "x"}, 'supported values: "CustomNoUpgrade", "DevPreviewNoUpgrade", "LatencySensitive", "OKD", "TechPrev'),
        ("4.20.0-okd-scos.13", {"featureSet": "OKD"}, 'featureSet: Unsupported value: "OKD": supported values: "CustomNoUpgrade", "DevPreviewNo'),
        ("4.18.0-okd-scos.4", {"featureSet": "OKD"}, 'FeatureSet: Unsupported value: "OKD": supported values: ""'),
        ("4.22.0-okd-scos.1", {"osImageStream": "rhel-9"}, "osImageStream: Forbidden: OKD has a single stream of its operating system"),
        ("4.20.0-okd-scos.13", {"pullSecret": json.dumps(DISTRIBUTIONS["okd"].pull_secret)}, ""),
    ],
)  # fmt: skip
def test_okd_takes_other_values(directory: Any, make: Any, version: str, change: Any, error: str) -> None:
    directory.write("install-config.yaml", merged(make.install_config(), change))
    directory.write("agent-config.yaml", make.agent_config())
    if error:
        with pytest.raises(InstallerError, match=re.escape(error)):
            directory.create("cluster-manifests", release_version=version)
        return
    directory.create("cluster-manifests", release_version=version)
    made = (directory.path / "cluster-manifests/agent-cluster-install.yaml").read_text()
    assert ('"featureSet":"OKD"' in made) == ("featureSet" in change)
    assert "osImageStream" not in made


def test_wrong_types_and_unknown_fields_are_reported_together(directory: Any, make: Any) -> None:
    directory.write("install-config.yaml", make.install_config(foo=1, bar=2, networking=[], fips="x"))
    with pytest.raises(InstallerError) as caught:
        directory.create("cluster-manifests")
    for text in (
        'unknown field "foo" (foo, line',
        'unknown field "bar"',
        "cannot unmarshal array into",
        "cannot unmarshal string into",
    ):
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("install-config.yaml", "types.InstallConfig"),
        ("agent-config.yaml", "agent.Config"),
        ("cluster-manifests/pull-secret.yaml", "v1.Secret"),
        ("cluster-manifests/infraenv.yaml", "v1beta1.InfraEnv"),
        ("cluster-manifests/agent-cluster-install.yaml", "v1beta1.AgentClusterInstall"),
        ("cluster-manifests/cluster-deployment.yaml", "v1.ClusterDeployment"),
        ("cluster-manifests/cluster-image-set.yaml", "v1.ClusterImageSet"),
    ],
)
def test_a_text_that_is_not_a_mapping(directory: Any, name: str, kind: str) -> None:
    directory.write(name, "This is not a yaml file")
    text = f"failed to unmarshal {name}: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type {kind}"
    with pytest.raises(InstallerError, match=re.escape(text)):
        directory.create("image")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("123456", "123456"), ("0x10", "16"), ("017", "15"), ("true", "true"), ("no", "false"), ("1.50", "1.5"), ("100000.0", "100000"),
        ("1234567.5", "1.2345675e+06"), ("1e-5", "1e-05"), ("0.00001", "1e-05"), ("-0.5", "-0.5"), (".inf", "+Inf"), ("4.20", "4.2"),
    ],
)  # fmt: skip
def test_scalars_are_taken_for_strings(text: str, expected: str) -> None:
    """As sigs.k8s.io/yaml does it: a password of digits needs no quotes."""
    shape = Struct("Config", {"password": STR, "labels": Map(STR), "names": [STR]})
    found = decode_file(f"password: {text}\nlabels: {{a: {text}}}\nnames: [{text}]\n", "x.yaml", shape)
    assert found == {"password": expected, "labels": {"a": expected}, "names": [expected]}


def test_whole_floats_are_integers() -> None:
    assert decode_file("replicas: 3.0", "x.yaml", Struct("Pool", {"replicas": INT64})) == {"replicas": 3}
    for text in ("3.5", '"3"', "true"):
        with pytest.raises(
            InstallerError,
            match=r"cannot unmarshal (number 3\.5|string|bool) into Go struct field Pool.replicas of type int64",
        ):
            decode_file(f"replicas: {text}", "x.yaml", Struct("Pool", {"replicas": INT64}))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            {"controlPlane": {"replicas": "x"}},
            "string into Go struct field MachinePool.controlPlane.replicas of type int64",
        ),
        (
            {"compute": [{"name": "worker", "replicas": []}]},
            "array into Go struct field MachinePool.compute.replicas of type int64",
        ),
        (
            {"controlPlane": {"replicas": 10**30}},
            "number 1e+30 into Go struct field MachinePool.controlPlane.replicas of type int64",
        ),
        (
            {"controlPlane": {"replicas": 2**63}},
            "number 9223372036854775808 into Go struct field MachinePool.controlPlane.replicas of type int64",
        ),
        (
            {"controlPlane": {"replicas": 1e20}},
            "number 100000000000000000000 into Go struct field MachinePool.controlPlane.replicas of type int64",
        ),
        (
            {"networking": {"clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 2**31}]}},
            "number 2147483648 into Go struct field ClusterNetworkEntry.networking.clusterNetwork.hostPrefix of type int32",
        ),
        (
            {"networking": {"clusterNetworkMTU": -1}},
            "number -1 into Go struct field Networking.networking.clusterNetworkMTU of type uint32",
        ),
        (
            {"platform": {"vsphere": {"vcenters": [{"port": 2**32 + 443}]}}},
            "number 4294967739 into Go struct field VCenter.platform.vsphere.vcenters.port of type int32",
        ),
        ({"networking": []}, "array into Go struct field InstallConfig.networking of type types.Networking"),
        (
            {"platform": {"baremetal": {"apiVIPs": 5}}},
            "number into Go struct field Platform.platform.baremetal.apiVIPs of type []string",
        ),
        ({"metadata": {"labels": {"a": {}}}}, "object into Go struct field ObjectMeta.metadata.labels of type string"),
        ({"compute": {}}, "object into Go struct field InstallConfig.compute of type []types.MachinePool"),
    ],
)
def test_wrong_types_are_reported_as_go_does(directory: Any, make: Any, change: dict[str, Any], error: str) -> None:
    directory.write("install-config.yaml", make.install_config() | change)
    with pytest.raises(InstallerError, match=re.escape(f"while decoding JSON: json: cannot unmarshal {error} (")):
        directory.create("cluster-manifests")


def test_an_input_that_is_a_directory_is_refused(directory: Any) -> None:
    (directory.path / "install-config.yaml").mkdir(parents=True)
    with pytest.raises(InstallerError, match=r"failed to load install-config.yaml file: .*Is a directory"):
        directory.create("cluster-manifests")


@pytest.mark.parametrize(
    "text", ["y", "N", "on", "1e3", "0o7", "1_000", ".5", "12:30", "2020-01-01", "~", "", "<<", "0x1F", "-.inf"]
)
def test_strings_that_go_would_misread_are_quoted(text: str) -> None:
    assert dump({"a": text}) == f'a: "{text}"\n'


@pytest.mark.parametrize("text", ["yy", "00:aa:bb:cc:dd:01", "1.2.3.4", "v1", "1e", "a b", "10.0.0.0/8", "x-1"])
def test_other_strings_are_plain(text: str) -> None:
    assert dump({"a": text}) == f"a: {text}\n"


def test_bad_rendezvous_without_addresses(directory: Any, make: Any) -> None:
    directory.write("install-config.yaml", make.install_config())
    directory.write("agent-config.yaml", make.agent_config(rendezvousIP=""))
    with pytest.raises(InstallerError, match="missing rendezvousIP in agent-config"):
        directory.create("image")


def test_ignored_fields_are_reported(directory: Any, make: Any) -> None:
    change = {"controlPlane": {"hyperthreading": "Disabled"}, "bootstrapInPlace": {"installationDisk": "/dev/sda"}}
    directory.write("install-config.yaml", merged(make.install_config(), change))
    directory.create("cluster-manifests")
    reported = directory.reported("warning")
    assert "controlPlane.hyperthreading: Disabled is ignored" in reported
    assert "bootstrapInPlace.installationDisk: /dev/sda is ignored" in reported
