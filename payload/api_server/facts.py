"""Meaning of a cluster's and a host's fields: topology, roles, names. Pure functions of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...plugins.module_utils.addresses import version


def control_planes(cluster: Mapping[str, Any]) -> int:
    return int(cluster.get("control_plane_count") or (1 if cluster.get("high_availability_mode") == "None" else 3))


def is_sno(cluster: Mapping[str, Any]) -> bool:
    return control_planes(cluster) == 1


def is_day2(cluster: Mapping[str, Any]) -> bool:
    return cluster.get("kind") == "AddHostsCluster"


def user_managed(cluster: Mapping[str, Any]) -> bool:
    return bool(cluster.get("user_managed_networking"))


def machine_cidrs(cluster: Mapping[str, Any]) -> list[str]:
    return [entry["cidr"] for entry in cluster.get("machine_networks", ()) if entry.get("cidr")]


def is_dual(cluster: Mapping[str, Any]) -> bool:
    """Return whether networks or VIPs of one kind have both address families."""
    lists = [
        [entry["cidr"] for entry in cluster.get(f"{kind}_networks") or ()] for kind in ("machine", "service", "cluster")
    ]
    lists += [[vip["ip"] for vip in cluster.get(f"{kind}_vips") or ()] for kind in ("api", "ingress")]
    return any(len({*map(version, texts)}) == 2 for texts in lists)


def role_of(host: Mapping[str, Any]) -> str:
    """Return the host's role, or its suggested one; `auto-assign` when unknown."""
    role = host.get("role", "auto-assign")
    return str(host.get("suggested_role", role) if role == "auto-assign" else role)


def schedulable_masters(cluster: Mapping[str, Any], hosts: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether control plane nodes run workloads: a single node, or fewer than two workers."""
    return is_sno(cluster) or sum(role_of(host) == "worker" for host in hosts) < 2


def hostname_of(host: Mapping[str, Any], inventory: Mapping[str, Any] | None) -> str:
    return str(host.get("requested_hostname") or (inventory or {}).get("hostname") or "")


def domain(cluster: Mapping[str, Any], prefix: str) -> str:
    return f"{prefix}.{cluster.get('name', '')}.{cluster.get('base_dns_domain', '')}"
