"""The state of a cluster's operators, as the controller reports it to the service."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TypedDict

from ..cluster.kube import KubeError, Object
from .olm import version_of
from .session import Session

VERSION = "/apis/config.openshift.io/v1/clusterversions/version"
OPERATORS = "/apis/config.openshift.io/v1/clusteroperators"
# Number of polls with a failed operator before that is reported: it may still recover.
FAILED_LOOKS = 10
# The first of these conditions of a ClusterOperator gives its status and message.
STATES = {
    ("Available", "True"): "available",
    ("Progressing", "True"): "progressing",
    ("Degraded", "True"): "failed",
    ("Available", "False"): "failed",
}
# Phase of a ClusterServiceVersion -> status of the operator; any other is progressing.
PHASES = {"Succeeded": "available", "Failed": "failed"}
log = logging.getLogger("controller")


class MonitoredOperator(TypedDict, total=False):
    """An operator of a cluster in the service (`monitored-operator` of its API)."""

    name: str
    operator_type: str
    namespace: str
    subscription_name: str
    status: str
    status_info: str
    version: str


def operator_state(obj: Object) -> tuple[str, str, str]:
    """Return status (available, progressing or failed), message and version of an operator in the service's format.

    obj: a ClusterOperator or ClusterVersion. Without a condition that decides it is progressing, with an empty message.
    """
    status = obj.get("status", {})
    version = (status.get("versions") or [{}])[0].get("version", "") or status.get("desired", {}).get("version", "")
    for entry in status.get("conditions", ()):
        if state := STATES.get((entry["type"], entry["status"])):
            return state, entry.get("message", ""), version
    return "progressing", "", version


class Operators:
    """The operators that the service monitors."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._failed_looks: Counter[str] = Counter()

    def monitored(self) -> list[MonitoredOperator]:
        """Return the operators with the state that the service knows."""
        found: list[MonitoredOperator] = self.session.service.get(f"{self.session.cluster_path}/monitored-operators")
        return found

    def builtin_available(self) -> bool:
        """Report changes of the operators that every cluster has; return whether all of them are available.

        An operator that does not exist yet is waited for. Raises `KubeError` and `ServiceError`.
        """
        waiting = False
        for operator in self.monitored():
            if operator.get("operator_type", "builtin") != "builtin":
                continue
            name = operator["name"]
            obj = self.session.kube.find(VERSION if name == "cvo" else f"{OPERATORS}/{name}")
            if obj is None:
                log.warning("Failed to get <%s> operator", name)
                waiting = True
                continue
            log.info(
                "%s status conditions: %s",
                name.upper() if name == "cvo" else name,
                obj.get("status", {}).get("conditions"),
            )
            waiting = not self._is_available(operator, *operator_state(obj)) or waiting
        return not waiting

    def olm_available(self) -> bool:
        """Report changes of the OLM operators; return whether none is left to wait for.

        A failed one counts as done after `FAILED_LOOKS` polls, since it may recover before. Raises `KubeError` and
        `ServiceError`.
        """
        waiting = False
        for operator in self.monitored():
            if operator.get("operator_type") != "olm" or operator.get("status") == "available":
                continue
            version = version_of(self.session.kube, operator)
            status: Object = (version or {}).get("status") or {}
            state = PHASES.get(status.get("phase", ""), "progressing")
            if state == "failed" and self._failed_looks[operator["name"]] < FAILED_LOOKS:
                self._failed_looks[operator["name"]] += 1
                waiting = True
            elif version is None:
                waiting = True
            else:
                number = str(version["spec"].get("version", ""))
                waiting = not self._is_available(operator, state, status.get("message", ""), number) or waiting
        return not waiting

    def fail_unfinished(self) -> bool:
        """Report the OLM operators that are not available as failed."""
        for operator in self.monitored():
            if operator.get("operator_type") == "olm" and operator.get("status") not in ("available", "failed"):
                log.info("Updating operator %s status to 'failed'", operator["name"])
                self._report(operator, "failed", "Waiting for operator timed out", operator.get("version", ""))
        return True

    def report(self) -> list[dict[str, str]]:
        """Return the state of every ClusterOperator, for the report on a failed installation.

        Each has name, status and status_info in the service's words. Empty when the API does not answer.
        """
        try:
            operators = self.session.kube.get(OPERATORS)["items"]
        except KubeError as error:
            log.warning("Failed to list cluster operators", extra={"error": error})
            return []
        for operator in operators:
            log.info(
                "Operator %s, statuses: %s", operator["metadata"]["name"], operator.get("status", {}).get("conditions")
            )
        found = [(operator["metadata"]["name"], *operator_state(operator)) for operator in operators]
        return [{"name": name, "status": state, "status_info": info} for name, state, info, __ in found]

    def _is_available(self, operator: MonitoredOperator, state: str, info: str, version: str) -> bool:
        """Report changes of an operator to the service; return True once it has acknowledged that the operator is available."""
        name, before, message = operator["name"], operator.get("status", ""), operator.get("status_info", "")
        log.info("Checking availability of operator <%s>: %s", name, str(before == "available").lower())
        if before == "available":
            log.info(
                "Service acknowledged <%s> operator is available for cluster %s",
                name,
                self.session.config["cluster_id"],
            )
            return True
        if state == before and info in ("", message):
            return False
        log.info("Operator <%s> updated, status: %s -> %s, message: %s -> %s.", name, before, state, message, info)
        self._report(operator, state, info, version)
        return state == "available"

    def _report(self, operator: MonitoredOperator, state: str, info: str, version: str) -> None:
        report = {"name": operator["name"], "status": state, "status_info": info, "version": version}
        self.session.service.send("PUT", f"{self.session.cluster_path}/monitored-operators", report)
        self.session.failed = self.session.failed or (state == "failed" and operator.get("operator_type") == "olm")
