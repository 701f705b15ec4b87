"""Fields of clusters as requests give them, validated and completed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....plugins.module_utils.addresses import version
from .. import operators, refusals
from ..engine import Engine, time_text
from ..errors import ApiError

#: Single fields for the first of a list, used by older clients. Upstream accepts them and returns only the lists.
_SINGLES = {
    "cluster_networks": "cluster_network_cidr",
    "service_networks": "service_network_cidr",
    "machine_networks": "machine_network_cidr",
}
_DEFAULTS = {"cluster_networks": "10.128.0.0/14", "service_networks": "172.30.0.0/16", "machine_networks": ""}


def networks(body: dict[str, Any], cluster_id: str, creating: bool) -> dict[str, Any]:
    """Return the networks of a request, merged from lists and single fields."""
    found: dict[str, Any] = {}
    for key, single in _SINGLES.items():
        entries = body.get(key)
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


def check_vips(body: Mapping[str, Any], cluster: Mapping[str, Any]) -> None:
    """Refuse VIPs that are invalid for `cluster` with the request's fields."""
    wanted = {
        key: [vip.get("ip", "") for vip in (body[key] if body.get(key) is not None else cluster.get(key) or ())]
        for key in ("api_vips", "ingress_vips")
    }
    refusals.vips(wanted["api_vips"], wanted["ingress_vips"], cluster)


def no_vips_of_users(cluster: Mapping[str, Any]) -> None:
    if cluster.get("vip_dhcp_allocation"):
        raise ApiError(400, "VIP DHCP Allocation cannot be set with User Managed Networking")
    for key, name in (("api_vips", "API"), ("ingress_vips", "Ingress")):
        if cluster.get(key):
            raise ApiError(400, f"{name} VIPs cannot be set with User Managed Networking")


def vip_fields(body: Mapping[str, Any], cluster: Mapping[str, Any], ident: str) -> dict[str, Any]:
    """Return the VIPs of a request as a cluster stores them; an existing one stays verified."""
    found = {}
    for key in ("api_vips", "ingress_vips"):
        if body.get(key) is not None:
            old = {vip["ip"]: vip for vip in cluster.get(key) or ()}
            found[key] = [
                old.get(vip.get("ip", "")) or {"cluster_id": ident, "ip": vip.get("ip", "")} for vip in body[key]
            ]
    return found


def olm_operators(e: Engine, cluster: Mapping[str, Any], body: Mapping[str, Any]) -> list[dict[str, Any]] | None:
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


def check_sources(body: Mapping[str, Any], cluster: Mapping[str, Any]) -> None:
    """Return time sources and tags of a request, merged with the sources of the cluster that it leaves unchanged."""
    merged = {
        key: body[key] if body.get(key) is not None else cluster.get(key)
        for key in ("additional_ntp_source", "ntp_sources")
    }
    refusals.ntp_sources(merged["additional_ntp_source"], merged["ntp_sources"])
    refusals.tags(body.get("tags"))


def common(e: Engine, ident: str, kind: str, status: str, info: str) -> dict[str, Any]:
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


def builtin(e: Engine, ident: str, now: float) -> list[dict[str, Any]]:
    names = ["console"] + (["cvo"] if e.config.flag("CHECK_CLUSTER_VERSION") else [])
    fixed = {"operator_type": "builtin", "timeout_seconds": 3600, "status_updated_at": time_text(now)}
    return [{"cluster_id": ident, "name": name, **fixed} for name in names]
