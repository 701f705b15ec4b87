"""What the parts of the controller share: its clients, its configuration, and whether the installation is over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict

from ..cluster.kube import KubeClient, KubeError
from ..cluster.settings import seconds
from .service import Service, ServiceError

# Upstream's poll interval of nodes and hosts.
LOOK_SECONDS = 30.0
# Number of refusals in a row after which the service no longer knows this program.
AUTHORIZATION_ERRORS = 3
log = logging.getLogger("controller")


class Config(TypedDict):
    """The controller's configuration; `invoker` is the program that installs the cluster.

    `openshift_version` may be empty; `control_plane_count` counts masters and arbiters.
    """

    cluster_id: str
    invoker: str
    openshift_version: NotRequired[str]
    control_plane_count: int


class StoppedInstallation(Exception):
    """The installation is over; the message is Go's."""


class Session:
    """One run. `failed` and `untaints` (nodes wait for a cloud provider without credentials) are set during it."""

    def __init__(self, kube: KubeClient, service: Service, config: Config) -> None:
        self.kube, self.service, self.config = kube, service, config
        self.done = threading.Event()
        self.failed = False
        self.untaints = False
        self.cluster_path = f"/v2/clusters/{config['cluster_id']}"

    def pause(self, default: float) -> float:
        """Return the poll interval in seconds: upstream's, which is given, unless the lab overrides it.

        default: in seconds. The lab's setting is CONTROLLER_POLL_SECONDS.
        """
        return seconds("CONTROLLER_POLL_SECONDS", default)

    def cluster(self) -> dict[str, Any]:
        """Return the cluster as the service knows it, without its hosts.

        Raises `ServiceError`, with code 404 for one that was deleted.
        """
        found: dict[str, Any] = self.service.get(f"{self.cluster_path}?exclude-hosts=true")
        return found

    def hosts(self, *without: str) -> list[dict[str, Any]]:
        """Return the cluster's hosts except those in given statuses.

        without: statuses of hosts, such as `disabled`. Raises `ServiceError`.
        """
        hosts: list[dict[str, Any]] = self.service.get(f"{self.cluster_path}?exclude-hosts=false")["hosts"]
        return [host for host in hosts if host["status"] not in without]

    def wait_until(
        self, what: str, test: Callable[[], bool], over: Callable[[], bool] = lambda: False, pause: float = LOOK_SECONDS
    ) -> bool:
        """Poll until a test succeeds; return False when `over` does. It is bounded by the timeouts of the service and wait-for.

        Raise Stopped when the installation is over meanwhile; the test runs at least once.
        """
        log.info("%s", what)
        while True:
            try:
                if test():
                    return True
                if over():
                    log.warning("Stopped: %s", what)
                    return False
            except (ServiceError, KubeError) as error:
                log.error("%s", what, extra={"error": error})
            if self.done.wait(self.pause(pause)):
                raise StoppedInstallation("context canceled")
