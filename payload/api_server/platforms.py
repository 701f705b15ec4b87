"""Platform and networking of a cluster, from what users request and leave unset, by upstream's rules.

`user_managed_networking` and the platform depend on each other. Source: `internal/provider/platform.go` of assisted-service.
"""

from __future__ import annotations

from .errors import ApiError
from .facts import control_planes
from .objects import Cluster, Platform

_BARE_METAL, _NONE, _EXTERNAL = "baremetal", "none", "external"
#: Platforms with their own networking, and those of architectures without cluster-managed networking.
_USERS_ONLY = frozenset({_NONE, _EXTERNAL})
_CLUSTERS_ONLY = frozenset({_BARE_METAL, "nutanix"})
_USERS_CPUS = frozenset({"s390x", "ppc64le"})


def _refuse(text: str) -> ApiError:
    return ApiError(400, text)


def _external(platform: Platform, before: Platform) -> None:
    """Return the settings of a requested external platform, merged with those of the current one."""
    kind, external = platform["type"], platform.get("external") or {}
    if kind == _EXTERNAL and before.get("type") != _EXTERNAL:
        if platform.get("external") is None:
            raise _refuse("External setting must be set when using platform type external")
        if external.get("platform_name") is None:
            raise _refuse("Platform name must be set to a non-empty string when using platform type external")
    elif kind != _EXTERNAL and any(value is not None for value in external.values()):
        raise _refuse("External settings can only be set with external platform type")
    merged = {**(before.get("external") or {}), **external}
    if (
        kind == _EXTERNAL
        and merged.get("platform_name") == "oci"
        and merged.get("cloud_controller_manager") != "External"
    ):
        raise _refuse("Cloud controller manager must be enabled when using oci external integration")


def _check(platform: Platform | None, managed: bool | None, cluster: Cluster | None) -> None:
    if platform is None:
        return
    kind = platform["type"]
    before: Platform = (cluster or {}).get("platform") or {}
    state = managed
    if (
        managed is None
        and cluster is not None
        and control_planes(cluster) >= 3
        and {before.get("type"), kind} != {_BARE_METAL, _NONE}
    ):
        state = bool(cluster.get("user_managed_networking"))
    if state is not None and ((not state and kind in _USERS_ONLY) or (state and kind in _CLUSTERS_ONLY)):
        raise _refuse(f"Can't set {kind} platform with user-managed-networking {'enabled' if state else 'disabled'}")
    _external(platform, before)


def _with_defaults(platform: Platform) -> Platform:
    if platform["type"] != _EXTERNAL:
        return platform
    return {**platform, "external": {"cloud_controller_manager": "", **(platform.get("external") or {})}}


def for_new(platform: Platform | None, managed: bool | None, count: int, cpu: str) -> tuple[Platform, bool]:
    """Return platform and user-managed networking of a new cluster; ApiError 400 if they are incompatible.

    None: the request leaves it unset. `count` is the number of control-plane nodes: a single node has the platform
    `none` unless it asks for an external one, and some architectures always have user-managed networking. Texts are
    upstream's.
    """
    _check(platform, managed, None)
    platform = platform and _with_defaults(platform)
    kind = platform and platform["type"]
    if cpu in _USERS_CPUS:
        if managed is False:
            raise _refuse(f"Can't disable User Managed Networking on {cpu} architecture")
        if kind is not None and kind not in _USERS_ONLY:
            raise _refuse(f"Can't set {kind} platform on {cpu} architecture")
        return (platform if platform and kind == _EXTERNAL else {"type": _NONE}), True
    if platform and kind not in (_BARE_METAL, *_USERS_ONLY):
        return platform, bool(managed)
    if count == 1:
        if kind == _BARE_METAL:
            raise _refuse(f"Can't set {kind} platform on single node OpenShift")
        if managed is False:
            raise _refuse("Can't disable user-managed-networking on single node OpenShift")
        return platform or {"type": _NONE}, True
    if kind in (None, _BARE_METAL) and not managed:
        return {"type": _BARE_METAL}, False
    return platform or {"type": _NONE}, True


def for_update(
    platform: Platform | None, managed: bool | None, cluster: Cluster
) -> tuple[Platform | None, bool | None]:
    """Return the changes of platform and user-managed networking by an update; None for what stays as it is.

    None as argument: the request leaves it unset. Each of the two may change the other. ApiError 400, with upstream's
    texts, if the result is not allowed for the cluster.
    """
    if platform is None and managed is None:
        return None, None
    _check(platform, managed, cluster)
    platform = platform and _with_defaults(platform)
    kind, before = platform and platform["type"], (cluster.get("platform") or {}).get("type")
    if (kind or before) not in _USERS_ONLY | _CLUSTERS_ONLY:
        return platform, managed
    if before == _BARE_METAL:
        if not managed and kind in (None, _BARE_METAL):
            return None, None
        return ({"type": _NONE}, True) if kind in (None, _NONE) else (platform, managed)
    if before in _USERS_ONLY:
        if managed is not False and (kind is None or kind in _USERS_ONLY):
            return (None if kind == before == _NONE else platform), None
        if control_planes(cluster) == 1:
            raise _refuse(
                "disabling User Managed Networking or setting platform different than none or oci platforms is not allowed in "
                "single node Openshift"
            )
        if not managed and kind in (None, _BARE_METAL):
            return {"type": _BARE_METAL}, False
    elif platform is None and managed and before in _CLUSTERS_ONLY:
        raise _refuse(f"User-managed-networking is not supported with platform {before}")
    return platform, managed
