"""registerCluster, registerInfraEnv and importCluster: manifests of the ISO become objects of the service.

Every command can run again: existing objects are kept.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....plugins.module_utils.assisted import registration
from ....plugins.module_utils.assisted.registration import ClientError, first_document, pull_secret
from ....plugins.module_utils.documents import load_json, read_file
from .rest import Rest, RestError

LOG = logging.getLogger("agent-installer-client")

#: Timeout until a newly registered cluster is listed, in seconds.
_SHOW_UP = 60.0


def register_cluster(rest: Rest, folder: Path, extra: Path, client_config: Path) -> str:
    """Register the cluster of the manifests in `folder`, with those in the folder `extra`; return its id.

    `client_config` gets the line `CLUSTER_ID=<id>` for other units. ClientError and RestError as of the registration.
    """
    more = sorted(extra.iterdir()) if extra.is_dir() else []
    found = {path.name: path.read_bytes() for path in more if path.is_file() and path.suffix in (".yaml", ".yml")}
    cluster_id = registration.register_cluster(rest, folder, found, LOG.info)
    _write(client_config, f"CLUSTER_ID={cluster_id}\n")
    return cluster_id


def infra_env_params(folder: Path, environment: Mapping[str, str], cluster_id: str | None) -> dict[str, Any]:
    """Return `infra-env-create-params` from the manifests that the ISO brings.

    They are InfraEnv, pull secret and NMStateConfigs. `cluster_id` None registers it unbound. The type of the image is
    that of `IMAGE_TYPE_ISO`, `full-iso` by default. Absent fields are left out.
    """
    infra = first_document(folder, "infraenv.yaml", "InfraEnv")
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
