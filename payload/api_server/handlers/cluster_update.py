"""The operation that updates a cluster."""

from __future__ import annotations

from typing import Any

from .. import platforms, refusals, usage, validations
from ..bodies import ClusterParams
from ..calls import Call, handler
from ..document import tracked_document
from ..engine import Engine, time_text
from ..errors import ApiError
from ..facts import is_dual, outside_balancer
from ..objects import NETWORKS, VIPS, Cluster
from ..tables import OPEN_CLUSTER
from .cluster_fields import PLAIN, check_sources, check_vips, networks, no_vips_of_users, olm_operators, vip_fields
from .shown import OPEN_SHOWN, cluster_model, given_fields


def _check_update(e: Engine, cluster: Cluster, body: ClusterParams) -> None:
    """Refuse updates that are invalid in any state of the cluster."""
    if body.get("control_plane_count") is not None and not validations.is_day2(cluster):
        mode = str(cluster.get("high_availability_mode") or "Full")
        refusals.control_plane(mode, body["control_plane_count"], cluster.get("openshift_version", ""))
    if body.get("pull_secret"):
        refusals.pull_secret(body["pull_secret"])
    if body.get("name"):
        platform = body.get("platform") or cluster.get("platform") or {}
        refusals.cluster_name(body["name"], platform.get("type"))
    refusals.networks(body)
    if body.get("user_managed_networking"):
        dhcp = (
            body["vip_dhcp_allocation"]
            if body.get("vip_dhcp_allocation") is not None
            else cluster.get("vip_dhcp_allocation")
        )
        for bad, name in (
            (dhcp, "VIP DHCP Allocation"),
            (not dhcp and (body.get("api_vips") or cluster.get("api_vips")), "API VIPs"),
            (not dhcp and (body.get("ingress_vips") or cluster.get("ingress_vips")), "Ingress VIPs"),
        ):
            if bad:
                raise ApiError(400, f"User Managed Networking cannot be set with {name}")
    changing = body.get("vip_dhcp_allocation") not in (None, bool(cluster.get("vip_dhcp_allocation")))
    # The cluster's current mode does not count here: upstream looks at the request only.
    requested: Cluster = {**cluster, "vip_dhcp_allocation": False}
    if changing and body.get("api_vips") is None:
        requested |= {"api_vips": [], "ingress_vips": []}
    check_vips(body, {**requested, **given_fields(body, ("machine_networks", "load_balancer", "vip_dhcp_allocation"))})
    refusals.ssh_keys(body.get("ssh_public_key") or "")
    refusals.ignition_endpoint(body.get("ignition_endpoint"))
    refusals.proxies(body.get("http_proxy"), body.get("https_proxy"), body.get("no_proxy"))


def _network_update(e: Engine, cluster: Cluster, body: ClusterParams, managed: bool) -> Cluster:
    """Return the networks and VIPs that an update changes; ApiError if they contradict mode or hosts."""
    fields = networks(body, cluster["id"], False) | vip_fields(body, cluster, cluster["id"])
    if managed != bool(cluster.get("user_managed_networking")):
        fields = {"machine_networks": [], **fields}
    if managed:
        no_vips_of_users(body)
        return fields | {"api_vips": [], "ingress_vips": [], "vip_dhcp_allocation": False}
    dhcp = bool(cluster.get("vip_dhcp_allocation"))
    if body.get("vip_dhcp_allocation") not in (None, dhcp):
        dhcp = bool(body["vip_dhcp_allocation"])
        fields = {"machine_networks": [], "api_vips": [], "ingress_vips": [], **fields, "vip_dhcp_allocation": dhcp}
    merged: Cluster = {**cluster, **fields}
    if body.get("load_balancer"):
        merged["load_balancer"] = body["load_balancer"]
    if dhcp:
        for key, name in zip(VIPS, ("API", "Ingress"), strict=True):
            if body.get(key):
                raise ApiError(400, f"Setting {name} VIPs is forbidden when cluster is in vip-dhcp-allocation mode")
        return fields
    users, dual = outside_balancer(merged), is_dual(merged)
    if body.get("machine_networks") and not dual and not users:
        raise ApiError(
            400,
            "Setting the Machine Network CIDR is forbidden when the cluster is neither in VIP DHCP allocation mode nor using a "
            "user-managed load balancer",
        )
    if body.get("api_vips") is None and body.get("ingress_vips") is None:
        return fields
    listed = {key: [vip["ip"] for vip in merged.get(key) or ()] for key in VIPS}
    if not dual and not users:
        vip = next(iter(listed["api_vips"] or listed["ingress_vips"]), "")
        if vip:
            found = [e.inventories[ident] for ident in e.hosts_of(cluster["id"]) if ident in e.inventories]
            cidr = validations.network_of(vip, found)
            if not cidr:
                raise ApiError(400, f"Calculate machine network CIDR: No suitable matching CIDR found for VIP {vip}")
            fields["machine_networks"] = [{"cidr": cidr, "cluster_id": cluster["id"]}]
    machine = validations.machine_cidrs({**merged, **fields})
    members = e.hosts_of(cluster["id"]).values()
    refusals.vips(listed["api_vips"], listed["ingress_vips"], {**merged, **fields})
    if not users:
        refusals.vips_in_use(listed["api_vips"], listed["ingress_vips"], machine, validations.free_addresses(members))
    return fields


def _set_operators(e: Engine, cluster: Cluster, body: ClusterParams, fields: Cluster) -> frozenset[str]:
    """Add to `fields` the operators that an update asks for; return the names of those that the cluster has no longer."""
    olm = olm_operators(e, {**cluster, **fields}, body)
    if olm is None:
        return frozenset()
    known = {op["name"]: op for op in cluster.get("monitored_operators", ())}
    kept = [op for op in known.values() if op.get("operator_type") != "olm"]
    fields["monitored_operators"] = kept + [{**known.get(op["name"], {}), **op} for op in olm]
    return frozenset(known) - {op["name"] for op in fields["monitored_operators"]}


@handler
def update_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    body: ClusterParams = call.body
    _check_update(e, cluster, body)
    if cluster["status"] not in OPEN_CLUSTER:
        raise ApiError(
            409,
            f"Cluster {cluster['id']} is in {cluster['status']} state, cluster can be updated only in one of {refusals.go_list(OPEN_SHOWN)}",
        )
    platform, requested = platforms.for_update(body.get("platform"), body.get("user_managed_networking"), cluster)
    single = validations.is_sno(cluster) and not validations.is_day2(cluster)
    if single and requested is False:
        raise ApiError(400, "disabling UserManagedNetworking is not allowed in single node mode")
    refusals.network_type(body.get("network_type"), cluster["openshift_version"], single)
    refusals.dns_name(
        body.get("name") or cluster["name"], body.get("base_dns_domain") or cluster.get("base_dns_domain", "")
    )
    refusals.disk_encryption(body.get("disk_encryption"))
    if cluster.get("control_plane_count") == 1 and platform and platform["type"] not in ("none", "external"):
        raise ApiError(400, f"Single node cluster is not supported alongside {platform['type']} platform")
    plain = (
        *PLAIN,
        "name",
        "control_plane_count",
        "network_type",
        "hyperthreading",
        "schedulable_masters",
        "load_balancer",
    )
    fields: Cluster = given_fields(body, plain)
    fields["schedulable_masters_forced_true"] = True
    if platform is not None:
        fields["platform"] = platform
    managed = bool(cluster.get("user_managed_networking") if requested is None else requested)
    if requested is not None:
        fields["user_managed_networking"] = managed
    fields |= _network_update(e, cluster, body, managed)
    merged: Cluster = {**cluster, **fields}
    changed = [key for key in NETWORKS if key in fields and fields[key] != cluster.get(key)]
    refusals.subnets(merged, changed, len(e.hosts_of(cluster["id"])), validations.is_sno(cluster))
    check_sources(body, cluster)
    if body.get("pull_secret"):
        fields |= {"_pull_secret": body["pull_secret"], "pull_secret_set": True}
    if body.get("api_vip_dns_name") is not None:
        if not validations.is_day2(cluster):
            raise ApiError(400, f"Can't update api vip to {body['api_vip_dns_name']} for day1 cluster {cluster['id']}")
        fields["api_vip_dns_name"] = body["api_vip_dns_name"]
    if body.get("disk_encryption") is not None:
        if cluster.get("imported"):
            reason = "it is not permitted to change disk encryption settings for an imported cluster"
            raise ApiError(400, f"cannot update cluster {cluster['id']}, {reason}")
        fields["disk_encryption"] = {**cluster.get("disk_encryption", {}), **body["disk_encryption"]}
    if body.get("ignition_endpoint") is not None:
        fields["ignition_endpoint"] = {**cluster.get("ignition_endpoint", {}), **body["ignition_endpoint"]}
    gone = _set_operators(e, cluster, body, fields)
    if any(body.get(key) not in (None, cluster.get(key, "")) for key in ("http_proxy", "https_proxy", "no_proxy")):
        e.event("proxy_settings_changed", cluster_id=cluster["id"])
    machine = cluster.get("machine_networks")
    vips = [vip["ip"] for key in VIPS for vip in cluster.get(key) or ()]
    tracked_document(cluster).set(**fields, updated_at=time_text(e.clock()))
    usage.record_update(cluster, body, gone)
    if cluster.get("machine_networks") != machine:
        e.networks_changed(cluster)
    if vips != [vip["ip"] for key in VIPS for vip in cluster.get(key) or ()]:
        first = {key: ", ".join(vip["ip"] for vip in cluster.get(key, ())) for key in VIPS}
        e.event(
            "api_ingress_vip_updated",
            cluster_id=cluster["id"],
            api_vip=first["api_vips"],
            ingress_vip=first["ingress_vips"],
        )
    e.touch_cluster(cluster["id"])
    e.touch_hosts(cluster["id"])
    e.refresh_cluster(cluster)
    return cluster_model(e, cluster)
