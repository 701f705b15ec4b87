"""Comparison of OpenShift versions, and what their releases have.

The numbers before the first dash count. An invalid version is older than all others.
"""

from __future__ import annotations

import functools
import re

from ...plugins.module_utils.releases import OLDEST, ReleaseProfile, by_version
from .objects import Cluster

_VERSION = re.compile(r"v?\d+(\.\d+)*([-+][0-9A-Za-z.+~-]+)?")


@functools.lru_cache(maxsize=1024)
def numbers(version: str) -> tuple[int, int, int] | None:
    """Return major, minor and patch; missing ones are 0. None if the text is not a version.

    Text from the first dash on (`-rc.1`, `-ec.0`) is ignored, so candidates equal their release. A leading `v` is
    allowed; a longer text than 100 characters is not a version.
    """
    if len(version) > 100 or not _VERSION.fullmatch(version):
        return None
    found = [*(int(part) for part in re.findall(r"\d+", version.partition("-")[0])), 0, 0]
    return found[0], found[1], found[2]


def at_least(version: str, least: str) -> bool:
    """Return whether a version is the given one or newer; False if either is not a version."""
    found, wanted = numbers(version), numbers(least)
    return found is not None and wanted is not None and found >= wanted


def profile(version: str) -> ReleaseProfile:
    """Return what the release of a version has: the oldest that is known for older ones and for what is not a version."""
    found = numbers(version)
    return by_version(f"{found[0]}.{found[1]}") if found else OLDEST


def same_minor(version: str, other: str) -> bool:
    """Return whether two versions have the same first two numbers; False if either is not a version."""
    found, wanted = numbers(version), numbers(other)
    return found is not None and wanted is not None and found[:2] == wanted[:2]


def of_release(cluster: Cluster) -> str:
    """Return the version of a cluster's release image, which the installed cluster has; that of the request while the image is unread.

    The two differ when a build of openshift-install with a version of its own registered the cluster.
    """
    return cluster.get("_release_version") or cluster.get("openshift_version", "")
