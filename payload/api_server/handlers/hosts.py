"""Operations on hosts by users, and their registration."""

from __future__ import annotations

from typing import Any

from ....plugins.module_utils.vocabulary import HostStatus, Status
from .. import inventory as inv
from .. import refusals, state, usage, validations
from ..bodies import HostParams
from ..calls import Call, Download, handler
from ..document import tracked_document
from ..engine import Engine, time_text
from ..errors import ApiError
from ..models import Invalid, parse_json
from ..objects import Cluster, Host, InfraEnv
from ..state import HostTrigger
from ..tables import OPEN_CLUSTER
from .shown import OPEN_SHOWN, compact, host_model

#: Versions of Ignition configs that the service can merge.
IGNITION_VERSIONS = ("3.1.0", "3.2.0")


def check_ignition(text: str) -> dict[str, Any]:
    """Return an Ignition override; ApiError 400 if it is not a config of a version that the service merges."""
    try:
        config = parse_json(text)
    except Invalid as err:
        raise ApiError(
            400, f"error parsing ignition: config is not valid, error report: error at line 0 col 0: {err}\n"
        ) from None
    version = (
        (config.get("ignition") or {}).get("version")
        if isinstance(config, dict) and isinstance(config.get("ignition"), dict)
        else None
    )
    if version is None:
        raise ApiError(
            400,
            "error parsing ignition: config is not valid, error report: error at $.ignition.version: missing or invalid version\n",
        )
    if version not in IGNITION_VERSIONS:
        raise ApiError(400, "error parsing ignition: unsupported config version, error report: ")
    return dict(config)


def remove_host(e: Engine, host: Host) -> None:
    e.leave(host)
    e.store.delete("host", host["id"])
    e.store.drop_events("host_id", host["id"])
    for table in (e.inventories, e.results):
        table.pop(host["id"], None)
    e.dirty.discard(host["id"])
    e.touch_hosts(host.get("cluster_id"))


def accepts_hosts(cluster: Cluster) -> None:
    if cluster["status"] == Status.INSTALLED:
        raise ApiError(409, "Cannot add hosts to an existing cluster using the original Discovery ISO.")
    if cluster["status"] not in OPEN_CLUSTER:
        raise ApiError(409, f"Host can register only in one of the following states: {refusals.go_list(OPEN_SHOWN)}")


#: Number of hosts whose last refusal is remembered.
MOST_REFUSED = 1000


def _refused(e: Engine, infra_env: InfraEnv, ident: str, message: str) -> None:
    """Report why a host may not register; once, because its agent retries repeatedly."""
    if e.refused_hosts.get(ident) == message:
        return
    if len(e.refused_hosts) >= MOST_REFUSED:
        e.refused_hosts.clear()
    e.refused_hosts[ident] = message
    who: Host = {"id": ident, "infra_env_id": infra_env["id"]}
    if "cluster_id" in infra_env:
        who["cluster_id"] = infra_env["cluster_id"]
    e.event("host_registration_failed", host=who, message=message)


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
            try:
                accepts_hosts(cluster)
            except ApiError as err:
                _refused(e, infra_env, ident, err.reason)
                raise
        day2 = cluster is not None and validations.is_day2(cluster)
        single = cluster is not None and not day2 and validations.is_sno(cluster)
        role = "worker" if day2 else "master" if single else "auto-assign"
        e.store.create(
            "host",
            ident,
            {
                "kind": "AddToExistingClusterHost" if day2 else "Host",
                "id": ident,
                "infra_env_id": infra_env["id"],
                "href": f"/api/assisted-install/v2/infra-envs/{infra_env['id']}/hosts/{ident}",
                "cluster_id": cluster["id"] if cluster else None,
                "status": Status.DISCOVERING if cluster else HostStatus.DISCOVERING_UNBOUND,
                "status_info": state.WAITING,
                "status_updated_at": time_text(now),
                "_status_at": now,
                "created_at": time_text(now),
                "updated_at": time_text(now),
                "role": role,
                "suggested_role": role,
                "bootstrap": single or None,
                "user_name": "admin",
                "machine_config_pool_name": "worker" if day2 else None,
            },
        )
        host = e.hosts[ident]
        e.join(host)
        if len(e.hosts_of(host.get("cluster_id", ""))) <= 6:
            e.touch_hosts(host.get("cluster_id"))
        e.event("host_registration_succeeded", host=host)
    else:
        stage = host.get("progress", {}).get("current_stage", "")
        if host["status"] == Status.PENDING_USER_ACTION and host.get("_wrong_boot"):
            raise ApiError(403, "Host is required to be booted from disk")
        if host["status"] == Status.INSTALLED:
            _refused(e, infra_env, ident, f"Failed to register host {ident}: {state.POST_INSTALL_REGISTER}")
            raise ApiError(409, state.POST_INSTALL_REGISTER)
        before = host["status"]
        rule = e.trigger(
            host,
            HostTrigger.REGISTER,
            lambda name: stage in validations.AFTER_REBOOT,
            INSTALLATION_DISK=e.disk_text(host),
        )
        if rule is None:
            raise ApiError(409, f"Host {ident} cannot register in status {host['status']}")
        tracked_document(host).set(_wrong_boot=(rule is not None and rule.dest == Status.PENDING_USER_ACTION) or None)
        if host["status"] in (Status.DISCOVERING, HostStatus.DISCOVERING_UNBOUND) and before != host["status"]:
            e.event("host_registration_succeeded", host=host)
    tracked_document(host).set(
        discovery_agent_version=version or None,
        registered_at=time_text(now),
        updated_at=time_text(now),
        checked_in_at=time_text(now),
        _checked_in=now,
    )
    e.dirty.add(ident)
    runner = {"infra_env_id": infra_env["id"], "host_id": ident, "agent_version": e.config.image("AGENT_DOCKER_IMAGE")}
    return {**host_model(e, host), "next_step_runner_command": {"args": [compact(runner)]}}


@handler
def list_hosts(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    return [host_model(e, host, sno=False) for host in e.hosts.values() if host["infra_env_id"] == infra_env["id"]]


@handler
def get_host(e: Engine, call: Call) -> Any:
    return host_model(e, called_host(e, call))


def called_host(e: Engine, call: Call) -> Host:
    return e.host(call.path["infra_env_id"], call.path["host_id"])


@handler
def delete_host(e: Engine, call: Call) -> Any:
    host = called_host(e, call)
    if host["status"].startswith((Status.INSTALLING, "preparing")):
        raise ApiError(
            400, f"Host {host['id']} is in status {host['status']}: it cannot be deleted during an installation"
        )
    e.event("host_deregistered", host=host)
    remove_host(e, host)
    return None


EDITABLE = frozenset(
    {
        Status.DISCOVERING,
        Status.KNOWN,
        Status.DISCONNECTED,
        Status.INSUFFICIENT,
        Status.PENDING_FOR_INPUT,
        HostStatus.BINDING,
    }
)
EDITABLE_SHOWN = (Status.DISCOVERING, Status.KNOWN, Status.DISCONNECTED, Status.INSUFFICIENT, Status.PENDING_FOR_INPUT)
#: Field of a host, status of its refusal and its name in the message. Upstream returns 500 where this has 400.
_SETTABLE = (
    ("host_role", 400, "host role"),
    ("host_name", 409, "host name"),
    ("disks_selected_config", 409, "installation disk path"),
    ("machine_config_pool_name", 409, "host machine config pool"),
    ("ignition_endpoint_token", 409, "host ignition endpoint token"),
    ("ignition_endpoint_http_headers", 400, "ignition endpoint HTTP headers"),
    ("node_labels", 400, "labels"),
    ("disks_skip_formatting", 400, "disks formatting"),
    ("fencing_credentials", 400, "fencing credentials"),
)


def _too_late(host: Host, cluster: Cluster | None, body: HostParams) -> None:
    status = host["status"]
    if status == Status.KNOWN and cluster is not None and cluster["status"] == Status.PREPARING:
        status = cluster["status"]  # the next monitor pass updates the host
    if status in EDITABLE or status.endswith("-unbound"):
        return
    for key, code, what in _SETTABLE:
        if body.get(key) is not None:
            shown = refusals.go_list(EDITABLE_SHOWN)
            raise ApiError(code, f"Host is in {status} state, {what} can be set only in one of {shown} states")


def _disk_fields(e: Engine, host: Host, body: HostParams) -> dict[str, Any]:
    """The installation disk and the disks that are not formatted, of a request."""
    inventory, fields = e.inventories.get(host["id"], {}), dict[str, Any]()
    chosen = [disk["id"] for disk in body.get("disks_selected_config") or () if disk.get("role") == "install"]
    if len(chosen) > 1:
        raise ApiError(409, "duplicate setting of installation path by the user")
    if chosen:
        disk = inv.find_disk(inventory, chosen[0])
        if disk is None or disk not in inv.eligible_disks(inventory):
            raise ApiError(409, "Requested installation disk is not part of the host's valid disks")
        path = disk.get("path") or disk["id"]
        fields = {"installation_disk_id": disk["id"], "installation_disk_path": path, "_disk_by_user": True}
    skipped = [text for text in host.get("skip_formatting_disks", "").split(",") if text]
    known = [inv.disk_id(disk) for disk in inventory.get("disks", ())]
    for entry in body.get("disks_skip_formatting") or ():
        ident = entry["disk_id"]
        if ident in skipped and not entry["skip_formatting"]:
            skipped.remove(ident)
        elif ident not in skipped and entry["skip_formatting"]:
            if ident not in known:
                reason = f"Disk identifier {ident} doesn't match any disk in the inventory, it cannot be skipped. "
                raise ApiError(400, f"{reason}Inventory disk identifiers are: {', '.join(known)}")
            skipped.append(ident)
    if body.get("disks_skip_formatting"):
        fields["skip_formatting_disks"] = ",".join(skipped)
    return fields


@handler
def update_host(e: Engine, call: Call) -> Any:
    host, body = called_host(e, call), call.body
    cluster, fields = e.cluster_of(host), dict[str, Any]()
    _too_late(host, cluster, body)
    if body.get("host_name") is not None:
        refusals.hostname(body["host_name"])
        fields["requested_hostname"] = body["host_name"]
    fields |= _disk_fields(e, host, body)
    if body.get("host_role") is not None:
        # A host with auto-assign has no role until the monitor has evaluated all hosts.
        fields |= {"role": body["host_role"], "suggested_role": body["host_role"]}
    if body.get("machine_config_pool_name") is not None:
        fields["machine_config_pool_name"] = body["machine_config_pool_name"]
    if body.get("node_labels") is not None:
        labels = {label["key"]: label["value"] for label in body["node_labels"]}
        refusals.labels(labels)
        fields["node_labels"] = compact(labels)
    if body.get("fencing_credentials") is not None:
        fields["fencing_credentials"] = compact(body["fencing_credentials"])
    if body.get("ignition_endpoint_token") is not None:
        token = body["ignition_endpoint_token"]
        fields |= {"_ignition_token": token, "ignition_endpoint_token_set": bool(token)}
    if body.get("ignition_endpoint_http_headers") is not None:
        headers = {entry["key"]: entry["value"] for entry in body["ignition_endpoint_http_headers"]}
        fields["ignition_endpoint_http_headers"] = compact(headers)
    old = e.hostname(host)
    tracked_document(host).set(**fields, updated_at=time_text(e.clock()))
    if "requested_hostname" in fields:
        usage.note(cluster, usage.HOSTNAME, True, host_count=1)
    e.name_changed(host, old)
    inventory = e.inventories.get(host["id"])
    if inventory and "role" in fields:
        e.take_inventory(host, inventory)
    e.touch_cluster(host.get("cluster_id"))
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
    )
    bad = [arg for arg in args if arg.startswith("-") and arg not in allowed]
    if bad:
        raise ApiError(
            400, f"found unexpected flag {bad[0]} for installer - allowed flags are {refusals.go_list(allowed)}"
        )
    host["installer_args"] = compact(args)
    e.event("host_installer_args_applied", host=host)
    return host_model(e, host, stages=False)


def _rendered(e: Engine, call: Call) -> tuple[Host, bytes]:
    """Return a host and its installation config; ApiError while there is none."""
    from .. import prepare

    host = e.hosts.get(call.path["host_id"].lower())
    where = f"host {call.path['host_id']}"
    if host is None or host["infra_env_id"] != call.path["infra_env_id"].lower():
        raise ApiError(404, f"{where} not found in infra env {call.path['infra_env_id']}")
    cluster = e.cluster_of(host)
    if cluster is None:
        raise ApiError(404, f"Cluster not found for {where} in infra env {host['infra_env_id']}")
    refusals.downloadable(cluster["id"], cluster["status"])
    content = e.store.file(cluster["id"], f"host/{host['id']}")
    if content is None:
        raise ApiError(409, f"Host {host['id']} has no ignition yet")
    overrides = host.get("ignition_config_overrides")
    return host, prepare.override(content, overrides) if overrides else content


@handler
def get_host_ignition(e: Engine, call: Call) -> Any:
    return {"config": _rendered(e, call)[1].decode()}


@handler
def update_host_ignition(e: Engine, call: Call) -> Any:
    host, text = called_host(e, call), call.body.get("config", "")
    if text:
        check_ignition(text)
    host["ignition_config_overrides"] = text
    usage.ignition(e.cluster_of(host), "host", text)
    e.event("host_discovery_ignition_config_applied", host=host)
    return None


@handler
def download_host_ignition(e: Engine, call: Call) -> Any:
    host, content = _rendered(e, call)
    return Download(f"{validations.role_of(host)}-{host['id']}.ign", content)
