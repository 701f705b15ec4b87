"""The controller: runs in the new cluster until it is installed (`/usr/bin/assisted-installer-controller`).

It approves certificate requests, reports joined hosts to the service, labels their nodes, and ends the installation. With
the invoker `agent-installer` the service ends with the bootstrap host, so the cluster itself reports the end; otherwise the
controller reports the finalizing stages and their result to the service, and stays until the service ends the installation.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ...plugins.module_utils.vocabulary import Port
from ..cluster import nodes as node_list
from ..cluster.assisted import TOKEN
from ..cluster.conditions import is_true
from ..cluster.kube import KubeClient, KubeError
from ..cluster.pod_inputs import ACCOUNT
from ..cluster.settings import seconds
from ..cluster.store import timestamp
from . import logs, olm, taints
from .bare_metal import hand_over
from .control_plane import INVOKER, READY_EVENT
from .finalizing import PROGRESS_SECONDS, Finalizer
from .joining import NodeJoiner
from .olm import NAMESPACE
from .operators import VERSION
from .own_log import OwnLog
from .service import CONTROLLER_RETRIES, Service, ServiceError
from .session import AUTHORIZATION_ERRORS, LOOK_SECONDS, Config, Session

INSTALL_CONFIG = "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1"
READY_PAUSE_SECONDS = 1.0
# Upstream's limits. With the agent-installer the service may be gone permanently.
AGENT_READY_SECONDS, READY_SECONDS = 300, 4200
API_TRIES, API_PAUSE_SECONDS = 60, 5
log = logging.getLogger("controller")


class Controller:
    """One run.

    config: of the Job's environment. A single node installed by the agent installer has no service to talk to any more.
    """

    def __init__(self, kube: KubeClient, service: Service, config: Config) -> None:
        self.session = Session(kube, service, config)
        self.joining, self.finalizer = NodeJoiner(self.session), Finalizer(self.session)
        self.own_log = OwnLog(self.session)
        self.agent_based = config["invoker"] == "agent-installer"
        self.single = config["control_plane_count"] == 1
        self.version_available = False

    def run(self) -> None:
        """Run until the cluster is installed, or its installation is given up.

        Each task has a thread, which repeats it until it has finished; errors are logged and the step is repeated.
        """
        with_service = not (self.agent_based and self.single)
        cluster = self.set_ready_state() if with_service else None
        loops = [self._start(self._loop, "ApproveCsrs", self.joining.approve_requests)]
        if with_service:
            self.session.untaints = self.must_untaint(cluster)
            log.info("Remove uninitialized taint: %s", str(self.session.untaints).lower())
            loops.append(self._start(self._loop, "WaitAndUpdateNodesStatus", self.joining.update_hosts))
            loops.append(self._start(self._loop, "UpdateNodeLabels", self.joining.label_nodes))
            loops.append(self._start(self.own_log.keep_sending))
        if cluster and taints.platform_of(cluster) == "baremetal":
            loops.append(self._start(self._loop, "UpdateBMHs", hand_over))
        if self.agent_based:
            # The installation does not wait for it: as upstream, it ends with this program.
            loops.append(self._start(self._loop, "PostInstallConfigsK8sClient", olm.apply_without_service))
            self.session.wait_until(
                "Waiting for the cluster version and all control-plane nodes", self.complete, pause=PROGRESS_SECONDS
            )
            self.session.done.set()
        elif self.finalizer.until_over():
            self.own_log.send_final()
        log.info("Waiting for all go routines to finish")
        for loop in loops:
            loop.join(self.session.pause(LOOK_SECONDS))
        log.info("Finished all")

    def must_untaint(self, cluster: Mapping[str, object] | None) -> bool:
        """Return whether nodes wait for a cloud provider without credentials, according to the service or the install-config.

        cluster: as the service returned it, None if it did not answer: then the ConfigMap with the install-config
        decides.
        """
        config = ""
        if cluster is None:
            log.warning("error getting cluster, assisted-service was unavailable")
            try:
                config = ((self.session.kube.find(INSTALL_CONFIG) or {}).get("data") or {}).get("install-config", "")
            except KubeError as error:
                log.warning("error determining platform type from install-config: %s", error)
        platform = taints.platform_in(config) if cluster is None else taints.platform_of(cluster)
        return taints.must_go(
            platform, self.session.config.get("openshift_version", ""), self.session.config["invoker"], cluster, config
        )

    def _start(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        return thread

    # Ready

    def set_ready_state(self) -> dict[str, Any] | None:
        """Report with an event that the controller reaches both the service and the cluster; the bootstrap host waits for it.

        Return the cluster as the service knows it; None when an agent-based installation must continue without the service.
        Any other exits: its Job runs this program again.
        """
        log.info("Start waiting to be ready")
        limit = AGENT_READY_SECONDS if self.agent_based else READY_SECONDS
        end = time.monotonic() + limit
        while True:
            try:
                cluster = self.session.cluster()
                log.info("assisted-service is available")
                self.session.kube.get("/api/v1/nodes")
                log.info("kube-apiserver is available")
                break
            except (ServiceError, KubeError) as error:
                what = "assisted service" if isinstance(error, ServiceError) else "ocp cluster"
                log.warning("Failed to connect to %s", what, extra={"error": error})
                if time.monotonic() > end:
                    if not self.agent_based:
                        sys.exit("Failed to retrieve cluster from assisted service")
                    log.warning(
                        "SetReadyState timed out fetching cluster from assisted-service, invoker = %s",
                        self.session.config["invoker"],
                    )
                    return None
                time.sleep(self.session.pause(READY_PAUSE_SECONDS))
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": READY_EVENT, "namespace": NAMESPACE},
            "involvedObject": {"namespace": NAMESPACE, "name": "assisted-installer-controller"},
            "type": "Normal",
            "reason": READY_EVENT,
            "message": "Assisted controller managed to connect to assisted service and kube-apiserver and is ready to start",
            "firstTimestamp": timestamp(),
            "lastTimestamp": timestamp(),
            "count": 1,
        }

        def written() -> bool:
            self.session.kube.ensure(f"/api/v1/namespaces/{NAMESPACE}/events", body)
            return True

        self.session.wait_until("Sending ready event", written, pause=READY_PAUSE_SECONDS)
        return cluster

    def _loop(self, what: str, step: Callable[[KubeClient], bool | None]) -> None:
        kube, denied = self.session.kube.another_client(), 0
        while not self.session.done.is_set():
            try:
                if step(kube):
                    log.info("%s finished", what)
                    return
                denied = 0
            except ServiceError as error:
                log.error("%s", what, extra={"error": error})
                denied += error.code in (401, 403)
                if denied >= AUTHORIZATION_ERRORS:
                    log.warning("the service no longer knows this cluster; continuing without it")
                    return
            except KubeError as error:
                log.error("%s", what, extra={"error": error})
            self.session.done.wait(self.session.pause(LOOK_SECONDS))

    # The end of an agent-based installation

    def complete(self) -> bool:
        """Return whether the cluster version was available and all control-plane nodes are ready now; remove taints of nodes meanwhile.

        Once the version was available it is not read again. Raises `KubeError`, after which it is called again.
        """
        nodes = self.session.kube.get("/api/v1/nodes")["items"]
        for node in nodes if self.session.untaints else ():
            try:
                taints.remove(self.session.kube, node)
            except KubeError as error:
                log.error(
                    "Failed to remove uninitialized taint from node %s",
                    node["metadata"]["name"],
                    extra={"error": error},
                )
        if not self.version_available:
            self.version_available = is_true(self.session.kube.get(VERSION), "Available")
            log.info("ClusterVersion Available=True" if self.version_available else "ClusterVersion Available!=True")
        if not self.version_available:
            return False
        ready, wanted = node_list.ready(nodes), self.session.config["control_plane_count"]
        joined = sum(1 for n in ready if node_list.has_role(n, "master") or node_list.has_role(n, "arbiter"))
        waiting = "Waiting for all control-plane nodes to join the cluster (%d/%d)"
        log.info(
            waiting if joined < wanted else "All expected control-plane nodes have joined the cluster (%d/%d)",
            joined,
            wanted,
        )
        return joined >= wanted


def _invoker(kube: KubeClient) -> str:
    """Return the program that installs this cluster; a member that starts may take some time to answer."""
    for __ in range(API_TRIES - 1):
        try:
            return str((kube.find(INVOKER) or {}).get("data", {}).get("invoker", ""))
        except KubeError as error:
            log.warning("the API does not answer yet: %s", error)
            time.sleep(seconds("CONTROLLER_POLL_SECONDS", API_PAUSE_SECONDS))
    return str((kube.find(INVOKER) or {}).get("data", {}).get("invoker", ""))


def parser() -> argparse.ArgumentParser:
    """Return the options; the controller's configuration is in the environment and the files of its pod, as upstream's."""
    options = argparse.ArgumentParser(
        prog="assisted-installer-controller", description="ends the installation of this cluster"
    )
    options.add_argument(
        "--server",
        default=f"https://localhost:{Port.API}",
        help="URL of the API; this node's member forwards writes to the leader",
    )
    return options


def main(argv: list[str] | None = None) -> int:
    """Run the controller."""
    options = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    environment = os.environ
    missing = [name for name in ("CLUSTER_ID", "INVENTORY_URL") if not environment.get(name)]
    if missing:
        print(f"required key {missing[0]} missing value", file=sys.stderr)
        return 1
    kube = KubeClient(options.server, (ACCOUNT / "ca.crt").read_text(), token=(ACCOUNT / "token").read_text())
    config: Config = {
        "cluster_id": environment["CLUSTER_ID"],
        "invoker": _invoker(kube),
        "openshift_version": environment.get("OPENSHIFT_VERSION", ""),
        "control_plane_count": int(environment.get("CONTROL_PLANE_COUNT") or 3),
    }
    service = Service(environment["INVENTORY_URL"], TOKEN.read_text(), retries=CONTROLLER_RETRIES)
    controller = Controller(kube, service, config)
    logs.setup([logging.StreamHandler(sys.stdout), controller.own_log])
    log.info("Start running Assisted-controller. Configuration is:\n %s", config)
    controller.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
