"""The proxy of a cluster, as OpenShift's installer completes it and its machine-config operator gives it to the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...plugins.module_utils.vocabulary import ClusterNames
from .configs import Config
from .facts import ClusterFacts

ENV = "/etc/mco/proxy.env"
#: Fields of a Proxy: those of the service's cluster that have their values, and the variables of a node's environment.
_FIELDS = {
    "httpProxy": ("http_proxy", "HTTP_PROXY"),
    "httpsProxy": ("https_proxy", "HTTPS_PROXY"),
    "noProxy": ("no_proxy", "NO_PROXY"),
}
_DROPIN = {"name": "10-mco-default-env.conf", "contents": f"[Service]\nEnvironmentFile={ENV}\n"}


def spec(cluster: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a Proxy that the user gave, from the service's model of the cluster; empty without a proxy."""
    found = {name: str(cluster.get(field) or "") for name, (field, __) in _FIELDS.items()}
    return {name: value for name, value in found.items() if value}


def status(given: Mapping[str, str], facts: ClusterFacts) -> dict[str, str]:
    """Return the fields that count: `noProxy` also has what no node reaches through a proxy. given: as of `spec`."""
    if not (given.get("httpProxy") or given.get("httpsProxy")):
        return {}
    own = {"127.0.0.1", "localhost", ".svc", ".cluster.local", ClusterNames.of(facts["domain"]).api_int}
    networks = {*facts["machine_networks"], *facts["service_networks"], *(n["cidr"] for n in facts["cluster_networks"])}
    users = filter(None, given.get("noProxy", "").split(","))
    return {**given, "noProxy": ",".join(sorted({*own, *networks, *users}))}


def environment(fields: Mapping[str, str]) -> str:
    """Return the content of `ENV`. fields: as of `status`."""
    return "".join(f"{_FIELDS[name][1]}={value}\n" for name, value in fields.items())


def with_environment(units: list[Config]) -> list[Config]:
    """Return units of a node with `ENV` as their environment: podman pulls their images through the proxy."""
    return [{**unit, "dropins": [*unit.get("dropins", ()), _DROPIN]} for unit in units]
