"""Numbers of control-plane nodes, platforms and releases that do not fit each other."""

from __future__ import annotations

from .. import versions
from ..errors import ApiError


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
    if count != 3 and not versions.at_least(version, "4.18"):
        raise ApiError(
            400,
            "there should be exactly 3 dedicated control plane nodes for high availability mode Full in openshift version older than 4.18",
        )
    low, since = (2, "4.19") if versions.at_least(version, "4.19") else (3, "4.18")
    if not low <= count <= 5:
        raise ApiError(
            400,
            f"there should be {low}-5 dedicated control plane nodes for high availability mode Full in openshift version {since} or newer",
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
    if kind == "OpenShiftSDN" and versions.at_least(version, "4.15"):
        raise ApiError(400, f"Openshift version {version} is not supported for OpenShiftSDN NetworkType")


def release_version(version: str, sno: bool, platform: str) -> None:
    """Refuse versions that do not support the request, regardless of the available releases."""
    if sno and not versions.at_least(version, "4.8"):
        reason = "Single node OpenShift is supported for version 4.8 and above"
        raise ApiError(400, f"Invalid OCP version ({version}) for Single node, {reason}")
    if platform == "nutanix" and not versions.at_least(version, "4.11"):
        raise ApiError(
            400,
            f"Invalid OCP version ({version}) for Nutanix, Nutanix integration is supported for version 4.11 and above",
        )
