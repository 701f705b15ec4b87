"""Feature sets and gates, capabilities, CPU partitioning, OS image streams."""

from __future__ import annotations

import re
from typing import Any

from .errors import FieldErrors
from .install_config import platform_name

SETS = ("CustomNoUpgrade", "DevPreviewNoUpgrade", "LatencySensitive", "TechPreviewNoUpgrade")
_PREVIEWS = ("TechPreviewNoUpgrade", "DevPreviewNoUpgrade")
_BASELINES = ("None", *(f"v4.{minor}" for minor in range(11, 19)), "vCurrent")
CAPABILITIES = (
    "Build", "CSISnapshot", "CloudControllerManager", "CloudCredential", "Console", "DeploymentConfig",
    "ImageRegistry", "Ingress", "Insights", "MachineAPI", "NodeTuning", "OperatorLifecycleManager",
    "OperatorLifecycleManagerV1", "Storage", "baremetal", "marketplace", "openshift-samples",
)  # fmt: skip


def protected(gate: str) -> str:
    """The text for a field whose gate is off."""
    return (
        f"this field is protected by the {gate} feature gate which must be enabled through either the "
        "TechPreviewNoUpgrade or CustomNoUpgrade feature set"
    )


def enabled(config: dict[str, Any], profile: dict[str, Any], gate: str) -> bool:
    """Whether `gate` (DualReplica or HighlyAvailableArbiter) is on with this feature set and release."""
    if f"{gate}=true" in (config.get("featureGates") or []):
        return True
    if f"{gate}=false" in (config.get("featureGates") or []):
        return False
    default = {"DualReplica": profile["fencing_gate_default"], "HighlyAvailableArbiter": profile["arbiter_nodes"]}
    return bool(default[gate]) or config.get("featureSet") in _PREVIEWS


def validate(config: dict[str, Any], profile: dict[str, Any], errors: FieldErrors) -> None:
    """Check everything of this module's title."""
    chosen = config.get("featureSet", "")
    if chosen == "OKD":
        errors.invalid("featureSet", chosen, "OKD featureset is not supported on OpenShift clusters")
    elif chosen and not profile["feature_sets"]:
        errors.append(f'FeatureSet: Unsupported value: "{chosen}": supported values: ""')
    elif chosen and chosen not in SETS:
        errors.unsupported("featureSet", chosen, SETS)
    gates = config.get("featureGates") or []
    if gates and chosen != "CustomNoUpgrade":
        errors.forbidden("featureGates", "featureGates can only be used with the CustomNoUpgrade feature set")
    for index, gate in enumerate(gates):
        match = re.fullmatch(r"[^=]+=([^=]+)", gate)
        path, text = f"featureGates[{index}]", "must match the format <feature-name>=<bool>"
        if not match:
            errors.invalid(path, gate, text)
        elif match[1].lower() not in ("true", "false", "1", "0", "t", "f"):
            errors.invalid(path, gate, f"{text}, could not parse boolean value")
    _capabilities(config, errors)
    partitioning = config.get("cpuPartitioningMode", "")
    if partitioning and partitioning not in ("None", "AllNodes"):
        errors.unsupported("cpuPartitioningMode", partitioning, ("AllNodes", "None"))
    stream = config.get("osImageStream", "")
    if profile["os_image_stream"]:
        if stream and stream not in ("rhel-9", "rhel-10"):
            errors.unsupported("osImageStream", stream, ("rhel-9", "rhel-10"))
    elif stream:
        errors.forbidden("osImageStream", f"is not known to release {profile['name']}")


def _capabilities(config: dict[str, Any], errors: FieldErrors) -> None:
    capabilities = config.get("capabilities")
    if not capabilities:
        return
    path = "capabilities"
    baseline = capabilities.get("baselineCapabilitySet", "vCurrent")
    more = capabilities.get("additionalEnabledCapabilities") or []
    if baseline not in _BASELINES:
        errors.unsupported(f"{path}.baselineCapabilitySet", baseline, _BASELINES)
    for index, name in enumerate(more):
        if name not in CAPABILITIES:
            errors.unsupported(f"{path}.additionalEnabledCapabilities[{index}]", name, CAPABILITIES)
    at = f"{path}.additionalEnabledCapabilities"
    platform = platform_name(config)
    if "marketplace" in more and baseline == "None" and "OperatorLifecycleManager" not in more:
        errors.invalid(at, more, "the marketplace capability requires the OperatorLifecycleManager capability")
    if baseline != "None":
        return
    if platform == "baremetal" and "baremetal" not in more:
        errors.invalid(at, more, "platform baremetal requires the baremetal capability")
    if "CloudCredential" not in more and platform not in ("baremetal", "none", "external"):
        errors.invalid(path, capabilities, "disabling CloudCredential capability available only for baremetal platforms")
    if "CloudControllerManager" not in more:
        manager = (config["platform"].get("external") or {}).get("cloudControllerManager", "")
        if platform not in ("baremetal", "none", "external"):
            errors.invalid(
                path, capabilities,
                "disabling CloudControllerManager is only supported on the Baremetal, None, or External platform with "
                "cloudControllerManager value none",
            )  # fmt: skip
        elif platform == "external" and manager not in ("", "None"):
            errors.invalid(
                path, capabilities,
                "disabling CloudControllerManager on External platform supported only with cloudControllerManager "
                "value none",
            )  # fmt: skip
    if "Ingress" not in more:
        errors.invalid(path, capabilities, "the Ingress capability is required")
