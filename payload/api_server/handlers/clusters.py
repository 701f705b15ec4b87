"""Operations on clusters: to register, change, list and delete them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from typing import Any

from ....plugins.module_utils.addresses import version
from .. import inventory as inv
from .. import operators, platforms, refusals, releases, usage, validations
from ..api import query_value
from ..calls import Call, handler
from ..engine import Engine, time_text
from ..errors import ApiError
from ..facts import is_dual
from ..models import Invalid, parse_json
from ..store import Document
from ..tables import BEFORE_INSTALL, OPEN_CLUSTER
from .hosts import forget_host
from .shown import FREE, OPEN_SHOWN, cluster_model, host_model

#: The first of a list as a field of its own, which older clients use. Upstream takes these and gives only the lists.
_SINGLES = {
    "cluster_networks": "cluster_network_cidr",
    "service_networks": "service_network_cidr",
    "machine_networks": "machine_network_cidr",
}
_DEFAULTS = {"cluster_networks": "10.128.0.0/14", "service_networks": "172.30.0.0/16", "machine_networks": ""}


def _networks(body: dict[str, Any], cluster_id: str, creating: bool) -> dict[str, Any]:
    """The networks of a request, lists and single fields brought together."""
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


def _vips(body: Mapping[str, Any], cluster: Mapping[str, Any]) -> None:
    """Refuses VIPs that `cluster`, with the request's fields, cannot have."""
    wanted = {
        key: [vip.get("ip", "") for vip in (body[key] if body.get(key) is not None else cluster.get(key) or ())]
        for key in ("api_vips", "ingress_vips")
    }
    refusals.vips(wanted["api_vips"], wanted["ingress_vips"], cluster)


def _no_vips_of_users(cluster: Mapping[str, Any]) -> None:
    if cluster.get("vip_dhcp_allocation"):
        raise ApiError(400, "VIP DHCP Allocation cannot be set with User Managed Networking")
    for key, name in (("api_vips", "API"), ("ingress_vips", "Ingress")):
        if cluster.get(key):
            raise ApiError(400, f"{name} VIPs cannot be set with User Managed Networking")


def _vip_fields(body: Mapping[str, Any], cluster: Mapping[str, Any], ident: str) -> dict[str, Any]:
    """The VIPs of a request as a cluster keeps them; one that was there before stays verified."""
    found = {}
    for key in ("api_vips", "ingress_vips"):
        if body.get(key) is not None:
            old = {vip["ip"]: vip for vip in cluster.get(key) or ()}
            found[key] = [old.get(vip.get("ip", "")) or {"cluster_id": ident, "ip": vip.get("ip", "")} for vip in body[key]]
    return found


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


def _olm_operators(e: Engine, cluster: Mapping[str, Any], body: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The OLM operators that a request asks for, with what they need; None when it does not speak of them."""
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


def _sources(body: Mapping[str, Any], cluster: Mapping[str, Any]) -> None:
    """Time sources and tags of a request; of the sources a cluster has those count that the request leaves."""
    merged = {
        key: body[key] if body.get(key) is not None else cluster.get(key)
        for key in ("additional_ntp_source", "ntp_sources")
    }
    refusals.ntp_sources(merged["additional_ntp_source"], merged["ntp_sources"])
    refusals.tags(body.get("tags"))


def _common(e: Engine, ident: str, kind: str, status: str, info: str) -> dict[str, Any]:
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


def _builtin(e: Engine, ident: str, now: float) -> list[dict[str, Any]]:
    names = ["console"] + (["cvo"] if e.config.flag("CHECK_CLUSTER_VERSION") else [])
    fixed = {"operator_type": "builtin", "timeout_seconds": 3600, "status_updated_at": time_text(now)}
    return [{"cluster_id": ident, "name": name, **fixed} for name in names]


@handler
def register_cluster(e: Engine, call: Call) -> Any:
    body = call.body
    mode, count = body.get("high_availability_mode"), body.get("control_plane_count")
    if count is None:
        count = 1 if mode == "None" else 3
    mode, version = mode or ("None" if count == 1 else "Full"), body["openshift_version"]
    refusals.control_plane(mode, count, version)
    _vips({}, body)
    if body.get("user_managed_networking"):
        _no_vips_of_users(body)
    refusals.networks(body)
    arch = body.get("cpu_architecture") or "x86_64"
    platform, managed = platforms.for_new(body.get("platform"), body.get("user_managed_networking"), count, arch)
    ident, now, sno = str(uuid.uuid4()), e.clock(), count == 1
    refusals.proxies(body.get("http_proxy"), body.get("https_proxy"), body.get("no_proxy"))
    encryption = {"enable_on": "none", "mode": "tpmv2", **(body.get("disk_encryption") or {})}
    refusals.disk_encryption(encryption)
    refusals.release_version(version, sno, platform["type"])
    if sno:
        refusals.single_node(bool(body.get("vip_dhcp_allocation")), body.get("network_type"), platform["type"])
    if managed:
        _no_vips_of_users(body)
    refusals.ignition_endpoint(body.get("ignition_endpoint"))
    _sources(body, {})
    if arch not in ("x86_64", "multi") and e.config.os_images() and all(
        releases.architecture(arch) not in releases.architectures(image) for image in e.config.os_images()
    ):
        raise ApiError(400, f"Requested CPU architecture {arch} is not available")
    os_images = e.config.os_images() if e.config.flag("ENABLE_IMAGE_SERVICE") else []
    release = releases.release(e.config.release_images(), os_images, version, arch, body.get("ocp_release_image", ""))
    several = len(release.get("cpu_architectures") or ()) > 1
    fields: dict[str, Any] = {key: body[key] for key in _PLAIN if body.get(key) is not None}
    if body.get("additional_ntp_source") is None and body.get("ntp_sources") is None:
        fields["additional_ntp_source"] = e.config.get("NTP_DEFAULT_SERVER") or None
    fields |= _common(e, ident, "Cluster", "insufficient", "Cluster is not ready for install")
    fields |= _networks(body, ident, True) | {"api_vips": [], "ingress_vips": []} | _vip_fields(body, {}, ident)
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
        "monitored_operators": _builtin(e, ident, now),
    }
    fields["monitored_operators"] += _olm_operators(e, fields, body) or []
    refusals.pull_secret(body["pull_secret"], "pull secret for new cluster is invalid")
    refusals.cluster_name(body["name"], platform["type"])
    refusals.dns_name(body["name"], body.get("base_dns_domain", ""))
    refusals.ssh_keys(body.get("ssh_public_key", ""))
    refusals.networks_strict(fields)
    fields["feature_usage"] = usage.registered(fields)
    cluster = e.store.create("cluster", ident, fields)
    e.metrics.count("cluster_creations")
    e.event("cluster_registration_succeeded", cluster_id=ident)
    e.touch_cluster(ident)
    e.start_release(cluster)
    return cluster_model(e, cluster)


@handler
def register_disconnected_cluster(e: Engine, call: Call) -> Any:
    """A cluster that only holds what an offline image is made of: it is not monitored and never installed."""
    ident = str(uuid.uuid4())
    fields = _common(e, ident, "DisconnectedCluster", "unmonitored", "Cluster created for offline installation")
    fields |= {"name": call.body["name"], "openshift_version": call.body["openshift_version"]}
    cluster = e.store.create("cluster", ident, fields)
    e.event("cluster_registration_succeeded", cluster_id=ident)
    return cluster_model(e, cluster)


def _imported_name(api: str, name: str) -> tuple[str, str]:
    """Name and base domain of a cluster in its API's name (`api.<cluster>.<domain>`); of another form the given name and ""."""
    first, *labels = api.split(".")
    return (labels[0], ".".join(labels[1:])) if first == "api" and len(labels) > 2 else (name, "")


@handler
def import_cluster(e: Engine, call: Call) -> Any:
    body, ident = call.body, str(uuid.uuid4())
    fields = _common(e, ident, "AddHostsCluster", "adding-hosts", "cluster is adding hosts to existing OCP cluster")
    name, domain = _imported_name(body["api_vip_dnsname"], body["name"])
    fields |= {
        "name": name,
        "api_vip_dns_name": body["api_vip_dnsname"],
        "openshift_cluster_id": body["openshift_cluster_id"],
        "openshift_version": body.get("openshift_version", ""),
        "imported": True,
        "base_dns_domain": domain or None,
        "platform": {"type": "baremetal"},
    }
    cluster = e.store.create("cluster", ident, fields)
    e.event("cluster_registration_succeeded", cluster_id=ident)
    e.touch_cluster(ident)
    return cluster_model(e, cluster)


@handler
def list_clusters(e: Engine, call: Call) -> Any:
    wanted = call.query.get("openshift_cluster_id")
    hosts = bool(call.query.get("with_hosts"))
    return [
        cluster_model(e, cluster, hosts=hosts, stages=False)
        for cluster in e.clusters.values()
        if not wanted or cluster.get("openshift_cluster_id", "").lower() == wanted.lower()
    ]


@handler
def get_cluster(e: Engine, call: Call) -> Any:
    wanted = call.path["cluster_id"].lower()
    if query_value("get_unregistered_clusters", "bool", [call.headers.get("get_unregistered_clusters", "")], "header"):
        gone = e.deleted_clusters.get(wanted)
        if gone is not None and wanted not in e.clusters:
            return cluster_model(e, gone)
    found = e.clusters.get(wanted)
    if found is None:
        raise ApiError(404, "record not found")
    return cluster_model(e, found, hosts=not call.query.get("exclude-hosts"))


#: So many deleted clusters can still be asked for.
MOST_DELETED = 100


@handler
def delete_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] in (
        "preparing-for-installation",
        "installing",
        "finalizing",
        "installing-pending-user-action",
    ):
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
            infra_env.drop("cluster_id")
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


def _check_update(e: Engine, cluster: Document, body: Mapping[str, Any]) -> None:
    """What an update is refused for, whatever state the cluster is in."""
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
        dhcp = body["vip_dhcp_allocation"] if body.get("vip_dhcp_allocation") is not None else cluster.get("vip_dhcp_allocation")
        for bad, name in (
            (dhcp, "VIP DHCP Allocation"),
            (not dhcp and (body.get("api_vips") or cluster.get("api_vips")), "API VIPs"),
            (not dhcp and (body.get("ingress_vips") or cluster.get("ingress_vips")), "Ingress VIPs"),
        ):
            if bad:
                raise ApiError(400, f"User Managed Networking cannot be set with {name}")
    changing = body.get("vip_dhcp_allocation") not in (None, bool(cluster.get("vip_dhcp_allocation")))
    without = {"api_vips": (), "ingress_vips": ()} if changing and body.get("api_vips") is None else {}
    keys = ("machine_networks", "load_balancer", "vip_dhcp_allocation")
    asked = {key: body[key] for key in keys if body.get(key) is not None}
    # Of the cluster's own mode nothing counts here: upstream looks at what the request says of it.
    _vips(body, {**cluster, "vip_dhcp_allocation": None, **without, **asked})
    refusals.ssh_keys(body.get("ssh_public_key") or "")
    refusals.ignition_endpoint(body.get("ignition_endpoint"))
    refusals.proxies(body.get("http_proxy"), body.get("https_proxy"), body.get("no_proxy"))


def _network_update(e: Engine, cluster: Document, body: Mapping[str, Any], managed: bool) -> dict[str, Any]:
    """The networks and VIPs that an update changes; ApiError where they contradict mode or hosts."""
    fields = _networks(dict(body), cluster["id"], False) | _vip_fields(body, cluster, cluster["id"])
    if managed != bool(cluster.get("user_managed_networking")):
        fields = {"machine_networks": []} | fields
    if managed:
        _no_vips_of_users(body)
        return fields | {"api_vips": [], "ingress_vips": [], "vip_dhcp_allocation": False}
    dhcp = bool(cluster.get("vip_dhcp_allocation"))
    if body.get("vip_dhcp_allocation") not in (None, dhcp):
        dhcp = bool(body["vip_dhcp_allocation"])
        fields = {"machine_networks": [], "api_vips": [], "ingress_vips": []} | fields | {"vip_dhcp_allocation": dhcp}
    merged = {**cluster, **fields, "load_balancer": body.get("load_balancer") or cluster.get("load_balancer")}
    if dhcp:
        for key, name in (("api_vips", "API"), ("ingress_vips", "Ingress")):
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
    listed = {key: [vip["ip"] for vip in merged.get(key) or ()] for key in ("api_vips", "ingress_vips")}
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
    cluster, body = e.cluster(call.path["cluster_id"]), call.body
    _check_update(e, cluster, body)
    if cluster["status"] not in OPEN_CLUSTER:
        raise ApiError(
            409,
            f"Cluster {cluster['id']} is in {cluster['status']} state, cluster can be updated only in one of {refusals.go_list(OPEN_SHOWN)}",
        )
    platform, asked = platforms.for_update(body.get("platform"), body.get("user_managed_networking"), cluster)
    if validations.is_sno(cluster) and not validations.is_day2(cluster):
        if asked is False:
            raise ApiError(400, "disabling UserManagedNetworking is not allowed in single node mode")
        if body.get("network_type") == "OpenShiftSDN":
            raise ApiError(400, "OpenShiftSDN network type is not allowed in single node mode")
    refusals.dns_name(
        body.get("name") or cluster["name"], body.get("base_dns_domain") or cluster.get("base_dns_domain", "")
    )
    refusals.disk_encryption(body.get("disk_encryption"))
    if cluster.get("control_plane_count") == 1 and platform and platform["type"] not in ("none", "external"):
        raise ApiError(400, f"Single node cluster is not supported alongside {platform['type']} platform")
    plain = (*_PLAIN, "name", "control_plane_count", "network_type", "hyperthreading", "schedulable_masters", "load_balancer")
    fields = {key: body[key] for key in plain if body.get(key) is not None}
    if platform is not None:
        fields["platform"] = platform
    managed = bool(cluster.get("user_managed_networking") if asked is None else asked)
    if asked is not None:
        fields["user_managed_networking"] = managed
    fields |= _network_update(e, cluster, body, managed)
    merged = {**cluster, **fields}
    changed = [
        key
        for key in ("cluster_networks", "service_networks", "machine_networks")
        if key in fields and fields[key] != cluster.get(key)
    ]
    refusals.subnets(merged, changed, len(e.hosts_of(cluster["id"])), validations.is_sno(cluster))
    _sources(body, cluster)
    if body.get("pull_secret"):
        fields |= {"_pull_secret": body["pull_secret"], "pull_secret_set": True}
    if body.get("api_vip_dns_name") is not None:
        if not validations.is_day2(cluster):
            raise ApiError(400, f"Can't update api vip to {body['api_vip_dns_name']} for day1 cluster {cluster['id']}")
        fields["api_vip_dns_name"] = body["api_vip_dns_name"]
    for key in ("disk_encryption", "ignition_endpoint"):
        if body.get(key) is not None:
            if key == "disk_encryption" and cluster.get("imported"):
                reason = "it is not permitted to change disk encryption settings for an imported cluster"
                raise ApiError(400, f"cannot update cluster {cluster['id']}, {reason}")
            fields[key] = {**(cluster.get(key) or {}), **body[key]}
    olm = _olm_operators(e, {**cluster, **fields}, body)
    known = {op["name"]: op for op in cluster.get("monitored_operators", ())}
    gone: frozenset[str] = frozenset()
    if olm is not None:
        kept = [op for op in known.values() if op.get("operator_type") != "olm"]
        fields["monitored_operators"] = kept + [{**known.get(op["name"], {}), **op} for op in olm]
        gone = frozenset(known) - {op["name"] for op in fields["monitored_operators"]}
    if any(body.get(key) not in (None, cluster.get(key, "")) for key in ("http_proxy", "https_proxy", "no_proxy")):
        e.event("proxy_settings_changed", cluster_id=cluster["id"])
    networks = cluster.get("machine_networks")
    vips = [vip["ip"] for key in ("api_vips", "ingress_vips") for vip in cluster.get(key) or ()]
    cluster.set(**fields, updated_at=time_text(e.clock()))
    usage.updated(cluster, body, gone)
    if cluster.get("machine_networks") != networks:
        e.networks_changed(cluster)
    if vips != [vip["ip"] for key in ("api_vips", "ingress_vips") for vip in cluster.get(key) or ()]:
        first = {key: ", ".join(vip["ip"] for vip in cluster.get(key, ())) for key in ("api_vips", "ingress_vips")}
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
def default_config(e: Engine, call: Call) -> Any:
    four = {"cidr": "10.128.0.0/14", "host_prefix": 23}
    six = {"cidr": "fd01::/48", "host_prefix": 64}
    return {
        "cluster_network_cidr": four["cidr"],
        "cluster_network_host_prefix": 23,
        "service_network_cidr": "172.30.0.0/16",
        "inactive_deletion_hours": 480,
        "ntp_source": e.config.get("NTP_DEFAULT_SERVER"),
        "cluster_networks_ipv4": [four],
        "cluster_networks_dualstack": [four, six],
        "service_networks_ipv4": [{"cidr": "172.30.0.0/16"}],
        "service_networks_dualstack": [{"cidr": "172.30.0.0/16"}, {"cidr": "fd02::/112"}],
        "forbidden_hostnames": list(inv.FORBIDDEN_HOSTNAMES),
    }


@handler
def list_cluster_hosts(e: Engine, call: Call) -> Any:
    """Hosts of a cluster; of one that nobody knows there are none."""
    query = call.query
    hide = FREE | frozenset(name for name, key in (("inventory", "with-inventory"), ("connectivity", "with-connectivity")) if not query.get(key))
    return [
        host_model(e, host, hide=hide, stages=False)
        for host in e.hosts_of(call.path["cluster_id"].lower()).values()
        if query.get("role", host.get("role")) == host.get("role")
        and query.get("status", host["status"]) == host["status"]
    ]


@handler
def supported_platforms(e: Engine, call: Call) -> Any:
    """Platforms that all hosts can have; before there are hosts, and on a single node, none."""
    cluster = e.cluster(call.path["cluster_id"])
    hosts = e.hosts_of(cluster["id"])
    if not hosts or validations.is_sno(cluster):
        return ["none"]
    makers = {str(e.inventories.get(ident, {}).get("system_vendor", {}).get("manufacturer", "")).lower() for ident in hosts}
    wanted = (("baremetal", ""), ("none", ""), ("nutanix", "nutanix"), ("vsphere", "vmware"), ("external", ""))
    return [name for name, maker in wanted if all(maker in text for text in makers)]


@handler
def preflight(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    table, view = e.table(cluster), e.view(cluster)
    names = {"master": "sno"} if validations.is_sno(cluster) else {}
    return {
        "ocp": {
            role: {"quantitative": table.get(names.get(role, role), {}), "qualitative": []}
            for role in ("master", "worker")
        },
        "operators": []
        if validations.is_day2(cluster)
        else [operators.preflight(name, view) for name in operators.OPERATORS],
    }


@handler
def get_install_config(e: Engine, call: Call) -> Any:
    from .. import prepare

    return prepare.install_config_text(e.job(e.cluster(call.path["cluster_id"])))


@handler
def update_install_config(e: Engine, call: Call) -> Any:
    """Takes overrides whatever state the cluster is in, as upstream's; those that come after the installation began have no effect."""
    from .. import prepare

    cluster = e.cluster(call.path["cluster_id"])
    try:
        overrides = parse_json(call.body)
    except Invalid as err:
        raise ApiError(400, str(err)) from None
    reason = prepare.wrong_override(overrides)
    if reason:
        raise ApiError(400, reason)
    cluster["install_config_overrides"] = call.body
    usage.install_config(cluster, overrides)
    e.event("install_config_applied", cluster_id=cluster["id"])


@handler
def get_ignored(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    found = {f"{kind}-validation-ids": cluster.get(f"ignored_{kind}_validations", "") for kind in ("cluster", "host")}
    return {name: text for name, text in found.items() if text}


@handler
def set_ignored(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] not in (*BEFORE_INSTALL, "adding-hosts"):
        raise ApiError(
            400,
            f"Cluster {cluster['id']} is in status {cluster['status']}: validations are ignored before the installation only",
        )
    tables = {kind: {entry.ident for entry in table} for kind, table in (("host", validations.HOST), ("cluster", validations.CLUSTER))}
    found: dict[str, str] = {}
    unknown: list[str] = []
    fixed: list[str] = []
    unread: list[str] = []
    for kind, every in tables.items():
        text = found[kind] = call.body.get(f"{kind}-validation-ids", "")
        try:
            idents = parse_json(text) if text else []
        except Invalid:
            idents = None
        if not isinstance(idents, list) or not all(isinstance(ident, str) for ident in idents):
            unread.append(f"error during unmarshal of json for ignored {kind} validations")
            continue
        known = every | {"all"}
        unknown += [f"Validation ID '{ident[:80]}' is not a known {kind} validation" for ident in idents if ident not in known]
        never = [ident for ident in idents if ident in validations.NEVER_IGNORED[kind]]
        if never:
            fixed.insert(0, f"unable to ignore the following {kind} validations ({', '.join(never)})")
    problems = unread + unknown + fixed
    if problems:
        raise ApiError(400, "cannot proceed due to the following errors: " + "\n".join(problems))
    cluster.set(ignored_cluster_validations=found["cluster"], ignored_host_validations=found["host"])
    e.touch_cluster(cluster["id"])
    e.touch_hosts(cluster["id"])
    return get_ignored(e, call)


@handler
def get_ui_settings(e: Engine, call: Call) -> Any:
    return e.cluster(call.path["cluster_id"]).get("_ui_settings", "")


@handler
def set_ui_settings(e: Engine, call: Call) -> Any:
    e.cluster(call.path["cluster_id"])["_ui_settings"] = call.body
    return call.body
