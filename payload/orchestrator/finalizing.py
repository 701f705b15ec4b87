"""The end of an installation with a service that stays: the controller goes through the finalizing stages."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.vocabulary import ClusterStatus, FinalizingStage, Status
from . import olm
from .operators import MonitoredOperator, Operators
from .service import ServiceError
from .session import AUTHORIZATION_ERRORS, Session, StoppedInstallation

INGRESS_CERT = "/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert"
# Upstream's poll intervals: of operators and the end of the installation, of the router.
PROGRESS_SECONDS, ROUTER_SECONDS = 60.0, 10.0
OPERATORS_SECONDS = 36000.0
# Final statuses of a cluster for a controller, and their log messages.
OVER = {
    Status.ERROR: "Cluster installation failed.",
    Status.CANCELLED: "Cluster installation aborted. Signal the status",
    Status.INSTALLED: "Cluster installation successfully finished.",
    ClusterStatus.ADDING_HOSTS: "Cluster is day2",
}
log = logging.getLogger("controller")


class Finalizer:
    """The finalizing stages of one installation.

    `until_over` is the main thread's; the stages run in one of their own.
    """

    def __init__(self, session: Session) -> None:
        self.session, self.operators = session, Operators(session)

    def until_over(self) -> bool:
        """Start the finalizing stages when they are due; wait until the service ends the installation.

        Return False when the service no longer knows the cluster or this program: reports have no receiver.
        """
        log.info("monitor cluster installation status")
        post_install = threading.Thread(target=self.post_install, daemon=True)
        post_install.start()
        denied = 0
        while True:
            state = ""
            try:
                state = self.session.cluster()["status"]
                denied = 0
            except ServiceError as error:
                # One that was deleted does not come back.
                denied += AUTHORIZATION_ERRORS if error.code == 404 else error.code in (401, 403)
                log.error(
                    "Failed to get cluster %s from assisted-service",
                    self.session.config["cluster_id"],
                    extra={"error": error},
                )
            if state in OVER or denied >= AUTHORIZATION_ERRORS:
                break
            self.session.done.wait(self.session.pause(PROGRESS_SECONDS))
        log.info(
            "%s",
            OVER.get(state, f"Got more than {AUTHORIZATION_ERRORS} errors from assisted service in a row, exiting"),
        )
        self.session.failed = self.session.failed or state == "error"
        self.session.done.set()
        if state:
            post_install.join()
        return bool(state)

    def post_install(self) -> None:
        """Go through the finalizing stages when they are due, and report the result to the service.

        It returns without a report when the installation is over before. A failure of OLM operators alone is not one of
        the installation.
        """
        try:
            self.session.wait_until(
                "Waiting for the cluster to be finalized", lambda: self.session.cluster()["status"] == Status.FINALIZING
            )
        except StoppedInstallation:
            return
        log.info("Start post install configs")
        stopped = "Stopped waiting for cluster operators to be available"
        report: list[dict[str, str]] = []
        try:
            self.finalizing(FinalizingStage.CLUSTER_OPERATORS)
            end = time.monotonic() + OPERATORS_SECONDS
            try:
                if not self.session.wait_until(
                    FinalizingStage.CLUSTER_OPERATORS,
                    self.operators.builtin_available,
                    lambda: time.monotonic() > end,
                    PROGRESS_SECONDS,
                ):
                    raise StoppedInstallation("context deadline exceeded")
            finally:
                report = self.operators.report()
            stopped = "Stopped waiting for router ca data"
            self.finalizing(FinalizingStage.ROUTER_CA)
            self.session.wait_until("Start adding ingress ca to cluster", self._upload_ingress, pause=ROUTER_SECONDS)
        except StoppedInstallation as error:
            log.error("%s: %s", stopped, error)
            self.session.failed = True
            end_of_all: dict[str, object] = {"is_success": False, "error_info": f"{stopped}: {error}"}
            if report:
                end_of_all["data"] = {"CLUSTER_OPERATORS_REPORT": report}
        else:
            end_of_all = {"is_success": True}
            try:
                self.olm()
                self.finalizing(FinalizingStage.DONE)
            except StoppedInstallation as error:  # the service reports such a cluster as degraded
                log.warning("Error while initializing OLM operators", extra={"error": error})
        try:
            self.session.wait_until(
                "Start complete installation step", lambda: self._report_end(end_of_all), pause=PROGRESS_SECONDS
            )
            log.info("Done complete installation step")
        except StoppedInstallation:
            log.warning("the end of the installation could not be reported to the service")

    def _report_end(self, body: Mapping[str, object]) -> bool:
        self.session.service.send("POST", f"{self.session.cluster_path}/actions/complete-installation", body)
        return True

    def finalizing(self, stage: str) -> None:
        """Report a finalizing stage, until the service accepts it.

        stage: of the service's API, as in `FinalizingStage`. Raises `StoppedInstallation` when the installation is over.
        """

        def report() -> bool:
            self.session.service.send("PUT", f"{self.session.cluster_path}/progress", {"finalizing_stage": stage})
            return True

        self.session.wait_until(f"Finalizing stage: {stage}", report)

    def _upload_ingress(self) -> bool:
        found = self.session.kube.find(INGRESS_CERT)
        if found is None:
            log.warning("fetching default-ingress-cert configmap from openshift-config-managed namespace")
            return False
        log.info(
            "Sending ingress certificate to inventory service. Certificate data %s", found["data"]["ca-bundle.crt"]
        )
        self.session.service.send(
            "POST", f"{self.session.cluster_path}/uploads/ingress-cert", found["data"]["ca-bundle.crt"]
        )
        log.info("Ingress ca successfully sent to inventory")
        return True

    def olm(self) -> None:
        """Follow the cluster's OLM operators; a stage that the service times out is skipped, and its unfinished operators fail.

        Operators are those that the service monitors with type `olm`. Raises `StoppedInstallation`.
        """
        self.finalizing(FinalizingStage.CSV_INITIALIZATION)
        operators = [operator for operator in self.operators.monitored() if operator.get("operator_type") == "olm"]
        if not operators:
            log.info("No OLM operators found.")
            return
        stages: tuple[tuple[str, str, Callable[[], bool]], ...] = (
            (
                FinalizingStage.CSV_INITIALIZATION,
                "Waiting for csv to be created",
                lambda: all(olm.version_of(self.session.kube, operator) for operator in operators),
            ),
            (FinalizingStage.OLM_MANIFESTS, "Applying manifests", lambda: self._apply_manifests(operators)),
            (FinalizingStage.CSV, "Waiting for OLM operators be installed", self.operators.olm_available),
        )
        finished = True
        for stage, what, test in stages:
            if stage != FinalizingStage.CSV_INITIALIZATION:
                self.finalizing(stage)
            finished = self.session.wait_until(what, test, over=partial(self._timed_out, stage)) and finished
        if not finished:
            self.session.wait_until("Updating pending OLM operators", self.operators.fail_unfinished)

    def _timed_out(self, stage: str) -> bool:
        progress = self.session.cluster().get("progress") or {}
        return progress.get("finalizing_stage") == stage and bool(progress.get("finalizing_stage_timed_out"))

    def _apply_manifests(self, operators: Sequence[MonitoredOperator]) -> bool:
        if not all(olm.version_of(self.session.kube, operator) for operator in operators):
            return False
        text = self.session.service.download(
            f"{self.session.cluster_path}/downloads/files?file_name=custom_manifests.json"
        )
        names = {operator["name"] for operator in operators}
        return olm.apply_all(
            self.session.kube,
            [entry["content"] for entry in load_json(text or b"[]", name="olm operators") if entry["name"] in names],
        )
