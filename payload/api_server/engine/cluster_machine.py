"""The state machine of clusters: validations in, conditions of its rules, effects out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....plugins.module_utils.vocabulary import Status
from .. import state, validations
from ..document import tracked_document
from ..objects import Cluster, MonitoredOperator
from ..state import ClusterCondition, ClusterEffect, ClusterTrigger
from ..tables import BEFORE_INSTALL, FINALIZING_NOT_FAILING, finalizing_setting
from .host_machine import HostMachine
from .statuses import time_text


class ClusterMachine(HostMachine):
    """Moves clusters.

    One of the layers of `Engine`. It decides by the rules in `state.clusters`; users' requests (install, cancel, reset)
    are triggered in `handlers`, here only what follows from time and from reports.
    """

    def refresh_cluster(self, cluster: Cluster) -> None:
        """Validate a cluster after a change, and run its state machine.

        Validations run before the installation only, and only if the cluster is marked as changed; timeouts are looked
        at in each call. Changes of validations and of the status become events. The caller commits.
        """
        ident = cluster["id"]
        members = self.hosts_of(ident)
        validated = cluster["status"] in (*BEFORE_INSTALL, Status.PREPARING) and not validations.is_day2(cluster)
        fresh = ident in self.dirty
        self.dirty.discard(ident)
        if validated and (fresh or ident not in self.results):
            view = self.view(cluster)
            results = validations.evaluate(validations.CLUSTER, view)
            self._report_changes(
                self.results.get(ident),
                results,
                "cluster_validation_failed",
                "cluster_validation_fixed",
                cluster_id=ident,
            )
            self.results[ident] = results
            cluster["validations_info"] = validations.validations_info(results)
        results = self.results.get(ident, {})
        ignored = self._ignored(cluster, "cluster", results)
        now = self.clock()
        status, stage = cluster["status"], cluster.get("progress", {}).get("finalizing_stage", "")
        statuses = [host["status"] for host in members.values()]
        roles = [(validations.role_of(host), host["status"]) for host in members.values()]
        preparation = cluster.get("last-installation-preparation", {}).get("status", "not_started")
        control = validations.control_planes(cluster)
        stage_limit = self.seconds(finalizing_setting(stage), ident) if stage else float("inf")
        alive = [(role, Status.INSTALLED if other != Status.ERROR else Status.ERROR) for role, other in roles]
        operators = cluster.get("monitored_operators", [])
        builtin = [op for op in operators if op.get("operator_type") == "builtin"]
        since = now - float(cluster.get("_status_at", now))
        installing_since = now - float(cluster.get("_install_at", now))

        conditions: dict[ClusterCondition, Callable[[], bool]] = {
            ClusterCondition.INPUT: lambda: validations.all_passed(results, validations.CLUSTER_INPUT, ignored),
            ClusterCondition.SUFFICIENT: lambda: validations.all_passed(
                results, validations.CLUSTER_SUFFICIENT, ignored
            ),
            ClusterCondition.ALL_PREPARED: lambda: (
                bool(statuses) and all(other == Status.PREPARED for other in statuses)
            ),
            ClusterCondition.PREPARATION_SUCCESS: lambda: preparation == "success",
            ClusterCondition.PREPARATION_FAILED: lambda: preparation == "failed" or Status.PREPARING_FAILED in statuses,
            ClusterCondition.HOSTS_FAILED_PREPARING: lambda: Status.PREPARING_FAILED in statuses,
            ClusterCondition.HOST_STOPPED_PREPARING: lambda: any(
                other not in (Status.KNOWN, Status.PREPARING, Status.PREPARED, Status.PREPARING_FAILED)
                for other in statuses
            ),
            ClusterCondition.PREPARE_TIMEOUT: lambda: since > self.seconds("PREPARE_FOR_INSTALLATION_TIMEOUT", ident),
            ClusterCondition.INSTALLATION_TIMEOUT: lambda: (
                installing_since > self.seconds("INSTALLATION_TIMEOUT", ident)
            ),
            ClusterCondition.FINALIZING_TIMEOUT: lambda: since > self.seconds("FINALIZING_TIMEOUT", ident),
            ClusterCondition.FINALIZING_STAGE_TIMEOUT: lambda: now - float(cluster.get("_stage_at", now)) > stage_limit,
            ClusterCondition.FINALIZING_STAGE_FAILS: lambda: stage not in FINALIZING_NOT_FAILING,
            ClusterCondition.FINALIZING_STAGE_REPORTED: lambda: bool(
                cluster.get("progress", {}).get("finalizing_stage_timed_out")
            ),
            ClusterCondition.SOFT_TIMEOUTS: lambda: self.config.flag("ENABLE_SOFT_TIMEOUTS", self.settings(ident)),
            ClusterCondition.HOPELESS: lambda: not state.enough_installed(alive, control),
            ClusterCondition.USER_ACTION_PENDING: lambda: Status.PENDING_USER_ACTION in statuses,
            ClusterCondition.ENOUGH_INSTALLED: lambda: state.enough_installed(roles, control),
            ClusterCondition.ALL_SETTLED: lambda: all(other in (Status.INSTALLED, Status.ERROR) for other in statuses),
            ClusterCondition.KUBECONFIG: lambda: self.store.file(ident, "kubeconfig") is not None,
            ClusterCondition.OPERATORS_SETTLED: lambda: (
                all(op.get("status") == "available" for op in builtin)
                and all(op.get("status") in ("available", "failed") for op in operators)
            ),
            ClusterCondition.LOGS_TIMEOUT: lambda: self._logs_timeout(cluster, status, "CLUSTER_LOG"),
        }
        rule = state.decide(state.CLUSTER, ClusterTrigger.REFRESH, status, lambda name: conditions[name]())
        if rule is None:
            return
        info = cluster.get("status_info", "")
        if rule.info is not None:
            info = state.fill(
                rule.info,
                STAGE=stage,
                MINUTES=str(round(stage_limit / 60)) if stage else "",
                INSTALLATION_MINUTES=str(round(self.seconds("INSTALLATION_TIMEOUT", ident) / 60)),
                INSTALLED=self._installed_text(roles, operators),
            )
        self.set_cluster_status(cluster, rule.destination(status), info)
        for effect in rule.effects:
            self._cluster_effect(cluster, effect, stage, info, stage_limit)
        if cluster["status"] != status:
            self.cluster_progress(cluster)

    @staticmethod
    def _installed_text(roles: list[tuple[str, str]], operators: Iterable[MonitoredOperator]) -> str:
        failed = [
            str(op["name"]) for op in operators if op.get("operator_type") == "olm" and op.get("status") == "failed"
        ]
        if failed:
            return f"Cluster is installed but degraded. Failed OLM operators: {', '.join(failed)}"
        if any(role == "worker" and status == Status.ERROR for role, status in roles):
            return "Cluster is installed but degraded: some workers did not join"
        return "Cluster is installed"

    def _cluster_effect(self, cluster: Cluster, effect: ClusterEffect, stage: str, info: str, limit: float) -> None:
        now, ident = self.clock(), cluster["id"]
        if effect == ClusterEffect.INSTALLING_STARTED:
            cluster["_installing_at"] = now
            self.metrics.count("cluster_installation_started")
            if validations.is_sno(cluster):
                # The API of a single-node cluster is on the node itself.
                view, ident = self.view(cluster), next(iter(self.hosts_of(ident)), "")
                own = [{"cluster_id": cluster["id"], "ip": ip} for ip in validations.own_addresses(view, ident)]
                tracked_document(cluster).set(api_vips=own, ingress_vips=own)
        elif effect == ClusterEffect.PREPARE_TIMED_OUT:
            reason = "Installation failed. Try again, and contact support if the issue persists."
            cluster["last-installation-preparation"] = {"status": "failed", "reason": reason}
            self.event("installation_preparing_timed_out", cluster_id=ident, reason=reason)
        elif effect == ClusterEffect.FINALIZING_STAGE_TIMED_OUT:
            cluster["progress"] = {**cluster["progress"], "finalizing_stage_timed_out": True}
            self.event("finalizing_stage_timed_out", cluster_id=ident, stage=stage, minutes=round(limit / 60))
        elif effect == ClusterEffect.FAILED:
            cluster["install_completed_at"] = time_text(now)
            self.event("cluster_installation_failed", cluster_id=ident, failure_reason=info)
            self.metrics.observe("cluster_installation_seconds", now - float(cluster.get("_install_at", now)), "error")
        elif effect == ClusterEffect.COMPLETED:
            cluster["install_completed_at"] = time_text(now)
            self.event("cluster_installation_completed", cluster_id=ident)
            self.metrics.observe(
                "cluster_installation_seconds", now - float(cluster.get("_install_at", now)), "installed"
            )
            failed = [op["name"] for op in cluster.get("monitored_operators", []) if op.get("status") == "failed"]
            if failed:
                self.event(
                    "cluster_degraded_OLM_operators_failed", cluster_id=ident, failed_operators=", ".join(failed)
                )
        elif effect == ClusterEffect.LOGS_TIMED_OUT:
            cluster["logs_info"] = "timeout"
