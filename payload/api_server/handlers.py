"""What each operation does: functions of the engine and a call, found by the handler's name in the table of operations.

A handler returns the answer's body (a JSON value, or a Download), None for an empty one. ApiError is the refusal.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
import tarfile
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from . import inventory as inv
from . import limits, operators, refusals, state, validations
from .calls import Call, Download, handler
from .engine import ApiError, Engine, time_text
from .models import MODELS, STEP_OUTPUTS, Invalid, parse_json
from .network import contains
from .store import Document
from .tables import ABI_EARLY, BEFORE_INSTALL, DOWNLOADS, MEDIA_DISCONNECTED, OPEN_CLUSTER

# -- shown forms ------------------------------------------------------------------------------------------------------

_NO_LIST = frozenset({"free_addresses"})


def public(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name[0] != "_"}


def host_model(e: Engine, host: Mapping[str, Any], drop: frozenset[str] = frozenset()) -> dict[str, Any]:
    shown = {name: value for name, value in host.items() if name[0] != "_" and name not in drop}
    shown["progress_stages"] = list(e.stages_of(host))
    name = validations.hostname_of(host, e.inventories.get(host["id"]))
    shown["requested_hostname"] = name or host["id"]
    shown.setdefault("progress", {})
    return shown


def cluster_model(e: Engine, cluster: Mapping[str, Any], hosts: bool = True) -> dict[str, Any]:
    shown = public(cluster)
    members = e.hosts_of(cluster["id"])
    if hosts:
        shown["hosts"] = [host_model(e, host, _NO_LIST) for host in members.values()]
        shown["host_networks"] = _host_networks(e, members)
    shown["operator_bundles"] = operators.chosen_bundles(cluster)
    shown["total_host_count"] = shown["enabled_host_count"] = len(members)
    shown["ready_host_count"] = sum(host["status"] == "known" for host in members.values())
    return shown


def _host_networks(e: Engine, members: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: dict[str, list[str]] = {}
    for ident in members:
        for cidr in inv_networks(e, ident):
            found.setdefault(cidr, []).append(ident)
    return [{"cidr": cidr, "host_ids": idents} for cidr, idents in found.items()]


def inv_networks(e: Engine, ident: str) -> list[str]:
    from .network import host_networks

    return host_networks(e.inventories.get(ident, {}))


# -- clusters ---------------------------------------------------------------------------------------------------------

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
    given = {key: [vip.get("ip", "") for vip in body[key]] for key in ("api_vips", "ingress_vips") if body.get(key) is not None}
    wanted = {key: given.get(key, [vip["ip"] for vip in cluster.get(key) or ()]) for key in ("api_vips", "ingress_vips")}
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


#: OPEN_CLUSTER in the order in which upstream's messages have it.
_OPEN_SHOWN = ("insufficient", "ready", "pending-for-input", "adding-hosts")
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
    merged = {key: body[key] if body.get(key) is not None else cluster.get(key) for key in ("additional_ntp_source", "ntp_sources")}
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
        _forget_host(e, host)
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
            409, f"Cluster {cluster['id']} is in {cluster['status']} state, cluster can be updated only in one of {refusals.go_list(_OPEN_SHOWN)}"
        )
    if validations.is_sno(cluster) and body.get("user_managed_networking") is False:
        raise ApiError(400, "disabling UserManagedNetworking is not allowed in single node mode")
    if validations.is_sno(cluster) and body.get("network_type") == "OpenShiftSDN":
        raise ApiError(400, "OpenShiftSDN network type is not allowed in single node mode")
    if cluster.get("control_plane_count") == 1 and platform.get("type") not in (None, "none", "external"):
        raise ApiError(400, f"Single node cluster is not supported alongside {platform['type']} platform")
    refusals.dns_name(body.get("name") or cluster["name"], body.get("base_dns_domain") or cluster.get("base_dns_domain", ""))
    fields = {
        key: body[key]
        for key in (*_PLAIN, "name", "platform", "user_managed_networking", "api_vip_dns_name", "control_plane_count")
        if body.get(key) is not None
    }
    fields |= _networks(e, body, cluster["id"], False)
    merged = {**cluster, **fields}
    _vips(body, merged, fields)
    changed = [key for key in ("cluster_networks", "service_networks", "machine_networks") if key in fields and fields[key] != cluster.get(key)]
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
    drop = _NO_LIST | {
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
    from . import prepare

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
def install_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    e.refresh_roles(cluster)
    rule = state.decide(state.CLUSTER["prepare"], cluster["status"], lambda name: True)
    if rule is None:
        raise ApiError(
            409,
            f"Cluster is not ready for installation, {cluster.get('status_info', '')} validation_info={cluster.get('validations_info', '')}",
        )
    members = e.hosts_of(cluster["id"])
    masters = []
    for ident, host in members.items():
        if host.get("role", "auto-assign") == "auto-assign":
            host["role"] = host.get("suggested_role", "worker")
        if host["role"] == "master":
            masters.append(ident)
    mac = e.config.get("BOOTSTRAP_HOST_MAC")
    chosen = next((ident for ident in masters if mac and inv.has_mac(e.inventories.get(ident, {}), mac)), masters[-1])
    now = e.clock()
    cluster.set(
        **{"last-installation-preparation": {"status": "not_started", "reason": ""}},
        install_started_at=time_text(now),
        _install_at=now,
    )
    cluster.drop("logs_info", "install_completed_at", "controller_logs_collected_at", "controller_logs_started_at")
    for host in members.values():
        host.drop("logs_info", "logs_collected_at", "logs_started_at", "progress")
    e.set_cluster_status(cluster, rule.dest, rule.info or "")
    for ident, host in members.items():
        if ident == chosen and not host.get("bootstrap"):
            e.event("host_bootstrap_set", host=host)
        host["bootstrap"] = ident == chosen
    e.cluster_progress(cluster)
    e.start_preparation(cluster)
    return cluster_model(e, cluster)


#: What the state machine of upstream says of a transition that has no rule.
_NO_TRANSITION = "no condition found to run transition"


def _move_hosts(e: Engine, cluster: Document, trigger: str, event: str) -> None:
    for host in e.hosts_of(cluster["id"]).values():
        booted = host.get("progress", {}).get("current_stage") in validations.AFTER_REBOOT or host["status"] in (
            "installed",
            "error",
            "cancelled",
        )
        if e.trigger(host, trigger, lambda name, value=booted: value) is not None:  # type: ignore[misc]
            e.event(event, host=host)
            if host["status"] == "resetting-pending-user-action":
                e.event("user_required_complete_installation_reset", host=host)


@handler
def cancel_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    rule = state.decide(state.CLUSTER["cancel"], cluster["status"], lambda name: True)
    if rule is None:
        e.event("cancel_installation_failed", cluster_id=cluster["id"], error=_NO_TRANSITION)
        raise ApiError(409, _NO_TRANSITION)
    _move_hosts(e, cluster, "cancel", "host_installation_cancelled")
    e.set_cluster_status(cluster, rule.dest, rule.info or "")
    e.event("cluster_installation_canceled", cluster_id=cluster["id"])
    return cluster_model(e, cluster)


@handler
def reset_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    rule = state.decide(state.CLUSTER["reset"], cluster["status"], lambda name: True)
    if rule is None:
        e.event("reset_installation_failed", cluster_id=cluster["id"], error=_NO_TRANSITION)
        raise ApiError(409, _NO_TRANSITION)
    _move_hosts(e, cluster, "reset", "host_installation_reset")
    for name, __ in list(e.store.files(cluster["id"])):
        if not name.startswith("manifest/"):
            e.store.put_file(cluster["id"], name, None)
    cluster.set(
        progress={"total_percentage": 0}, **{"last-installation-preparation": {"status": "not_started", "reason": ""}}
    )
    cluster.drop(
        "install_started_at",
        "install_completed_at",
        "logs_info",
        "controller_logs_collected_at",
        "controller_logs_started_at",
        "_install_at",
        "_stage_at",
    )
    cluster["monitored_operators"] = [
        {k: v for k, v in op.items() if k not in ("status", "version", "status_updated_at")}
        for op in cluster["monitored_operators"]
    ]
    e.set_cluster_status(cluster, rule.dest, rule.info or "")
    e.event("cluster_installation_reset", cluster_id=cluster["id"])
    return cluster_model(e, cluster)


@handler
def allow_add_hosts(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] != "installed":
        raise ApiError(
            409,
            f"Cluster {cluster['id']} is in status {cluster['status']}: hosts can be added to an installed cluster only",
        )
    cluster["kind"] = "AddHostsCluster"
    cluster["api_vip_dns_name"] = validations.domain(cluster, "api")
    e.set_cluster_status(cluster, "adding-hosts", "cluster is adding hosts to existing OCP cluster")
    return cluster_model(e, cluster)


@handler
def complete_installation(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] not in ("installing", "finalizing", "installed", "error", "installing-pending-user-action"):
        raise ApiError(
            409, f"Cluster {cluster['id']} is in status {cluster['status']}: its installation is not running"
        )
    if not call.body["is_success"]:
        report = call.body.get("data", {}).get("CLUSTER_OPERATORS_REPORT") or call.body.get("error_info", "")
        e.event(
            "cluster_operator_report",
            cluster_id=cluster["id"],
            report=report if isinstance(report, str) else json.dumps(report),
        )
    e.dirty.add(cluster["id"])
    return cluster_model(e, cluster)


@handler
def update_finalizing(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] not in ("installing", "finalizing", "installing-pending-user-action"):
        raise ApiError(400, f"Cluster {cluster['id']} is in status {cluster['status']}: it is not finalizing")
    stage, before = call.body.get("finalizing_stage", ""), cluster.get("progress", {})
    if stage and stage != before.get("finalizing_stage"):
        now = e.clock()
        cluster["progress"] = {
            **before,
            "finalizing_stage": stage,
            "finalizing_stage_started_at": time_text(now),
            "finalizing_stage_timed_out": False,
        }
        cluster["_stage_at"] = now
        e.event("cluster_finalizing_stage_updated", cluster_id=cluster["id"], finalizing_stage=stage)
    return None


@handler
def list_operators(e: Engine, call: Call) -> Any:
    cluster, name = e.cluster(call.path["cluster_id"]), call.query.get("operator_name")
    found = [op for op in cluster.get("monitored_operators", []) if not name or op["name"] == name]
    if name and not found:
        raise ApiError(404, f"Operator {name} was not found in cluster {cluster['id']}")
    return found


@handler
def report_operator(e: Engine, call: Call) -> Any:
    cluster, body = e.cluster(call.path["cluster_id"]), call.body
    operators = cluster.get("monitored_operators", [])
    if all(op["name"] != body.get("name") for op in operators):
        raise ApiError(404, f"Operator {body.get('name', '')} was not found in cluster {cluster['id']}")
    made = []
    for op in operators:
        if op["name"] == body["name"]:
            update = {key: body[key] for key in ("status", "status_info", "version") if key in body}
            if any(op.get(key) != value for key, value in update.items()):
                op = {**op, **update, "status_updated_at": time_text(e.clock())}
                e.event(
                    "cluster_operator_status",
                    cluster_id=cluster["id"],
                    operator_name=op["name"],
                    status=op.get("status", ""),
                    status_info=op.get("status_info", ""),
                )
        made.append(op)
    cluster["monitored_operators"] = made
    e.cluster_progress(cluster)
    e.dirty.add(cluster["id"])
    return None


@handler
def upload_ingress_cert(e: Engine, call: Call) -> Any:
    from . import prepare

    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] not in ("finalizing", "installed"):
        raise ApiError(
            400,
            f"Cluster {cluster['id']} is in status {cluster['status']}: the ingress certificate is taken in finalizing and installed",
        )
    plain = e.store.file(cluster["id"], "kubeconfig-noingress")
    if plain is None:
        raise ApiError(400, f"Cluster {cluster['id']} has no kubeconfig-noingress to add the ingress certificate to")
    try:
        merged = prepare.add_ca(plain, call.body)
    except ValueError as err:
        raise ApiError(400, f"ingress certificate: {err}") from None
    e.store.put_file(cluster["id"], "kubeconfig", merged)
    e.dirty.add(cluster["id"])
    return None


@handler
def credentials(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    console = any(
        op["name"] == "console" and op.get("status") == "available" for op in cluster.get("monitored_operators", [])
    )
    if not (e.config.abi or console) or cluster["status"] in BEFORE_INSTALL - {"ready"}:
        raise ApiError(
            409, f"Cluster {cluster['id']} is in status {cluster['status']}: its credentials are not available yet"
        )
    password = e.store.file(cluster["id"], "kubeadmin-password") or b""
    url = f"https://{validations.domain(cluster, 'console-openshift-console.apps')}"
    return {"username": "kubeadmin", "password": password.decode(), "console_url": url}


def _cluster_file(e: Engine, call: Call, early: bool) -> Any:
    cluster, name = e.cluster(call.path["cluster_id"]), call.query["file_name"]
    allowed = DOWNLOADS[name] | (ABI_EARLY if early and e.config.abi and name != "kubeconfig" else frozenset())
    if cluster["status"] not in allowed:
        raise ApiError(
            409,
            f"Cluster {cluster['id']} is in status {cluster['status']}, file {name} can be downloaded in: {', '.join(sorted(allowed))}",
        )
    content = e.store.file(cluster["id"], name)
    if content is None:
        raise ApiError(409, f"Cluster {cluster['id']} has no file {name} yet")
    return Download(name, content)


@handler
def download_file(e: Engine, call: Call) -> Any:
    return _cluster_file(e, call, False)


@handler
def download_credentials(e: Engine, call: Call) -> Any:
    return _cluster_file(e, call, True)


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


# -- manifests --------------------------------------------------------------------------------------------------------


def _manifest(folder: str, name: str, source: str = "user") -> dict[str, Any]:
    return {"folder": folder, "file_name": name, "manifest_source": source}


def _manifest_content(text: str, path: str, cluster_id: str) -> bytes:
    """Content of a manifest as users give it; ApiError 400 when it is none."""
    where = f"of file {path} for cluster ID {cluster_id}"
    if not text.strip(" "):
        raise ApiError(400, f"Manifest content {where} is empty")
    try:
        content = base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(400, f"failed to base64-decode cluster manifest content for cluster {cluster_id}") from None
    if len(content) > limits.MAX_MANIFEST:
        raise ApiError(400, f"Manifest content {where} exceeds the maximum file size of 1MiB")
    import yaml

    json_file, patch = path.endswith(".json"), ".patch" in path.rpartition("/")[2]
    try:
        if json_file:
            parse_json(content)
        else:
            found = list(yaml.load_all(content.decode(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
            if _written_out(found, {}) > limits.MAX_YAML_NODES:
                raise ValueError("document contains excessive aliasing")
            if patch and not all(isinstance(entry, list) for entry in found):
                raise ValueError("it should be a list of operations")
    except (ValueError, yaml.YAMLError, RecursionError) as err:
        reason = " ".join(str(err).split())[:300]
        if json_file:
            raise ApiError(400, f"Manifest content {where} has an illegal JSON format") from None
        if patch:
            raise ApiError(400, f"Patch content {where} is invalid: {reason}") from None
        raise ApiError(400, f"Manifest content {where} has an invalid YAML format: {reason}") from None
    return content


def _written_out(value: Any, known: dict[int, int]) -> int:
    """How many nodes a document has when its aliases are written out; ValueError when it contains itself."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = -1
        entries = [*value, *value.values()] if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_written_out(entry, known) for entry in entries)
    if known[id(value)] < 0:
        raise ValueError("document contains itself")
    return known[id(value)]


@handler
def list_manifests(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    found = [_manifest(*name.split("/", 2)[1:]) for name, __ in e.store.files(cluster["id"], "manifest/")]
    if call.query.get("include_system_generated"):
        known = {(entry["folder"], entry["file_name"]) for entry in found}
        made, __ = operators.manifests(cluster)
        found += [_manifest("openshift", name, "system") for name in made if ("openshift", name) not in known]
    return found


def _changeable(cluster: Document) -> None:
    if cluster["status"] not in BEFORE_INSTALL:
        raise ApiError(
            400, f"cluster {cluster['id']} is not in pre-installation states, can't modify manifests after installation has been started"
        )


def _distinct(e: Engine, cluster: Document, folder: str, name: str) -> None:
    other = "openshift" if folder == "manifests" else "manifests"
    if e.store.file(cluster["id"], f"manifest/{other}/{name}") is not None:
        raise ApiError(
            400,
            f"manifest file {name} for cluster ID {cluster['id']} in folder {folder} cannot be uploaded as it is not distinct between "
            "{manifest, openshift} folders",
        )


def _put_manifest(e: Engine, cluster: Document, folder: str, name: str, content: bytes | None) -> None:
    e.store.put_file(cluster["id"], f"manifest/{folder}/{name}", content)
    e.settings_changed(cluster["id"])


@handler
def create_manifest(e: Engine, call: Call) -> Any:
    cluster, body = e.cluster(call.path["cluster_id"]), call.body
    folder, name = body.get("folder", "manifests"), body["file_name"]
    refusals.manifest_name(name, cluster["id"])
    content = _manifest_content(body["content"], f"{folder}/{name}", cluster["id"])
    _distinct(e, cluster, folder, name)
    if cluster["status"] not in (*BEFORE_INSTALL, "preparing-for-installation"):
        _changeable(cluster)
    _put_manifest(e, cluster, folder, name, content)
    return _manifest(folder, name)


def _existing(e: Engine, cluster: Document, folder: str, name: str) -> bytes:
    content = e.store.file(cluster["id"], f"manifest/{folder}/{name}")
    if content is None:
        raise ApiError(404, f"Cluster manifest {folder}/{name} doesn't exist in cluster {cluster['id']}")
    return content


@handler
def update_manifest(e: Engine, call: Call) -> Any:
    cluster, body = e.cluster(call.path["cluster_id"]), call.body
    folder, name = body.get("updated_folder") or body["folder"], body.get("updated_file_name") or body["file_name"]
    _changeable(cluster)
    for file_name in (body["file_name"], name):
        refusals.manifest_name(file_name, cluster["id"])
    content = _existing(e, cluster, body["folder"], body["file_name"])
    if name != body["file_name"]:
        _distinct(e, cluster, folder, name)
    if body.get("updated_content") is not None:
        content = _manifest_content(body["updated_content"], name, cluster["id"])
    _put_manifest(e, cluster, folder, name, content)
    if (folder, name) != (body["folder"], body["file_name"]):
        _put_manifest(e, cluster, body["folder"], body["file_name"], None)
    return _manifest(folder, name)


@handler
def delete_manifest(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    folder, name = call.query.get("folder", "manifests"), call.query["file_name"]
    _changeable(cluster)
    refusals.manifest_name(name, cluster["id"])
    _put_manifest(e, cluster, folder, name, None)
    return None


@handler
def download_manifest(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    name = call.query["file_name"]
    refusals.manifest_name(name, cluster["id"])
    return Download(name, _existing(e, cluster, call.query.get("folder", "manifests"), name))


# -- infra-envs -------------------------------------------------------------------------------------------------------


def _static_networks(entries: list[dict[str, Any]]) -> str:
    from ...plugins.module_utils.nmstate import NmstateError, generate, load

    for entry in entries:
        try:
            generate(load(entry.get("network_yaml", "")))
        except NmstateError as err:
            raise ApiError(400, f"static_network_config: network_yaml: {str(err)[:300]}") from None
        if not entry.get("mac_interface_map"):
            raise ApiError(400, "static_network_config: mac_interface_map is empty")
    return json.dumps(
        sorted(entries, key=lambda entry: (entry.get("network_yaml", ""), str(entry.get("mac_interface_map"))))
    )


_INFRA_PLAIN = (
    "additional_ntp_sources",
    "ntp_sources",
    "ssh_authorized_key",
    "rendezvous_ip",
    "ignition_config_override",
    "proxy",
    "additional_trust_bundle",
    "network_discovery_delay_seconds",
    "openshift_version",
)


def _infra_fields(body: dict[str, Any]) -> dict[str, Any]:
    proxy = body.get("proxy") or {}
    refusals.proxies(proxy.get("http_proxy"), proxy.get("https_proxy"), proxy.get("no_proxy"))
    refusals.ntp_sources(body.get("additional_ntp_sources"), body.get("ntp_sources"))
    refusals.ssh_keys(body.get("ssh_authorized_key") or "")
    fields = {key: body[key] for key in _INFRA_PLAIN if body.get(key) is not None}
    if body.get("static_network_config") is not None:
        fields["static_network_config"] = _static_networks(body["static_network_config"])
    if body.get("kernel_arguments") is not None:
        fields["kernel_arguments"] = json.dumps(body["kernel_arguments"])
    if body.get("ignition_config_override"):
        _check_ignition(body["ignition_config_override"], "ignition_config_override")
    if body.get("image_type"):
        fields["type"] = body["image_type"]
    if body.get("pull_secret"):
        refusals.pull_secret(body["pull_secret"])
        fields |= {"pull_secret_set": True, "_pull_secret": body["pull_secret"]}
    return fields


def _check_ignition(text: str, what: str) -> dict[str, Any]:
    try:
        config = parse_json(text)
        version = config["ignition"]["version"]
    except (Invalid, KeyError, TypeError):
        raise ApiError(400, f"{what} should be an Ignition config (JSON with ignition.version)") from None
    if not isinstance(version, str) or not version.startswith("3."):
        raise ApiError(400, f"{what}: Ignition version {version!r} should be 3.x")
    return dict(config)


@handler
def register_infra_env(e: Engine, call: Call) -> Any:
    body = call.body
    fields = _infra_fields(body)
    cluster_id = (body.get("cluster_id") or "").lower()
    if cluster_id:
        cluster_id = e.cluster(cluster_id)["id"]
    predefined = e.config.get("INFRA_ENV_ID").lower()
    ident, now = predefined if predefined and predefined not in e.infra_envs else str(uuid.uuid4()), e.clock()
    infra_env = e.store.create(
        "infra_env",
        ident,
        {
            "kind": "InfraEnv",
            "id": ident,
            "href": f"/api/assisted-install/v2/infra-envs/{ident}",
            "name": body["name"],
            "type": "full-iso",
            "cpu_architecture": body.get("cpu_architecture", "x86_64"),
            "created_at": time_text(now),
            "updated_at": time_text(now),
            "email_domain": "Unknown",
            "user_name": "admin",
            "cluster_id": cluster_id or None,
            "proxy": {},
            **fields,
        },
    )
    e.event("infra_env_registered", infra_env_id=ident)
    return _infra_model(infra_env)


def _infra_model(infra_env: Mapping[str, Any]) -> dict[str, Any]:
    return public(infra_env)


@handler
def list_infra_envs(e: Engine, call: Call) -> Any:
    wanted = call.query.get("cluster_id")
    return [
        _infra_model(entry)
        for entry in e.infra_envs.values()
        if not wanted or entry.get("cluster_id") == wanted.lower()
    ]


@handler
def get_infra_env(e: Engine, call: Call) -> Any:
    return _infra_model(e.infra_env(call.path["infra_env_id"]))


@handler
def update_infra_env(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    infra_env.set(**_infra_fields(call.body), updated_at=time_text(e.clock()))
    return _infra_model(infra_env)


@handler
def delete_infra_env(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    hosts = [host for host in e.hosts.values() if host["infra_env_id"] == infra_env["id"]]
    busy = [host["id"] for host in hosts if host["status"].startswith(("installing", "preparing"))]
    if busy:
        raise ApiError(409, f"InfraEnv {infra_env['id']} has hosts that are being installed: {', '.join(busy)}")
    for host in hosts:
        _forget_host(e, host)
    e.store.delete("infra_env", infra_env["id"])
    e.store.forget_events("infra_env_id", infra_env["id"])
    return None


@handler
def regenerate_key(e: Engine, call: Call) -> Any:
    e.infra_env(call.path["infra_env_id"])
    return None


# -- hosts ------------------------------------------------------------------------------------------------------------


def _forget_host(e: Engine, host: Document) -> None:
    e.leave(host)
    e.store.delete("host", host["id"])
    e.store.forget_events("host_id", host["id"])
    for table in (e.inventories, e.results):
        table.pop(host["id"], None)
    e.dirty.discard(host["id"])
    e.touch_hosts(host.get("cluster_id"))


def _accepts_hosts(cluster: Mapping[str, Any]) -> None:
    if cluster["status"] == "installed":
        raise ApiError(409, "Cannot add hosts to an existing cluster using the original Discovery ISO.")
    if cluster["status"] not in OPEN_CLUSTER:
        raise ApiError(409, f"Host can register only in one of the following states: {refusals.go_list(_OPEN_SHOWN)}")


@handler
def register_host(e: Engine, call: Call) -> Any:
    infra_env, body = e.infra_env(call.path["infra_env_id"]), call.body
    ident, now = body["host_id"].lower(), e.clock()
    version = body.get("discovery_agent_version") or call.headers.get("discovery_agent_version", "")
    host = e.hosts.get(ident)
    e.ask_again(ident)
    if host is not None and host["infra_env_id"] != infra_env["id"]:
        raise ApiError(409, f"Host {ident} is registered in infra-env {host['infra_env_id']}: delete it there first")
    cluster = e.clusters.get((host or infra_env).get("cluster_id", ""))
    if host is None:
        if cluster is not None:
            _accepts_hosts(cluster)
        day2 = cluster is not None and validations.is_day2(cluster)
        single = cluster is not None and not day2 and validations.is_sno(cluster)
        role = "worker" if day2 else "master" if single else "auto-assign"
        host = e.store.create(
            "host",
            ident,
            {
                "kind": "AddToExistingClusterHost" if day2 else "Host",
                "id": ident,
                "infra_env_id": infra_env["id"],
                "href": f"/api/assisted-install/v2/infra-envs/{infra_env['id']}/hosts/{ident}",
                "cluster_id": cluster["id"] if cluster else None,
                "status": "discovering" if cluster else "discovering-unbound",
                "status_info": state.WAITING,
                "status_updated_at": time_text(now),
                "_status_at": now,
                "created_at": time_text(now),
                "updated_at": time_text(now),
                "role": role,
                "suggested_role": role,
                "bootstrap": single or None,
                "user_name": "admin",
                "media_status": "connected",
            },
        )
        e.join(host)
        if len(e.hosts_of(host.get("cluster_id", ""))) <= 6:
            e.touch_hosts(host.get("cluster_id"))
        e.event("host_registration_succeeded", host=host)
    else:
        stage = host.get("progress", {}).get("current_stage", "")
        if host["status"] == "installing-pending-user-action" and host.get("_wrong_boot"):
            raise ApiError(403, "Host is required to be booted from disk")
        if host["status"] == "installed":
            raise ApiError(409, state.fill(state.POST_INSTALL, INSTALLATION_DISK=e.disk_text(host)))
        rule = e.trigger(
            host, "register", lambda name: stage in validations.AFTER_REBOOT, INSTALLATION_DISK=e.disk_text(host)
        )
        if rule is None:
            raise ApiError(409, f"Host {ident} cannot register in status {host['status']}")
        host.set(_wrong_boot=(rule is not None and rule.dest == "installing-pending-user-action") or None)
        if host["status"] in ("discovering", "discovering-unbound"):
            e.event("host_registration_succeeded", host=host)
    host.set(
        discovery_agent_version=version or None,
        registered_at=time_text(now),
        updated_at=time_text(now),
        checked_in_at=time_text(now),
        _checked_in=now,
    )
    e.dirty.add(ident)
    runner = {"infra_env_id": infra_env["id"], "host_id": ident, "agent_version": version}
    command = {"command": "", "args": [json.dumps(runner, separators=(",", ":"))]}
    return {**host_model(e, host), "next_step_runner_command": command}


@handler
def list_hosts(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    return [host_model(e, host) for host in e.hosts.values() if host["infra_env_id"] == infra_env["id"]]


@handler
def get_host(e: Engine, call: Call) -> Any:
    return host_model(e, _host(e, call))


def _host(e: Engine, call: Call) -> Document:
    return e.host(call.path["infra_env_id"], call.path["host_id"])


@handler
def delete_host(e: Engine, call: Call) -> Any:
    host = _host(e, call)
    if host["status"].startswith(("installing", "preparing")):
        raise ApiError(
            400, f"Host {host['id']} is in status {host['status']}: it cannot be deleted during an installation"
        )
    e.event("host_deregistered", host=host)
    _forget_host(e, host)
    return None


_EDITABLE = frozenset({"discovering", "known", "disconnected", "insufficient", "pending-for-input", "binding"})


_EDITABLE_SHOWN = ("discovering", "known", "disconnected", "insufficient", "pending-for-input")
#: Field of a host, status of its refusal and what it is called there. Upstream answers 500 where this has 400.
_SETTABLE = (
    ("host_role", 400, "host role"),
    ("host_name", 409, "host name"),
    ("disks_selected_config", 409, "installation disk path"),
    ("machine_config_pool_name", 400, "host machine config pool"),
    ("ignition_endpoint_token", 400, "host ignition endpoint token"),
    ("ignition_endpoint_http_headers", 400, "ignition endpoint HTTP headers"),
    ("node_labels", 400, "labels"),
    ("disks_skip_formatting", 400, "disks formatting"),
    ("fencing_credentials", 400, "fencing credentials"),
)


@handler
def update_host(e: Engine, call: Call) -> Any:
    host, body = _host(e, call), call.body
    if host["status"] not in _EDITABLE and not host["status"].endswith("-unbound"):
        for key, status, what in _SETTABLE:
            if body.get(key) is not None:
                shown = refusals.go_list(_EDITABLE_SHOWN)
                raise ApiError(status, f"Host is in {host['status']} state, {what} can be set only in one of {shown} states")
    inventory = e.inventories.get(host["id"], {})
    fields: dict[str, Any] = {}
    name = body.get("host_name")
    if name is not None:
        refusals.hostname(name)
        fields["requested_hostname"] = name
    chosen = [disk["id"] for disk in body.get("disks_selected_config", ()) if disk.get("role") == "install"]
    if len(chosen) > 1:
        raise ApiError(409, "duplicate setting of installation path by the user")
    if chosen:
        disk = inv.find_disk(inventory, chosen[0])
        if disk is None or disk not in inv.eligible_disks(inventory):
            raise ApiError(409, "Requested installation disk is not part of the host's valid disks")
        fields |= {
            "installation_disk_id": disk["id"],
            "installation_disk_path": disk.get("path") or disk["id"],
            "_disk_by_user": True,
        }
    if body.get("disks_skip_formatting"):
        skip = [entry["disk_id"] for entry in body["disks_skip_formatting"] if entry["skip_formatting"]]
        unknown = [ident for ident in skip if inv.find_disk(inventory, ident) is None]
        if unknown:
            raise ApiError(
                400,
                f"Disk identifier {unknown[0]} doesn't match any disk in the inventory, it cannot be skipped. Inventory disk identifiers are: "
                + ", ".join(inv.disk_id(disk) for disk in inventory.get("disks", ())),
            )
        fields["skip_formatting_disks"] = ",".join(skip)
    if body.get("host_role") is not None:
        fields["role"] = body["host_role"]
        if body["host_role"] != "auto-assign":
            fields["suggested_role"] = body["host_role"]
    if body.get("machine_config_pool_name") is not None:
        fields["machine_config_pool_name"] = body["machine_config_pool_name"]
    if body.get("node_labels") is not None:
        fields["node_labels"] = json.dumps({label["key"]: label["value"] for label in body["node_labels"]})
    if body.get("fencing_credentials") is not None:
        fields["fencing_credentials"] = json.dumps(body["fencing_credentials"])
    if body.get("ignition_endpoint_token") is not None:
        fields |= {
            "_ignition_token": body["ignition_endpoint_token"],
            "ignition_endpoint_token_set": bool(body["ignition_endpoint_token"]),
        }
    old = e.hostname(host)
    host.set(**fields, updated_at=time_text(e.clock()))
    e.name_changed(host, old)
    if inventory and "role" in fields:
        e.take_inventory(host, inventory)
    e.touch_cluster(host.get("cluster_id"))
    cluster = e.cluster_of(host)
    if cluster is not None:
        e.refresh_host(host, e.view(cluster))
    return host_model(e, host)


@handler
def update_installer_args(e: Engine, call: Call) -> Any:
    host, args = _host(e, call), call.body.get("args", [])
    allowed = (
        "--append-karg",
        "--delete-karg",
        "-n",
        "--copy-network",
        "--network-dir",
        "--save-partlabel",
        "--save-partindex",
        "--image-url",
        "--image-file",
        "--preserve-on-error",
    )
    bad = [arg for arg in args if arg.startswith("-") and arg not in allowed]
    if bad:
        raise ApiError(400, f"found unexpected flag {bad[0]} for installer - allowed flags are {', '.join(allowed)}")
    host["installer_args"] = json.dumps(args)
    e.event("host_installer_args_applied", host=host)
    return host_model(e, host)


@handler
def get_host_ignition(e: Engine, call: Call) -> Any:
    return {"config": _host(e, call).get("ignition_config_overrides", "")}


@handler
def update_host_ignition(e: Engine, call: Call) -> Any:
    host, text = _host(e, call), call.body.get("config", "")
    if text:
        _check_ignition(text, "config")
    host["ignition_config_overrides"] = text
    e.event("host_discovery_ignition_config_applied", host=host)
    return None


@handler
def download_host_ignition(e: Engine, call: Call) -> Any:
    from . import prepare

    host = _host(e, call)
    cluster = e.cluster_of(host)
    if cluster is None or cluster["status"] not in DOWNLOADS["worker.ign"]:
        status = cluster["status"] if cluster else "unbound"
        raise ApiError(409, f"Host {host['id']} has no ignition while its cluster is in status {status}")
    content = e.store.file(cluster["id"], f"host/{host['id']}")
    role = validations.role_of(host)
    if content is None:
        raise ApiError(409, f"Host {host['id']} has no ignition yet")
    overrides = host.get("ignition_config_overrides")
    return Download(f"{role}-{host['id']}.ign", prepare.override(content, overrides) if overrides else content)


@handler
def bind_host(e: Engine, call: Call) -> Any:
    host, cluster = _host(e, call), e.clusters.get(call.body["cluster_id"].lower())
    if cluster is None:
        raise ApiError(400, f"Failed to find cluster {call.body['cluster_id']}")
    if host.get("cluster_id"):
        raise ApiError(409, f"Host {host['id']} is already bound to cluster {host.get('cluster_id')}")
    _accepts_hosts(cluster)
    infra_env = e.infra_env(host["infra_env_id"])
    cpus = cluster.get("cpu_architecture"), infra_env.get("cpu_architecture")
    if cpus[0] not in (None, "", "multi", cpus[1]):
        raise ApiError(400, f"InfraEnv's CPU architecture ({cpus[1]}) doesn't match the cluster ({cpus[0]})")
    if e.trigger(host, "bind", lambda name: True) is None:
        e.event("host_bind_failed", host=host, cluster_id=cluster["id"], message=_NO_TRANSITION)
        raise ApiError(409, _NO_TRANSITION)
    host.set(cluster_id=cluster["id"], kind="AddToExistingClusterHost" if validations.is_day2(cluster) else "Host")
    host.drop("validations_info")
    e.results.pop(host["id"], None)
    e.join(host)
    e.event("host_bind_succeeded", host=host, cluster_id=cluster["id"])
    return host_model(e, host)


#: What a host forgets with its cluster, beyond what it forgets when it boots anew.
_OF_CLUSTER = (
    "cluster_id",
    "requested_hostname",
    "validations_info",
    "installation_disk_id",
    "installation_disk_path",
    "machine_config_pool_name",
    "api_vip_connectivity",
    "suggested_role",
    "_disk_by_user",
)


@handler
def unbind_host(e: Engine, call: Call) -> Any:
    host = _host(e, call)
    if not host.get("cluster_id"):
        raise ApiError(409, f"Host {host['id']} is already unbound")
    infra_env, cluster_id = e.infra_env(host["infra_env_id"]), host["cluster_id"]
    if infra_env.get("cluster_id"):
        raise ApiError(
            409, f"Cannot unbind Host {host['id']}. InfraEnv {infra_env['id']} is bound to Cluster {infra_env['cluster_id']}"
        )
    if e.trigger(host, "unbind", lambda name: True) is None:
        e.event("host_unbind_failed", host=host, message=_NO_TRANSITION)
        raise ApiError(409, _NO_TRANSITION)
    e.event("host_unbind_succeeded", host=host)
    e.leave(host)
    e.touch_hosts(cluster_id)
    host.drop(*_OF_CLUSTER)
    host.set(kind="Host", role="auto-assign")
    e.results.pop(host["id"], None)
    return host_model(e, host)


@handler
def reset_validation(e: Engine, call: Call) -> Any:
    host, ident = _host(e, call), call.path["validation_id"]
    fields = {"sufficient-installation-disk-speed": "disks_info", "container-images-available": "images_status"}
    if ident not in {name for name, *__ in validations.HOST}:
        raise ApiError(404, f"Validation {ident} was not found")
    if ident not in fields:
        raise ApiError(400, f"Validation {ident} cannot be reset")
    if host["status"] not in (*_EDITABLE, "preparing-failed"):
        raise ApiError(409, f"Host {host['id']} is in status {host['status']}: its validations cannot be reset")
    host.drop(fields[ident])
    e.dirty.add(host["id"])
    return host_model(e, host)


@handler
def reset_host(e: Engine, call: Call) -> Any:
    host = _host(e, call)
    booted = host.get("progress", {}).get("current_stage") in validations.AFTER_REBOOT
    if not validations.is_day2(e.cluster_of(host) or {}) or e.trigger(host, "reset", lambda name: booted) is None:
        raise ApiError(409, f"Host {host['id']} in status {host['status']} cannot be reset by itself")
    e.event("host_installation_reset", host=host)
    return host_model(e, host)


@handler
def install_host(e: Engine, call: Call) -> Any:
    host = _host(e, call)
    cluster = e.cluster_of(host)
    if cluster is None or not validations.is_day2(cluster):
        raise ApiError(409, f"Host {host['id']} is not part of a cluster that adds hosts")
    if host.get("role", "auto-assign") == "auto-assign":
        host["role"] = "worker"
    if e.trigger(host, "install-day2", lambda name: True) is None:
        raise ApiError(
            409, f"Host {host['id']} is in status {host['status']}, it can be installed in status known only"
        )
    answer = json.loads(host.get("api_vip_connectivity") or "{}")
    from . import prepare

    e.store.put_file(
        cluster["id"], f"host/{host['id']}", prepare.day2_ignition(e, cluster, host, answer.get("ignition", ""))
    )
    e.event("host_installation_started", host=host)
    return host_model(e, host)


# -- agents -----------------------------------------------------------------------------------------------------------


@handler
def get_instructions(e: Engine, call: Call) -> Any:
    host = _host(e, call)
    e.check_in(host, call.query.get("timestamp"), call.headers.get("discovery_agent_version"))
    return e.instructions(host)


@handler
def update_progress(e: Engine, call: Call) -> Any:
    host = _host(e, call)
    stage = call.body.get("current_stage")
    if not stage:
        raise Invalid("host-progress.current_stage in body is required")
    e.progress(host, stage, call.body.get("progress_info", ""))
    return None


MEDIA_EXIT = 256
_FREE_ON_FAILURE = frozenset({"container-image-availability", "installation-disk-speed-check"})


@handler
def post_reply(e: Engine, call: Call) -> Any:
    host, reply = _host(e, call), call.body
    kind, code, text = reply.get("step_type", ""), reply.get("exit_code", 0), reply.get("output", "")
    if code != 0:
        e.ask_again(host["id"], kind)
    if code == MEDIA_EXIT:
        _media_lost(e, host)
    if code != 0 and kind not in _FREE_ON_FAILURE:
        failed = _FAILURES.get(kind)
        if failed:
            failed(e, host, reply)
        return None
    if code == 0 and host.get("media_status") == "disconnected":
        host["media_status"] = "connected"
        e.dirty.add(host["id"])
    if kind not in STEP_OUTPUTS or kind not in REPLIES:
        return None
    if not text and code != 0:
        output: Any = {}
    else:
        output = MODELS.check(STEP_OUTPUTS[kind], parse_json(text), f"output of {kind}", lenient=True)
    REPLIES[kind](e, host, output, code)
    return None


def _media_lost(e: Engine, host: Document) -> None:
    """Told once: the agent says it at every step. A host that has failed already keeps what it failed of."""
    if host.get("media_status") == "disconnected" or state.decide(state.HOST["media-disconnect"], host["status"], lambda name: True) is None:
        return
    reason, before = MEDIA_DISCONNECTED, host.get("status_info", "")
    if host["status"] == "error":
        reason = f"Failed - {reason}"
        reason = before if reason in before else f"{reason}. {before}"
    host["media_status"] = "disconnected"
    e.event("host_media_disconnected", host=host)
    e.trigger(host, "media-disconnect", lambda name: True, REASON=reason)


def _install_failed(e: Engine, host: Document, reply: dict[str, Any]) -> None:
    error = reply.get("error", "")
    if "already in use" in error and "assisted-installer" in error:
        return
    e.trigger(host, "failed", lambda name: True)


def _tang_failed(e: Engine, host: Document, reply: dict[str, Any]) -> None:
    host["tang_connectivity"] = json.dumps({"is_success": False, "error": reply.get("error", "")[:2000]})
    e.dirty.add(host["id"])


_FAILURES: dict[str, Callable[[Engine, Document, dict[str, Any]], None]] = {
    "install": _install_failed,
    "tang-connectivity-check": _tang_failed,
}


def _keep(
    field_name: str, pick: Callable[[Any], Any] = lambda output: output, cluster: bool = False
) -> Callable[[Engine, Document, Any, int], None]:
    def take(e: Engine, host: Document, output: Any, code: int) -> None:
        text = json.dumps(pick(output), ensure_ascii=False, separators=(",", ":"))
        if host.get(field_name) != text:
            host[field_name] = text
            e.dirty.add(host["id"])
            if cluster:
                e.dirty.add(host.get("cluster_id", ""))

    return take


def _take_inventory(e: Engine, host: Document, output: Any, code: int) -> None:
    if host["status"] in _EDITABLE or host["status"].endswith("-unbound"):
        e.take_inventory(host, output)


def _take_connectivity(e: Engine, host: Document, output: Any, code: int) -> None:
    e.take_connectivity(host, output)


def _take_vips(e: Engine, host: Document, output: Any, code: int) -> None:
    cluster = e.cluster_of(host)
    if cluster is None or cluster["status"] not in BEFORE_INSTALL:
        return
    for key in ("api", "ingress"):
        found = {vip.get("vip"): vip.get("verification") for vip in output if vip.get("vip_type") == key}
        made = [
            {**vip, "verification": found[vip["ip"]]} if found.get(vip["ip"]) in ("succeeded", "failed") else vip
            for vip in cluster.get(f"{key}_vips", ())
        ]
        if made != cluster.get(f"{key}_vips", []):
            cluster[f"{key}_vips"] = made
            e.dirty.add(cluster["id"])


def _take_dhcp(e: Engine, host: Document, output: Any, code: int) -> None:
    cluster = e.cluster_of(host)
    if cluster is None or not cluster.get("vip_dhcp_allocation"):
        return
    for key in ("api", "ingress"):
        ip = output[f"{key}_vip_address"]
        if not any(contains(cidr, ip) for cidr in validations.machine_cidrs(cluster)):
            raise ApiError(400, f"{key} VIP {ip} from DHCP does not belong to the machine networks")
        cluster[f"{key}_vips"] = [{"cluster_id": cluster["id"], "ip": ip, "verification": "succeeded"}]
        cluster[f"_{key}_lease"] = output.get(f"{key}_vip_lease", "")
    e.dirty.add(cluster["id"])


def _take_disk_speed(e: Engine, host: Document, output: Any, code: int) -> None:
    path = output.get("path") or host.get("installation_disk_id", "")
    speed = output.get("io_sync_duration", 0)
    info = {"path": path, "disk_speed": {"tested": True, "exit_code": code, "speed_ms": speed}}
    disk = inv.find_disk(e.inventories.get(host["id"], {}), path)
    if disk is None:
        return
    host["disks_info"] = json.dumps({**json.loads(host.get("disks_info") or "{}"), disk["id"]: info})
    cluster: Mapping[str, Any] = e.cluster_of(host) or {}
    limit = validations.requirement(e.table(cluster), cluster, validations.role_of(host)).get(
        "installation_disk_speed_threshold_ms", 0
    )
    if code == 0 and limit and speed > limit:
        e.event("disk_speed_slower_than_supported", host=host, host_disk=path, fdatasync_duration=speed)
    e.dirty.add(host["id"])


def _take_images(e: Engine, host: Document, output: Any, code: int) -> None:
    known = json.loads(host.get("images_status") or "{}")
    wanted = set(e.needed_images(e.cluster_of(host) or {}))
    images = output.get("images") or [
        {"name": name, "result": "failure"} for name in wanted if name not in known and code != 0
    ]
    for image in images:
        name = image.get("name", "")
        if name not in wanted:
            continue
        if name in known:
            known[name]["result"] = image.get("result", "")
            continue
        known[name] = image
        time, size, rate = (float(image.get(key, 0)) for key in ("time", "size_bytes", "download_rate"))
        pulled = f"time: {time:.2f} seconds; size: {size / 2**20:.2f} Megabytes; download rate: {rate:.2f} MBps"
        info = pulled if size else ""
        e.event("image_status_updated", host=host, image_status=name, result=image.get("result", ""), info=info)
    host["images_status"] = json.dumps(known)
    e.dirty.add(host["id"])


def _take_upgrade(e: Engine, host: Document, output: Any, code: int) -> None:
    name = "upgrade_agent_finished" if output.get("result") == "success" else "upgrade_agent_failed"
    e.event(name, host=host, agent_image=output.get("agent_image", ""))


REPLIES: dict[str, Callable[[Engine, Document, Any, int], None]] = {
    "inventory": _take_inventory,
    "connectivity-check": _take_connectivity,
    "free-network-addresses": _keep("free_addresses", cluster=True),
    "verify-vips": _take_vips,
    "ntp-synchronizer": _keep("ntp_sources", lambda output: output.get("ntp_sources", [])),
    "domain-resolution": _keep("domain_name_resolutions"),
    "dhcp-lease-allocate": _take_dhcp,
    "installation-disk-speed-check": _take_disk_speed,
    "container-image-availability": _take_images,
    "tang-connectivity-check": _keep("tang_connectivity"),
    "api-vip-connectivity-check": _keep("api_vip_connectivity"),
    "upgrade-agent": _take_upgrade,
}


# -- logs -------------------------------------------------------------------------------------------------------------


def _logs_state(e: Engine, document: Document, value: str, started: str) -> None:
    document["logs_info"] = value
    document["_logs_at"] = e.clock()
    if value == "requested":
        document[started] = time_text(e.clock())


@handler
def host_logs_progress(e: Engine, call: Call) -> Any:
    _logs_state(e, _host(e, call), call.body["logs_state"], "logs_started_at")


@handler
def cluster_logs_progress(e: Engine, call: Call) -> Any:
    _logs_state(e, e.cluster(call.path["cluster_id"]), call.body["logs_state"], "controller_logs_started_at")


def logs_path(e: Engine, call: Call) -> Any:
    """Where uploaded logs of a call go; ApiError when the call may not upload. Names are ids the service knows, nothing else."""
    cluster = e.cluster(call.path["cluster_id"])
    kind = call.query["logs_type"]
    folder = e.config.data_dir / "logs" / cluster["id"]
    if kind == "controller":
        return folder / "controller.tar.gz"
    if kind != "host":
        raise ApiError(400, f"logs_type {kind!r}: host or controller")
    ident = call.query.get("host_id", "").lower()
    host = e.hosts_of(cluster["id"]).get(ident)
    if host is None or call.query.get("infra_env_id", host["infra_env_id"]).lower() != host["infra_env_id"]:
        raise ApiError(404, f"Host {ident} was not found in cluster {cluster['id']}")
    return folder / f"{ident}.tar.gz"


@handler
def upload_logs(e: Engine, call: Call) -> Any:
    cluster, now = e.cluster(call.path["cluster_id"]), time_text(e.clock())
    if call.query["logs_type"] == "controller":
        cluster["controller_logs_collected_at"] = now
        e.event("cluster_logs_uploaded", cluster_id=cluster["id"])
    else:
        host = e.hosts_of(cluster["id"])[call.query["host_id"].lower()]
        host["logs_collected_at"] = now
        e.event("host_logs_uploaded", host=host, cluster_id=cluster["id"])
    return None


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:128].strip(".") or "unnamed"


@handler
def download_logs(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    folder = e.config.data_dir / "logs" / cluster["id"]
    kind = call.query.get("logs_type") or "all"
    name = _safe(cluster.get("name", ""))
    members = e.hosts_of(cluster["id"])

    def host_name(host: Mapping[str, Any]) -> str:
        role = "bootstrap" if host.get("bootstrap") else validations.role_of(host)
        return f"{name}_{role}_{_safe(e.hostname(host))}.tar.gz"

    if kind == "host":
        ident = call.query.get("host_id", "").lower()
        if ident not in members:
            raise ApiError(404, f"Host {ident} was not found in cluster {cluster['id']}")
        if not (folder / f"{ident}.tar.gz").is_file():
            raise ApiError(409, f"Logs for host {ident} were not found")
        return Download(host_name(members[ident]), path=str(folder / f"{ident}.tar.gz"))
    controller = folder / "controller.tar.gz"
    controller_name = f"{name}_{cluster['id']}_controller.tar.gz"
    if kind == "controller":
        if not controller.is_file():
            raise ApiError(409, f"Controller logs of cluster {cluster['id']} were not found")
        return Download(controller_name, path=str(controller))
    files = {controller_name: controller}
    for ident, host in members.items():
        part = host_name(host)
        while part in files:  # of two hosts with one name neither may hide the other's logs
            part = f"{ident}_{part}"
        files[part] = folder / f"{ident}.tar.gz"
    parts = [(part, path) for part, path in files.items() if path.is_file()]
    if not parts:
        raise ApiError(409, f"Logs of cluster {cluster['id']} were not found")
    return Download(f"{name}_{cluster['id']}.tar", stream=_tar(parts))


async def _tar(parts: list[tuple[str, Path]]) -> AsyncIterator[bytes]:
    """A tar archive of (name, file), piece by piece: all files together may be more than there is memory."""
    for name, path in parts:
        with path.open("rb") as file:
            info = tarfile.TarInfo(name)
            status = os.fstat(file.fileno())
            info.size, info.mtime = status.st_size, int(status.st_mtime)
            yield info.tobuf()
            while chunk := file.read(2**18):
                yield chunk
            yield bytes(-info.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


# -- events and what the service is ------------------------------------------------------------------------------------


@handler
def list_events(e: Engine, call: Call) -> Any:
    query = call.query
    clauses, values = ["1"], []
    for key in ("cluster_id", "infra_env_id"):
        if query.get(key):
            clauses.append(f"{key} = ?")
            values.append(query[key].lower())
    hosts = [text.strip().lower() for text in str(query.get("host_ids", "")).split(",") if text.strip()]
    if query.get("host_id"):
        hosts.append(query["host_id"].lower())
    who = []
    if hosts:
        who.append(f"host_id IN ({','.join('?' * len(hosts))})")
        values += hosts
    if query.get("cluster_level"):
        who.append("cluster_level = 1")
    if who:
        clauses.append("(" + " OR ".join(who) + ")")
    if query.get("deleted_hosts") is False:
        clauses.append("deleted_host = 0")
    if query.get("message"):
        clauses.append("instr(lower(message), ?) > 0")
        values.append(query["message"].lower())
    categories = [text for text in str(query.get("categories", "user")).split(",") if text]
    clauses.append(f"category IN ({','.join('?' * len(categories))})")
    values += categories
    where = " AND ".join(clauses)
    counts = e.store.severities(where, values)
    wanted = [text for text in str(query.get("severities", "")).split(",") if text]
    if wanted:
        where += f" AND severity IN ({','.join('?' * len(wanted))})"
        values = [*values, *wanted]
    total = sum(count for severity, count in counts.items() if not wanted or severity in wanted)
    order = "DESC" if query.get("order") == "descending" else "ASC"
    limit, offset = query.get("limit"), query.get("offset", 0)
    events = e.store.events(where, values, order, -1 if limit is None else limit, offset)
    headers = {
        f"Severity-Count-{name.capitalize()}": str(counts.get(name, 0))
        for name in ("info", "warning", "error", "critical")
    }
    return Download("", headers={**headers, "Event-Count": str(total)}, value=events)


@handler
def trigger_event(e: Engine, call: Call) -> Any:
    body = call.body
    host_id, cluster_id = body.get("host_id"), body.get("cluster_id")
    if cluster_id:
        e.cluster(cluster_id)
    if host_id and host_id.lower() not in e.hosts:
        raise ApiError(404, f"Host {host_id} was not found")
    host: Mapping[str, Any] = e.hosts.get((host_id or "").lower()) or {}
    e.store.event(
        {
            "name": body.get("name", ""),
            "cluster_id": cluster_id or host.get("cluster_id"),
            "host_id": host_id and host_id.lower(),
            "infra_env_id": body.get("infra_env_id") or host.get("infra_env_id"),
            "severity": body["severity"],
            "category": body.get("category", "user"),
            "message": body["message"],
            "event_time": time_text(e.clock()),
            "props": body.get("props", ""),
        },
        cluster_level=not host_id,
    )
    return None


@handler
def component_versions(e: Engine, call: Call) -> Any:
    names = {
        "assisted-installer": "INSTALLER_IMAGE",
        "assisted-installer-controller": "CONTROLLER_IMAGE",
        "assisted-installer-service": "SERVICE_IMAGE",
        "discovery-agent": "AGENT_DOCKER_IMAGE",
    }
    return {
        "versions": {name: e.config.get(key) for name, key in names.items()},
        "release_tag": e.config.get("RELEASE_TAG"),
    }
