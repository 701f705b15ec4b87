"""The AgentClusterInstall."""

from __future__ import annotations

from typing import Any

from ...log import Log
from ...releases import ReleaseProfile
from ...vocabulary import INSTALL_CONFIG_OVERRIDES, PLATFORMS, WITH_VIPS
from .. import check, gojson
from ..errors import FieldErrors
from ..install_config import cidr, platform_name, replicas
from ..models import AgentConfig, Host, InstallConfig, Manifest, Meta
from ..schema import decode_file
from ..yamlio import dump
from . import shapes
from .meta import DIRECTORY, metadata, names, proxy_of
from .overrides import install_config_overrides

_ACI_STATUS = {"debugInfo": {"eventsURL": "", "logsURL": ""}, "progress": {"totalPercentage": 0}}


def agent_cluster_install(
    config: InstallConfig,
    agent_config: AgentConfig | None,
    hosts: list[Host],
    version: str,
    profile: ReleaseProfile,
) -> Manifest:
    """The AgentClusterInstall of an install-config with defaults filled in.

    hosts: those of agent-config or install-config, whose BMCs travel in the overrides; version: that of the release,
    which `imageSetRef` names.
    """
    cluster, namespace = names(config)
    platform = platform_name(config)
    section = config["platform"][platform] or {}
    networking = config["networking"]
    counts = replicas(config)
    requirements = {"controlPlaneAgents": counts["master"]}
    if profile.arbiter and counts["arbiter"]:
        requirements["arbiterAgents"] = counts["arbiter"]
    if counts["worker"]:
        requirements["workerAgents"] = counts["worker"]
    known_network = networking["networkType"] in ("OVNKubernetes", "OpenShiftSDN")
    spec: dict[str, Any] = {
        "imageSetRef": {"name": f"openshift-{version}"},
        "clusterDeploymentRef": {"name": cluster},
        "networking": {
            "machineNetwork": [{"cidr": cidr(entry["cidr"])} for entry in networking["machineNetwork"]],
            "clusterNetwork": [
                {"cidr": cidr(entry["cidr"]), "hostPrefix": entry["hostPrefix"]}
                for entry in networking["clusterNetwork"]
            ],
            "serviceNetwork": [cidr(net) for net in networking["serviceNetwork"]],
            "networkType": networking["networkType"] if known_network else "OVNKubernetes",
            "userManagedNetworking": platform in ("none", "external"),
        },
        "sshPublicKey": config.get("sshKey", "").strip("|\n\t"),
        "provisionRequirements": requirements,
        "platformType": PLATFORMS[platform],
    }
    if not spec["sshPublicKey"]:
        del spec["sshPublicKey"]
    if platform == "external":
        spec["external"] = {"platformName": section["platformName"]} if section.get("platformName") else {}
        if section.get("platformName") == "oci":
            spec["external"]["cloudControllerManager"] = "External"
    if platform in WITH_VIPS:
        spec["apiVIPs"], spec["ingressVIPs"] = section.get("apiVIPs", []), section.get("ingressVIPs", [])
        if platform == "baremetal" and spec["apiVIPs"] and spec["ingressVIPs"]:
            spec["apiVIP"], spec["ingressVIP"] = spec["apiVIPs"][0], spec["ingressVIPs"][0]
        balancer = (section.get("loadBalancer") or {}).get("type")
        if platform == "baremetal" and profile.load_balancer and balancer == "UserManaged":
            spec["loadBalancer"] = {"type": "UserManaged"}
    proxy = proxy_of(config, agent_config, profile)
    if proxy:
        spec["proxy"] = proxy
    overrides = install_config_overrides(config, hosts, version, profile)
    extra: Meta = {}
    if overrides:
        extra["annotations"] = {INSTALL_CONFIG_OVERRIDES: gojson.dumps(overrides)}
    return {
        "apiVersion": "extensions.hive.openshift.io/v1beta1", "kind": "AgentClusterInstall",
        "metadata": metadata(cluster, namespace, profile, extra), "spec": spec, "status": _ACI_STATUS,
    }  # fmt: skip


def load_agent_cluster_install(text: str, profile: ReleaseProfile, log: Log) -> tuple[Manifest, str]:
    """Read agent-cluster-install.yaml; returns the manifest with defaults, and the text to put into the image.

    The network type defaults to OVNKubernetes, which is logged. The text has what Go prints for empty fields. Raises
    `InstallerError` for wrong fields.
    """
    name = f"{DIRECTORY}/agent-cluster-install.yaml"
    aci: Manifest = decode_file(text, name, shapes.AGENT_CLUSTER_INSTALL)
    spec = aci.setdefault("spec", {})
    spec["platformType"] = PLATFORMS.get(spec.get("platformType", ""), spec.get("platformType", ""))
    networking = spec.setdefault("networking", {})
    if not networking.get("networkType"):
        log.info("NetworkType is not specified in AgentClusterInstall. Defaulting NetworkType to OVNKubernetes.")
        networking["networkType"] = "OVNKubernetes"
    networking.setdefault("userManagedNetworking", spec["platformType"] in ("None", "External"))
    # What Go's zero values print.
    if not spec["platformType"]:
        del spec["platformType"]
    spec.setdefault("clusterDeploymentRef", {})
    spec.setdefault("provisionRequirements", {})
    if profile.creation_timestamp:
        aci.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    status = aci.get("status")
    aci["status"] = {**_ACI_STATUS, **(status if isinstance(status, dict) else {})}
    return aci, dump(aci)


def check_agent_cluster_install(aci: Manifest, profile: ReleaseProfile) -> None:
    """Raise `InstallerError` when the manifest, from wherever, contradicts itself.

    Network type against address families and prefixes, platform against networking, disk encryption: in this order, and
    the first of the three that has errors raises them.
    """
    spec = aci.get("spec", {})
    networking = spec.get("networking", {})
    errors = FieldErrors()
    at = "spec.networking"
    if networking.get("networkType") == "OpenShiftSDN":
        for kind, nets in (
            ("clusterNetwork", [entry.get("cidr", "") for entry in networking.get("clusterNetwork", [])]),
            ("serviceNetwork", networking.get("serviceNetwork", [])),
        ):
            found = [check.network(net) for net in nets]
            if None in found:
                errors.required(f"{at}.{kind}", "error parsing the clusterNetwork CIDR")
            if any(net is not None and net.version == 6 for net in found):
                errors.required(
                    f"{at}.networkType", f"{kind} CIDR is IPv6 and is not compatible with networkType OpenShiftSDN"
                )
    elif profile.ovn_checks and networking.get("networkType") == "OVNKubernetes":
        needs = spec.get("provisionRequirements", {})
        hosts = needs.get("controlPlaneAgents", 0) + needs.get("workerAgents", 0)
        for index, entry in enumerate(networking.get("clusterNetwork", [])):
            net, prefix, path = (
                check.network(entry.get("cidr")),
                entry.get("hostPrefix", 0),
                f"{at}.clusterNetwork[{index}]",
            )
            if net is None:
                errors.required(f"{path}.cidr", "error parsing the clusterNetwork CIDR")
                continue
            if prefix > net.max_prefixlen - 7:
                errors.invalid(f"{path}.hostPrefix", prefix, f"must be at most {net.max_prefixlen - 7}")
            if prefix - net.prefixlen < (hosts - 1).bit_length() or prefix < net.prefixlen:
                errors.invalid(
                    path, entry["cidr"],
                    f"prefix length {net.prefixlen} not large enough to accommodate {hosts} hosts with hostPrefix "
                    f"length {prefix}",
                )  # fmt: skip
    errors.check("invalid NetworkType configured")
    platform = spec.get("platformType", "")
    if platform and platform not in PLATFORMS.values():
        errors.unsupported("spec.platformType", platform, PLATFORMS.values())
    if platform in ("None", "External") and networking.get("userManagedNetworking") is False:
        errors.forbidden(
            "spec.networking.userManagedNetworking", f"{platform} platform requires user-managed networking"
        )
    errors.check("invalid PlatformType configured")
    encryption = spec.get("diskEncryption")
    if profile.disk_encryption_check and encryption is not None:
        for field, allowed in (("enableOn", ("none", "all", "masters", "workers")), ("mode", ("tpmv2", "tang"))):
            if encryption.get(field, "") not in allowed:
                errors.unsupported(f"spec.diskEncryption.{field}", encryption.get(field, ""), allowed)
        errors.check("invalid DiskEncryption configured")
