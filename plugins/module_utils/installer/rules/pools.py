"""Rules for machine pools: control plane, compute, arbiter, and their architectures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...releases import ReleaseProfile
from .. import features
from ..errors import FieldErrors
from ..install_config import platform_name, replicas
from ..models import InstallConfig, Pool
from .fencing import check_fencing
from .go_paths import go_path

if TYPE_CHECKING:
    from ..build import Build


def check_pools(config: InstallConfig, profile: ReleaseProfile, errors: FieldErrors) -> None:
    """Check control plane, arbiter and compute pools: names, numbers, architectures, fencing.

    config: with its defaults. Which numbers a release has is checked by `topology.check_topology`.
    """
    control = config["controlPlane"]
    platform = platform_name(config)
    counts = replicas(config)
    if counts["master"] == 0:
        errors.invalid("controlPlane.replicas", 0, "number of control plane replicas must be positive")
    _pool("controlPlane", control, profile, platform, errors)
    check_fencing(config, profile, counts, platform, errors)
    if config.get("arbiter") is not None:
        _arbiter(config, profile, counts, platform, errors)
    seen = set()
    for index, pool in enumerate(config["compute"]):
        path, name = f"compute[{index}]", pool.get("name", "")
        if name == "edge":
            errors.unsupported(f"{path}.name", name, ("worker",))
        elif name != "worker":
            errors.unsupported(f"{path}.name", name, ("worker", "edge"))
        if name in seen:
            errors.duplicate(f"{path}.name", name)
        seen.add(name)
        _mixed_architecture(path, platform, control["architecture"], pool["architecture"], errors)
        _pool(path, pool, profile, platform, errors)
        if pool.get("fencing") is not None:
            errors.invalid(f"{path}.fencing", "configured", "fencing is only valid for control plane")


def _arbiter(
    config: InstallConfig, profile: ReleaseProfile, counts: dict[str, int], platform: str, errors: FieldErrors
) -> None:
    arbiter = config["arbiter"]
    if not profile.arbiter:
        errors.forbidden("arbiter", f"arbiter nodes are not known to release {profile.name}")
    if not features.gate_enabled(config, profile, "HighlyAvailableArbiter"):
        errors.forbidden("arbiter", features.protected_text("HighlyAvailableArbiter"))
    if platform not in ("baremetal", "external", "none"):
        errors.unsupported("arbiter.platform", platform, ("baremetal", "external", "none"))
    if arbiter.get("name") != "arbiter":
        errors.unsupported("arbiter.name", arbiter.get("name", ""), ("arbiter",))
    if counts["arbiter"] == 0:
        errors.invalid("arbiter.replicas", 0, "number of arbiter replicas must be positive")
    if counts["master"] < 2:
        errors.invalid(
            "arbiter.replicas", counts["master"],
            "number of controlPlane replicas must be at least 2 for arbiter deployments",
        )  # fmt: skip
    _pool("arbiter", arbiter, profile, platform, errors)


def _pool(path: str, pool: Pool, profile: ReleaseProfile, platform: str, errors: FieldErrors) -> None:
    if pool["replicas"] < 0:
        errors.invalid(f"{path}.replicas", pool["replicas"], "number of replicas must not be negative")
    if pool["hyperthreading"] not in ("Enabled", "Disabled"):
        errors.unsupported(f"{path}.hyperthreading", pool["hyperthreading"], ("Disabled", "Enabled"))
    if pool["architecture"] not in profile.architectures:
        at = f"{path}.architecture"
        errors.unsupported(
            at if profile.lower_config_paths else go_path(at), pool["architecture"], profile.architectures
        )
    own = pool.get("platform")
    for name, value in own.items() if isinstance(own, dict) else ():
        if value is not None and name != platform:
            errors.invalid(
                f"{path}.platform.{name}", value,
                f'cannot specify "{name}" for machine pool when cluster is using "{platform}"',
            )  # fmt: skip


def _mixed_architecture(path: str, platform: str, control: str, compute: str, errors: FieldErrors) -> None:
    if control == compute:
        return
    at = f"{path}.architecture"
    if platform != "baremetal":
        errors.invalid(
            at, compute, "heteregeneous multi-arch is not supported; compute pool architecture must match control plane"
        )
        return
    if control != "amd64":
        errors.invalid(at, control, "on multi-arch baremetal, the control plane must be amd64")
    if compute != "arm64":
        errors.invalid(at, compute, "on baremetal with amd64 control plane, compute must be amd64 or arm64")


def check_payload_architecture(config: InstallConfig, build: Build, errors: FieldErrors) -> None:
    """Check that the nodes have the architecture of the payload.

    A payload of several architectures takes all; one that cannot be read is warned of if the pools differ.
    """
    pools = [("controlPlane", config["controlPlane"])]
    pools += [(f"compute[{index}]", pool) for index, pool in enumerate(config["compute"])]
    release = build.release_facts.get("architecture", "")
    if not release and len({pool["architecture"] for __, pool in pools}) > 1:
        build.log.warning(
            "Could not determine release architecture for multi arch cluster configuration. Make sure the release is a "
            "multi architecture payload."
        )
    if release in ("", "multi"):
        return
    for path, pool in pools:
        arch = pool["architecture"]
        if arch != release:
            kind = path.partition("[")[0]
            errors.invalid(
                f"{path}.architecture", arch,
                f"cannot create {arch} {kind} node from a single architecture {release} release payload",
            )  # fmt: skip


def check_release_architecture(config: InstallConfig, build: Build, errors: FieldErrors) -> None:
    """Check that the control plane has an architecture of the release image.

    `build` reads the image's facts; when it cannot, that is a warning and nothing is refused, as upstream.
    """
    facts = build.release_facts
    if "error" in facts:
        build.log.warning("Unable to validate the release image architecture, skipping validation")
        return
    release, control = facts["architecture"], config["controlPlane"]["architecture"]
    if release not in ("multi", control):
        errors.forbidden(
            "controlPlane.architecture",
            f"unsupported release image architecture. ControlPlane Arch: {control} doesn't match Release Image Arch: "
            f"{release}",
        )
