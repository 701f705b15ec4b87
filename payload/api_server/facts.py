"""Meaning of a cluster's and a host's fields: topology, roles, names. Pure functions of their arguments."""

from __future__ import annotations

from collections.abc import Iterable

from ...plugins.module_utils.addresses import version
from ...plugins.module_utils.vocabulary import ClusterNames
from .hardware import Inventory
from .objects import NETWORKS, VIPS, Cluster, Host


def control_planes(cluster: Cluster) -> int:
    return int(cluster.get("control_plane_count") or (1 if cluster.get("high_availability_mode") == "None" else 3))


def is_sno(cluster: Cluster) -> bool:
    return control_planes(cluster) == 1


def installation_disk(host: Host) -> str:
    """Path of the disk that the OS is written to, one that stays the same if there is any; "" if none is selected."""
    return host.get("installation_disk_id") or host.get("installation_disk_path", "")


def is_day2(cluster: Cluster) -> bool:
    return cluster.get("kind") == "AddHostsCluster"


def user_managed(cluster: Cluster) -> bool:
    return bool(cluster.get("user_managed_networking"))


def outside_balancer(cluster: Cluster) -> bool:
    """Return whether users bring their own load balancer for API and ingress (`load_balancer.type` is `user-managed`).

    VIPs then belong to the balancer: a host need not be in every machine network, and its VIPs may be in use. This
    differs from user-managed networking, with which the cluster has no VIPs at all.
    """
    return (cluster.get("load_balancer") or {}).get("type") == "user-managed"


def machine_cidrs(cluster: Cluster) -> list[str]:
    return [entry["cidr"] for entry in cluster.get("machine_networks", ()) if entry.get("cidr")]


def is_dual(cluster: Cluster) -> bool:
    """Return whether networks or VIPs of one kind have both address families."""
    lists = [[entry["cidr"] for entry in cluster.get(key) or ()] for key in NETWORKS]
    lists += [[vip["ip"] for vip in cluster.get(vips) or ()] for vips in VIPS]
    return any(len({*map(version, texts)}) == 2 for texts in lists)


def role_of(host: Host) -> str:
    """Return the host's role, or its suggested one; `auto-assign` when unknown."""
    role = host.get("role", "auto-assign")
    return str(host.get("suggested_role", role) if role == "auto-assign" else role)


def schedulable_masters(cluster: Cluster, hosts: Iterable[Host]) -> bool:
    """Return whether control plane nodes run workloads: a single node, or fewer than two workers."""
    return is_sno(cluster) or sum(role_of(host) == "worker" for host in hosts) < 2


def hostname_of(host: Host, inventory: Inventory | None) -> str:
    return str(host.get("requested_hostname") or (inventory or {}).get("hostname") or "")


def domain(cluster: Cluster) -> str:
    return f"{cluster.get('name', '')}.{cluster.get('base_dns_domain', '')}"


def names_of(cluster: Cluster) -> ClusterNames:
    return ClusterNames.of(domain(cluster))
