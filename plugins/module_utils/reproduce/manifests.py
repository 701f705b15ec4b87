"""The manifests of an agent image, as `agent-gather` keeps them, in the form of install-config and agent-config.

An image has no install-config any more: the cluster is described by AgentClusterInstall and ClusterDeployment, the hosts by
the NMStateConfigs, the rendezvous host by `rendezvous-host.env`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..documents import DocumentError, load_json
from ..vocabulary import INSTALL_CONFIG_OVERRIDES, PLATFORMS

_PLATFORMS = {kind: name for name, kind in PLATFORMS.items()}
_NODE_ZERO = re.compile(r"^NODE_ZERO_IP=(\S+)$", re.M)


def install_config(install: Mapping[str, object], deployment: Mapping[str, object]) -> dict[str, Any]:
    """Return what the manifests have of an install-config. Fields of a wrong type count as missing.

    install: the AgentClusterInstall; deployment: the ClusterDeployment, {} for none.
    """
    spec, cluster = _map(install, "spec"), _map(deployment, "spec")
    counts = _map(spec, "provisionRequirements")
    name = cluster.get("clusterName") or _map(install, "metadata").get("name")
    vips = {key: spec[key] for key in ("apiVIPs", "ingressVIPs") if isinstance(spec.get(key), list)}
    for single in ("apiVIP", "ingressVIP"):
        if spec.get(single) and f"{single}s" not in vips:
            vips[f"{single}s"] = [spec[single]]
    masters = counts.get("controlPlaneAgents")
    platform = _PLATFORMS.get(str(spec.get("platformType")), "none" if masters == 1 else "baremetal")
    arbiters = {"arbiter": {"replicas": counts["arbiterAgents"]}} if counts.get("arbiterAgents") else {}
    return {
        **_overrides(install),
        "metadata": {"name": name},
        "baseDomain": cluster.get("baseDomain"),
        "controlPlane": {"replicas": masters},
        **arbiters,
        "compute": [{"replicas": counts.get("workerAgents", 0)}],
        "networking": {key: value for key, value in _map(spec, "networking").items() if key != "userManagedNetworking"},
        "platform": {platform: vips},
    }


def agent_config(hosts: Iterable[Mapping[str, object]], environment: str) -> dict[str, Any]:
    """Return what the manifests have of an agent-config: hosts without names and roles, and the rendezvous host's address.

    hosts: the NMStateConfigs; environment: text of rendezvous-host.env.
    """
    found = [
        {"interfaces": spec.get("interfaces"), "networkConfig": spec.get("config")}
        for spec in (_map(host, "spec") for host in hosts)
    ]
    address = _NODE_ZERO.search(environment)
    return {"hosts": found, **({"rendezvousIP": address[1]} if address else {})}


def _overrides(install: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of install-config that the service gets as an annotation; networks and platform are in the manifest itself."""
    text = _map(_map(install, "metadata"), "annotations").get(INSTALL_CONFIG_OVERRIDES)
    try:
        found = load_json(text, name=INSTALL_CONFIG_OVERRIDES) if isinstance(text, str) else {}
    except DocumentError:
        return {}
    return (
        {key: value for key, value in found.items() if key not in ("networking", "platform")}
        if isinstance(found, dict)
        else {}
    )


def _map(value: Mapping[str, object], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
