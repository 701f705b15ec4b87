"""Features that a cluster uses: the field `feature_usage`, a JSON string of names. Source: `internal/usage` of assisted-service.

As upstream, a feature is recorded when it is requested, not derived: some stay recorded after they are no longer used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...plugins.module_utils.documents import load_json
from .bodies import ClusterParams
from .facts import is_dual
from .objects import Cluster

NTP, PROXY, SNO, TAGS, HYPERTHREADING = "Additional NTP Source", "Proxy", "SNO", "Cluster Tags", "Hyperthreading"
VIP_DHCP, DUAL_STACK, DUAL_VIPS = "VIP auto alloc.", "Dual-stack", "Dual-stack VIPs"
DISK_ENCRYPTION, PLATFORM, NUTANIX = "Disk encryption", "Platform selection", "Nutanix integration"
SCHEDULABLE, USERS_NETWORK = "Schedulable masters", "User Managed Networking With Multi Node"
HOSTNAME, AUTO_ROLE, IGNORED = (
    "Requested hostname",
    "auto assign role",
    "Validations have been ignored for this cluster",
)
MANIFEST, OVERRIDES, FIPS = "Custom manifest", "Install Config Overrides", "FIPS"
STATIC, KERNEL_ARGUMENTS, IGNITION = "Static Network Config", "discovery kernel arguments", "Ignition Config Override"
_NETWORK_TYPES = {
    "OVNKubernetes": "OVN network type",
    "OpenShiftSDN": "SDN network type",
    "CiscoACI": "CiscoACI network type",
    "Cilium": "Cilium network type",
    "Calico": "Calico network type",
    "None": "None network type",
}
_ARCHITECTURES = ("arm64", "s390x", "ppc64le")
Features = dict[str, dict[str, Any]]


def _set(features: Features, name: str, on: object, data: Mapping[str, object] | None = None) -> None:
    if on:
        entry: dict[str, Any] = {"data": dict(sorted(data.items()))} if data else {}
        features[name] = {**entry, "id": name.replace(" ", "_").replace(".", "").upper(), "name": name}
    else:
        features.pop(name, None)


def _text(features: Features) -> str:
    return json.dumps(dict(sorted(features.items())), ensure_ascii=False, separators=(",", ":"))


def note(cluster: Cluster | None, name: str, on: object = True, **data: object) -> None:
    """Record a feature of a cluster, or remove it; `data` is merged with the recorded data.

    Nothing happens for None, or for a cluster without the field, as an imported one. The caller commits.
    """
    if cluster is None or not cluster.get("feature_usage"):
        return
    features: Features = load_json(cluster["feature_usage"], name="feature_usage")
    known = features.get(name, {}).get("data", {})
    _set(features, name, on, {**known, **data})
    cluster["feature_usage"] = _text(features)


def ignition(cluster: Cluster | None, level: str, text: str) -> None:
    """Record an Ignition override at a level (`host`, `infra-env`)."""
    if cluster is not None and cluster.get("feature_usage"):
        levels = {
            **load_json(cluster["feature_usage"], name="feature_usage").get(IGNITION, {}).get("data", {}),
            level: bool(text),
        }
        note(cluster, IGNITION, any(levels.values()), **levels)


def install_config(cluster: Cluster, overrides: Mapping[str, object]) -> None:
    """Record which keys of the install-config are overridden, with the keys below them."""
    if overrides:
        keys = {" ".join([key, *(value if isinstance(value, dict) else ())]): True for key, value in overrides.items()}
        note(cluster, OVERRIDES, True, **keys)
        if isinstance(overrides.get("fips"), bool):
            note(cluster, FIPS, overrides["fips"])


def _proxies(features: Features, given: Mapping[str, object]) -> None:
    used = {key: 1 for key in ("http_proxy", "https_proxy", "no_proxy") if given.get(key)}
    _set(features, PROXY, used, used)


def _common(features: Features, cluster: Cluster) -> None:
    """Record features that depend only on the cluster's state."""
    ntp, kind = cluster.get("additional_ntp_source") or "", (cluster.get("platform") or {}).get("type")
    _set(features, NTP, ntp, {"source_count": len(ntp.split(","))})
    _set(features, VIP_DHCP, cluster.get("vip_dhcp_allocation"))
    _set(features, TAGS, cluster.get("tags"))
    threads = cluster.get("hyperthreading", "none")  # an imported cluster has none of its own
    _set(features, HYPERTHREADING, threads != "none", {"hyperthreading_enabled": threads})
    _set(features, DUAL_STACK, is_dual(cluster))
    _set(features, DUAL_VIPS, len(cluster.get("api_vips") or ()) > 1)
    for network, name in _NETWORK_TYPES.items():
        _set(features, name, cluster.get("network_type") == network)
    users = cluster.get("user_managed_networking") and cluster.get("control_plane_count", 3) >= 3
    _set(features, USERS_NETWORK, users)
    other = kind not in (None, "baremetal", "none")
    _set(features, PLATFORM, other, {"platform_type": kind})
    _set(features, NUTANIX, kind == "nutanix", {"platform_type": kind})
    encryption = cluster.get("disk_encryption") or {}
    encrypted = encryption.get("enable_on", "none") != "none"
    data = {
        "enable_on": encryption.get("enable_on"),
        "mode": encryption.get("mode"),
        "tang_servers": encryption.get("tang_servers", ""),
    }
    _set(features, DISK_ENCRYPTION, encrypted, data)
    for operator in cluster.get("monitored_operators", ()):
        _set(features, operator["name"].upper(), operator.get("operator_type") == "olm")


def registered_features(cluster: Cluster) -> str:
    """Return the features of a new cluster, as JSON text for `feature_usage`.

    Upstream counts the HTTP proxy of a new cluster as its HTTPS proxy, too.
    """
    features: Features = {}
    _common(features, cluster)
    _set(features, SNO, cluster.get("control_plane_count") == 1)
    _proxies(features, {**cluster, "https_proxy": cluster.get("http_proxy")})
    return _text(features)


def record_update(cluster: Cluster, body: ClusterParams, gone: frozenset[str]) -> None:
    """Record the changes of an update; `gone` are the OLM operators that it removed."""
    features: Features = load_json(cluster.get("feature_usage") or "{}", name="feature_usage")
    _common(features, cluster)
    for name in gone:
        _set(features, name.upper(), False)
    if {"http_proxy", "https_proxy", "no_proxy"} & body.keys():
        _proxies(features, cluster)
    if body.get("schedulable_masters") is not None:
        _set(features, SCHEDULABLE, body["schedulable_masters"])
    for cpu in _ARCHITECTURES:
        _set(features, f"{cpu} architecture", cluster.get("cpu_architecture") == cpu)
    cluster["feature_usage"] = _text(features)
