"""registerCluster: the manifests of an installation become a cluster of the assisted service.

Both the client on the rendezvous host and a lab that defines its cluster over REST do it. It can run again: what exists is kept.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from ..documents import DocumentError, load_json, load_yaml_all, read_file
from ..errors import LabError
from ..vocabulary import INSTALL_CONFIG_OVERRIDES, PLATFORMS

_PLATFORMS = {kind: name for name, kind in PLATFORMS.items()}


class ClientError(LabError):
    """The command failed; the message names the file and the valid value."""


class Api(Protocol):
    """The service's REST API, for a user."""

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer: JSON, bytes if it is not JSON, or None if it is empty; raises its own error otherwise."""


def load(path: Path) -> list[dict[str, Any]]:
    """Return the documents of a YAML file; ClientError when it is missing or invalid.

    Empty documents are not in the result. Every document must be an object. The error names the path, and line and
    column if it is not YAML.
    """
    try:
        found = load_yaml_all(read_file(path), name=str(path))
    except OSError as err:
        raise ClientError(f"{path}: {err.strerror}") from None
    except DocumentError as err:
        raise ClientError(f"{path} is not YAML: line {err.line}, column {err.column}: {err.problem}") from None
    if not all(isinstance(document, dict) for document in found):
        raise ClientError(f"{path}: every document should be an object")
    return found


def first_document(folder: Path, name: str, kind: str) -> dict[str, Any]:
    """Return the first document of a kind in a file of the manifests; ClientError if there is none."""
    for document in load(folder / name):
        if document.get("kind") == kind:
            return document
    raise ClientError(f"{folder / name} has no {kind}")


def pull_secret(folder: Path) -> str:
    """Return the pull secret's JSON text from `pull-secret.yaml`; ClientError if it has none.

    `stringData` is what openshift-install writes; `data` (base64) is the other form that Kubernetes has. The JSON is
    validated by the service.
    """
    secret = first_document(folder, "pull-secret.yaml", "Secret")
    text = (secret.get("stringData") or {}).get(".dockerconfigjson")
    if text is None and ".dockerconfigjson" in (secret.get("data") or {}):
        text = base64.b64decode(secret["data"][".dockerconfigjson"]).decode()
    if not text:
        raise ClientError(f"{folder / 'pull-secret.yaml'}: stringData[.dockerconfigjson] is missing")
    return str(text)


def cluster_params(folder: Path) -> dict[str, Any]:
    """Return `cluster-create-params` from the manifests that the ISO brings.

    They are AgentClusterInstall, ClusterDeployment, ClusterImageSet, InfraEnv, the pull secret and, optionally,
    `operators.yaml`. Absent fields are left out, for the service's defaults. The version is the image set's name
    without `openshift-`. ClientError if a manifest is missing or the number of control-plane nodes is not 1 or more.
    """
    install = first_document(folder, "agent-cluster-install.yaml", "AgentClusterInstall")
    deployment = first_document(folder, "cluster-deployment.yaml", "ClusterDeployment")
    images = first_document(folder, "cluster-image-set.yaml", "ClusterImageSet")
    infra = first_document(folder, "infraenv.yaml", "InfraEnv")
    spec, names = install.get("spec") or {}, deployment.get("spec") or {}
    networking = spec.get("networking") or {}
    agents = spec.get("provisionRequirements") or {}
    masters = int(agents.get("controlPlaneAgents") or 0)
    if masters < 1:
        raise ClientError(
            f"{folder / 'agent-cluster-install.yaml'}: spec.provisionRequirements.controlPlaneAgents should be 1 or more"
        )
    image = str((images.get("spec") or {}).get("releaseImage") or "")
    version = str((images.get("metadata") or {}).get("name") or "").removeprefix("openshift-")
    params: dict[str, Any] = {
        "name": names.get("clusterName"),
        "base_dns_domain": names.get("baseDomain"),
        "openshift_version": version,
        "ocp_release_image": image,
        "pull_secret": pull_secret(folder),
        "high_availability_mode": "None" if masters == 1 and not agents.get("workerAgents") else None,
        "control_plane_count": masters,
        "vip_dhcp_allocation": False,
        "ssh_public_key": spec.get("sshPublicKey"),
        "user_managed_networking": bool(networking.get("userManagedNetworking")) or masters == 1,
        "cpu_architecture": (infra.get("spec") or {}).get("cpuArchitecture") or "x86_64",
        "cluster_networks": [
            {"cidr": net["cidr"], "host_prefix": net.get("hostPrefix")}
            for net in networking.get("clusterNetwork") or []
        ],
        "service_networks": [{"cidr": cidr} for cidr in networking.get("serviceNetwork") or []],
        "machine_networks": [{"cidr": net["cidr"]} for net in networking.get("machineNetwork") or []],
        "network_type": networking.get("networkType"),
        "hyperthreading": _hyperthreading(spec),
    }
    kind = spec.get("platformType")
    if kind:
        platform: dict[str, Any] = {"type": _PLATFORMS.get(kind, str(kind).lower())}
        external = spec.get("external") or {}
        if platform["type"] == "external":
            platform["external"] = {
                "platform_name": external.get("platformName"),
                "cloud_controller_manager": external.get("cloudControllerManager", ""),
            }
        params["platform"] = platform
    for key, many, single in (("api_vips", "apiVIPs", "apiVIP"), ("ingress_vips", "ingressVIPs", "ingressVIP")):
        vips = spec.get(many) or ([spec[single]] if spec.get(single) else [])
        if vips:
            params[key] = [{"ip": vip} for vip in vips]
    proxy = spec.get("proxy") or {}
    params |= {
        "http_proxy": proxy.get("httpProxy"),
        "https_proxy": proxy.get("httpsProxy"),
        "no_proxy": proxy.get("noProxy"),
    }
    params["schedulable_masters"] = bool(spec.get("mastersSchedulable"))
    encryption = spec.get("diskEncryption") or {}
    if encryption:
        params["disk_encryption"] = {
            "enable_on": encryption.get("enableOn", "none"),
            "mode": encryption.get("mode", "tpmv2"),
            **({"tang_servers": encryption["tangServers"]} if encryption.get("tangServers") else {}),
        }
    if (spec.get("loadBalancer") or {}).get("type"):
        params["load_balancer"] = {
            "type": {"UserManaged": "user-managed"}.get(spec["loadBalancer"]["type"], "cluster-managed")
        }
    operators = folder / "operators.yaml"
    if operators.is_file():
        params["olm_operators"] = [
            {"name": str(document.get("name", "")), "properties": json.dumps(document.get("properties") or {})}
            for document in load(operators)
        ]
    return {key: value for key, value in params.items() if value not in (None, [])}


def _hyperthreading(spec: Mapping[str, Any]) -> str | None:
    """Which pools have it, as `masters,workers` or `none`; None when the manifest does not set it."""
    workers = [pool for pool in spec.get("compute") or [] if pool and pool.get("name") == "worker"]
    pools = {"masters": [spec.get("controlPlane") or {}], "arbiters": [spec.get("arbiter") or {}], "workers": workers}
    if not any(pool.get("hyperthreading") for members in pools.values() for pool in members):
        return None
    on = [name for name, members in pools.items() if any(pool.get("hyperthreading") == "Enabled" for pool in members)]
    return ",".join(on) or "none"


def register_cluster(api: Api, folder: Path, extra: Mapping[str, bytes], report: Callable[[str], None]) -> str:
    """Register the cluster with its overrides and extra manifests; return its id.

    folder: the manifests; extra: file name -> content of further ones. A cluster that exists is kept, with overrides and
    manifests completed. The overrides are an annotation of the AgentClusterInstall. ClientError if an extra manifest exists with
    different content; what `api` raises if a call fails.
    """
    known = api.call("GET", "/clusters")
    if known:
        cluster = known[0]
        report(f"Cluster {cluster['id']} is registered already")
    else:
        cluster = api.call("POST", "/clusters", cluster_params(folder))
        report(f"Registered cluster with id: {cluster['id']}")
    annotations = (
        first_document(folder, "agent-cluster-install.yaml", "AgentClusterInstall").get("metadata") or {}
    ).get("annotations") or {}
    overrides = annotations.get(INSTALL_CONFIG_OVERRIDES)
    if overrides:
        found = api.call("GET", f"/clusters/{cluster['id']}").get("install_config_overrides")
        if _json(overrides) != _json(found or "null"):
            api.call("PATCH", f"/clusters/{cluster['id']}/install-config", overrides)
            report("Updated the cluster's install-config overrides")
    _extra_manifests(api, cluster["id"], extra, report)
    return str(cluster["id"])


def _json(text: str) -> Any:
    try:
        return load_json(text, name=INSTALL_CONFIG_OVERRIDES)
    except ValueError:
        raise ClientError(f"annotation {INSTALL_CONFIG_OVERRIDES} of the AgentClusterInstall is not JSON") from None


def _extra_manifests(api: Api, cluster_id: str, extra: Mapping[str, bytes], report: Callable[[str], None]) -> None:
    if not extra:
        return
    known = {entry["file_name"]: entry for entry in api.call("GET", f"/clusters/{cluster_id}/manifests") or []}
    for name, content in sorted(extra.items()):
        if name in known:
            query = f"folder={known[name]['folder']}&file_name={name}"
            if api.call("GET", f"/clusters/{cluster_id}/manifests/files?{query}") != content:
                raise ClientError(f"manifest {name} already exists with different content")
            continue
        body = {"folder": "openshift", "file_name": name, "content": base64.b64encode(content).decode()}
        api.call("POST", f"/clusters/{cluster_id}/manifests", body)
        report(f"Added manifest {name}")
