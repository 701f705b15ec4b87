"""Operations that move a host: to a cluster and out of it, back to discovery, and into an installation of its own."""

from __future__ import annotations

from typing import Any

from ....plugins.module_utils.vocabulary import Status
from .. import validations
from ..aside import run_in_thread
from ..calls import Call, handler
from ..document import tracked_document
from ..engine import Engine
from ..errors import ApiError
from ..objects import Cluster, Host
from ..state import HostTrigger
from .hosts import EDITABLE, accepts_hosts, called_host
from .shown import NO_TRANSITION, host_model

#: Fields that a host loses with its cluster, in addition to those that it loses when it boots again.
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
_RESETTABLE = {"sufficient-installation-disk-speed": "disks_info", "container-images-available": "images_status"}


@handler
def bind_host(e: Engine, call: Call) -> Any:
    host, cluster = called_host(e, call), e.clusters.get(call.body["cluster_id"].lower())
    if host.get("cluster_id"):
        reason = f"Host {host['id']} is already bound to cluster {host.get('cluster_id')}"
        e.event("host_bind_failed", host=host, message=reason)
        raise ApiError(409, reason)
    if cluster is None:
        raise ApiError(400, f"Failed to find cluster {call.body['cluster_id']}")
    accepts_hosts(cluster)
    infra_env = e.infra_env(host["infra_env_id"])
    cpus = cluster.get("cpu_architecture"), infra_env.get("cpu_architecture")
    if cpus[0] not in (None, "", "multi", cpus[1]):
        raise ApiError(400, f"InfraEnv's CPU architecture ({cpus[1]}) doesn't match the cluster ({cpus[0]})")
    if e.trigger(host, HostTrigger.BIND, lambda name: True) is None:
        e.event("host_bind_failed", host=host, cluster_id=cluster["id"], message=NO_TRANSITION)
        raise ApiError(409, NO_TRANSITION)
    tracked_document(host).set(
        cluster_id=cluster["id"], kind="AddToExistingClusterHost" if validations.is_day2(cluster) else "Host"
    )
    tracked_document(host).drop("validations_info")
    e.results.pop(host["id"], None)
    e.join(host)
    e.event("host_bind_succeeded", host=host, cluster_id=cluster["id"])
    return host_model(e, host)


@handler
def unbind_host(e: Engine, call: Call) -> Any:
    host = called_host(e, call)
    if not host.get("cluster_id"):
        raise ApiError(409, f"Host {host['id']} is already unbound")
    infra_env, cluster_id = e.infra_env(host["infra_env_id"]), host["cluster_id"]
    if infra_env.get("cluster_id"):
        reason = (
            f"Cannot unbind Host {host['id']}. InfraEnv {infra_env['id']} is bound to Cluster {infra_env['cluster_id']}"
        )
        e.event("host_unbind_failed", host=host, message=reason)
        raise ApiError(409, reason)
    if e.trigger(host, HostTrigger.UNBIND, lambda name: True) is None:
        e.event("host_unbind_failed", host=host, message=NO_TRANSITION)
        raise ApiError(409, NO_TRANSITION)
    e.event("host_unbind_succeeded", host=host)
    e.leave(host)
    e.touch_hosts(cluster_id)
    tracked_document(host).drop(*_OF_CLUSTER)
    tracked_document(host).set(kind="Host", role="auto-assign")
    e.results.pop(host["id"], None)
    return host_model(e, host)


@handler
def reset_validation(e: Engine, call: Call) -> Any:
    host, ident = called_host(e, call), call.path["validation_id"]
    if ident not in _RESETTABLE:
        raise ApiError(400, f'Validation "{ident}" cannot be reset or does not exist')
    if host["status"] not in (*EDITABLE, Status.PREPARING_FAILED):
        raise ApiError(409, f"Host {host['id']} is in status {host['status']}: its validations cannot be reset")
    tracked_document(host).drop(_RESETTABLE[ident])
    e.dirty.add(host["id"])
    return host_model(e, host)


def _day2(e: Engine, host: Host) -> Cluster:
    """Return the installed cluster that a host joins; ApiError 409 for other hosts."""
    cluster = e.cluster_of(host)
    if host.get("kind") != "AddToExistingClusterHost":
        raise ApiError(409, "method only allowed when adding hosts to an existing cluster")
    if cluster is None:
        raise ApiError(409, "method only allowed when host assigned to an existing cluster")
    return cluster


@handler
def reset_host(e: Engine, call: Call) -> Any:
    host = called_host(e, call)
    _day2(e, host)
    booted = host.get("progress", {}).get("current_stage") in validations.AFTER_REBOOT
    if e.trigger(host, HostTrigger.RESET, lambda name: booted) is None:
        raise ApiError(409, NO_TRANSITION)
    e.event("host_installation_reset", host=host)
    return host_model(e, host)


def _installable(e: Engine, call: Call) -> tuple[Host, Cluster]:
    """Return the called host and the cluster that it can join now; ApiError 409 otherwise."""
    host = called_host(e, call)
    cluster = _day2(e, host)
    if host["status"] != Status.KNOWN:
        raise ApiError(409, f"cannot install host in state {host['status']}")
    return host, cluster


@handler
async def install_host(e: Engine, call: Call) -> Any:
    from .. import prepare

    host, cluster = _installable(e, call)
    named: Host = {**host, "requested_hostname": e.hostname(host)}
    config = await run_in_thread(prepare.day2_ignition, cluster.copy(), named, e.static_networks(host))
    host, cluster = _installable(e, call)  # others may have changed or deleted it meanwhile
    if host.get("role", "auto-assign") == "auto-assign":
        host["role"] = "worker"
    if e.trigger(host, HostTrigger.INSTALL_DAY2, lambda name: True) is None:
        raise ApiError(409, NO_TRANSITION)
    e.store.put_file(cluster["id"], f"host/{host['id']}", config)
    e.event("host_installation_started", host=host)
    return host_model(e, host)
