"""Operations on an installation: start, cancel, reset, reports of its controller, and its results."""

from __future__ import annotations

import json
from typing import Any, Literal

from ....plugins.module_utils.vocabulary import ClusterStatus, Status
from .. import inventory as inv
from .. import refusals, state, usage, validations
from ..calls import Call, Download, handler
from ..document import tracked_document
from ..engine import Engine, time_text
from ..errors import ApiError
from ..objects import Cluster, MonitoredOperator
from ..state import ClusterTrigger, HostTrigger
from ..tables import ABI_EARLY, BEFORE_INSTALL, DOWNLOADABLE
from .shown import NO_TRANSITION, cluster_model, operator_model

NOT_PREPARED = {"status": "not_started", "reason": "Installation preparation not performed"}


@handler
def install_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    e.refresh_roles(cluster)
    members = e.hosts_of(cluster["id"])
    ignored = any(cluster.get(f"ignored_{kind}_validations", "") != "" for kind in ("cluster", "host"))
    if ignored:
        e.event("validations_ignored", cluster_id=cluster["id"])
        usage.note(cluster, usage.IGNORED)
    automatic = len(members) > 3 and any(host.get("role", "auto-assign") == "auto-assign" for host in members.values())
    usage.note(cluster, usage.AUTO_ROLE, automatic)
    rule = state.decide(state.CLUSTER, ClusterTrigger.PREPARE, cluster["status"], lambda name: True)
    if rule is None:
        raise ApiError(
            409,
            f"Cluster is not ready for installation, {cluster.get('status_info', '')} validation_info={cluster.get('validations_info', '')}",
        )
    masters = []
    for ident, host in members.items():
        if host.get("role", "auto-assign") == "auto-assign":
            host["role"] = host.get("suggested_role", "worker")
            e.dirty.add(ident)
        if host["role"] == "master":
            masters.append(ident)
    mac = e.config.get("BOOTSTRAP_HOST_MAC")
    chosen = next((ident for ident in masters if mac and inv.has_mac(e.inventories.get(ident, {}), mac)), masters[-1])
    now = e.clock()
    tracked_document(cluster).set(
        **{"last-installation-preparation": NOT_PREPARED},
        install_started_at=time_text(now),
        _install_at=now,
    )
    tracked_document(cluster).drop(
        "logs_info", "install_completed_at", "controller_logs_collected_at", "controller_logs_started_at"
    )
    for host in members.values():
        tracked_document(host).drop("logs_info", "logs_collected_at", "logs_started_at", "progress")
    e.set_cluster_status(cluster, rule.destination(cluster["status"]), rule.info or "")
    for ident, host in members.items():
        if ident == chosen and not host.get("bootstrap"):
            e.event("host_bootstrap_set", host=host)
        host["bootstrap"] = ident == chosen
    view = e.view(cluster)
    for ident in members.keys() & e.dirty:
        e.validate_host(members[ident], view)
    e.start_preparation(cluster)
    return cluster_model(e, cluster, stages=False, free=True)


def _rule(e: Engine, cluster: Cluster, trigger: ClusterTrigger) -> state.ClusterRule:
    """The rule by which a cluster is cancelled or reset; ApiError 409 when there is none."""
    rule = state.decide(state.CLUSTER, trigger, cluster["status"], lambda name: True)
    if rule is None:
        e.event(f"{trigger}_installation_failed", cluster_id=cluster["id"], error=NO_TRANSITION)
        raise ApiError(409, NO_TRANSITION)
    return rule


def _answer(e: Engine, cluster: Cluster, before: str | None) -> Any:
    """Return a cluster after an action as upstream does: with the new status, and the status_info of the old one."""
    return {**cluster_model(e, cluster, stages=False, free=True), "status_info": before}


def _move_hosts(e: Engine, cluster: Cluster, trigger: HostTrigger, event: str) -> None:
    for host in e.hosts_of(cluster["id"]).values():
        booted = host.get("progress", {}).get("current_stage") in validations.AFTER_REBOOT or host["status"] in (
            Status.INSTALLED,
            Status.ERROR,
            Status.CANCELLED,
        )
        if e.trigger(host, trigger, lambda name, value=booted: value) is not None:  # type: ignore[misc]
            e.event(event, host=host)
            if host["status"] == Status.RESETTING_PENDING:
                e.event("user_required_complete_installation_reset", host=host)


@handler
def cancel_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    rule, before = _rule(e, cluster, ClusterTrigger.CANCEL), cluster.get("status_info")
    _move_hosts(e, cluster, HostTrigger.CANCEL, "host_installation_cancelled")
    e.set_cluster_status(cluster, rule.destination(cluster["status"]), rule.info or "")
    e.event("cluster_installation_canceled", cluster_id=cluster["id"])
    return _answer(e, cluster, before)


#: Fields of an operator that its report sets, and those that a reset of the installation removes.
_REPORTS: tuple[Literal["status", "status_info", "version"], ...] = ("status", "status_info", "version")
_REPORTED: tuple[Literal["status", "version", "status_updated_at"], ...] = ("status", "version", "status_updated_at")


@handler
def reset_cluster(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    rule, before = _rule(e, cluster, ClusterTrigger.RESET), cluster.get("status_info")
    _move_hosts(e, cluster, HostTrigger.RESET, "host_installation_reset")
    for name in e.store.file_names(cluster["id"]):
        if not name.startswith("manifest/"):
            e.store.put_file(cluster["id"], name, None)
    tracked_document(cluster).set(progress={}, **{"last-installation-preparation": NOT_PREPARED})
    tracked_document(cluster).drop(
        "install_started_at",
        "install_completed_at",
        "logs_info",
        "controller_logs_collected_at",
        "controller_logs_started_at",
        "openshift_cluster_id",
        "_install_at",
        "_stage_at",
    )
    if validations.is_sno(cluster):
        tracked_document(cluster).set(api_vips=[], ingress_vips=[])
    operators = [op.copy() for op in cluster["monitored_operators"]]
    for op in operators:
        for key in _REPORTED:
            op.pop(key, None)
    cluster["monitored_operators"] = operators
    e.set_cluster_status(cluster, rule.destination(cluster["status"]), rule.info or "")
    e.event("cluster_installation_reset", cluster_id=cluster["id"])
    return _answer(e, cluster, before)


@handler
def allow_add_hosts(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] != Status.INSTALLED:
        raise ApiError(
            400,
            f"cannot transform cluster {cluster['id']} to day2. Expected cluster status: installed, but cluster status is: {cluster['status']}",
        )
    before = cluster.get("status_info")
    cluster["kind"] = "AddHostsCluster"
    cluster["api_vip_dns_name"] = validations.names_of(cluster).api
    e.set_cluster_status(cluster, ClusterStatus.ADDING_HOSTS, "cluster is adding hosts to existing OCP cluster")
    return {**cluster_model(e, cluster), "status_info": before}


@handler
def complete_installation(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if not call.body["is_success"]:
        report = call.body.get("data", {}).get("CLUSTER_OPERATORS_REPORT") or call.body.get("error_info", "")
        e.event(
            "cluster_operator_report",
            cluster_id=cluster["id"],
            report=report if isinstance(report, str) else json.dumps(report),
        )
    e.dirty.add(cluster["id"])
    return cluster_model(e, cluster, stages=False, free=True)


_FINALIZES = (Status.INSTALLING, Status.FINALIZING, Status.PENDING_USER_ACTION)


@handler
def update_finalizing(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] not in _FINALIZES:
        raise ApiError(
            400, f"cluster is {cluster['status']}, not in one of allowed statuses: {refusals.go_list(_FINALIZES)}"
        )
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
        raise ApiError(404, "record not found")
    return [operator_model(operator) for operator in found]


@handler
def report_operator(e: Engine, call: Call) -> Any:
    cluster, body = e.cluster(call.path["cluster_id"]), call.body
    operators = cluster.get("monitored_operators", [])
    if all(op["name"] != body.get("name") for op in operators):
        raise ApiError(404, "record not found")
    made = []
    for op in operators:
        if op["name"] == body["name"]:
            update: MonitoredOperator = {}
            for key in _REPORTS:
                if key in body:
                    update[key] = body[key]
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
    from .. import prepare

    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] not in (Status.FINALIZING, Status.INSTALLED):
        raise ApiError(
            400,
            f"Cluster {cluster['id']} is in {cluster['status']} state, upload ingress ca can be done only in finalizing or installed state",
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
    if not (e.config.abi or console) or cluster["status"] in BEFORE_INSTALL - {Status.READY}:
        raise ApiError(
            409,
            "console-url isn't available yet, it will be once console operator is ready as part of cluster finalizing stage",
        )
    password = e.store.file(cluster["id"], "kubeadmin-password") or b""
    url = f"https://{validations.names_of(cluster).console}"
    return {"username": "kubeadmin", "password": password.decode(), "console_url": url}


def _cluster_file(e: Engine, cluster: Cluster, name: str, more: tuple[str, ...] = ()) -> Any:
    refusals.downloadable(cluster["id"], cluster["status"], "files" if not more else name, more)
    content = e.store.file(cluster["id"], name)
    if content is None:
        raise ApiError(409, f"object {cluster['id']}/{name} was not found")
    return Download(name, content)


@handler
def download_file(e: Engine, call: Call) -> Any:
    return _cluster_file(e, e.cluster(call.path["cluster_id"]), call.query["file_name"])


@handler
def download_credentials(e: Engine, call: Call) -> Any:
    """Return credentials; before the router's CA is known, a kubeconfig comes without it."""
    cluster, name = e.cluster(call.path["cluster_id"]), call.query["file_name"]
    ready = cluster["status"] in DOWNLOADABLE and cluster["status"] != Status.INSTALLING
    if name == "kubeconfig":
        if ready and e.store.file(cluster["id"], name) is not None:
            return _cluster_file(e, cluster, name)
        name = "kubeconfig-noingress"
    return _cluster_file(e, cluster, name, ABI_EARLY if e.config.abi else ())
