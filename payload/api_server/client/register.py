"""registerCluster, registerInfraEnv and importCluster: manifests of the ISO become objects of the service.

Every command can run again: existing objects are kept.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....plugins.module_utils.documents import DocumentError, load_json, load_yaml_all, read_file
from ....plugins.module_utils.vocabulary import PLATFORMS
from .rest import Rest, RestError

LOG = logging.getLogger("agent-installer-client")

OVERRIDES = "agent-install.openshift.io/install-config-overrides"
_PLATFORMS = {kind: name for name, kind in PLATFORMS.items()}
#: Timeout until a newly registered cluster is listed, in seconds.
_SHOW_UP = 60.0


class ClientError(Exception):
    """The command failed; the message names the file and the valid value.

    `__main__.main` logs it and exits with 1.
    """


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


def one(folder: Path, name: str, kind: str) -> dict[str, Any]:
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
    secret = one(folder, "pull-secret.yaml", "Secret")
    text = (secret.get("stringData") or {}).get(".dockerconfigjson")
    if text is None and ".dockerconfigjson" in (secret.get("data") or {}):
        text = base64.b64decode(secret["data"][".dockerconfigjson"]).decode()
    if not text:
        raise ClientError(f"{folder / 'pull-secret.yaml'}: stringData[.dockerconfigjson] is missing")
    return str(text)


def cluster_params(folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return `cluster-create-params` from the manifests that the ISO brings.

    They are AgentClusterInstall, ClusterDeployment, ClusterImageSet, InfraEnv, the pull secret and, optionally,
    `operators.yaml`. Absent fields are left out, for the service's defaults. The version is the image set's name
    without `openshift-`. ClientError if a manifest is missing or the number of control-plane nodes is not 1 or more.
    """
    install = one(folder, "agent-cluster-install.yaml", "AgentClusterInstall")
    deployment = one(folder, "cluster-deployment.yaml", "ClusterDeployment")
    images = one(folder, "cluster-image-set.yaml", "ClusterImageSet")
    infra = one(folder, "infraenv.yaml", "InfraEnv")
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


def register_cluster(rest: Rest, folder: Path, extra: Path, environment: Mapping[str, str], client_config: Path) -> str:
    """Register the cluster with its overrides and extra manifests; return its id.

    A cluster that exists is kept, with overrides and manifests completed. The overrides are an annotation of the
    AgentClusterInstall. `client_config` gets the line `CLUSTER_ID=<id>` for other units. ClientError if an extra
    manifest exists with different content; RestError if a call fails.
    """
    known = rest.call("GET", "/clusters")
    if known:
        cluster = known[0]
        LOG.info("Cluster %s is registered already", cluster["id"])
    else:
        cluster = rest.call("POST", "/clusters", cluster_params(folder, environment))
        LOG.info("Registered cluster with id: %s", cluster["id"])
    annotations = (one(folder, "agent-cluster-install.yaml", "AgentClusterInstall").get("metadata") or {}).get(
        "annotations"
    ) or {}
    overrides = annotations.get(OVERRIDES)
    if overrides:
        found = rest.call("GET", f"/clusters/{cluster['id']}").get("install_config_overrides")
        if _json(overrides) != _json(found or "null"):
            rest.call("PATCH", f"/clusters/{cluster['id']}/install-config", overrides)
            LOG.info("Updated the cluster's install-config overrides")
    _extra_manifests(rest, cluster["id"], extra)
    _write(client_config, f"CLUSTER_ID={cluster['id']}\n")
    return str(cluster["id"])


def _json(text: str) -> Any:
    try:
        return load_json(text, name=OVERRIDES)
    except ValueError:
        raise ClientError(f"annotation {OVERRIDES} of the AgentClusterInstall is not JSON") from None


def _extra_manifests(rest: Rest, cluster_id: str, extra: Path) -> None:
    if not extra.is_dir():
        return
    known = {entry["file_name"]: entry for entry in rest.call("GET", f"/clusters/{cluster_id}/manifests") or []}
    for path in sorted(path for path in extra.iterdir() if path.is_file() and path.suffix in (".yaml", ".yml")):
        content = path.read_bytes()
        if path.name in known:
            query = f"folder={known[path.name]['folder']}&file_name={path.name}"
            if rest.call("GET", f"/clusters/{cluster_id}/manifests/files?{query}") != content:
                raise ClientError(f"manifest {path.name} already exists with different content")
            continue
        body = {"folder": "openshift", "file_name": path.name, "content": base64.b64encode(content).decode()}
        rest.call("POST", f"/clusters/{cluster_id}/manifests", body)
        LOG.info("Added manifest %s", path.name)


def infra_env_params(folder: Path, environment: Mapping[str, str], cluster_id: str | None) -> dict[str, Any]:
    """Return `infra-env-create-params` from the manifests that the ISO brings.

    They are InfraEnv, pull secret and NMStateConfigs. `cluster_id` None registers it unbound. The type of the image is
    that of `IMAGE_TYPE_ISO`, `full-iso` by default. Absent fields are left out.
    """
    infra = one(folder, "infraenv.yaml", "InfraEnv")
    spec = infra.get("spec") or {}
    proxy = spec.get("proxy") or {}
    sources = spec.get("additionalNTPSources") or []
    params: dict[str, Any] = {
        "name": (infra.get("metadata") or {}).get("name"),
        "pull_secret": pull_secret(folder),
        "ssh_authorized_key": spec.get("sshAuthorizedKey"),
        "cpu_architecture": spec.get("cpuArchitecture") or "x86_64",
        "image_type": environment.get("IMAGE_TYPE_ISO") or "full-iso",
        "additional_ntp_sources": ",".join(sources) or None,
        "additional_trust_bundle": spec.get("additionalTrustBundle"),
        "cluster_id": cluster_id,
        "ignition_config_override": spec.get("ignitionConfigOverride") or None,
    }
    if proxy:
        params["proxy"] = {
            key: proxy[name]
            for key, name in (("http_proxy", "httpProxy"), ("https_proxy", "httpsProxy"), ("no_proxy", "noProxy"))
            if proxy.get(name)
        }
    if spec.get("kernelArguments"):
        params["kernel_arguments"] = [
            {"operation": str(entry.get("operation", "append")).lower(), "value": entry.get("value", "")}
            for entry in spec["kernelArguments"]
        ]
    params["static_network_config"] = static_networks(folder, infra)
    return {key: value for key, value in params.items() if value not in (None, [])}


def static_networks(folder: Path, infra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return `host_static_network_config`: an entry for every NMStateConfig of `nmstateconfig.yaml`.

    Entries have `network_yaml` (text) and `mac_interface_map`. Empty without the file. ClientError if it is not valid
    or its labels are not those that the InfraEnv selects: the service would give the host no network.
    """
    import yaml

    from ....plugins.module_utils.nmstate import NmstateError
    from ....plugins.module_utils.nmstate import load as load_nmstate

    path = folder / "nmstateconfig.yaml"
    if not path.is_file():
        return []
    selector = ((infra.get("spec") or {}).get("nmStateConfigLabelSelector") or {}).get("matchLabels") or {}
    found = []
    for text in re.split(r"(?m)^---.*$", path.read_text(encoding="utf-8")):
        try:
            # YAML 1.2: 1.1 reads a MAC address of digits as a number.
            document = load_nmstate(text) if text.strip() else None
        except NmstateError as err:
            raise ClientError(f"{path}: {err}") from None
        if document is None:
            continue
        metadata, spec = document.get("metadata") or {}, document.get("spec") or {}
        labels = metadata.get("labels") or {}
        if any(labels.get(name) != value for name, value in selector.items()) or not selector:
            name, wanted = metadata.get("name"), json.dumps(selector)
            raise ClientError(f"{path}: labels of NMStateConfig {name} should match the InfraEnv's selector {wanted}")
        pairs = [
            {"mac_address": str(nic.get("macAddress", "")), "logical_nic_name": str(nic.get("name", ""))}
            for nic in spec.get("interfaces") or []
        ]
        found.append({"network_yaml": yaml.safe_dump(spec.get("config") or {}), "mac_interface_map": pairs})
    return found


def register_infra_env(rest: Rest, folder: Path, environment: Mapping[str, str]) -> str:
    """Register the infra-env, bound to the cluster if there is one; return its id.

    An infra-env that exists is kept as it is. Without a cluster it is registered unbound.
    """
    known = rest.call("GET", "/infra-envs")
    if known:
        LOG.info("InfraEnv %s is registered already", known[0]["id"])
        return str(known[0]["id"])
    clusters = rest.call("GET", "/clusters")
    if not clusters:
        LOG.info("No cluster is registered: hosts will be bound later")
    infra_env = rest.call(
        "POST", "/infra-envs", infra_env_params(folder, environment, clusters[0]["id"] if clusters else None)
    )
    LOG.info("Registered infraenv with id: %s", infra_env["id"])
    return str(infra_env["id"])


def import_cluster(rest: Rest, folder: Path, environment: Mapping[str, str], client_config: Path) -> str:
    """Register the existing cluster to which nodes will be added; return its id in the service.

    For adding nodes (day 2): name, API name and the cluster's own id are from the environment, the endpoint of worker
    Ignition configs and user-managed networking from files in `folder`, if they exist. ClientError names a variable
    that is not set. `client_config` gets `CLUSTER_ID=<id>`.
    """
    known = rest.call("GET", "/clusters")
    if known:
        cluster = known[0]
        LOG.info("Cluster %s is imported already", cluster["id"])
    else:
        names = {
            "name": "CLUSTER_NAME",
            "api_vip_dnsname": "CLUSTER_API_VIP_DNS_NAME",
            "openshift_cluster_id": "CLUSTER_ID",
        }
        missing = [variable for variable in names.values() if not environment.get(variable)]
        if missing:
            raise ClientError(f"environment variable {missing[0]} is not set")
        cluster = rest.call("POST", "/clusters/import", {key: environment[variable] for key, variable in names.items()})
        LOG.info("Imported cluster with id: %s", cluster["id"])
    update: dict[str, Any] = {}
    endpoint = _read_json(folder / "worker-ignition-endpoint.json")
    if endpoint:
        update["ignition_endpoint"] = {key: endpoint[key] for key in ("url", "ca_certificate") if endpoint.get(key)}
    managed = (_read_json(folder / "import-cluster-config.json").get("networking") or {}).get("userManagedNetworking")
    if managed is not None:
        update["user_managed_networking"] = bool(managed)
    if update:
        rest.call("PATCH", f"/clusters/{cluster['id']}", update)
    _write(client_config, f"CLUSTER_ID={cluster['id']}\n")
    return str(cluster["id"])


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = load_json(read_file(path), name=str(path))
    except ValueError as err:
        raise ClientError(f"{path} is not JSON: {err}") from None
    return value if isinstance(value, dict) else {}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def wait_for_infra_env(rest: Rest, wanted: str) -> str:
    """Return the infra-env's id: from the environment, else of the only one.

    `wanted` is the id from the environment; empty, or not registered, means the first one. It waits 60 s at most for an
    infra-env to be registered, then raises RestError with the status 0.
    """
    end = time.monotonic() + _SHOW_UP
    while True:
        known = rest.call("GET", "/infra-envs")
        if known:
            return next((str(entry["id"]) for entry in known if entry["id"] == wanted.lower()), str(known[0]["id"]))
        if time.monotonic() > end:
            raise RestError("GET", "/infra-envs", 0, "no infra-env is registered")
        time.sleep(1)
