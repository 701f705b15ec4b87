"""`wait-for install-complete`: what follows once the bootstrap is done, over the OpenShift API alone."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from .._deps import optional
from ..assisted.monitor import FatalError
from ..assisted.watcher import Diagnose, Seen, Stall, no_diagnosis
from .client import ClusterClient, ClusterError, conditions, is_true

yaml = optional("yaml", "PyYAML")

STABLE_LIMIT = 30 * 60.0
STABLE_FOR = 30.0
CONSOLE_LIMIT = 120.0
POLL = 2.0

TROUBLESHOOTING = (
    "Cluster initialization failed because one or more operators are not functioning properly.",
    "The cluster should be accessible for troubleshooting as detailed in the documentation linked below,",
    "https://docs.openshift.com/container-platform/latest/support/troubleshooting/troubleshooting-installations.html",
)

Say = Callable[[str, str], None]


class InstallFailed(Exception):
    """The cluster did not initialize (exit code 6)."""

    exit_code = 6


class Unstable(InstallFailed):
    """Cluster operators did not settle (exit code 7)."""

    exit_code = 7


class Clock(Protocol):
    def time(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


@dataclass
class InstallWatcher:
    """Follows one cluster from its bootstrap to `Install complete!`.

    say(level, text) gets every message; initialize_limit in seconds; stall: seconds without anything new of
    ClusterVersion and operators after which to give up (0: never); diagnose: sees causes for which that is sooner.
    """

    kube: ClusterClient
    say: Say
    clock: Clock = time
    initialize_limit: float = 40 * 60.0
    stall: float = 0
    diagnose: Diagnose = no_diagnosis
    _told: str | None = field(default=None, init=False)

    def run(self) -> str | None:
        """The console's URL (None: the cluster has none); InstallFailed or Unstable otherwise."""
        self._initialized()
        ca = self._kube(self.kube.ingress_ca)
        if ca:
            add_router_ca(self.kube.kubeconfig, ca)
        self._stable()
        return self._console()

    def _kube(self, call: Callable[[], Any]) -> Any:
        """The call's result; None while the API does not answer (it may be moving to another node)."""
        try:
            return call()
        except ClusterError as error:
            self.say("debug", str(error))
            return None

    def _initialized(self) -> None:
        start = self.clock.time()
        self.say("info", f"Waiting up to {go_duration(self.initialize_limit)} (until {_clock(start + self.initialize_limit)}) "
                         f"for the cluster at {self.kube.server} to initialize...")
        last, stall = "", Stall(self.stall, self.clock)
        while True:
            version = self._kube(self.kube.cluster_version)
            if version:
                if is_true(version, "Available") and not is_true(version, "Failing") and not is_true(version, "Progressing"):
                    return
                failing, progressing = (conditions(version).get(c, {}) for c in ("Failing", "Progressing"))
                last = str((failing if failing.get("status") == "True" else progressing).get("message") or "")
                self._still(last)
            now = self.clock.time()
            if now - start > self.initialize_limit:
                raise InstallFailed(f"failed to initialize the cluster: {last or 'the API does not answer'}")
            if self.stall:
                try:
                    stall.check(self._facts(last), self.diagnose(Seen(kube=True)))
                except FatalError as error:
                    raise InstallFailed(f"failed to initialize the cluster: {error}: {last or 'the API does not answer'}") from error
            self.clock.sleep(POLL)

    def _facts(self, version: str) -> AbstractSet[Hashable]:
        operators = self._kube(self.kube.cluster_operators) or []
        said = {(o["metadata"]["name"], kind, c.get("status"), c.get("message")) for o in operators for kind, c in conditions(o).items()}
        return {version, *said}

    def _still(self, message: str) -> None:
        if message != self._told:
            self._told = message
            self.say("debug", f"Still waiting for the cluster to initialize: {message}")

    def _stable(self) -> None:
        start = self.clock.time()
        self.say("info", f"Waiting up to {go_duration(STABLE_LIMIT)} (until {_clock(start + STABLE_LIMIT)}) "
                         "to ensure each cluster operator has finished progressing...")
        while True:
            operators = self._kube(self.kube.cluster_operators)
            moving = None if operators is None else [o["metadata"]["name"] for o in operators if not settled(o, self.clock.time())]
            if operators and not moving:
                self.say("info", "All cluster operators have completed progressing")
                return
            if self.clock.time() - start > STABLE_LIMIT:
                names = ", ".join(moving or ["the API does not answer"])
                self.say("error", 'Error checking cluster operator Progressing status: "context deadline exceeded"')
                raise Unstable(f"These cluster operators were not stable: [{names}]")
            self.clock.sleep(1)

    def _console(self) -> str | None:
        self.say("info", "Checking to see if there is a route at openshift-console/console...")
        start = self.clock.time()
        while self.clock.time() - start < CONSOLE_LIMIT:
            try:
                host = self.kube.console_host()
            except ClusterError as error:
                self.say("debug", str(error))
            else:
                if host:
                    return f"https://{host}"
                break
            self.clock.sleep(POLL)
        self.say("warning", "Cluster does not have a console available: could not get openshift-console URL")
        return None


def settled(operator: dict[str, Any], now: float) -> bool:
    """Whether an operator has not been progressing for longer than STABLE_FOR seconds before `now` (epoch)."""
    progressing = conditions(operator).get("Progressing")
    if not progressing or progressing["status"] != "False":
        return False
    since = datetime.fromisoformat(progressing["lastTransitionTime"]).timestamp()
    return now - since > STABLE_FOR


def operator_report(operators: list[dict[str, Any]]) -> list[str]:
    """A line for every condition of an operator that is not what it should be."""
    healthy = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}
    return [f"Cluster operator {o['metadata']['name']} {kind} is {c['status']} with {c.get('reason', '')}: {c.get('message', '')}"
            for o in operators for kind, c in sorted(conditions(o).items())
            if kind in healthy and c["status"] != healthy[kind]]


def add_router_ca(kubeconfig: Path, bundle: str) -> bool:
    """Put the router's CA before the CA data of every cluster of a kubeconfig; False if it is there already."""
    text = kubeconfig.read_text()
    config = yaml.safe_load(text)
    for cluster in (entry["cluster"] for entry in config["clusters"]):
        data = base64.b64decode(cluster["certificate-authority-data"]).decode()
        if bundle.strip() not in data:
            cluster["certificate-authority-data"] = base64.b64encode((bundle.rstrip() + "\n" + data).encode()).decode()
    new = yaml.safe_dump(config, sort_keys=True)
    if yaml.safe_load(text) == config:
        return False
    part = kubeconfig.with_name(kubeconfig.name + ".part")
    part.touch(0o600)
    part.write_text(new)
    part.replace(kubeconfig)
    return True


def go_duration(seconds: float) -> str:
    """Seconds in the way of Go: 40m0s, 1h0m0s."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"


def _clock(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%-I:%M%p UTC")


def api_host(server: str) -> str:
    """Host name in the URL of an API server."""
    return urlsplit(server).hostname or server
