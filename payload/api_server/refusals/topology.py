"""Numbers of control-plane nodes, platforms and releases that do not fit each other.

Facts about releases are those of `plugins/module_utils/releases`. What is older than all of these, and so only
assisted-service knows it, is in `_LEAST`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....plugins.module_utils.releases import first_release
from .. import versions
from ..errors import ApiError

_LEAST: Mapping[str, tuple[str, str, str]] = {
    "single-node": ("4.8", "Single node", "Single node OpenShift"),
    "nutanix": ("4.11", "Nutanix", "Nutanix integration"),
}
"""Topology or platform -> lowest version, and its names in the message.

Source: `internal/bminventory` of assisted-service. Its rule for Nutanix is not the agent-based installer's
(`ReleaseProfile.nutanix`).
"""


def control_plane(mode: str, count: int, version: str) -> None:
    """Refuse numbers of control-plane nodes that a mode and a release do not support.

    `mode` is `high_availability_mode`: `None` takes 1; `Full` takes 3, from 4.18 on 3 to 5, from 4.19 on 2 to 5.
    ApiError 400.
    """
    if mode == "None" and count != 1:
        raise ApiError(400, "single-node clusters must have a single control plane node")
    if versions.numbers(version) is None:
        raise ApiError(400, f"Malformed version: {version}")
    if mode != "Full":
        return
    release = versions.profile(version)
    most, more = max(release.control_planes), first_release(lambda one: max(one.control_planes) > 3)
    if count != 3 and most == 3:
        raise ApiError(
            400,
            f"there should be exactly 3 dedicated control plane nodes for high availability mode Full in openshift version older than {more}",
        )
    # With an arbiter two are enough; the number is refused before it is known whether there will be one.
    low, first = (2, first_release(lambda one: one.arbiter)) if release.arbiter else (3, more)
    if not low <= count <= most:
        raise ApiError(
            400,
            f"there should be {low}-{most} dedicated control plane nodes for high availability mode Full in openshift version {first} or newer",
        )


def single_node(dhcp: bool, kind: str | None, version: str, platform: str) -> None:
    if dhcp:
        raise ApiError(400, "VIP DHCP Allocation cannot be enabled on single node OpenShift")
    network_type(kind, version, single=True)
    if platform not in ("none", "external"):
        raise ApiError(400, f"Single node cluster is not supported alongside {platform} platform")


def network_type(kind: str | None, version: str, single: bool) -> None:
    """Refuse OpenShiftSDN, which a single node does not support, and releases from 4.15 on lack; `version` is the cluster's."""
    if kind == "OpenShiftSDN" and single:
        raise ApiError(400, "OpenShiftSDN network type is not allowed in single node mode")
    if kind == "OpenShiftSDN" and not versions.profile(version).openshift_sdn:
        raise ApiError(400, f"Openshift version {version} is not supported for OpenShiftSDN NetworkType")


def release_version(version: str, sno: bool, platform: str) -> None:
    """Refuse versions that do not support the request, regardless of the available releases."""
    for name in (*(("single-node",) if sno else ()), platform):
        least, what, supported = _LEAST.get(name, ("", "", ""))
        if least and not versions.at_least(version, least):
            reason = f"{supported} is supported for version {least} and above"
            raise ApiError(400, f"Invalid OCP version ({version}) for {what}, {reason}")
