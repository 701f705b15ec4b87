"""Operations on clusters: register, update, list, delete."""

from __future__ import annotations

import shutil
import uuid
from typing import Any

from ....plugins.module_utils.vocabulary import Status
from .. import platforms, refusals, releases, usage, validations
from ..api import is_true
from ..bodies import ClusterParams
from ..calls import Call, handler
from ..document import tracked
from ..engine import Engine, time_text
from ..errors import ApiError
from ..facts import is_dual
from ..objects import NETWORKS, VIPS, Cluster, DiskEncryption
from ..tables import OPEN_CLUSTER
from .cluster_fields import (
    builtin,
    check_sources,
    check_vips,
    common,
    networks,
    no_vips_of_users,
    olm_operators,
    vip_fields,
)
from .hosts import forget_host
from .shown import FREE, OPEN_SHOWN, cluster_model, given, host_model

_PLAIN = (
    "ssh_public_key",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "additional_ntp_source",
    "ntp_sources",
    "tags",
    "base_dns_domain",
)


@handler
def register_cluster(e: Engine, call: Call) -> Any:
    body: ClusterParams = call.body
    mode, count = body.get("high_availability_mode"), body.get("control_plane_count")
    if count is None:
        count = 1 if mode == "None" else 3
    mode, version = mode or ("None" if count == 1 else "Full"), body["openshift_version"]
    refusals.control_plane(mode, count, version)
    check_vips({}, body)
    if body.get("user_managed_networking"):
        no_vips_of_users(body)
    refusals.networks(body)
    arch = body.get("cpu_architecture") or "x86_64"
    platform, managed = platforms.for_new(body.get("platform"), body.get("user_managed_networking"), count, arch)
    ident, now, sno = str(uuid.uuid4()), e.clock(), count == 1
    refusals.proxies(body.get("http_proxy"), body.get("https_proxy"), body.get("no_proxy"))
    encryption: DiskEncryption = {"enable_on": "none", "mode": "tpmv2", **body.get("disk_encryption", {})}
    refusals.disk_encryption(encryption)
    refusals.release_version(version, sno, platform["type"])
    if sno:
        refusals.single_node(bool(body.get("vip_dhcp_allocation")), body.get("network_type"), version, platform["type"])
    if managed:
        no_vips_of_users(body)
    refusals.ignition_endpoint(body.get("ignition_endpoint"))
    check_sources(body, {})
    if (
        arch not in ("x86_64", "multi")
        and e.config.os_images()
        and all(releases.architecture(arch) not in releases.architectures(image) for image in e.config.os_images())
    ):
        raise ApiError(400, f"Requested CPU architecture {arch} is not available")
    os_images = e.config.os_images() if e.config.flag("ENABLE_IMAGE_SERVICE") else []
    release = releases.release(e.config.release_images(), os_images, version, arch, body.get("ocp_release_image", ""))
    refusals.network_type(body.get("network_type"), str(release.get("version") or version), sno)
    several = len(release.get("cpu_architectures") or ()) > 1
    fields: Cluster = given(body, _PLAIN)
    default = e.config.get("NTP_DEFAULT_SERVER")
    if default and body.get("additional_ntp_source") is None and body.get("ntp_sources") is None:
        fields["additional_ntp_source"] = default
    fields |= common(e, ident, "Cluster", Status.INSUFFICIENT, "Cluster is not ready for install")
    fields |= networks(body, ident, True) | {"api_vips": [], "ingress_vips": []} | vip_fields(body, {}, ident)
    fields |= {
        "name": body["name"],
        "user_managed_networking": managed,
        "control_plane_count": count,
        "high_availability_mode": mode,
        "openshift_version": str(release.get("version") or version),
        "ocp_release_image": body.get("ocp_release_image") or release.get("url", ""),
        "cpu_architecture": "multi" if several else arch,
        "platform": platform,
        "pull_secret_set": True,
        "_pull_secret": body["pull_secret"],
        "disk_encryption": encryption,
        "load_balancer": body.get("load_balancer") or {"type": "cluster-managed"},
        "ignition_endpoint": body.get("ignition_endpoint") or {},
        "hyperthreading": body.get("hyperthreading") or "all",
        "network_type": body.get("network_type") or "OVNKubernetes",
        "vip_dhcp_allocation": bool(body.get("vip_dhcp_allocation")),
        "schedulable_masters": bool(body.get("schedulable_masters")),
        "schedulable_masters_forced_true": True,
        "org_soft_timeouts_enabled": True,
        "monitored_operators": builtin(e, ident, now),
    }
    fields["monitored_operators"] += olm_operators(e, fields, body) or []
    refusals.pull_secret(body["pull_secret"], "pull secret for new cluster is invalid")
    refusals.cluster_name(body["name"], platform["type"])
    refusals.dns_name(body["name"], body.get("base_dns_domain", ""))
    refusals.ssh_keys(body.get("ssh_public_key", ""))
    refusals.networks_strict(fields)
    fields["feature_usage"] = usage.registered(fields)
    e.store.create("cluster", ident, fields)
    cluster = e.clusters[ident]
    e.metrics.count("cluster_creations")
    e.event("cluster_registration_succeeded", cluster_id=ident)
    e.touch_cluster(ident)
    e.start_release(cluster)
    return cluster_model(e, cluster)


@handler
def register_disconnected_cluster(e: Engine, call: Call) -> Any:
    """Register a cluster that only has the input of an offline image: it is not monitored and never installed."""
    ident = str(uuid.uuid4())
    fields = common(e, ident, "DisconnectedCluster", "unmonitored", "Cluster created for offline installation")
    fields |= {"name": call.body["name"], "openshift_version": call.body["openshift_version"]}
    e.store.create("cluster", ident, fields)
    cluster = e.clusters[ident]
    e.event("cluster_registration_succeeded", cluster_id=ident)
    return cluster_model(e, cluster)


def _imported_name(api: str, name: str) -> tuple[str, str]:
    """Name and base domain of a cluster in its API's name (`api.<cluster>.<domain>`); in any other form the given name and ""."""
    first, *labels = api.split(".")
    return (labels[0], ".".join(labels[1:])) if first == "api" and len(labels) > 2 else (name, "")


@handler
def import_cluster(e: Engine, call: Call) -> Any:
    body, ident = call.body, str(uuid.uuid4())
    fields = common(e, ident, "AddHostsCluster", "adding-hosts", "cluster is adding hosts to existing OCP cluster")
    name, domain = _imported_name(body["api_vip_dnsname"], body["name"])
    fields |= {
        "name": name,
        "api_vip_dns_name": body["api_vip_dnsname"],
        "openshift_cluster_id": body["openshift_cluster_id"],
        "openshift_version": body.get("openshift_version", ""),
        "imported": True,
        "platform": {"type": "baremetal"},
    }
    if domain:
        fields["base_dns_domain"] = domain
    e.store.create("cluster", ident, fields)
    cluster = e.clusters[ident]
    e.event("cluster_registration_succeeded", cluster_id=ident)
    e.touch_cluster(ident)
    return cluster_model(e, cluster)


@handler
def list_clusters(e: Engine, call: Call) -> Any:
    clusters = () if call.query.get("ams_subscription_ids") else e.clusters.values()  # none has a subscription
    wanted, hosts = call.query.get("openshift_cluster_id"), bool(call.query.get("with_hosts"))
    return [
        cluster_model(e, cluster, hosts=hosts, stages=False)
        for cluster in clusters
        if not wanted or cluster.get("openshift_cluster_id", "").lower() == wanted.lower()
    ]


@handler
def get_cluster(e: Engine, call: Call) -> Any:
    wanted = call.path["cluster_id"].lower()
    if is_true(call.headers.get("get_unregistered_clusters", "")):
        gone = e.deleted_clusters.get(wanted)
        if gone is not None and wanted not in e.clusters:
            return cluster_model(e, gone)
    found = e.clusters.get(wanted)
    if found is None:
        raise ApiError(404, "record not found")
    return cluster_model(e, found, hosts=not call.query.get("exclude-hosts"))


#: Number of deleted clusters that are kept for requests.
MOST_DELETED = 100


@handler
def delete_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] in (Status.PREPARING, Status.INSTALLING, Status.FINALIZING, Status.PENDING_USER_ACTION):
        raise ApiError(
            409,
            f"Cluster {cluster['id']} cannot be deleted in status {cluster['status']}: cancel the installation first",
        )
    for kind, owners in (("cluster", (cluster["id"],)), ("host", tuple(e.hosts_of(cluster["id"])))):
        for name, (__, status, __) in (item for owner in owners for item in e.results.get(owner, {}).items()):
            if status == "failure":
                e.metrics.count(f"{kind}_validation_is_in_failed_status_on_cluster_deletion", name)
    for host in list(e.hosts_of(cluster["id"]).values()):
        forget_host(e, host)
    for infra_env in e.infra_envs.values():
        if infra_env.get("cluster_id") == cluster["id"]:
            tracked(infra_env).drop("cluster_id")
    e.deleted_clusters[cluster["id"]] = {**cluster, "deleted_at": time_text(e.clock())}
    while len(e.deleted_clusters) > MOST_DELETED:
        e.deleted_clusters.pop(next(iter(e.deleted_clusters)))
    e.store.delete("cluster", cluster["id"])
    e.store.forget_files(cluster["id"])
    e.store.forget_events("cluster_id", cluster["id"])
    shutil.rmtree(e.config.data_dir / "logs" / cluster["id"], ignore_errors=True)
    for table in (e.members, e.reach, e.results):
        table.pop(cluster["id"], None)
    e.settings_changed(cluster["id"])
    return None


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
    asked: Cluster = {**cluster, "vip_dhcp_allocation": False}
    if changing and body.get("api_vips") is None:
        asked |= {"api_vips": [], "ingress_vips": []}
    check_vips(body, {**asked, **given(body, ("machine_networks", "load_balancer", "vip_dhcp_allocation"))})
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
    users, dual = validations.outside_balancer(merged), is_dual(merged)
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
    platform, asked = platforms.for_update(body.get("platform"), body.get("user_managed_networking"), cluster)
    single = validations.is_sno(cluster) and not validations.is_day2(cluster)
    if single and asked is False:
        raise ApiError(400, "disabling UserManagedNetworking is not allowed in single node mode")
    refusals.network_type(body.get("network_type"), cluster["openshift_version"], single)
    refusals.dns_name(
        body.get("name") or cluster["name"], body.get("base_dns_domain") or cluster.get("base_dns_domain", "")
    )
    refusals.disk_encryption(body.get("disk_encryption"))
    if cluster.get("control_plane_count") == 1 and platform and platform["type"] not in ("none", "external"):
        raise ApiError(400, f"Single node cluster is not supported alongside {platform['type']} platform")
    plain = (
        *_PLAIN,
        "name",
        "control_plane_count",
        "network_type",
        "hyperthreading",
        "schedulable_masters",
        "load_balancer",
    )
    fields: Cluster = given(body, plain)
    fields["schedulable_masters_forced_true"] = True
    if platform is not None:
        fields["platform"] = platform
    managed = bool(cluster.get("user_managed_networking") if asked is None else asked)
    if asked is not None:
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
    olm = olm_operators(e, {**cluster, **fields}, body)
    known = {op["name"]: op for op in cluster.get("monitored_operators", ())}
    gone: frozenset[str] = frozenset()
    if olm is not None:
        kept = [op for op in known.values() if op.get("operator_type") != "olm"]
        fields["monitored_operators"] = kept + [{**known.get(op["name"], {}), **op} for op in olm]
        gone = frozenset(known) - {op["name"] for op in fields["monitored_operators"]}
    if any(body.get(key) not in (None, cluster.get(key, "")) for key in ("http_proxy", "https_proxy", "no_proxy")):
        e.event("proxy_settings_changed", cluster_id=cluster["id"])
    machine = cluster.get("machine_networks")
    vips = [vip["ip"] for key in VIPS for vip in cluster.get(key) or ()]
    tracked(cluster).set(**fields, updated_at=time_text(e.clock()))
    usage.updated(cluster, body, gone)
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


@handler
def list_cluster_hosts(e: Engine, call: Call) -> Any:
    """Return the hosts of a cluster; an unknown cluster has none."""
    query = call.query
    hide = FREE | frozenset(
        name
        for name, key in (("inventory", "with-inventory"), ("connectivity", "with-connectivity"))
        if not query.get(key)
    )
    return [
        host_model(e, host, hide=hide, stages=False)
        for host in e.hosts_of(call.path["cluster_id"].lower()).values()
        if query.get("role", host.get("role")) == host.get("role")
        and query.get("status", host["status"]) == host["status"]
    ]
