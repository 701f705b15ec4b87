"""Feature sets and gates, capabilities, CPU partitioning, OS image streams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..releases import LATEST, ReleaseProfile
from ..releases.distributions import Distribution
from .errors import FieldErrors
from .install_config import platform_name
from .models import InstallConfig

SETS = ("CustomNoUpgrade", "DevPreviewNoUpgrade", "LatencySensitive", "TechPreviewNoUpgrade")
_PREVIEWS = ("TechPreviewNoUpgrade", "DevPreviewNoUpgrade")
# Gates that are on in other feature sets than these two (openshift/api features.go).
_GATES = dict.fromkeys(("ClusterAPIControlPlaneInstall", "ClusterAPIComputeInstall"), ("DevPreviewNoUpgrade",))
_BOOLEAN = re.compile(r"1|t|T|true|TRUE|True|0|f|F|false|FALSE|False")  # Go's strconv.ParseBool
# What each baseline adds to the one before it. Those of later releases than the config's are not refused.
_ADDED: Mapping[str, tuple[str, ...]] = {"None": (), **LATEST.capability_sets, "vCurrent": ()}
CAPABILITIES = tuple(sorted(name for names in _ADDED.values() for name in names))


def protected_text(gate: str) -> str:
    """The text for a field whose gate is off."""
    return (
        f"this field is protected by the {gate} feature gate which must be enabled through either the "
        "TechPreviewNoUpgrade or CustomNoUpgrade feature set"
    )


def gate_enabled(config: InstallConfig, profile: ReleaseProfile, gate: str) -> bool:
    """Return whether `gate` is on with this feature set and release.

    A valid `featureGates` entry decides, the last one first; without one, the release's default or the feature set.
    """
    for entry in reversed(config.get("featureGates") or []):
        name, __, value = entry.partition("=")
        if name == gate and _BOOLEAN.fullmatch(value):
            return value[0] in "1tT"
    default = {"DualReplica": profile.fencing_gate_default, "HighlyAvailableArbiter": profile.arbiter_nodes}
    return default.get(gate, False) or config.get("featureSet") in _GATES.get(gate, _PREVIEWS)


def _protected_fields(config: InstallConfig, profile: ReleaseProfile) -> Iterator[tuple[str, str]]:
    """(gate, field) for every field that is used and that a feature gate of this release protects."""
    control, compute, platform = config["controlPlane"], config.get("compute") or [], platform_name(config)
    known = profile.field_gates
    section = config["platform"].get(platform)
    if known and isinstance(section, dict) and section.get("dnsRecordsType") == "External":
        yield "OnPremDNSRecords", f"platform.{platform}.dnsRecordsType"
    if control.get("fencing") is not None:
        yield "DualReplica", "platform.none.fencingCredentials"
    if known and control.get("diskSetup"):
        yield "MultiDiskSetup", "controlPlane.diskSetup"
    if known and any(pool.get("diskSetup") for pool in compute):
        yield "MultiDiskSetup", "compute.diskSetup"
    if known and control.get("management") == "ClusterAPI":
        yield "ClusterAPIControlPlaneInstall", "controlPlane.management"
    # Upstream looks at the first pool alone.
    if known and compute and compute[0].get("management") == "ClusterAPI":
        yield "ClusterAPIComputeInstall", "compute.management"


def validate(config: InstallConfig, profile: ReleaseProfile, distribution: Distribution, errors: FieldErrors) -> None:
    """Check feature set and gates, fields that a gate protects, capabilities, CPU partitioning and OS image stream.

    config: an install-config with defaults. Problems are added to `errors` with the texts of the installer.
    """
    chosen = config.get("featureSet", "")
    known = sorted({*SETS, *(distribution.feature_sets if profile.distribution_feature_sets else ())})
    if chosen == "OKD" and chosen not in distribution.feature_sets:
        errors.forbidden("featureSet", "OKD featureset is not supported on OpenShift clusters")
    elif chosen and not profile.feature_sets:
        errors.append(f'FeatureSet: Unsupported value: "{chosen}": supported values: ""')
    elif chosen and chosen not in known:
        errors.unsupported("featureSet", chosen, known)
    gates = config.get("featureGates") or []
    if gates and chosen != "CustomNoUpgrade":
        errors.forbidden("featureGates", "featureGates can only be used with the CustomNoUpgrade feature set")
    for index, gate in enumerate(gates):
        match = re.fullmatch(r"[^=]*=([^=]*)", gate)
        path, text = f"featureGates[{index}]", "must match the format <feature-name>=<bool>"
        if not match:
            errors.invalid(path, gate, text)
        elif not _BOOLEAN.fullmatch(match[1]):
            errors.invalid(path, gate, f"{text}, could not parse boolean value")
    for gate, field in _protected_fields(config, profile):
        if not gate_enabled(config, profile, gate):
            errors.forbidden(field, protected_text(gate))
    _capabilities(config, errors)
    partitioning = config.get("cpuPartitioningMode", "")
    if partitioning and partitioning not in ("None", "AllNodes"):
        errors.unsupported("cpuPartitioningMode", partitioning, ("AllNodes", "None"))
    stream = config.get("osImageStream", "")
    if stream and not profile.os_image_stream:
        errors.forbidden("osImageStream", f"is not known to release {profile.name}")
    elif stream and not distribution.os_streams:
        errors.forbidden("osImageStream", f"{distribution.title} has a single stream of its operating system")
    elif stream and stream not in distribution.os_streams:
        errors.unsupported("osImageStream", stream, tuple(distribution.os_streams))


def capability_names(config: InstallConfig, errors: FieldErrors) -> None:
    """Check that the capabilities and their set exist.

    The names are those of openshift/api (`config/v1`); a baseline that is not given is vCurrent.
    """
    capabilities = config.get("capabilities") or {}
    baseline = capabilities.get("baselineCapabilitySet") or "vCurrent"
    if baseline not in _ADDED:
        errors.unsupported("capabilities.baselineCapabilitySet", baseline, _ADDED)
    for index, name in enumerate(capabilities.get("additionalEnabledCapabilities") or []):
        if name not in CAPABILITIES:
            errors.unsupported(f"capabilities.additionalEnabledCapabilities[{index}]", name, CAPABILITIES)


def capabilities_of(config: InstallConfig) -> set[str]:
    """Return the capabilities of the cluster: those of the baseline, which is the release's by default, and the additional ones."""
    capabilities = config.get("capabilities") or {}
    baseline = capabilities.get("baselineCapabilitySet") or "vCurrent"
    found = {*(capabilities.get("additionalEnabledCapabilities") or [])}
    if baseline in _ADDED and baseline != "None":
        for name, names in _ADDED.items():
            found |= {*names}
            if name == baseline:
                break
    return found


def _capabilities(config: InstallConfig, errors: FieldErrors) -> None:
    capabilities = config.get("capabilities")
    if capabilities is None:
        return
    path = "capabilities"
    baseline = capabilities.get("baselineCapabilitySet") or "vCurrent"
    more = capabilities.get("additionalEnabledCapabilities")
    available = capabilities_of(config)
    at = "additionalEnabledCapabilities"
    platform = platform_name(config)
    if "marketplace" in available and "OperatorLifecycleManager" not in available:
        errors.invalid(at, more, "the marketplace capability requires the OperatorLifecycleManager capability")
    if platform == "baremetal" and baseline == "None" and "baremetal" not in available:
        errors.invalid(at, more, "platform baremetal requires the baremetal capability")
    if "CloudCredential" not in available and platform not in ("baremetal", "none"):
        errors.invalid(
            path, capabilities, "disabling CloudCredential capability available only for baremetal platforms"
        )
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
