"""Operations on clusters: to register, change, list and delete them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from typing import Any

from .. import inventory as inv
from .. import operators, refusals, validations
from ..calls import Call, handler
from ..engine import ApiError, Engine, time_text
from ..models import Invalid, parse_json
from ..tables import BEFORE_INSTALL, OPEN_CLUSTER
from .hosts import forget_host
from .shown import NO_LIST, OPEN_SHOWN, cluster_model, host_model


def _networks(e: Engine, body: dict[str, Any], cluster_id: str, creating: bool) -> dict[str, Any]:
    """The networks of a request, lists and single fields brought together."""
    found: dict[str, Any] = {}
    singles = {
        "cluster_networks": ("cluster_network_cidr", "10.128.0.0/14"),
        "service_networks": ("service_network_cidr", "172.30.0.0/16"),
        "machine_networks": ("machine_network_cidr", ""),
    }
    for key, (single, default) in singles.items():
        entries = body.get(key)
        if entries is None and body.get(single):
            entries = [{"cidr": body[single]}]
        if entries is None and creating and default:
            entries = [{"cidr": default}]
        if entries is None:
            continue
        made = []
        for entry in entries:
            item = {"cluster_id": cluster_id, "cidr": entry.get("cidr", "")}
            if key == "cluster_networks":
                item["host_prefix"] = (
                    entry.get("host_prefix")
                    or body.get("cluster_network_host_prefix")
                    or (64 if ":" in item["cidr"] else 23)
                )
            made.append(item)
        found[key] = made
        if made:
            found[single] = made[0]["cidr"]
            if key == "cluster_networks":
                found["cluster_network_host_prefix"] = made[0]["host_prefix"]
    return found


def _vips(body: Mapping[str, Any], cluster: Mapping[str, Any], found: dict[str, Any]) -> None:
    """The VIPs of a request, which `cluster`, with its new fields, must be able to have."""
    given = {
        key: [vip.get("ip", "") for vip in body[key]]
        for key in ("api_vips", "ingress_vips")
        if body.get(key) is not None
    }
    wanted = {
        key: given.get(key, [vip["ip"] for vip in cluster.get(key) or ()]) for key in ("api_vips", "ingress_vips")
    }
    refusals.vips(wanted["api_vips"], wanted["ingress_vips"], cluster)
    if validations.user_managed(cluster) or validations.is_sno(cluster):
        for key, name in (("api_vips", "API"), ("ingress_vips", "Ingress")):
            if wanted[key]:
                raise ApiError(400, f"{name} VIPs cannot be set with User Managed Networking")
    for key, addresses in given.items():
        old = {vip["ip"]: vip for vip in cluster.get(key, ())}
        found[key] = [
            {"cluster_id": cluster["id"], "ip": ip, "verification": old.get(ip, {}).get("verification", "unverified")}
            for ip in addresses
        ]


def _release(e: Engine, version: str, arch: str, url: str) -> dict[str, Any]:
    images = e.config.release_images()
    for image in images:
        known = (image.get("openshift_version"), image.get("version"))
        if (
            (url and image.get("url") == url)
            or version in known
            or str(image.get("version", "")).startswith(version + ".")
        ):
            return image
    if images:
        known_text = ", ".join(str(image.get("openshift_version")) for image in images)
        raise ApiError(400, f"Openshift version {version} for CPU architecture {arch} is not supported: {known_text}")
    return {"url": url, "openshift_version": version, "version": version}


_PLAIN = (
    "ssh_public_key",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "additional_ntp_source",
    "ntp_sources",
    "hyperthreading",
    "network_type",
    "schedulable_masters",
    "disk_encryption",
    "ignition_endpoint",
    "tags",
    "load_balancer",
    "base_dns_domain",
    "vip_dhcp_allocation",
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


def _settings(body: Mapping[str, Any], cluster: Mapping[str, Any]) -> None:
    """Proxies, time sources and tags of a request; of the sources a cluster has those count that the request leaves."""
    refusals.proxies(body.get("http_proxy"), body.get("https_proxy"), body.get("no_proxy"))
    merged = {
        key: body[key] if body.get(key) is not None else cluster.get(key)
        for key in ("additional_ntp_source", "ntp_sources")
    }
    refusals.ntp_sources(merged["additional_ntp_source"], merged["ntp_sources"])
    refusals.tags(body.get("tags"))


@handler
def register_cluster(e: Engine, call: Call) -> Any:
    body = call.body
    mode, count = body.get("high_availability_mode"), body.get("control_plane_count")
    if count is None:
        count = 1 if mode == "None" else 3
    refusals.control_plane(mode or ("None" if count == 1 else "Full"), count)
    refusals.networks(body)
    sno = count == 1
    platform = body.get("platform") or {"type": "none" if sno or body.get("user_managed_networking") else "baremetal"}
    managed = body.get("user_managed_networking")
    if managed is None:
        managed = sno or platform["type"] in ("none", "external")
    if sno:
        refusals.single_node(managed, bool(body.get("vip_dhcp_allocation")), body.get("network_type"), platform["type"])
    elif not managed and platform["type"] == "none":
        raise ApiError(400, "user_managed_networking must be true for platform none")
    ident, now = str(uuid.uuid4()), e.clock()
    base = {"id": ident, "user_managed_networking": managed, "control_plane_count": count}
    fields: dict[str, Any] = {**_networks(e, body, ident, True)}
    _vips(body, {**body, **fields, **base, "api_vips": (), "ingress_vips": ()}, fields)
    if managed and body.get("vip_dhcp_allocation"):
        raise ApiError(400, "VIP DHCP Allocation cannot be set with User Managed Networking")
    _settings(body, {})
    arch = body.get("cpu_architecture", "x86_64")
    release = _release(e, body["openshift_version"], arch, body.get("ocp_release_image", ""))
    refusals.pull_secret(body["pull_secret"], "pull secret for new cluster is invalid")
    refusals.cluster_name(body["name"], platform["type"])
    refusals.dns_name(body["name"], body.get("base_dns_domain", ""))
    refusals.ssh_keys(body.get("ssh_public_key", ""))
    fields |= {key: body[key] for key in _PLAIN if body.get(key) is not None}
    fields |= base | {
        "kind": "Cluster",
        "href": f"/api/assisted-install/v2/clusters/{ident}",
        "name": body["name"],
        "high_availability_mode": "None" if sno else "Full",
        "openshift_version": str(release.get("version") or body["openshift_version"]),
        "ocp_release_image": body.get("ocp_release_image") or release.get("url", ""),
        "cpu_architecture": arch,
        "platform": platform,
        "image_info": {},
        "status": "insufficient",
        "status_info": "Cluster is not ready for install",
        "status_updated_at": time_text(now),
        "_status_at": now,
        "created_at": time_text(now),
        "updated_at": time_text(now),
        "pull_secret_set": True,
        "_pull_secret": body["pull_secret"],
        "email_domain": "Unknown",
        "user_name": "admin",
        "progress": {"total_percentage": 0},
        "hyperthreading": body.get("hyperthreading", "all"),
        "network_type": body.get("network_type") or "OVNKubernetes",
        "vip_dhcp_allocation": bool(body.get("vip_dhcp_allocation")),
        "monitored_operators": [],
        "feature_usage": "{}",
        "validations_info": "",
        "schedulable_masters_forced_true": not sno,
        "last-installation-preparation": {"status": "not_started", "reason": ""},
        "imported": False,
    }
    names = ["console"] + (["cvo"] if e.config.flag("CHECK_CLUSTER_VERSION") else [])
    fields["monitored_operators"] = [
        {"cluster_id": ident, "name": name, "operator_type": "builtin", "timeout_seconds": 3600, "status_info": ""}
        for name in names
    ]
    fields["monitored_operators"] += _olm_operators(e, fields, body) or []
    cluster = e.store.create("cluster", ident, fields)
    e.event("cluster_registration_succeeded", cluster_id=ident)
    e.touch_cluster(ident)
    e.start_release(cluster)
    return cluster_model(e, cluster)


@handler
def register_disconnected_cluster(e: Engine, call: Call) -> Any:
    """A cluster that only holds what an offline image is made of: it is not monitored and never installed."""
    body, ident, now = call.body, str(uuid.uuid4()), e.clock()
    cluster = e.store.create(
        "cluster",
        ident,
        {
            "kind": "DisconnectedCluster",
            "id": ident,
            "href": f"/api/assisted-install/v2/clusters/{ident}",
            "name": body["name"],
            "openshift_version": body["openshift_version"],
            "status": "unmonitored",
            "status_info": "Cluster created for offline installation",
            "status_updated_at": time_text(now),
            "_status_at": now,
            "created_at": time_text(now),
            "updated_at": time_text(now),
            "image_info": {},
            "progress": {"total_percentage": 0},
            "monitored_operators": [],
            "validations_info": "",
            "email_domain": "Unknown",
            "user_name": "admin",
        },
    )
    e.event("cluster_registration_succeeded", cluster_id=ident)
    return cluster_model(e, cluster)


@handler
def import_cluster(e: Engine, call: Call) -> Any:
    body = call.body
    ident, now = str(uuid.uuid4()), e.clock()
    version = body.get("openshift_version", "")
    cluster = e.store.create(
        "cluster",
        ident,
        {
            "kind": "AddHostsCluster",
            "id": ident,
            "href": f"/api/assisted-install/v2/clusters/{ident}",
            "name": body["name"],
            "api_vip_dns_name": body["api_vip_dnsname"],
            "openshift_cluster_id": body["openshift_cluster_id"],
            "openshift_version": version,
            "status": "adding-hosts",
            "status_info": "cluster is adding hosts to existing OCP cluster",
            "status_updated_at": time_text(now),
            "_status_at": now,
            "created_at": time_text(now),
            "updated_at": time_text(now),
            "image_info": {},
            "imported": True,
            "user_managed_networking": True,
            "progress": {"total_percentage": 0},
            "monitored_operators": [],
            "validations_info": "",
            "platform": {"type": "baremetal"},
            "email_domain": "Unknown",
            "user_name": "admin",
        },
    )
    e.event("cluster_registration_succeeded", cluster_id=ident)
    e.touch_cluster(ident)
    return cluster_model(e, cluster)


@handler
def list_clusters(e: Engine, call: Call) -> Any:
    wanted = call.query.get("openshift_cluster_id")
    hosts = bool(call.query.get("with_hosts"))
    return [
        cluster_model(e, cluster, hosts)
        for cluster in e.clusters.values()
        if not wanted or cluster.get("openshift_cluster_id", "").lower() == wanted.lower()
    ]


@handler
def get_cluster(e: Engine, call: Call) -> Any:
    return cluster_model(e, e.cluster(call.path["cluster_id"]), not call.query.get("exclude-hosts"))


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
    for host in list(e.hosts_of(cluster["id"]).values()):
        forget_host(e, host)
    for infra_env in e.infra_envs.values():
        if infra_env.get("cluster_id") == cluster["id"]:
            infra_env.drop("cluster_id")
    e.store.delete("cluster", cluster["id"])
    e.store.forget_files(cluster["id"])
    e.store.forget_events("cluster_id", cluster["id"])
    shutil.rmtree(e.config.data_dir / "logs" / cluster["id"], ignore_errors=True)
    for table in (e.members, e.reach, e.results):
        table.pop(cluster["id"], None)
    e.settings_changed(cluster["id"])
    return None


@handler
def update_cluster(e: Engine, call: Call) -> Any:
    cluster, body = e.cluster(call.path["cluster_id"]), call.body
    if body.get("control_plane_count") is not None and not validations.is_day2(cluster):
        refusals.control_plane(cluster.get("high_availability_mode", "Full"), body["control_plane_count"])
    if body.get("pull_secret"):
        refusals.pull_secret(body["pull_secret"])
    platform = body.get("platform") or cluster.get("platform") or {}
    if body.get("name"):
        refusals.cluster_name(body["name"], platform.get("type"))
    refusals.networks(body)
    refusals.ssh_keys(body.get("ssh_public_key") or "")
    _settings(body, cluster)
    if cluster["status"] not in OPEN_CLUSTER:
        raise ApiError(
            409,
            f"Cluster {cluster['id']} is in {cluster['status']} state, cluster can be updated only in one of {refusals.go_list(OPEN_SHOWN)}",
        )
    if validations.is_sno(cluster) and body.get("user_managed_networking") is False:
        raise ApiError(400, "disabling UserManagedNetworking is not allowed in single node mode")
    if validations.is_sno(cluster) and body.get("network_type") == "OpenShiftSDN":
        raise ApiError(400, "OpenShiftSDN network type is not allowed in single node mode")
    if cluster.get("control_plane_count") == 1 and platform.get("type") not in (None, "none", "external"):
        raise ApiError(400, f"Single node cluster is not supported alongside {platform['type']} platform")
    refusals.dns_name(
        body.get("name") or cluster["name"], body.get("base_dns_domain") or cluster.get("base_dns_domain", "")
    )
    fields = {
        key: body[key]
        for key in (*_PLAIN, "name", "platform", "user_managed_networking", "api_vip_dns_name", "control_plane_count")
        if body.get(key) is not None
    }
    fields |= _networks(e, body, cluster["id"], False)
    merged = {**cluster, **fields}
    _vips(body, merged, fields)
    changed = [
        key
        for key in ("cluster_networks", "service_networks", "machine_networks")
        if key in fields and fields[key] != cluster.get(key)
    ]
    refusals.subnets(merged, changed, len(e.hosts_of(cluster["id"])), validations.is_sno(cluster))
    if body.get("pull_secret"):
        fields |= {"_pull_secret": body["pull_secret"], "pull_secret_set": True}
    if any(body.get(key) is not None for key in ("http_proxy", "https_proxy", "no_proxy")):
        e.event("proxy_settings_changed", cluster_id=cluster["id"])
    olm = _olm_operators(e, {**cluster, **fields}, body)
    if olm is not None:
        known = {op["name"]: op for op in cluster.get("monitored_operators", ())}
        kept = [op for op in known.values() if op.get("operator_type") != "olm"]
        fields["monitored_operators"] = kept + [{**known.get(op["name"], {}), **op} for op in olm]
    networks = cluster.get("machine_networks")
    cluster.set(**fields, updated_at=time_text(e.clock()))
    if cluster.get("machine_networks") != networks:
        e.networks_changed(cluster)
    if "api_vips" in fields or "ingress_vips" in fields:
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
        "inactive_deletion_hours": 0,
        "ntp_source": e.config.get("NTP_DEFAULT_SERVER"),
        "cluster_networks_ipv4": [four],
        "cluster_networks_dualstack": [four, six],
        "service_networks_ipv4": [{"cidr": "172.30.0.0/16"}],
        "service_networks_dualstack": [{"cidr": "172.30.0.0/16"}, {"cidr": "fd02::/112"}],
        "forbidden_hostnames": list(inv.FORBIDDEN_HOSTNAMES),
    }


@handler
def list_cluster_hosts(e: Engine, call: Call) -> Any:
    cluster, query = e.cluster(call.path["cluster_id"]), call.query
    drop = NO_LIST | {
        name
        for name, key in (("inventory", "with-inventory"), ("connectivity", "with-connectivity"))
        if not query.get(key)
    }
    return [
        host_model(e, host, drop)
        for host in e.hosts_of(cluster["id"]).values()
        if query.get("role", host.get("role")) == host.get("role")
        and query.get("status", host["status"]) == host["status"]
    ]


@handler
def supported_platforms(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    makers = {
        str(e.inventories.get(ident, {}).get("system_vendor", {}).get("manufacturer", "")).lower()
        for ident in e.hosts_of(cluster["id"])
    }
    extra = [
        name
        for name, maker in (("vsphere", "vmware"), ("nutanix", "nutanix"))
        if makers and all(maker in text for text in makers)
    ]
    return ["none"] if validations.is_sno(cluster) else ["baremetal", "none", "external", *extra]


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

    return prepare.install_config_text(prepare.job(e, e.cluster(call.path["cluster_id"])))


@handler
def update_install_config(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    try:
        overrides = parse_json(call.body)
    except Invalid as err:
        raise ApiError(400, f"install-config overrides: {err}") from None
    if not isinstance(overrides, dict):
        raise ApiError(400, "install-config overrides should be a JSON object")
    if cluster["status"] not in BEFORE_INSTALL:
        raise ApiError(
            400,
            f"Cluster {cluster['id']} is in status {cluster['status']}: overrides can be set before the installation only",
        )
    cluster["install_config_overrides"] = call.body
    e.event("install_config_applied", cluster_id=cluster["id"])


@handler
def get_ignored(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    return {
        "cluster-validation-ids": cluster.get("ignored_cluster_validations", ""),
        "host-validation-ids": cluster.get("ignored_host_validations", ""),
    }


@handler
def set_ignored(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] not in (*BEFORE_INSTALL, "adding-hosts"):
        raise ApiError(
            400,
            f"Cluster {cluster['id']} is in status {cluster['status']}: validations are ignored before the installation only",
        )
    tables = {"cluster": validations.CLUSTER, "host": validations.HOST}
    problems, found = [], {}
    for kind, table in tables.items():
        text = found[kind] = call.body.get(f"{kind}-validation-ids", "")
        try:
            idents = parse_json(text) if text else []
        except Invalid:
            idents = None
        if not isinstance(idents, list) or not all(isinstance(ident, str) for ident in idents):
            problems.append(f"{kind}-validation-ids should be a JSON list of validation ids, found {text[:200]!r}")
            continue
        fixed, known = validations.NEVER_IGNORED[kind], {ident for ident, *__ in table} | {"all"}
        for what, bad in (("is not known", set(idents) - known), ("cannot be ignored", set(idents) & fixed)):
            problems += [f"{kind} validation {ident[:80]} {what}" for ident in sorted(bad)]
    if problems:
        raise ApiError(400, "cannot proceed due to the following errors: " + "\n".join(problems))
    cluster.set(ignored_cluster_validations=found["cluster"], ignored_host_validations=found["host"])
    e.event("validations_ignored", cluster_id=cluster["id"])
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
