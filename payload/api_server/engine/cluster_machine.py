"""The state machine of clusters: validations in, conditions of its rules, effects out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import state, validations
from ..store import Document
from ..tables import BEFORE_INSTALL, FINALIZING_NOT_FAILING, finalizing_setting
from .host_machine import HostMachine
from .statuses import time_text


class ClusterMachine(HostMachine):
    """Moves clusters."""

    def refresh_cluster(self, cluster: Document) -> None:
        """Validates a cluster when something of it changed, and moves its state machine."""
        ident = cluster["id"]
        members = self.hosts_of(ident)
        judged = cluster["status"] in (*BEFORE_INSTALL, "preparing-for-installation") and not validations.is_day2(
            cluster
        )
        fresh = ident in self.dirty
        self.dirty.discard(ident)
        if judged and (fresh or ident not in self.results):
            view = self.view(cluster)
            results = validations.evaluate(validations.CLUSTER, view)
            self._tell(
                self.results.get(ident),
                results,
                "cluster_validation_failed",
                "cluster_validation_fixed",
                cluster_id=ident,
            )
            self.results[ident] = results
            cluster["validations_info"] = validations.shown(results)
        results = self.results.get(ident, {})
        ignored = self._ignored(cluster, "cluster", results)
        now = self.clock()
        status, stage = cluster["status"], cluster.get("progress", {}).get("finalizing_stage", "")
        statuses = [host["status"] for host in members.values()]
        roles = [(validations.role_of(host), host["status"]) for host in members.values()]
        preparation = cluster.get("last-installation-preparation", {}).get("status", "not_started")
        control = validations.control_planes(cluster)
        stage_limit = self.seconds(finalizing_setting(stage), ident) if stage else float("inf")
        alive = [(role, "installed" if other != "error" else "error") for role, other in roles]
        operators = cluster.get("monitored_operators", [])
        builtin = [op for op in operators if op.get("operator_type") == "builtin"]
        since = now - float(cluster.get("_status_at", now))
        installing_since = now - float(cluster.get("_install_at", now))

        conditions: dict[str, Callable[[], bool]] = {
            "input": lambda: validations.passed(results, validations.CLUSTER_INPUT, ignored),
            "sufficient": lambda: validations.passed(results, validations.CLUSTER_SUFFICIENT, ignored),
            "all-prepared": lambda: bool(statuses) and all(other == "preparing-successful" for other in statuses),
            "preparation-success": lambda: preparation == "success",
            "preparation-failed": lambda: preparation == "failed" or "preparing-failed" in statuses,
            "hosts-failed-preparing": lambda: "preparing-failed" in statuses,
            "host-stopped-preparing": lambda: any(
                other not in ("known", "preparing-for-installation", "preparing-successful", "preparing-failed")
                for other in statuses
            ),
            "prepare-timeout": lambda: since > self.seconds("PREPARE_FOR_INSTALLATION_TIMEOUT", ident),
            "installation-timeout": lambda: installing_since > self.seconds("INSTALLATION_TIMEOUT", ident),
            "finalizing-timeout": lambda: since > self.seconds("FINALIZING_TIMEOUT", ident),
            "finalizing-stage-timeout": lambda: now - float(cluster.get("_stage_at", now)) > stage_limit,
            "finalizing-stage-fails": lambda: stage not in FINALIZING_NOT_FAILING,
            "finalizing-stage-told": lambda: bool(cluster.get("progress", {}).get("finalizing_stage_timed_out")),
            "soft-timeouts": lambda: self.config.flag("ENABLE_SOFT_TIMEOUTS", self.settings(ident)),
            "hopeless": lambda: not state.enough_installed(alive, control),
            "user-action-pending": lambda: "installing-pending-user-action" in statuses,
            "enough-installed": lambda: state.enough_installed(roles, control),
            "all-settled": lambda: all(other in ("installed", "error") for other in statuses),
            "kubeconfig": lambda: self.store.file(ident, "kubeconfig") is not None,
            "operators-settled": lambda: (
                all(op.get("status") == "available" for op in builtin)
                and all(op.get("status") in ("available", "failed") for op in operators)
            ),
            "logs-timeout": lambda: self._logs_timeout(cluster, status, "CLUSTER_LOG"),
        }
        rule = state.decide(state.CLUSTER["refresh"], status, lambda name: conditions[name]())
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
        self.set_cluster_status(cluster, status if rule.dest == state.SAME else rule.dest, info)
        for effect in rule.effects:
            self._cluster_effect(cluster, effect, stage, info, stage_limit)
        if cluster["status"] != status:
            self.cluster_progress(cluster)

    @staticmethod
    def _installed_text(roles: list[tuple[str, str]], operators: Iterable[Mapping[str, Any]]) -> str:
        failed = [
            str(op["name"]) for op in operators if op.get("operator_type") == "olm" and op.get("status") == "failed"
        ]
        if failed:
            return f"Cluster is installed but degraded. Failed OLM operators: {', '.join(failed)}"
        if any(role == "worker" and status == "error" for role, status in roles):
            return "Cluster is installed but degraded: some workers did not join"
        return "Cluster is installed"

    def _cluster_effect(self, cluster: Document, effect: str, stage: str, info: str, limit: float) -> None:
        now, ident = self.clock(), cluster["id"]
        if effect == "installing-started":
            cluster["_installing_at"] = now
            self.metrics.count("cluster_installation_started")
            if validations.is_sno(cluster):
                # A single node's API is at the node itself.
                view, ident = self.view(cluster), next(iter(self.hosts_of(ident)), "")
                own = [{"cluster_id": cluster["id"], "ip": ip} for ip in validations.own_addresses(view, ident)]
                cluster.set(api_vips=own, ingress_vips=own)
        elif effect == "prepare-timed-out":
            reason = "Installation failed. Try again, and contact support if the issue persists."
            cluster["last-installation-preparation"] = {"status": "failed", "reason": reason}
            self.event("installation_preparing_timed_out", cluster_id=ident, reason=reason)
        elif effect == "finalizing-stage-timed-out":
            cluster["progress"] = {**cluster["progress"], "finalizing_stage_timed_out": True}
            self.event("finalizing_stage_timed_out", cluster_id=ident, stage=stage, minutes=round(limit / 60))
        elif effect == "failed":
            cluster["install_completed_at"] = time_text(now)
            self.event("cluster_installation_failed", cluster_id=ident, failure_reason=info)
            self.metrics.observe("cluster_installation_seconds", now - float(cluster.get("_install_at", now)), "error")
        elif effect == "completed":
            cluster["install_completed_at"] = time_text(now)
            self.event("cluster_installation_completed", cluster_id=ident)
            self.metrics.observe("cluster_installation_seconds", now - float(cluster.get("_install_at", now)), "installed")
            failed = [op["name"] for op in cluster.get("monitored_operators", []) if op.get("status") == "failed"]
            if failed:
                self.event(
                    "cluster_degraded_OLM_operators_failed", cluster_id=ident, failed_operators=", ".join(failed)
                )
        elif effect == "logs-timed-out":
            cluster["logs_info"] = "timeout"
