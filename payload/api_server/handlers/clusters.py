"""Operations on clusters: register, list, delete. `cluster_update` has what changes one."""

from __future__ import annotations

import shutil
import uuid
from typing import Any

from ....plugins.module_utils.vocabulary import ClusterStatus, Status
from .. import platforms, refusals, releases, usage
from ..api import is_true
from ..bodies import ClusterParams
from ..calls import Call, handler
from ..document import tracked_document
from ..engine import Engine, time_text
from ..errors import ApiError
from ..objects import Cluster, DiskEncryption
from .cluster_fields import (
    PLAIN,
    builtin,
    check_sources,
    check_vips,
    common,
    networks,
    no_vips_of_users,
    olm_operators,
    vip_fields,
)
from .hosts import remove_host
from .shown import FREE, cluster_model, given_fields, host_model


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
    fields: Cluster = given_fields(body, PLAIN)
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
    fields["feature_usage"] = usage.registered_features(fields)
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
    fields = common(
        e, ident, "DisconnectedCluster", ClusterStatus.UNMONITORED, "Cluster created for offline installation"
    )
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
    fields = common(
        e, ident, "AddHostsCluster", ClusterStatus.ADDING_HOSTS, "cluster is adding hosts to existing OCP cluster"
    )
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
        remove_host(e, host)
    for infra_env in e.infra_envs.values():
        if infra_env.get("cluster_id") == cluster["id"]:
            tracked_document(infra_env).drop("cluster_id")
    e.deleted_clusters[cluster["id"]] = {**cluster, "deleted_at": time_text(e.clock())}
    while len(e.deleted_clusters) > MOST_DELETED:
        e.deleted_clusters.pop(next(iter(e.deleted_clusters)))
    e.store.delete("cluster", cluster["id"])
    e.store.delete_files(cluster["id"])
    e.store.drop_events("cluster_id", cluster["id"])
    shutil.rmtree(e.config.data_dir / "logs" / cluster["id"], ignore_errors=True)
    for table in (e.members, e.reach, e.results):
        table.pop(cluster["id"], None)
    e.settings_changed(cluster["id"])
    return None


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
