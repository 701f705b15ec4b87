"""What the agent-based installer adds: its platforms and numbers of nodes."""

from __future__ import annotations

from ...releases import ReleaseProfile
from .. import features
from ..errors import FieldErrors
from ..install_config import platform_name
from ..models import InstallConfig


def check_agent_platform(config: InstallConfig, profile: ReleaseProfile, errors: FieldErrors) -> None:
    """Check that the platform is one of the release's agent-based installer, and that the architecture suits it.

    profile: of the release, which has the platforms. ppc64le and s390x have platform none only.
    """
    platform = platform_name(config)
    allowed = ("baremetal", "vsphere", *(("nutanix",) if profile.nutanix else ()), "none", "external")
    if platform and platform not in allowed:
        errors.unsupported("platform", platform, allowed)
    arch = config["controlPlane"]["architecture"]
    if platform and platform != "none" and arch in ("ppc64le", "s390x"):
        errors.invalid("platform", platform, f'CPU architecture "{arch}" only supports platform "none".')
    external = config["platform"].get("external") or {}
    manager = external.get("cloudControllerManager", "")
    if external.get("platformName") == "oci" and manager != "External":
        path = "platform.external.cloudControllerManager"
        errors.invalid(path, manager, f"When using external oci platform, {errors.path(path)} must be set to External")
    name = external.get("platformName", "")
    if profile.external_platforms and platform == "external" and name not in profile.external_platforms:
        errors.unsupported("platform.external.platformName", name, profile.external_platforms)


def check_topology(config: InstallConfig, profile: ReleaseProfile, counts: dict[str, int], errors: FieldErrors) -> None:
    """Check the numbers of nodes.

    counts: replicas by role, as `install_config.replicas` returns them. profile has the numbers of masters of the
    release, and the sentence that lists them.
    """
    masters, arbiters = counts["master"], counts["arbiter"]
    platform = platform_name(config)
    dual = profile.two_node_fencing and features.gate_enabled(config, profile, "DualReplica")
    supported = [text for text in profile.replicas if text != "2 (with fencing)" or dual]
    two_allowed = arbiters > 0 or "2 (with arbiter)" in profile.replicas
    numbers = profile.control_planes | ({2} if two_allowed or dual else set())
    if masters not in numbers and profile.replicas_text:
        text = f"ControlPlane.Replicas can only be set {profile.replicas_text}. Found {masters}"
        errors.invalid("controlPlane.replicas", masters, text)
    elif masters not in numbers:
        errors.unsupported("controlPlane.replicas", masters, supported)
    if masters == 1:
        _single_node(config, profile, platform, counts, errors)
    if masters != 2:
        return
    credentials = (config["controlPlane"].get("fencing") or {}).get("credentials") or []
    if config.get("arbiter") is not None and arbiters != 1:
        errors.invalid(
            "arbiter.replicas", arbiters,
            "TNA (Two Node with Arbiter) configuration requires exactly 1 arbiter replica",
        )  # fmt: skip
    if credentials and not dual:
        errors.invalid(
            "controlPlane.fencing", "configured", "fencing configuration requires FeatureGateDualReplica to be enabled"
        )
    if credentials and len(credentials) != 2:
        errors.invalid(
            "controlPlane.fencing.credentials", len(credentials),
            "must provide exactly 2 fencing credentials for 2 control plane replicas",
        )  # fmt: skip


def _single_node(
    config: InstallConfig, profile: ReleaseProfile, platform: str, counts: dict[str, int], errors: FieldErrors
) -> None:
    kind = config["networking"]["networkType"]
    arbiters, workers = counts["arbiter"], counts["worker"]
    if workers and not profile.lower_config_paths:
        errors.required(
            "compute.replicas",
            "Total number of Compute.Replicas must be 0 when ControlPlane.Replicas is 1 for platform none or "
            f"external. Found {workers}",
        )
    elif workers:
        errors.forbidden(
            "compute.replicas",
            "Total number of compute replicas must be 0 when controlPlane.replicas is 1 for platform none or "
            f"external. Found {workers}",
        )
    elif platform not in ("none", "external"):
        errors.invalid(
            "platform", platform, "Only platform none and external supports 1 ControlPlane and 0 Compute nodes"
        )
    elif kind != "OVNKubernetes":
        errors.invalid(
            "networking.networkType", kind,
            "Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster",
        )  # fmt: skip
    if arbiters:
        errors.forbidden(
            "arbiter.replicas",
            "Total number of arbiter replicas must be 0 when controlPlane.replicas is 1 for Single Node Openshift "
            f"(SNO) cluster. Found {arbiters}",
        )
