"""Operations on hosts by people, and their registration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ....plugins.module_utils.documents import load_json
from .. import inventory as inv
from .. import refusals, state, validations
from ..calls import Call, Download, handler
from ..engine import ApiError, Engine, time_text
from ..models import Invalid, parse_json
from ..store import Document
from ..tables import DOWNLOADS, OPEN_CLUSTER
from .shown import NO_TRANSITION, OPEN_SHOWN, host_model


def check_ignition(text: str, what: str) -> dict[str, Any]:
    try:
        config = parse_json(text)
        version = config["ignition"]["version"]
    except (Invalid, KeyError, TypeError):
        raise ApiError(400, f"{what} should be an Ignition config (JSON with ignition.version)") from None
    if not isinstance(version, str) or not version.startswith("3."):
        raise ApiError(400, f"{what}: Ignition version {version!r} should be 3.x")
    return dict(config)


def forget_host(e: Engine, host: Document) -> None:
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
        raise ApiError(409, f"Host can register only in one of the following states: {refusals.go_list(OPEN_SHOWN)}")


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
    return host_model(e, called_host(e, call))


def called_host(e: Engine, call: Call) -> Document:
    return e.host(call.path["infra_env_id"], call.path["host_id"])


@handler
def delete_host(e: Engine, call: Call) -> Any:
    host = called_host(e, call)
    if host["status"].startswith(("installing", "preparing")):
        raise ApiError(
            400, f"Host {host['id']} is in status {host['status']}: it cannot be deleted during an installation"
        )
    e.event("host_deregistered", host=host)
    forget_host(e, host)
    return None


EDITABLE = frozenset({"discovering", "known", "disconnected", "insufficient", "pending-for-input", "binding"})
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
    host, body = called_host(e, call), call.body
    if host["status"] not in EDITABLE and not host["status"].endswith("-unbound"):
        for key, status, what in _SETTABLE:
            if body.get(key) is not None:
                shown = refusals.go_list(_EDITABLE_SHOWN)
                raise ApiError(
                    status, f"Host is in {host['status']} state, {what} can be set only in one of {shown} states"
                )
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
    host, args = called_host(e, call), call.body.get("args", [])
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
    return {"config": called_host(e, call).get("ignition_config_overrides", "")}


@handler
def update_host_ignition(e: Engine, call: Call) -> Any:
    host, text = called_host(e, call), call.body.get("config", "")
    if text:
        check_ignition(text, "config")
    host["ignition_config_overrides"] = text
    e.event("host_discovery_ignition_config_applied", host=host)
    return None


@handler
def download_host_ignition(e: Engine, call: Call) -> Any:
    from .. import prepare

    host = called_host(e, call)
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
    host, cluster = called_host(e, call), e.clusters.get(call.body["cluster_id"].lower())
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
        e.event("host_bind_failed", host=host, cluster_id=cluster["id"], message=NO_TRANSITION)
        raise ApiError(409, NO_TRANSITION)
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
    host = called_host(e, call)
    if not host.get("cluster_id"):
        raise ApiError(409, f"Host {host['id']} is already unbound")
    infra_env, cluster_id = e.infra_env(host["infra_env_id"]), host["cluster_id"]
    if infra_env.get("cluster_id"):
        raise ApiError(
            409,
            f"Cannot unbind Host {host['id']}. InfraEnv {infra_env['id']} is bound to Cluster {infra_env['cluster_id']}",
        )
    if e.trigger(host, "unbind", lambda name: True) is None:
        e.event("host_unbind_failed", host=host, message=NO_TRANSITION)
        raise ApiError(409, NO_TRANSITION)
    e.event("host_unbind_succeeded", host=host)
    e.leave(host)
    e.touch_hosts(cluster_id)
    host.drop(*_OF_CLUSTER)
    host.set(kind="Host", role="auto-assign")
    e.results.pop(host["id"], None)
    return host_model(e, host)


@handler
def reset_validation(e: Engine, call: Call) -> Any:
    host, ident = called_host(e, call), call.path["validation_id"]
    fields = {"sufficient-installation-disk-speed": "disks_info", "container-images-available": "images_status"}
    if ident not in {name for name, *__ in validations.HOST}:
        raise ApiError(404, f"Validation {ident} was not found")
    if ident not in fields:
        raise ApiError(400, f"Validation {ident} cannot be reset")
    if host["status"] not in (*EDITABLE, "preparing-failed"):
        raise ApiError(409, f"Host {host['id']} is in status {host['status']}: its validations cannot be reset")
    host.drop(fields[ident])
    e.dirty.add(host["id"])
    return host_model(e, host)


@handler
def reset_host(e: Engine, call: Call) -> Any:
    host = called_host(e, call)
    booted = host.get("progress", {}).get("current_stage") in validations.AFTER_REBOOT
    if not validations.is_day2(e.cluster_of(host) or {}) or e.trigger(host, "reset", lambda name: booted) is None:
        raise ApiError(409, f"Host {host['id']} in status {host['status']} cannot be reset by itself")
    e.event("host_installation_reset", host=host)
    return host_model(e, host)


@handler
def install_host(e: Engine, call: Call) -> Any:
    host = called_host(e, call)
    cluster = e.cluster_of(host)
    if cluster is None or not validations.is_day2(cluster):
        raise ApiError(409, f"Host {host['id']} is not part of a cluster that adds hosts")
    if host.get("role", "auto-assign") == "auto-assign":
        host["role"] = "worker"
    if e.trigger(host, "install-day2", lambda name: True) is None:
        raise ApiError(
            409, f"Host {host['id']} is in status {host['status']}, it can be installed in status known only"
        )
    answer = load_json(host.get("api_vip_connectivity") or "{}", name="api_vip_connectivity")
    from .. import prepare

    e.store.put_file(
        cluster["id"], f"host/{host['id']}", prepare.day2_ignition(e, cluster, host, answer.get("ignition", ""))
    )
    e.event("host_installation_started", host=host)
    return host_model(e, host)
