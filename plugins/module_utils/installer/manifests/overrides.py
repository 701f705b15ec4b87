"""The overrides of install-config that travel as an annotation of the AgentClusterInstall."""

from __future__ import annotations

from typing import Any

from ...releases import ReleaseProfile
from ...vocabulary import INSTALL_CONFIG_OVERRIDES
from .. import gojson
from ..errors import InstallerError
from ..install_config import default_stream, platform_name
from ..models import Host, InstallConfig, Manifest, Section
from ..rules.vsphere import has_credentials
from .meta import DIRECTORY


def install_config_overrides(
    config: InstallConfig, hosts: list[Host], version: str, profile: ReleaseProfile
) -> dict[str, Any]:
    """What the assisted service doesn't model and so travels as an annotation; {} when there is none.

    hosts: for their BMCs; version: of the release, for its OS image stream. Keys are install-config's; their order is
    that of the annotation's JSON.
    """
    found: dict[str, Any] = {}
    if config.get("fips"):
        found["fips"] = True
    gates = {name: config[name] for name in ("featureSet", "featureGates") if config.get(name)}
    if not profile.feature_sets:
        gates = {}
    platform = platform_name(config)
    part = _PLATFORM_OVERRIDES.get(platform, lambda *__: {})(config["platform"][platform] or {}, hosts, profile)
    # Upstream writes vSphere's part, empty or not, when anything before it is overridden.
    if part or platform in ("external", "nutanix") or (platform == "vsphere" and (found or gates)):
        found["platform"] = {platform: part}
    if config.get("capabilities") is not None:
        found["capabilities"] = config["capabilities"]
    if config["networking"]["networkType"] not in ("OVNKubernetes", "OpenShiftSDN"):
        found["networking"] = config["networking"]
    if config.get("cpuPartitioningMode"):
        found["cpuPartitioningMode"] = config["cpuPartitioningMode"]
    if config.get("additionalTrustBundlePolicy", "Proxyonly") not in ("", "Proxyonly"):
        found["additionalTrustBundlePolicy"] = config["additionalTrustBundlePolicy"]
    found |= gates
    if config.get("osImageStream") and config["osImageStream"] != default_stream(version):
        found["osImageStream"] = config["osImageStream"]
    return found


def _baremetal_overrides(section: Section, hosts: list[Host], profile: ReleaseProfile) -> dict[str, Any]:
    entries = []
    for host in hosts:
        bmc = host.get("BMC") or {}
        if not any(bmc.get(key) for key in ("username", "password", "address")):
            continue
        entry = {
            "name": host.get("hostname", ""),
            "bmc": {
                **{key: bmc.get(key, "") for key in ("username", "password", "address")},
                "disableCertificateVerification": bmc.get("disableCertificateVerification", False),
            },
            "role": host.get("role", ""),
            "bootMACAddress": host["interfaces"][0]["macAddress"],
            "hardwareProfile": "",
        }
        entries.append(entry)
    if not entries:
        return {}
    fields = ["clusterProvisioningIP", "provisioningNetwork", "provisioningNetworkInterface",
              "provisioningNetworkCIDR", "provisioningDHCPRange"]  # fmt: skip
    if profile.provisioning_network_gateway:
        fields.append("provisioningNetworkGateway")
    return {"hosts": entries, **{name: section[name] for name in fields if section.get(name)}}


def _vsphere_overrides(section: Section, _hosts: list[Host], _profile: ReleaseProfile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if len(section.get("apiVIPs", [])) > 1:
        found["apiVIPs"] = section["apiVIPs"]
        found["ingressVIPs"] = section.get("ingressVIPs", [])
    centers = [center for center in section.get("vcenters", []) if has_credentials(center)]
    if centers:
        found["vcenters"] = centers
        if section.get("failureDomains"):
            found["failureDomains"] = section["failureDomains"]
    return found


_NUTANIX_DROPPED = ("clusterOSImage", "preloadedOSImageName", "defaultMachinePlatform", "loadBalancer",
                    "failureDomains", "prismAPICallTimeout")  # fmt: skip


def _nutanix_overrides(section: Section, _hosts: list[Host], profile: ReleaseProfile) -> dict[str, Any]:
    found = {key: value for key, value in section.items() if key not in _NUTANIX_DROPPED}
    if not profile.nutanix_dns_records_type:
        found.pop("dnsRecordsType", None)
    return found


def _external_overrides(section: Section, _hosts: list[Host], _profile: ReleaseProfile) -> dict[str, Any]:
    return {key: section[key] for key in ("platformName", "cloudControllerManager") if section.get(key)}


_PLATFORM_OVERRIDES: dict[str, Any] = {
    "baremetal": _baremetal_overrides,
    "vsphere": _vsphere_overrides,
    "nutanix": _nutanix_overrides,
    "external": _external_overrides,
}


def overrides_of(aci: Manifest | None) -> dict[str, Any]:
    """The parsed overrides annotation; {} without one. Raises `InstallerError` when it is not a JSON object.

    aci: the AgentClusterInstall, made or loaded. JSON that is not an object counts as none.
    """
    text = ((aci or {}).get("metadata", {}).get("annotations") or {}).get(INSTALL_CONFIG_OVERRIDES)
    if not text:
        return {}
    try:
        found = gojson.loads(text)
    except gojson.JsonError as error:
        raise InstallerError(
            f"{DIRECTORY}/agent-cluster-install.yaml: annotation {INSTALL_CONFIG_OVERRIDES}: {error}"
        ) from error
    return found if isinstance(found, dict) else {}
