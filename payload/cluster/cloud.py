"""Platforms with a cloud provider outside of Kubernetes: their nodes start with a taint, which the provider removes if it can log in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...plugins.module_utils.vocabulary import UNINITIALIZED as UNINITIALIZED
from .facts import ClusterFacts

INTEGRATED = ("nutanix", "vsphere")
# The service's placeholders for missing values.
PLACEHOLDERS = {"user": "usernameplaceholder", "password": "passwordplaceholder", "server": "vcenterplaceholder"}


def waited_for(facts: ClusterFacts) -> bool:
    """Return whether nodes start with the taint: on an integrated platform, or an external one with a cloud controller manager."""
    return facts["platform"] in INTEGRATED or facts["external"].get("cloud_controller_manager") == "External"


def tainted(node: Mapping[str, Any]) -> bool:
    """Return whether a node still waits for its cloud provider."""
    return any(taint["key"] == UNINITIALIZED for taint in (node.get("spec") or {}).get("taints") or ())


def credentials(config: Mapping[str, Any], needed: Iterable[str] = tuple(PLACEHOLDERS)) -> bool:
    """Return whether an install-config, or its overrides, have the credentials for vSphere."""
    centers = ((config.get("platform") or {}).get("vsphere") or {}).get("vcenters") or [{}]
    return all(centers[0].get(name) not in (None, "", PLACEHOLDERS[name]) for name in needed)
