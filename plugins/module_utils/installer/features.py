"""Feature sets and gates, capabilities, CPU partitioning, OS image streams."""

from __future__ import annotations

import re
from typing import Any

from ..releases import ReleaseProfile
from .errors import FieldErrors
from .install_config import platform_name

SETS = ("CustomNoUpgrade", "DevPreviewNoUpgrade", "LatencySensitive", "TechPreviewNoUpgrade")
_PREVIEWS = ("TechPreviewNoUpgrade", "DevPreviewNoUpgrade")
# What each baseline adds to the one before it.
_ADDED = {
    "None": (),
    "v4.11": ("baremetal", "marketplace", "openshift-samples", "MachineAPI"),
    "v4.12": ("Console", "Insights", "Storage", "CSISnapshot"),
    "v4.13": ("NodeTuning",),
    "v4.14": ("Build", "DeploymentConfig", "ImageRegistry"),
    "v4.15": ("OperatorLifecycleManager", "CloudCredential"),
    "v4.16": ("CloudControllerManager", "Ingress"),
    "v4.17": (),
    "v4.18": ("OperatorLifecycleManagerV1",),
    "vCurrent": (),
}  # fmt: skip
CAPABILITIES = tuple(sorted(name for names in _ADDED.values() for name in names))


def protected(gate: str) -> str:
    """The text for a field whose gate is off."""
    return (
        f"this field is protected by the {gate} feature gate which must be enabled through either the "
        "TechPreviewNoUpgrade or CustomNoUpgrade feature set"
    )


def enabled(config: dict[str, Any], profile: ReleaseProfile, gate: str) -> bool:
    """Whether `gate` (DualReplica or HighlyAvailableArbiter) is on with this feature set and release."""
    if f"{gate}=true" in (config.get("featureGates") or []):
        return True
    if f"{gate}=false" in (config.get("featureGates") or []):
        return False
    default = {"DualReplica": profile.fencing_gate_default, "HighlyAvailableArbiter": profile.arbiter_nodes}
    return bool(default[gate]) or config.get("featureSet") in _PREVIEWS


def validate(config: dict[str, Any], profile: ReleaseProfile, errors: FieldErrors) -> None:
    """Check everything of this module's title."""
    chosen = config.get("featureSet", "")
    if chosen == "OKD":
        errors.forbidden("featureSet", "OKD featureset is not supported on OpenShift clusters")
    elif chosen and not profile.feature_sets:
        errors.append(f'FeatureSet: Unsupported value: "{chosen}": supported values: ""')
    elif chosen and chosen not in SETS:
        errors.unsupported("featureSet", chosen, SETS)
    gates = config.get("featureGates") or []
    if gates and chosen != "CustomNoUpgrade":
        errors.forbidden("featureGates", "featureGates can only be used with the CustomNoUpgrade feature set")
    for index, gate in enumerate(gates):
        match = re.fullmatch(r"[^=]*=([^=]*)", gate)
        path, text = f"featureGates[{index}]", "must match the format <feature-name>=<bool>"
        if not match:
            errors.invalid(path, gate, text)
        elif not re.fullmatch(r"1|t|T|true|TRUE|True|0|f|F|false|FALSE|False", match[1]):
            errors.invalid(path, gate, f"{text}, could not parse boolean value")
    if config["controlPlane"].get("fencing") is not None and not enabled(config, profile, "DualReplica"):
        errors.forbidden("platform.none.fencingCredentials", protected("DualReplica"))
    _capabilities(config, errors)
    partitioning = config.get("cpuPartitioningMode", "")
    if partitioning and partitioning not in ("None", "AllNodes"):
        errors.unsupported("cpuPartitioningMode", partitioning, ("AllNodes", "None"))
    stream = config.get("osImageStream", "")
    if profile.os_image_stream:
        if stream and stream not in ("rhel-9", "rhel-10"):
            errors.forbidden("osImageStream", "Unsupported OS Image Stream. Supported values are: rhel-9, rhel-10")
    elif stream:
        errors.forbidden("osImageStream", f"is not known to release {profile.name}")


def _capabilities(config: dict[str, Any], errors: FieldErrors) -> None:
    capabilities = config.get("capabilities")
    if capabilities is None:
        return
    path = "capabilities"
    baseline = capabilities.get("baselineCapabilitySet") or "vCurrent"
    more = capabilities.get("additionalEnabledCapabilities") or []
    if baseline not in _ADDED:
        errors.unsupported(f"{path}.baselineCapabilitySet", baseline, _ADDED)
    for index, name in enumerate(more):
        if name not in CAPABILITIES:
            errors.unsupported(f"{path}.additionalEnabledCapabilities[{index}]", name, CAPABILITIES)
    available = {*more}
    if baseline in _ADDED and baseline != "None":
        for name, names in _ADDED.items():
            available |= {*names}
            if name == baseline:
                break
    at = "additionalEnabledCapabilities"
    platform = platform_name(config)
    if "marketplace" in available and "OperatorLifecycleManager" not in available:
        errors.invalid(at, more, "the marketplace capability requires the OperatorLifecycleManager capability")
    if platform == "baremetal" and baseline == "None" and "baremetal" not in more:
        errors.invalid(at, more, "platform baremetal requires the baremetal capability")
    if "CloudCredential" not in available and platform not in ("baremetal", "none"):
        errors.invalid(path, capabilities, "disabling CloudCredential capability available only for baremetal platforms")
    if "CloudControllerManager" not in available:
        manager = (config["platform"].get("external") or {}).get("cloudControllerManager", "")
        if platform not in ("baremetal", "none", "external"):
            errors.invalid(
                path, capabilities,
                "disabling CloudControllerManager is only supported on the Baremetal, None, or External platform with "
                "cloudControllerManager value none",
            )  # fmt: skip
        elif platform == "external" and manager == "External":
            errors.invalid(
                path, capabilities,
                "disabling CloudControllerManager on External platform supported only with cloudControllerManager "
                "value none",
            )  # fmt: skip
    if "Ingress" not in available:
        errors.invalid(path, capabilities, "the Ingress capability is required")
