"""Platforms with a cloud provider outside of Kubernetes: their nodes begin with a taint, which the provider removes if it can log in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
PLATFORMS = ("nutanix", "vsphere")
# What the service writes where it was told nothing.
PLACEHOLDERS = {"user": "usernameplaceholder", "password": "passwordplaceholder", "server": "vcenterplaceholder"}


def tainted(node: Mapping[str, Any]) -> bool:
    """Tell whether a node still waits for its cloud provider."""
    return any(taint["key"] == UNINITIALIZED for taint in (node.get("spec") or {}).get("taints") or ())


def credentials(config: Mapping[str, Any], needed: Iterable[str] = tuple(PLACEHOLDERS)) -> bool:
    """Tell whether an install-config, or what is laid over one, has what it takes to log in to vSphere."""
    centers = ((config.get("platform") or {}).get("vsphere") or {}).get("vcenters") or [{}]
    return all(centers[0].get(name) not in (None, "", PLACEHOLDERS[name]) for name in needed)
