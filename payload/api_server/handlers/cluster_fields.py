"""Fields of clusters as requests give them, validated and completed."""

from __future__ import annotations

from typing import Any, Literal

from ....plugins.module_utils.addresses import version
from .. import operators, refusals
from ..bodies import ClusterParams
from ..engine import Engine, time_text
from ..errors import ApiError
from ..objects import VIPS, Cluster, MonitoredOperator, NetworkKey

#: Single fields for the first of a list, used by older clients. Upstream accepts them and returns only the lists.
_SINGLES: dict[NetworkKey, Literal["cluster_network_cidr", "service_network_cidr", "machine_network_cidr"]] = {
    "cluster_networks": "cluster_network_cidr",
    "service_networks": "service_network_cidr",
    "machine_networks": "machine_network_cidr",
}
_DEFAULTS = {"cluster_networks": "10.128.0.0/14", "service_networks": "172.30.0.0/16", "machine_networks": ""}

PLAIN = (
    "ssh_public_key",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "additional_ntp_source",
    "ntp_sources",
    "tags",
    "base_dns_domain",
)
"""Fields of a request that a cluster has as they are given."""


def networks(body: ClusterParams, cluster_id: str, creating: bool) -> Cluster:
    """Return the networks of a request, merged from lists and single fields."""
    found: Any = {}
    for key, single in _SINGLES.items():
        entries: Any = body.get(key)
        if entries is None and body.get(single):
            entries = [{"cidr": body[single]}]
        if entries is None and creating:
            entries = [{"cidr": _DEFAULTS[key]}] if _DEFAULTS[key] else []
        if entries is None:
            continue
        found[key] = [{"cidr": entry.get("cidr", ""), "cluster_id": cluster_id} for entry in entries]
        if key == "cluster_networks":
            for item, entry in zip(found[key], entries, strict=True):
                usual = 0 if not creating and "host_prefix" in entry else 64 if version(item["cidr"]) == 6 else 23
                item["host_prefix"] = entry.get("host_prefix") or body.get("cluster_network_host_prefix") or usual
    return found


def check_vips(body: ClusterParams, cluster: Cluster | ClusterParams) -> None:
    """Refuse VIPs that are invalid for `cluster` with the request's fields."""
    wanted = {
        key: [vip.get("ip", "") for vip in (body[key] if body.get(key) is not None else cluster.get(key) or ())]
        for key in VIPS
    }
    refusals.vips(wanted["api_vips"], wanted["ingress_vips"], cluster)


def no_vips_of_users(cluster: Cluster | ClusterParams) -> None:
    if cluster.get("vip_dhcp_allocation"):
        raise ApiError(400, "VIP DHCP Allocation cannot be set with User Managed Networking")
    for key, name in (("api_vips", "API"), ("ingress_vips", "Ingress")):
        if cluster.get(key):
            raise ApiError(400, f"{name} VIPs cannot be set with User Managed Networking")


def vip_fields(body: ClusterParams, cluster: Cluster, ident: str) -> Cluster:
    """Return the VIPs of a request as a cluster stores them; an existing one stays verified."""
    found: Cluster = {}
    for key in VIPS:
        if body.get(key) is not None:
            old = {vip["ip"]: vip for vip in cluster.get(key) or ()}
            found[key] = [
                old.get(vip.get("ip", "")) or {"cluster_id": ident, "ip": vip.get("ip", "")} for vip in body[key]
            ]
    return found


def olm_operators(e: Engine, cluster: Cluster, body: ClusterParams) -> list[MonitoredOperator] | None:
    """Return the OLM operators of a request with their dependencies; None if the request does not set them."""
    if body.get("olm_operators") is None and body.get("operator_bundles") is None:
        return None
    cpus = {str(cluster.get("cpu_architecture", "x86_64"))} | {
        str(infra_env["cpu_architecture"])
        for infra_env in e.infra_envs.values()
        if infra_env.get("cluster_id") == cluster["id"] and infra_env.get("cpu_architecture")
    }
    try:
        found = operators.choose(cluster, body.get("olm_operators") or (), body.get("operator_bundles") or ())
        for cpu in sorted(cpus):
            operators.check(cluster, found, cpu)
    except ValueError as err:
        raise ApiError(400, str(err)) from None
    return found


def check_sources(body: ClusterParams, cluster: Cluster) -> None:
    """Return time sources and tags of a request, merged with the sources of the cluster that it leaves unchanged."""
    merged: Any = {**cluster, **body}
    refusals.ntp_sources(merged.get("additional_ntp_source"), merged.get("ntp_sources"))
    refusals.tags(body.get("tags"))


def common(e: Engine, ident: str, kind: str, status: str, info: str) -> Cluster:
    """Fields that every new cluster has."""
    now = e.clock()
    return {
        "kind": kind,
        "id": ident,
        "href": f"/api/assisted-install/v2/clusters/{ident}",
        "status": status,
        "status_info": info,
        "status_updated_at": time_text(now),
        "_status_at": now,
        "created_at": time_text(now),
        "updated_at": time_text(now),
        "progress": {},
        "monitored_operators": [],
        "email_domain": "Unknown",
        "user_name": "admin",
        "last-installation-preparation": {},
    }


def builtin(e: Engine, ident: str, now: float) -> list[MonitoredOperator]:
    names = ["console"] + (["cvo"] if e.config.flag("CHECK_CLUSTER_VERSION") else [])
    fixed: MonitoredOperator = {
        "operator_type": "builtin",
        "timeout_seconds": 3600,
        "status_updated_at": time_text(now),
    }
    return [{"cluster_id": ident, "name": name, **fixed} for name in names]
