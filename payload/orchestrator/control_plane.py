"""The new control plane, for which the bootstrap host waits before it reboots and joins it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from ...plugins.module_utils.vocabulary import MACHINE_CONFIGURATION, Stage, Status
from ..cluster import nodes as node_list
from ..cluster.conditions import is_true
from ..cluster.kube import KubeClient, KubeError, Object
from ..cluster.settings import seconds
from . import taints
from .bootstrap import BOOTSTRAP_DIR, Bootstrap
from .hosts import FETCHED, find_host, host_addresses, machine_config_requests, stage_of
from .installation import Installation
from .service import ServiceError

# Upstream's interval in seconds for what is checked while the bootstrap host waits.
WATCH_SECONDS = 30
# Stages of a worker that need the service, which ends with the bootstrap host (upstream's list, without "Writing image to disk").
WORKER_NEEDS_SERVICE = (Stage.STARTING, Stage.INSTALLING, Stage.CONTROL_PLANE)
READY_EVENT = "AssistedControllerIsReady"
MACHINE_CONFIGS = f"/apis/{MACHINE_CONFIGURATION}/v1/machineconfigs"
INVOKER = "/api/v1/namespaces/openshift-config/configmaps/openshift-install-manifests"
log = logging.getLogger("installer")


class ControlPlane:
    """The control plane of one installation, as its bootstrap host sees it.

    `finish` runs in the main thread, `watch_requests` in one of its own; reports of fetched configs are made once by
    either.
    """

    def __init__(self, installation: Installation, bootstrap: Bootstrap) -> None:
        self.installation, self.bootstrap = installation, bootstrap
        self._stop_watching = threading.Event()
        self._requests = threading.Lock()
        self._requested: set[str] = set()

    def finish(self) -> None:
        """Wait for masters, bootkube, the controller and, in an agent-based installation, for workers that still need the service.

        It returns when this host may reboot. Errors of the service are retried; an `InstallError` is bootkube's.
        """
        self.installation.report(Stage.CONTROL_PLANE, "Waiting for masters to join bootstrap control plane")
        for role, least in (("master", 2), ("arbiter", 1)):
            self.wait_for_nodes(role, least)
        self.bootstrap.wait_for_bootkube()
        self.installation.report(Stage.BOOTKUBE, "waiting for ETCD bootstrap to be complete")
        self.installation.report(Stage.CONTROLLER, "waiting for controller pod ready event")
        self.installation.wait_until("Waiting for controller to be ready", self.controller_ready)
        log.info("Assisted controller is ready")
        self.installation.report_logs(self.installation.cluster_path, "requested")
        self._stop_watching.set()
        log.info("Setting bootstrap node new role to master")
        if self.invoker() == taints.AGENT_BASED:
            self.installation.wait_until(
                "Waiting for workers to reach reboot stage", lambda: not self.workers_that_need_service(), WATCH_SECONDS
            )
        self.installation.wait_until(
            "Waiting for MachineConfig annotations to be consistent on all master nodes", self.masters_consistent
        )

    def kube(self) -> list[KubeClient]:
        """Return clients of this host's member and of the API's address, which is valid after the handover.

        They are new at each call; close them. Their kubeconfigs are those of the bootstrap directory.
        """
        return [
            KubeClient.from_kubeconfig(self.installation.host.path(f"{BOOTSTRAP_DIR}/auth/{name}"))
            for name in ("kubeconfig-loopback", "kubeconfig")
        ]

    def kube_get(self, path: str) -> Object:
        """Return an object or a list, from the first member that answers; empty if none does, or none has it.

        path: of the API, with parameters. Errors are logged at debug level only: members come and go.
        """
        for client in self.kube():
            try:
                found: Object = client.get(path)
            except KubeError as error:
                log.debug("%s: %s", path, error)
            else:
                return found
            finally:
                client.close()
        return {}

    def kube_items(self, path: str) -> list[Object]:
        """Return the objects of a collection; empty without a response.

        path: of a collection. Use it where no answer yet and no objects mean the same.
        """
        items: list[Object] = self.kube_get(path).get("items", [])
        return items

    def invoker(self) -> str:
        """Return the invoker of this cluster's installation.

        It is in ConfigMap openshift-config/openshift-install-manifests; empty while the API does not answer.
        """
        return str(self.kube_get(INVOKER).get("data", {}).get("invoker", ""))

    def controller_ready(self) -> bool:
        """Return whether the controller has reported that it reaches the service and the cluster.

        It does so by an event named `READY_EVENT`, as upstream's.
        """
        events = self.kube_items("/api/v1/namespaces/assisted-installer/events")
        return any(event["metadata"]["name"] == READY_EVENT for event in events)

    def wait_for_nodes(self, role: str, least: int) -> None:
        """Wait until enough nodes of a role are ready, not counting this host; report each as Joined.

        role: `master` or `arbiter`; least: how many at most are waited for. Without hosts of that role it returns at
        once.
        """
        log.info("Waiting for %s nodes", role)
        hosts = self.installation.hosts()
        count = sum(1 for host in hosts if host["role"] == role)
        wanted = min(count, least) if role == "arbiter" else min(count - 1, least)
        if not count:
            log.info(
                "Waiting for %s nodes not needed as %d of this node was specified in the install config", role, count
            )
            return
        cluster = self.installation.service.get(f"{self.installation.cluster_path}?exclude-hosts=true")
        joined: set[str] = set()

        def enough() -> bool:
            self.report_requests(hosts)
            nodes = [node for node in self.kube_items("/api/v1/nodes") if node_list.has_role(node, role)]
            if nodes and taints.must_go(
                taints.platform_of(cluster), self.installation.options.openshift_version, self.invoker(), cluster
            ):
                self.untaint([node for node in nodes if not is_true(node, "Ready")])
            for node in node_list.ready(nodes):
                name = node["metadata"]["name"]
                if name in joined:
                    continue
                log.info(
                    "Found a new ready %s node %s with id %s",
                    role,
                    name,
                    node["status"].get("nodeInfo", {}).get("systemUUID", ""),
                )
                host = find_host(hosts, node)
                if host is None:
                    log.warning("node %s is not in inventory hosts", name)
                elif (
                    host["id"] != self.installation.options.host_id
                    and host.get("status") != Status.INSTALLED
                    and not self.installation.report(Stage.JOINED, host_id=host["id"])
                ):
                    continue
                joined.add(name)
            log.info("Found %d ready %s nodes", len(joined), role)
            return len(joined) >= wanted

        self.installation.wait_until(f"Waiting for {wanted} {role} nodes", enough)
        log.info("Waiting for %s nodes - Done", role)

    def untaint(self, nodes: Sequence[Object]) -> None:
        """Remove taints that no cloud provider will remove."""
        for node in nodes:
            for client in self.kube():
                try:
                    taints.remove(client, node)
                    break
                except KubeError as error:
                    log.warning("Failed to untaint node %s: %s", node["metadata"]["name"], error)
                finally:
                    client.close()

    def workers_that_need_service(self) -> list[str]:
        """Return the names of workers that still need the service on this host.

        They are those in a stage of `WORKER_NEEDS_SERVICE`. Raises `ServiceError`.
        """
        workers = self.installation.service.get(f"{self.installation.cluster_path}/hosts?role=worker")
        stages = {str(host.get("requested_hostname")): stage_of(host) for host in workers}
        waiting = [name for name, stage in stages.items() if stage in WORKER_NEEDS_SERVICE]
        for name in waiting:
            log.info("Still waiting for worker %s to start the joining process (current stage: %s)", name, stages[name])
        return waiting

    def masters_consistent(self) -> bool:
        """Return whether all masters that have joined are to run one config, and it and those that they run exist.

        The configs are in the annotations of the nodes (machine-config-daemon's). An API without an answer counts as
        not consistent.
        """
        nodes = [node for node in self.kube_items("/api/v1/nodes") if node_list.has_role(node, "master")]
        notes = [node["metadata"].get("annotations") or {} for node in nodes]
        desired = {note.get(f"{MACHINE_CONFIGURATION}/desiredConfig", "") for note in notes}
        configs = desired | {note.get(f"{MACHINE_CONFIGURATION}/currentConfig", "") for note in notes}
        return (
            len(desired) == 1
            and "" not in configs
            and all(self.kube_get(f"{MACHINE_CONFIGS}/{name}") for name in configs)
        )

    def watch_requests(self) -> None:
        """Report hosts that fetch their config until the control plane is complete."""
        while not self._stop_watching.wait(seconds("INSTALLER_POLL_SECONDS", WATCH_SECONDS)):
            try:
                self.report_requests(self.installation.hosts())
            except (ServiceError, OSError) as error:
                log.warning("Failed to get hosts info from inventory, err %s", error)

    def report_requests(self, hosts: Sequence[Object]) -> None:
        """Report hosts that fetched their config: masters are Configuring, workers have waited for their Ignition."""
        path = self.installation.host.path(f"{BOOTSTRAP_DIR}/machine-config-server.log")
        with self._requests:
            for __, address in machine_config_requests(path.read_text() if path.exists() else ""):
                host = next((h for h in hosts if address in host_addresses(h)), None)
                if (
                    host
                    and stage_of(host) not in FETCHED
                    and host["id"] not in {*self._requested, self.installation.options.host_id}
                ):
                    stage = Stage.IGNITION if host["role"] == "worker" else Stage.CONFIGURING
                    log.info(
                        "Host %s %r found in mcs logs, moving it to %s state",
                        host.get("requested_hostname"),
                        host["id"],
                        stage,
                    )
                    self._requested.add(host["id"])
                    self.installation.report(stage, host_id=host["id"])
