"""Nodes on a platform with an external cloud provider wait for it with a taint; with placeholder credentials it never does.

Then the installer and the controller remove the taint, as upstream's do.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ...plugins.module_utils.documents import load_yaml
from ...plugins.module_utils.releases import by_version
from ...plugins.module_utils.vocabulary import UNINITIALIZED
from ..cluster.cloud import INTEGRATED, credentials
from ..cluster.facts import overrides
from ..cluster.kube import KubeClient, Object

AGENT_BASED = "agent-installer"
log = logging.getLogger("taints")


def platform_of(cluster: Mapping[str, Any]) -> str:
    """Return the type of the platform of a cluster of the service."""
    return str((cluster.get("platform") or {}).get("type", ""))


def platform_in(install_config: str) -> str:
    """Return the type of the platform in an install-config, empty if it has none.

    install_config: YAML, may be empty. Raises `ValueError` for one that is not YAML.
    """
    return next(iter((load_yaml(install_config, name="install-config") or {}).get("platform") or ()), "")


def must_go(
    platform: str, version: str, invoker: str, cluster: Mapping[str, Any] | None, install_config: str = ""
) -> bool:
    """Return whether no cloud provider will remove the taints.

    `cluster` is the service's; without it (None) the cluster's own install-config decides whether there are credentials.
    """
    if platform == "vsphere" and invoker == AGENT_BASED and by_version(version).vsphere_credentials:
        if cluster is None:
            return not credentials(load_yaml(install_config or "{}", name="install-config"), ["server"])
        return not credentials(overrides(cluster))
    return platform in INTEGRATED


def remove(kube: KubeClient, node: Object) -> None:
    """Remove the taint from a node that has it.

    node: of the API, as read last. The patch fails with a `KubeError` if the taints have changed since.
    """
    name = node["metadata"]["name"]
    found = [
        index
        for index, taint in enumerate((node.get("spec") or {}).get("taints") or ())
        if taint["key"] == UNINITIALIZED
    ]
    if not found:
        log.info("No uninitialized taint found for node %s", name)
        return
    log.info("Removing uninitialized taint on node %s", name)
    patch = [{"op": "remove", "path": f"/spec/taints/{found[0]}"}]
    kube.patch(f"/api/v1/nodes/{name}", patch, "application/json-patch+json")
    log.info("Removed taint from node %s", name)
