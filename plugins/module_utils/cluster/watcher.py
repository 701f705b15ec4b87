"""`wait-for install-complete`: what follows once the bootstrap is done, using only the OpenShift API."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .._deps import optional
from ..documents import load_yaml
from ..errors import ClusterError, FatalError
from ..state import write_atomic
from ..vocabulary import Exit
from ..watch import Clock, Diagnose, Message, Stall, WaitState, no_diagnosis
from .client import ClusterClient, admitted_url, conditions, is_false, is_true
from .pods import CONTROLLER, NAMESPACE, incomplete

yaml = optional("yaml", "PyYAML")

STABLE_LIMIT = 30 * 60.0
STABLE_FOR = 30.0
SIMULATED_FOR = 5.0
"""Instead of `STABLE_FOR`, of a simulated control plane: what its operators have reached they keep."""
CONSOLE_LIMIT = 120.0
INGRESS_CA_LIMIT = 120.0
"""Seconds to retry reading the router's CA while the API does not answer, for example during a failover."""
POLL = 2.0

TROUBLESHOOTING = """\
Cluster initialization failed because one or more operators are not functioning properly.
The cluster should be accessible for troubleshooting as detailed in the documentation linked below,
https://docs.openshift.com/container-platform/latest/support/troubleshooting/troubleshooting-installations.html
The 'wait-for install-complete' subcommand can then be used to continue the installation"""

Report = Callable[[str, str], None]


class InstallFailed(Exception):
    """The cluster did not initialize.

    The texts are those of `openshift-install agent wait-for install-complete`; `exit_code` is what the program ends
    with.
    """

    exit_code = Exit.INSTALL


class Unstable(InstallFailed):
    """Cluster operators did not settle.

    The message lists those that did not stop progressing for long enough within `STABLE_LIMIT`.
    """

    exit_code = Exit.OPERATORS


@dataclass
class InstallWatcher:
    """Follows one cluster from its bootstrap to `Install complete!`.

    report(level, text) gets every message; initialize_limit in seconds; fips: the cluster must be in FIPS mode, which is
    verified; stall: seconds without progress of ClusterVersion and operators after which to give up (0: never); diagnose:
    returns causes with a shorter grace period; controller: whether the assisted-installer-controller must complete, which upstream
    does not check; show: gets the ClusterOperators each time they are read; stable_for: seconds for which none may have progressed.
    """

    kube: ClusterClient
    report: Report
    clock: Clock = time
    initialize_limit: float = 40 * 60.0
    fips: bool = False
    stall: float = 0
    diagnose: Diagnose = no_diagnosis
    controller: bool = False
    show: Callable[[list[dict[str, Any]]], None] = lambda operators: None
    stable_for: float = STABLE_FOR
    _reported: str | None = field(default=None, init=False)

    def run(self) -> str | None:
        """Return the console's URL (None: the cluster has none); InstallFailed or Unstable otherwise.

        The router's CA is added to the kubeconfig of `kube` on the way.
        """
        self._initialized()
        self._trust_router()
        self._stable()
        if self.fips:
            self._verify_fips()
        if self.controller:
            self._completed()
        return self._console()

    def _kube(self, call: Callable[[], object]) -> Any:
        """Return the call's result; None while the API does not answer (it may be failing over)."""
        try:
            return call()
        except ClusterError as error:
            self.report("debug", str(error))
            return None

    def _initialized(self) -> None:
        start = self.clock.time()
        self.report(
            "info",
            f"Waiting up to {go_duration(self.initialize_limit)} (until {_clock(start + self.initialize_limit)}) "
            f"for the cluster at {self.kube.server} to initialize...",
        )
        last, stall = "", Stall(self.stall, self.clock)
        while True:
            version = self._kube(self.kube.cluster_version)
            if version:
                if is_true(version, "Available") and is_false(version, "Failing") and is_false(version, "Progressing"):
                    return
                last = next(
                    (
                        conditions(version)[c].get("message", "")
                        for c in ("Failing", "Progressing")
                        if is_true(version, c)
                    ),
                    last,
                )
                self._report_waiting(last)
            now = self.clock.time()
            if now - start > self.initialize_limit:
                raise InstallFailed(f"failed to initialize the cluster: {last or 'the API does not answer'}")
            try:
                self._check(stall, self._facts(last) if self.stall else set())
            except FatalError as error:
                raise InstallFailed(
                    f"failed to initialize the cluster: {error}: {last or 'the API does not answer'}"
                ) from error
            self.clock.sleep(POLL)

    def _check(self, stall: Stall, facts: AbstractSet[Hashable]) -> None:
        """Raise FatalError after too long without progress."""
        if self.stall:
            pods = (self._kube(lambda: self.kube.pods(NAMESPACE)) or []) if self.controller else []
            stall.check(facts, self.diagnose(WaitState(kube=True, pods=pods)))

    def _completed(self) -> None:
        start, last, stall = self.clock.time(), "", Stall(self.stall, self.clock)
        while True:
            reason = self._kube(lambda: incomplete(self.kube.controller_job(), self.kube.pods(NAMESPACE)))
            if reason == "":
                return
            reason = reason or "the API does not answer"
            if reason != last:
                self.report("info", f"Waiting for {CONTROLLER} to complete: {reason}")
            last = reason
            try:
                self._check(stall, set())
            except FatalError as error:
                raise InstallFailed(f"{CONTROLLER} did not complete: {error}") from error
            if self.clock.time() - start > self.initialize_limit:
                raise InstallFailed(f"{CONTROLLER} did not complete: {last}")
            self.clock.sleep(POLL)

    def _trust_router(self) -> None:
        what = "fetching default-ingress-cert configmap from openshift-config-managed namespace"
        start = self.clock.time()
        while True:
            try:
                ca = self.kube.ingress_ca()
                break
            except ClusterError as error:
                if self.clock.time() - start > INGRESS_CA_LIMIT:
                    raise InstallFailed(f"{what}: {error}") from error
                self.report("debug", str(error))
                self.clock.sleep(POLL)
        if ca is None:
            raise InstallFailed(f'{what}: configmaps "default-ingress-cert" not found')
        if "-----BEGIN CERTIFICATE-----" not in ca:
            raise InstallFailed("ca-bundle.crt from default-ingress-cert configmap not valid PEM format")
        try:
            add_router_ca(self.kube.kubeconfig, ca)
        except OSError as error:
            raise InstallFailed(f"writing kubeconfig: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise InstallFailed(f"loading kubeconfig: {self.kube.kubeconfig}: {error}") from error

    def _verify_fips(self) -> None:
        for pool in ("worker", "master"):
            try:
                rendered = self.kube.rendered_config(pool)
            except ClusterError as error:
                raise InstallFailed(f"failed to verify FIPS mode: {error}") from error
            if (rendered.get("spec") or {}).get("fips") is not True:
                name = (rendered.get("metadata") or {}).get("name", "")
                raise InstallFailed(
                    f"FIPS was enabled in install-config but rendered MachineConfig {name} for {pool} pool has FIPS=false"
                )
        self.report("info", "Verified FIPS mode is enabled on cluster")

    def _facts(self, version: str) -> AbstractSet[Hashable]:
        operators = self._kube(self.kube.cluster_operators) or []
        self.show(operators)
        messages = {
            (o["metadata"]["name"], kind, c.get("status"), c.get("message"))
            for o in operators
            for kind, c in conditions(o).items()
        }
        return {version, *messages}

    def _report_waiting(self, message: str) -> None:
        if message != self._reported:
            self._reported = message
            self.report("debug", f"Still waiting for the cluster to initialize: {message}")

    def _stable(self) -> None:
        start = self.clock.time()
        self.report(
            "info",
            f"Waiting up to {go_duration(STABLE_LIMIT)} (until {_clock(start + STABLE_LIMIT)}) "
            "to ensure each cluster operator has finished progressing...",
        )
        while True:
            operators = self._kube(self.kube.cluster_operators)
            self.show(operators or [])
            moving = (
                None
                if operators is None
                else [o["metadata"]["name"] for o in operators if not is_settled(o, self.clock.time(), self.stable_for)]
            )
            if operators and not moving:
                self.report("info", "All cluster operators have completed progressing")
                return
            if self.clock.time() - start > STABLE_LIMIT:
                names = ", ".join(moving or ["the API does not answer"])
                self.report("error", 'Error checking cluster operator Progressing status: "context deadline exceeded"')
                raise Unstable(f"These cluster operators were not stable: [{names}]")
            self.clock.sleep(1)

    def _console(self) -> str | None:
        self.report("info", "Checking to see if there is a route at openshift-console/console...")
        start = self.clock.time()
        why = "waiting for openshift-console URL: context deadline exceeded"
        while self.clock.time() - start < CONSOLE_LIMIT:
            try:
                route = self.kube.console_route()
            except ClusterError as error:
                self.report("debug", str(error))
            else:
                if route is None:
                    self.report("debug", "OpenShift console route does not exist")
                    why = "could not get openshift-console URL"
                    break
                url = admitted_url(route)
                if url:
                    self.report("debug", "OpenShift console route is admitted")
                    return url
            self.clock.sleep(POLL)
        self.report("warning", f"Cluster does not have a console available: {why}")
        return None


def is_settled(operator: dict[str, Any], now: float, stable_for: float = STABLE_FOR) -> bool:
    """Return whether an operator has not been progressing for longer than `stable_for` seconds before `now` (epoch).

    operator: of the API. Without a condition Progressing, or without the time of its last transition, the answer is
    False.
    """
    progressing = conditions(operator).get("Progressing") or {}
    if progressing.get("status") != "False":
        return False
    try:
        since = datetime.fromisoformat(progressing["lastTransitionTime"]).timestamp()
    except (KeyError, ValueError, TypeError):  # an operator without a transition time
        return False
    return now - since > stable_for


# Conditions that are not reported: Upgradeable never, these as long as they have this status.
_HEALTHY = {"Available": "True", "Progressing": "False", "Degraded": "False"}


def operator_report(operators: list[dict[str, Any]]) -> list[Message]:
    """Return a message for every unexpected condition of an operator, in the order of the API.

    As upstream's report after a failed wait: unavailable and degraded operators are errors, all other conditions (also those of
    no fixed meaning, such as EvaluationConditionsDetected) are information, Upgradeable is omitted.
    """
    return [
        Message(
            "error" if kind in ("Available", "Degraded") else "info",
            f"Cluster operator {o['metadata']['name']} {kind} is {c.get('status')} with {c.get('reason', '')}: {c.get('message', '')}",
        )
        for o in operators
        for kind, c in conditions(o).items()
        if kind != "Upgradeable" and c.get("status") != _HEALTHY.get(kind)
    ]


def add_router_ca(kubeconfig: Path, bundle: str) -> bool:
    """Prepend the router's CA to the CA data of every cluster of a kubeconfig; return False if it is there already.

    bundle: PEM. Raises `OSError`, and `ValueError`, `KeyError` or `TypeError` for a file that is not a kubeconfig with
    embedded CA data.
    """
    text = kubeconfig.read_text()
    config = load_yaml(text, name=str(kubeconfig))
    for cluster in (entry["cluster"] for entry in config["clusters"]):
        data = base64.b64decode(cluster["certificate-authority-data"]).decode()
        if not data:
            raise ValueError("kubeconfig CertificateAuthorityData not found")
        if bundle.strip() not in data:
            cluster["certificate-authority-data"] = base64.b64encode((bundle.rstrip() + "\n" + data).encode()).decode()
    if load_yaml(text, name=str(kubeconfig)) == config:
        return False
    return write_atomic(kubeconfig, yaml.safe_dump(config, sort_keys=True), 0o600)


def go_duration(seconds: float) -> str:
    """Return seconds in Go's format: 40m0s, 1h0m0s.

    seconds: fractions are dropped; hours and minutes appear only when there are any.
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"


def _clock(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%-I:%M%p UTC")
