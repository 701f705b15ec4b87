"""Validation of requests beyond the API description, with upstream's messages.

Every function raises ApiError, 400 unless noted otherwise. Source: `internal/bminventory`, `internal/cluster/validations`,
`internal/network`, `internal/manifests` and `pkg/validations` of assisted-service.
"""

from __future__ import annotations

from .base import downloadable, go_list, raise_all
from .names import cluster_name, dns_name, hostname, labels, manifest_name, tags
from .networks import networks, networks_strict, subnets, vips, vips_in_use
from .settings import (
    disk_encryption,
    ignition_endpoint,
    kernel_arguments,
    ntp_sources,
    proxies,
    pull_secret,
    ssh_keys,
    trust_bundle,
)
from .topology import control_plane, network_type, release_version, single_node

__all__ = [
    "cluster_name",
    "control_plane",
    "disk_encryption",
    "dns_name",
    "downloadable",
    "go_list",
    "hostname",
    "ignition_endpoint",
    "kernel_arguments",
    "labels",
    "manifest_name",
    "network_type",
    "networks",
    "networks_strict",
    "ntp_sources",
    "proxies",
    "pull_secret",
    "raise_all",
    "release_version",
    "single_node",
    "ssh_keys",
    "subnets",
    "tags",
    "trust_bundle",
    "vips",
    "vips_in_use",
]
