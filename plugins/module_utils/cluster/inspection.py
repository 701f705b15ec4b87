"""What `node-joiner` reads from an installed cluster before it makes a node image (openshift/installer `pkg/asset/agent/joiner/clusterinfo.go`)."""

from __future__ import annotations

import base64
from typing import Any

from ..documents import load_json
from ..errors import ClusterError
from ..ignition.resources import read_data_url
from ..installer.joiner.cluster import ClusterInfo, Endpoint, Member
from ..vocabulary import ClusterNames
from . import inputs, shapes
from .client import CONFIG, MACHINE_CONFIG, ClusterClient

_CHRONY = "/etc/chrony.conf"
Object = dict[str, Any]


def inspect(kube: ClusterClient) -> ClusterInfo:
    """Return what a node image takes from the cluster of a kubeconfig.

    Raises `ClusterError` for an API that does not answer, a cluster that is not installed yet, and for objects without what
    the image needs.
    """
    version, config = kube.cluster_version(), inputs.install_config(kube)
    release = _installed(version)
    name, domain = str(config["metadata"]["name"]), str(config["baseDomain"])
    ssh, fips = _machine_config(kube, "99-worker-ssh"), _machine_config(kube, "99-worker-fips")
    proxy = (kube.find(f"{CONFIG}/proxies/cluster") or {}).get("status") or {}
    return {
        "cluster_id": str((version.get("spec") or {}).get("clusterID") or ""),
        "name": name,
        "api": ClusterNames.of(f"{name}.{domain.removesuffix('.')}").api,
        "version": release["version"],
        "release_image": release["image"],
        "pull_secret": inputs.pull_secret(kube),
        "trust_bundle": inputs.text(
            kube, "/api/v1/namespaces/openshift-config/configmaps/user-ca-bundle", "ca-bundle.crt"
        ),
        "proxy": {field: str(proxy.get(field) or "") for field in ("httpProxy", "httpsProxy", "noProxy")},
        "architecture": architecture(kube),
        "image_sources": inputs.image_sources(kube),
        "platform": _platform(kube),
        "ssh_key": inputs.ssh_key(ssh),
        "endpoint": _endpoint(kube),
        "fips": bool(fips.get("fips")),
        "chrony": _chrony(_machine_config(kube, "50-workers-chrony-configuration")),
    }


def members(kube: ClusterClient) -> list[Member]:
    """Return the nodes of the cluster with their addresses, names among them. Raises `ClusterError`."""
    return [
        {
            "name": str(node["metadata"]["name"]),
            "addresses": [str(one["address"]) for one in (node.get("status") or {}).get("addresses") or []],
        }
        for node in kube.nodes()
    ]


def architecture(kube: ClusterClient) -> str:
    """Return the architecture of the control plane, as Go names it. Raises `ClusterError`."""
    for node in kube.nodes():
        if "node-role.kubernetes.io/master" in (node["metadata"].get("labels") or {}):
            found = ((node.get("status") or {}).get("nodeInfo") or {}).get("architecture")
            if found:
                return str(found)
    raise ClusterError("unable to determine target cluster architecture")


def _installed(version: Object) -> dict[str, str]:
    """The release that a ClusterVersion has installed."""
    history = (version.get("status") or {}).get("history") or []
    done = next((one for one in history if one.get("state") == "Completed"), None)
    if done is None:
        raise ClusterError(
            "the cluster is not installed yet: its ClusterVersion has no completed release. Nodes join an installed cluster"
        )
    return {"version": str(done["version"]), "image": str(done["image"])}


def _platform(kube: ClusterClient) -> str:
    infrastructure = kube.infrastructure()
    spec = (infrastructure.get("spec") or {}).get("platformSpec") or {}
    status = (infrastructure.get("status") or {}).get("platformStatus") or {}
    return str(spec.get("type") or status.get("type") or "")


def _machine_config(kube: ClusterClient, name: str) -> Object:
    """The spec of a MachineConfig; {} when there is none."""
    return (kube.find(f"{MACHINE_CONFIG}/machineconfigs/{name}", shapes.MACHINE_CONFIG) or {}).get("spec") or {}


def _chrony(spec: Object) -> str | None:
    for entry in ((spec.get("config") or {}).get("storage") or {}).get("files") or []:
        contents = entry.get("contents") or {}
        if entry.get("path") == _CHRONY and contents.get("source"):
            return read_data_url(contents["source"], contents.get("compression")).decode()
    return None


def _endpoint(kube: ClusterClient) -> Endpoint | None:
    """Where new workers get their config, from the Secret that machines of the cluster boot with; None without one."""
    encoded = inputs.text(kube, "/api/v1/namespaces/openshift-machine-api/secrets/worker-user-data-managed", "userData")
    if not encoded:
        return None
    try:
        ignition = load_json(base64.b64decode(encoded), name="worker-user-data-managed")["ignition"]
        [merged, *__] = ignition["config"]["merge"]
        [authority, *__] = ignition["security"]["tls"]["certificateAuthorities"]
        pem = read_data_url(authority["source"], authority.get("compression"))
        return {"url": str(merged["source"]), "ca_certificate": base64.b64encode(pem).decode()}
    except (ValueError, LookupError, TypeError) as error:
        raise ClusterError(
            f"Secret openshift-machine-api/worker-user-data-managed: userData is not the Ignition of a worker: {error!r}"
        ) from error
