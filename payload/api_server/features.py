"""Support levels of features and CPU architectures per OpenShift version, architecture and platform, as data.

A line of TEXT: id, name, `|`, rules in order, then incompatible features after `x` and architectures after `cpu`. A rule is
`[conditions:]level[/reason]`, conditions joined by commas; the first whose conditions all hold decides. Conditions: `arch` (the
architecture is one of those after `cpu`), `on=A+B` (platform; `oci` is external with that name), `cpu=A+B`, `<V`, `>=V`, `=V`
(major and minor). An incompatible feature or architecture may carry `<V`: below that version only. A rule without level is
`unavailable`. Source: `internal/featuresupport` of assisted-service.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from . import versions

TEXT = """
SNO Single Node OpenShift | arch: on=nutanix+vsphere: cpu=s390x+ppc64le,=4.13:dev-preview supported
  x ODF NUTANIX_INTEGRATION VSPHERE_INTEGRATION CLUSTER_MANAGED_NETWORKING VIP_AUTO_ALLOC USER_MANAGED_LOAD_BALANCER NODE_HEALTHCHECK SELF_NODE_REMEDIATION
  x FENCE_AGENTS_REMEDIATION NODE_MAINTENANCE KUBE_DESCHEDULER DUAL_STACK_PRIMARY_IPV6<4.19 cpu s390x<4.13 ppc64le<4.13
TNA TNA Clusters | on=nutanix+vsphere+external: on=none,<4.22:/platform =4.19:tech-preview >=4.19:supported unavailable/openshiftVersion
  x NUTANIX_INTEGRATION VSPHERE_INTEGRATION EXTERNAL_PLATFORM EXTERNAL_PLATFORM_OCI NONE_PLATFORM<4.22
TNF TNF Clusters | on=nutanix+vsphere+external: >=4.22:supported >=4.20:tech-preview unavailable/openshiftVersion
  x NUTANIX_INTEGRATION VSPHERE_INTEGRATION EXTERNAL_PLATFORM EXTERNAL_PLATFORM_OCI
CUSTOM_MANIFEST Custom Manifest | supported
SINGLE_NODE_EXPANSION Single Node Expansion | <4.11: arch: on=nutanix+vsphere: cpu=s390x+ppc64le,=4.13:dev-preview supported cpu s390x<4.13 ppc64le<4.13
MINIMAL_ISO Minimal ISO | arch: supported cpu s390x
FULL_ISO Full ISO | on=oci:unavailable/ociExternalIntegrationDisabled supported x EXTERNAL_PLATFORM_OCI
NON_STANDARD_HA_CONTROL_PLANE Non-standard HA OCP Control Plane | <4.18: on=nutanix+vsphere: supported x NUTANIX_INTEGRATION VSPHERE_INTEGRATION
  cpu arm64 s390x ppc64le multi
VIP_AUTO_ALLOC VIP Automatic Allocation | on=external: <4.15:dev-preview unavailable/openshiftVersion
  x SNO EXTERNAL_PLATFORM_OCI NONE_PLATFORM EXTERNAL_PLATFORM USER_MANAGED_LOAD_BALANCER
CLUSTER_MANAGED_NETWORKING Cluster Managed Networking | arch: on=external: supported
  x SNO USER_MANAGED_NETWORKING EXTERNAL_PLATFORM_OCI NONE_PLATFORM EXTERNAL_PLATFORM cpu s390x ppc64le arm64<4.11
USER_MANAGED_NETWORKING User Managed Networking | on=nutanix: supported
  x CLUSTER_MANAGED_NETWORKING NUTANIX_INTEGRATION BAREMETAL_PLATFORM USER_MANAGED_LOAD_BALANCER
DUAL_STACK_VIPS Dual-Stack VIPs | <4.12: on=oci: supported x EXTERNAL_PLATFORM_OCI USER_MANAGED_LOAD_BALANCER
DUAL_STACK Dual-Stack | supported x USER_MANAGED_LOAD_BALANCER VSPHERE_INTEGRATION<4.13
PLATFORM_MANAGED_NETWORKING Platform managed networking | on=external+none:supported unsupported/platform
  x BAREMETAL_PLATFORM VSPHERE_INTEGRATION NUTANIX_INTEGRATION
SDN_NETWORK_TYPE Openshift SDN | >=4.15: supported x OVN_NETWORK_TYPE CILIUM_NETWORK_TYPE CALICO_NETWORK_TYPE CISCO_ACI_NETWORK_TYPE NONE_NETWORK_TYPE
OVN_NETWORK_TYPE Openshift OVN | supported x SDN_NETWORK_TYPE CILIUM_NETWORK_TYPE CALICO_NETWORK_TYPE CISCO_ACI_NETWORK_TYPE NONE_NETWORK_TYPE
CILIUM_NETWORK_TYPE Cilium CNI | supported x OVN_NETWORK_TYPE SDN_NETWORK_TYPE CALICO_NETWORK_TYPE CISCO_ACI_NETWORK_TYPE NONE_NETWORK_TYPE
CALICO_NETWORK_TYPE Calico CNI | supported x OVN_NETWORK_TYPE SDN_NETWORK_TYPE CILIUM_NETWORK_TYPE CISCO_ACI_NETWORK_TYPE NONE_NETWORK_TYPE
CISCO_ACI_NETWORK_TYPE Cisco ACI CNI | supported x OVN_NETWORK_TYPE SDN_NETWORK_TYPE CILIUM_NETWORK_TYPE CALICO_NETWORK_TYPE NONE_NETWORK_TYPE
NONE_NETWORK_TYPE None CNI | supported x OVN_NETWORK_TYPE SDN_NETWORK_TYPE CILIUM_NETWORK_TYPE CALICO_NETWORK_TYPE CISCO_ACI_NETWORK_TYPE
USER_MANAGED_LOAD_BALANCER User Managed Load Balancer | <4.16: supported x EXTERNAL_PLATFORM EXTERNAL_PLATFORM_OCI NONE_PLATFORM NUTANIX_INTEGRATION
  x USER_MANAGED_NETWORKING VIP_AUTO_ALLOC DUAL_STACK DUAL_STACK_VIPS SNO DUAL_STACK_PRIMARY_IPV6
DUAL_STACK_PRIMARY_IPV6 Dual-Stack Primary IPv6 | on=nutanix+vsphere+external: <4.12: tech-preview
  x USER_MANAGED_LOAD_BALANCER EXTERNAL_PLATFORM EXTERNAL_PLATFORM_OCI NUTANIX_INTEGRATION VSPHERE_INTEGRATION SNO<4.19
LVM Logical Volume Management | arch: <4.11: on=vsphere+nutanix: =4.11:dev-preview supported
  x NUTANIX_INTEGRATION VSPHERE_INTEGRATION ODF VIP_AUTO_ALLOC<4.15 CLUSTER_MANAGED_NETWORKING<4.15 cpu s390x ppc64le
ODF OpenShift Data Foundation | arch: on=oci: supported x SNO LVM EXTERNAL_PLATFORM_OCI cpu arm64
CNV OpenShift Virtualization | arch: on=nutanix+vsphere: cpu=arm64:dev-preview supported x NUTANIX_INTEGRATION VSPHERE_INTEGRATION cpu s390x ppc64le arm64<4.14
LSO Local Storage Operator | arch: supported cpu arm64
MCE multicluster engine | <4.10: on=nutanix: supported x NUTANIX_INTEGRATION
MTV OpenShift Migration Toolkit for Virtualization | arch: on=vsphere+nutanix: <4.14: supported
  x NUTANIX_INTEGRATION VSPHERE_INTEGRATION cpu arm64 s390x ppc64le
OSC OpenShift sandboxed containers | arch: on=vsphere+nutanix: <4.10: supported x NUTANIX_INTEGRATION VSPHERE_INTEGRATION cpu arm64 s390x ppc64le
NODE_FEATURE_DISCOVERY Node Feature Discovery | arch: <4.6: dev-preview cpu ppc64le s390x
NVIDIA_GPU NVIDIA GPU | arch: dev-preview cpu arm64 ppc64le s390x
PIPELINES Pipelines | dev-preview
SERVICEMESH ServiceMesh | dev-preview
SERVERLESS ServerLess | dev-preview
OPENSHIFT_AI OpenShift AI | arch: <4.12: on=oci: dev-preview x EXTERNAL_PLATFORM_OCI cpu arm64 ppc64le s390x
AUTHORINO Authorino | dev-preview cpu arm64
NMSTATE Nmstate node network configuration | arch: on=nutanix+external: <4.12: supported x NUTANIX_INTEGRATION EXTERNAL_PLATFORM EXTERNAL_PLATFORM_OCI
  cpu arm64 s390x ppc64le
AMD_GPU AMD GPU | arch: dev-preview cpu arm64 ppc64le s390x
KMM Kernel Module Management | dev-preview
NODE_HEALTHCHECK Node Healthcheck | supported x SNO
SELF_NODE_REMEDIATION Self Node Remediation | tech-preview x SNO
FENCE_AGENTS_REMEDIATION Fence Agents Remediation | supported x SNO
NODE_MAINTENANCE Node Maintenance Operator | supported x SNO
KUBE_DESCHEDULER Kube Descheduler | supported x SNO
CLUSTER_OBSERVABILITY Cluster Observability | supported
NUMA_RESOURCES NUMA Resources | supported
OADP OADP Operator | supported
METALLB MetalLB | <4.11: supported
LOKI Loki Operator | <4.17: supported
OPENSHIFT_LOGGING Red Hat OpenShift Logging Operator | <4.17: supported
NUTANIX_INTEGRATION Nutanix Platform Integration | arch: <4.11: =4.11:dev-preview supported
  x SNO TNA TNF USER_MANAGED_NETWORKING LVM MCE CNV PLATFORM_MANAGED_NETWORKING
  x MTV NON_STANDARD_HA_CONTROL_PLANE USER_MANAGED_LOAD_BALANCER OSC NMSTATE DUAL_STACK_PRIMARY_IPV6 cpu s390x ppc64le arm64
VSPHERE_INTEGRATION vSphere Platform Integration | arch: supported
  x SNO TNA TNF LVM PLATFORM_MANAGED_NETWORKING CNV MTV NON_STANDARD_HA_CONTROL_PLANE OSC DUAL_STACK_PRIMARY_IPV6 DUAL_STACK<4.13 cpu s390x ppc64le
EXTERNAL_PLATFORM_OCI Oracle Cloud Infrastructure external platform | arch: >=4.14:supported unavailable/openshiftVersion
  x TNA TNF CLUSTER_MANAGED_NETWORKING VIP_AUTO_ALLOC DUAL_STACK_VIPS FULL_ISO USER_MANAGED_LOAD_BALANCER NMSTATE ODF OPENSHIFT_AI DUAL_STACK_PRIMARY_IPV6
  cpu s390x ppc64le
BAREMETAL_PLATFORM Baremetal Platform Integration | supported x PLATFORM_MANAGED_NETWORKING USER_MANAGED_NETWORKING
NONE_PLATFORM None Platform Integration | supported x VIP_AUTO_ALLOC CLUSTER_MANAGED_NETWORKING USER_MANAGED_LOAD_BALANCER TNA<4.22
EXTERNAL_PLATFORM External Platform Integration | <4.14: supported
  x TNA TNF CLUSTER_MANAGED_NETWORKING VIP_AUTO_ALLOC USER_MANAGED_LOAD_BALANCER NMSTATE DUAL_STACK_PRIMARY_IPV6
"""

#: Platform type -> its feature; `oci`: external with that name.
PLATFORMS: dict[str, str] = {
    "baremetal": "BAREMETAL_PLATFORM",
    "none": "NONE_PLATFORM",
    "nutanix": "NUTANIX_INTEGRATION",
    "vsphere": "VSPHERE_INTEGRATION",
    "external": "EXTERNAL_PLATFORM",
    "oci": "EXTERNAL_PLATFORM_OCI",
}
_PLATFORM_FEATURES = frozenset(PLATFORMS.values())

#: CPU architecture -> (id, rules of its support level).
ARCHITECTURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "x86_64": ("X86_64_ARCHITECTURE", ("supported",)),
    "arm64": ("ARM64_ARCHITECTURE", ("<4.10:", "supported")),
    "ppc64le": ("PPC64LE_ARCHITECTURE", ("<4.12:", "=4.12:tech-preview", "supported")),
    "s390x": ("S390X_ARCHITECTURE", ("<4.12:", "=4.12:tech-preview", "supported")),
    "multi": ("MULTIARCH_RELEASE_IMAGE", ("<4.11:", "tech-preview")),
}
UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Filters:
    """Query for support levels. `platform`: a key of PLATFORMS, empty if not given."""

    version: str
    cpu: str = "x86_64"
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Feature:
    ident: str
    name: str
    rules: tuple[str, ...]
    features: tuple[str, ...]
    architectures: tuple[str, ...]

    def level(self, filters: Filters) -> tuple[str, str]:
        """Return (support level, reason); the reason is empty if the feature is supported."""
        return _decide(self.rules, filters, self.incompatible_cpu(filters))

    def incompatible_cpu(self, filters: Filters) -> bool:
        return filters.cpu in _below(self.architectures, filters.version)

    def incompatible(self, version: str) -> list[str]:
        """Return the features that are incompatible with this one."""
        return _below(self.features, version)


def _below(words: Iterable[str], version: str) -> list[str]:
    pairs = (word.partition("<") for word in words)
    return [name for name, mark, limit in pairs if not mark or not versions.at_least(version, limit)]


def _holds(condition: str, filters: Filters, incompatible_cpu: bool) -> tuple[bool, str]:
    """Return (whether a condition holds, its reason)."""
    if condition == "arch":
        return incompatible_cpu, "cpuArchitecture"
    if condition.startswith("on="):
        names = {filters.platform, "external" if filters.platform == "oci" else filters.platform}
        return bool(filters.platform and names & set(condition[3:].split("+"))), "platform"
    if condition.startswith("cpu="):
        return filters.cpu in condition[4:].split("+"), "cpuArchitecture"
    if condition.startswith(">="):
        return versions.at_least(filters.version, condition[2:]), "openshiftVersion"
    if condition.startswith("<"):
        return not versions.at_least(filters.version, condition[1:]), "openshiftVersion"
    return versions.same_minor(filters.version, condition[1:]), "openshiftVersion"


def _decide(rules: tuple[str, ...], filters: Filters, incompatible_cpu: bool) -> tuple[str, str]:
    for rule in rules:
        conditions, colon, outcome = rule.rpartition(":")
        results = [_holds(word, filters, incompatible_cpu) for word in conditions.split(",")] if colon else []
        if all(holds for holds, __ in results):
            level, __, reason = outcome.partition("/")
            return level or UNAVAILABLE, reason or (results[0][1] if results and not level else "")
    raise ValueError(f"no rule of {rules} applies")


def _parse(text: str) -> dict[str, Feature]:
    found = {}
    for line in re.sub(r"\n  ", " ", text).strip().splitlines():
        head, __, rest = line.partition(" | ")
        ident, __, name = head.partition(" ")
        parts: dict[str, list[str]] = {"rules": [], "x": [], "cpu": []}
        part = "rules"
        for word in rest.split():
            if word in parts:
                part = word
            else:
                parts[part].append(word)
        found[ident] = Feature(ident, name, tuple(parts["rules"]), tuple(parts["x"]), tuple(parts["cpu"]))
    return found


FEATURES: dict[str, Feature] = _parse(TEXT)


def architecture(name: str) -> str:
    """The name that support levels use: arm64 for aarch64."""
    return "arm64" if name == "aarch64" else name


def architecture_level(name: str, version: str) -> str:
    return _decide(ARCHITECTURES[name][1], Filters(version, name), False)[0]


def _relevant(ident: str, filters: Filters) -> bool:
    """Return whether a feature is left out: platform features with a given platform, platform networking without one."""
    return ident not in _PLATFORM_FEATURES if filters.platform else ident != "PLATFORM_MANAGED_NETWORKING"


def levels(filters: Filters) -> dict[str, tuple[str, str, list[str]]]:
    """Feature -> (support level, reason, incompatible features)."""
    if architecture_level(filters.cpu, filters.version) == UNAVAILABLE:
        return {ident: (UNAVAILABLE, "", []) for ident in FEATURES}
    found = {}
    for ident, feature in FEATURES.items():
        if _relevant(ident, filters):
            level, reason = feature.level(filters)
            if feature.incompatible_cpu(filters):
                level, reason = UNAVAILABLE, "cpuArchitecture"
            others = [other for other in feature.incompatible(filters.version) if _relevant(other, filters)]
            found[ident] = (level, reason, others)
    return found


def available(ident: str, filters: Filters) -> bool:
    return FEATURES[ident].level(filters)[0] not in (UNAVAILABLE, "unsupported")
