"""What the parts of the installer share: options, service, host, and the reports to the service."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable

from ..cluster.kube import Object
from ..cluster.settings import seconds
from .host import Host
from .service import Service, ServiceError

INSTALL_DIR = "/opt/install-dir"
# Upstream's interval in seconds for what a host waits for.
WAIT_SECONDS = 5
log = logging.getLogger("installer")


class InstallError(Exception):
    """The installation of this host failed.

    The message goes to the service as the info of the stage Failed.
    """


class Installation:
    """One installation of one host.

    options: of `installer.parser`. role: what the host becomes; `bootstrap` itself is a master in the end.
    """

    def __init__(self, options: argparse.Namespace, service: Service, host: Host) -> None:
        self.options, self.service, self.host = options, service, host
        self.bootstrap = options.role == "bootstrap"
        self.role = "master" if self.bootstrap else options.role
        # A worker of such a cluster installs as any other does.
        self.single = self.bootstrap and options.control_plane_count == 1
        self.host_path = f"/v2/infra-envs/{options.infra_env_id}/hosts/"
        self.cluster_path = f"/v2/clusters/{options.cluster_id}"

    def report(self, stage: str, info: str = "", host_id: str = "") -> bool:
        """Report a stage; return whether the service accepted it. The installation continues in any case.

        stage: of `Stage`; info: at most 2048 characters are sent; host_id: of another host, this one by default.
        """
        log.info("Updating node installation stage: %s - %s", stage, info)
        try:
            self.service.send(
                "PUT",
                f"{self.host_path}{host_id or self.options.host_id}/progress",
                {"current_stage": stage, "progress_info": info[:2048]},
            )
        except ServiceError as error:
            log.error("Failed to update node installation stage, %s", error)
            return False
        return True

    def report_logs(self, path: str, state: str) -> None:
        """Report the state of log collection of the host or cluster with this path: `requested`, for example.

        path: of the API, without `/logs-progress`. An error is logged only.
        """
        try:
            self.service.send("PUT", f"{path}/logs-progress", {"logs_state": state})
        except ServiceError as error:
            log.error("failed to report log progress %s", state, extra={"error": error})

    def hosts(self) -> list[Object]:
        """Return the hosts of the cluster that are not disabled, as the service knows them.

        Raises `ServiceError` after its retries.
        """
        found: list[Object] = self.service.get(f"{self.cluster_path}?exclude-hosts=false")["hosts"]
        return [host for host in found if host.get("status") != "disabled"]

    def save(self, name: str, data: bytes) -> str:
        """Write a file to the install directory of the host and return its path there.

        data is written with mode 0600. Raises `OSError`.
        """
        path = self.host.path(f"{INSTALL_DIR}/{name}")
        path.touch(0o600)
        path.write_bytes(data)
        return f"{INSTALL_DIR}/{name}"

    def wait_until(self, what: str, test: Callable[[], bool], pause: float = WAIT_SECONDS) -> None:
        """Poll until a test succeeds. It is bounded by the service's stage timeouts: the service cancels this container.

        what: for the log; pause: seconds between two tests. `ServiceError` of the test counts as not yet.
        """
        log.info("%s", what)
        while True:
            try:
                if test():
                    return
            except ServiceError as error:
                log.warning("%s", what, extra={"error": error})
            time.sleep(seconds("INSTALLER_POLL_SECONDS", pause))
