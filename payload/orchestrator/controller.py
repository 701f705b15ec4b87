"""The controller: runs in the new cluster until it is installed (`/usr/bin/assisted-installer-controller`).

It approves certificate requests, reports joined hosts to the service, labels their nodes, and ends the installation. With
the invoker `agent-installer` the service ends with the bootstrap host, so the cluster itself reports the end; otherwise the
controller reports the finalizing stages and their result to the service, and stays until the service ends the installation.
"""

from __future__ import annotations

import argparse
import base64
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ...plugins.module_utils.documents import load_json, load_yaml, load_yaml_all
from ...plugins.module_utils.vocabulary import Finalizing, Port, Stage, Status
from ..cluster import nodes as node_list
from ..cluster.assisted import TOKEN
from ..cluster.conditions import condition, is_true, merged
from ..cluster.kube import KubeClient, KubeError
from ..cluster.pod_inputs import ACCOUNT
from ..cluster.resources import Registry
from ..cluster.settings import seconds
from ..cluster.store import now
from . import logs, taints
from .bare_metal import hand_over
from .installer import FETCHED, INVOKER, READY_EVENT, find_host, host_addresses, machine_config_requests, tarball
from .must_gather import must_gather
from .service import CONTROLLER_RETRIES, Service, ServiceError

NAMESPACE = "assisted-installer"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
VERSION = "/apis/config.openshift.io/v1/clusterversions/version"
OPERATORS = "/apis/config.openshift.io/v1/clusteroperators"
OLM = "/apis/operators.coreos.com/v1alpha1/namespaces"
OLM_MANIFESTS = f"/api/v1/namespaces/{NAMESPACE}/configmaps/olm-operator-manifests"
INGRESS_CERT = "/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert"
MCS_PODS = "/api/v1/namespaces/openshift-machine-config-operator/pods"
INSTALL_CONFIG = "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1"
WORKER_POOL = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker"
# Upstream's poll intervals: nodes and hosts, operators and the end of the installation, the router, readiness.
LOOK_SECONDS, PROGRESS_SECONDS, ROUTER_SECONDS, READY_PAUSE_SECONDS = 30.0, 60.0, 10.0, 1.0
# Upstream's limits. With the agent-installer the service may be gone permanently.
AGENT_READY_SECONDS, READY_SECONDS = 300, 4200
OPERATORS_SECONDS = 36000.0
LOGS_SECONDS = 4200.0
AUTHORIZATION_ERRORS = 3
LOGS_UPLOAD_SECONDS = 300.0
# Final statuses of a cluster for a controller, and their log messages.
OVER = {
    Status.ERROR: "Cluster installation failed.",
    Status.CANCELLED: "Cluster installation aborted. Signal the status",
    Status.INSTALLED: "Cluster installation successfully finished.",
    "adding-hosts": "Cluster is day2",
}
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
CSV_INITIALIZATION, APPLYING, CSV = Finalizing.CSV_INITIALIZATION, Finalizing.OLM_MANIFESTS, Finalizing.CSV
# Upstream waits until it has seen such a worker fetch its config; here another member may have that log.
BEFORE_JOINED = (Stage.REBOOTING, Stage.IGNITION, Stage.CONFIGURING)
AFTER_FETCHED = tuple(stage for stage in FETCHED if stage != Stage.IGNITION)
API_TRIES, API_PAUSE_SECONDS = 60, 5
log = logging.getLogger("controller")


class Controller:
    """One run. `config` has cluster_id, invoker, openshift_version and control_plane_count."""

    def __init__(self, kube: KubeClient, service: Service, config: dict[str, Any]) -> None:
        self.kube, self.service, self.config = kube, service, config
        self.agent_based = config["invoker"] == "agent-installer"
        self.single = config["control_plane_count"] == 1
        self.done = threading.Event()
        self.failed = False
        self.lines: deque[str] = deque(maxlen=20000)
        self.untaints = False
        self.version_available = False
        self._failed_looks: Counter[str] = Counter()
        self._boots: dict[str, set[str]] = defaultdict(set)
        self._cluster_path = f"/v2/clusters/{config['cluster_id']}"

    def run(self) -> None:
        """Run until the cluster is installed, or its installation is given up."""
        with_service = not (self.agent_based and self.single)
        cluster = self.set_ready_state() if with_service else None
        loops = [self._start(self._loop, "ApproveCsrs", self.approve_requests)]
        if with_service:
            self.untaints = self.must_untaint(cluster)
            log.info("Remove uninitialized taint: %s", str(self.untaints).lower())
            loops.append(self._start(self._loop, "WaitAndUpdateNodesStatus", self.update_hosts))
            loops.append(self._start(self._loop, "UpdateNodeLabels", self.label_nodes))
            loops.append(self._start(self._keep_logs))
        if cluster and taints.platform_of(cluster) == "baremetal":
            loops.append(self._start(self._loop, "UpdateBMHs", hand_over))
        if self.agent_based:
            # The installation does not wait for it: as upstream, it ends with this program.
            loops.append(self._start(self._loop, "PostInstallConfigsK8sClient", self.apply_without_service))
            self.until(
                "Waiting for the cluster version and all control-plane nodes", self.complete, pause=PROGRESS_SECONDS
            )
            self.done.set()
        elif self.until_over():
            self.upload_logs()
        log.info("Waiting for all go routines to finish")
        for loop in loops:
            loop.join(self.pause(LOOK_SECONDS))
        log.info("Finished all")

    def pause(self, default: float) -> float:
        """Return the poll interval: upstream's, unless the lab overrides it."""
        return seconds("CONTROLLER_POLL_SECONDS", default)

    def must_untaint(self, cluster: dict[str, Any] | None) -> bool:
        """Return whether nodes wait for a cloud provider without credentials, according to the service or the install-config."""
        config = ""
        if cluster is None:
            log.warning("error getting cluster, assisted-service was unavailable")
            try:
                config = ((self.kube.find(INSTALL_CONFIG) or {}).get("data") or {}).get("install-config", "")
            except KubeError as error:
                log.warning("error determining platform type from install-config: %s", error)
        platform = taints.platform_in(config) if cluster is None else taints.platform_of(cluster)
        return taints.must_go(
            platform, self.config.get("openshift_version", ""), self.config["invoker"], cluster, config
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
                cluster = self.cluster()
                log.info("assisted-service is available")
                self.kube.get("/api/v1/nodes")
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
                        self.config["invoker"],
                    )
                    return None
                time.sleep(self.pause(READY_PAUSE_SECONDS))
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": READY_EVENT, "namespace": NAMESPACE},
            "involvedObject": {"namespace": NAMESPACE, "name": "assisted-installer-controller"},
            "type": "Normal",
            "reason": READY_EVENT,
            "message": "Assisted controller managed to connect to assisted service and kube-apiserver and is ready to start",
            "firstTimestamp": now(),
            "lastTimestamp": now(),
            "count": 1,
        }

        def written() -> bool:
            self.kube.ensure(f"/api/v1/namespaces/{NAMESPACE}/events", body)
            return True

        self.until("Sending ready event", written, pause=READY_PAUSE_SECONDS)
        return cluster

    def cluster(self) -> dict[str, Any]:
        """Return the cluster as the service knows it, without its hosts."""
        found: dict[str, Any] = self.service.get(f"{self._cluster_path}?exclude-hosts=true")
        return found

    def hosts(self, *without: str) -> list[dict[str, Any]]:
        """Return the cluster's hosts except those in given statuses."""
        hosts: list[dict[str, Any]] = self.service.get(f"{self._cluster_path}?exclude-hosts=false")["hosts"]
        return [host for host in hosts if host["status"] not in without]

    # Loops: each has its own client, and ends when a step returns True

    def approve_requests(self, kube: KubeClient) -> None:
        """Approve the certificate requests of kubelets."""
        for csr in kube.get(CSRS)["items"]:
            if not csr.get("status", {}).get("conditions"):
                approved = merged(
                    [],
                    [
                        condition(
                            "Approved",
                            True,
                            "NodeCSRApprove",
                            "This CSR was approved by the assisted-installer-controller",
                        )
                    ],
                )
                log.info("Approving CSR %s", csr["metadata"]["name"])
                kube.patch(f"{CSRS}/{csr['metadata']['name']}/approval", {"status": {"conditions": approved}})

    def update_hosts(self, kube: KubeClient) -> bool:
        """Report Configuring, Joined and Done of the hosts that have rebooted; True when there is none left that still may."""
        hosts = self.hosts("disabled")
        told = {
            h.get("requested_hostname"): [h["status"], _stage(h), (h.get("progress") or {}).get("progress_info", "")]
            for h in hosts
        }
        log.info("Hosts status: %s", told)
        left = [host for host in hosts if host["status"] != "installed"]
        if not left:
            log.info("All nodes were successfully installed")
            return True
        if all(host["status"] == "error" for host in left):
            log.info("Done waiting for all the nodes. Nodes in error status: %d", len(left))
            return True
        log.info("Checking if cluster nodes are ready. %d nodes remaining", len(left))
        known = {address for host in hosts for address in host_addresses(host)}
        for node in kube.get("/api/v1/nodes")["items"]:
            if boot := node["status"].get("nodeInfo", {}).get("bootID"):
                self._boots[node["metadata"]["name"]].add(boot)
            host = find_host(hosts, node)
            if host is None:
                log.warning("Node %s is not in inventory hosts", node["metadata"]["name"].lower())
            else:
                self._update_host(kube, node, host, known)
        asked = {address for __, address in machine_config_requests(self._machine_config_log(kube))}
        for host in self.hosts("disabled"):
            if _stage(host) not in AFTER_FETCHED and asked & host_addresses(host):
                log.info(
                    "Host %s %r found in mcs logs, moving it to Configuring state",
                    host.get("requested_hostname"),
                    host["id"],
                )
                self.report(host, Stage.CONFIGURING)
        return False

    def _update_host(self, kube: KubeClient, node: dict[str, Any], host: dict[str, Any], known: set[str]) -> None:
        name, ready = node["metadata"]["name"], is_true(node, "Ready")
        changed = [address for address in node_list.addresses(node)[:1] if address not in known]
        for address in changed:
            log.warning("Please be aware: host %s got ip change to %s", name, address)
        identity = (name, host["id"], node["status"].get("nodeInfo", {}).get("systemUUID", ""))
        try:
            if _stage(host) in BEFORE_JOINED:
                log.info(
                    "Found new joined node %s with inventory id %s, kubernetes id %s, updating its status to Joined",
                    *identity,
                )
                self.report(host, Stage.JOINED)
            if not ready and self.untaints:
                taints.remove(kube, node)
            if ready and _stage(host) != Stage.DONE:
                log.info(
                    "Found new ready node %s with inventory id %s, kubernetes id %s, updating its status to Done",
                    *identity,
                )
                self.report(host, Stage.DONE)
                self._report_reboots(name, host)
        except (ServiceError, KubeError) as error:
            log.error("Failed to update node %s installation status", name, extra={"error": error})

    def _report_reboots(self, name: str, host: dict[str, Any]) -> None:
        # Upstream counts them on the node; here the boots that the node has reported count.
        reboots = max(1, len(self._boots[name]))
        event = {
            "name": "reboots_for_node",
            "category": "user",
            "severity": "info",
            "host_id": host["id"],
            "infra_env_id": host["infra_env_id"],
            "cluster_id": self.config["cluster_id"],
            "event_time": now(),
            "message": f"Node {name} has been rebooted {reboots} times before completing installation",
        }
        log.info("number of reboots for node %s is %d", name, reboots)
        self.service.send("POST", "/v2/events", event)

    def label_nodes(self, kube: KubeClient) -> bool:
        """Give the nodes that are ready the labels of their hosts; True when all have them.

        The workers' pool is paused meanwhile if one of them is to go to another pool.
        """
        log.info("Setting node labels if required")
        hosts = [host for host in self.hosts("disabled", "error") if host.get("node_labels")]
        if not hosts:
            log.info("No hosts with labels, skipping update node labels")
            return True
        to_another_pool = any(h["role"] == "worker" and h.get("machine_config_pool_name") for h in hosts)
        if to_another_pool:
            self._pause_workers(kube, True)
        labelled = 0
        for node in node_list.ready(kube.get("/api/v1/nodes")["items"]):
            host = find_host(hosts, node)
            if host is None:
                continue
            labels = load_json(host["node_labels"], name="node_labels")
            if not labels.items() <= node["metadata"].get("labels", {}).items():
                kube.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": labels}})
                log.info("Successfully patched label for host %s", node["metadata"]["name"])
            labelled += 1
        if labelled < len(hosts):
            log.info("Not all host labels where added yet, keep trying")
            return False
        if to_another_pool:
            self._pause_workers(kube, False)
        return True

    def _pause_workers(self, kube: KubeClient, pause: bool) -> None:
        if kube.get(WORKER_POOL)["spec"].get("paused", False) != pause:
            log.info("Setting pause MCP worker to %s", str(pause).lower())
            kube.patch(WORKER_POOL, {"spec": {"paused": pause}})

    def report(self, host: dict[str, Any], stage: str) -> None:
        """Report the stage of a host to the service."""
        path = f"/v2/infra-envs/{host['infra_env_id']}/hosts/{host['id']}/progress"
        self.service.send("PUT", path, {"current_stage": stage, "progress_info": ""})

    def _machine_config_log(self, kube: KubeClient) -> str:
        texts = []
        for pod in kube.get(f"{MCS_PODS}?labelSelector=k8s-app=machine-config-server")["items"]:
            try:
                texts.append(kube.get(f"{MCS_PODS}/{pod['metadata']['name']}/log"))
            except KubeError as error:
                if error.code != 404:  # another member keeps it
                    raise
        return "\n".join(texts)

    def _loop(self, what: str, step: Callable[[KubeClient], bool | None]) -> None:
        kube, denied = self.kube.again(), 0
        while not self.done.is_set():
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
            self.done.wait(self.pause(LOOK_SECONDS))

    # The end of an agent-based installation

    def complete(self) -> bool:
        """Return whether the cluster version was available and all control-plane nodes are ready now; meanwhile, remove the taints of nodes."""
        nodes = self.kube.get("/api/v1/nodes")["items"]
        for node in nodes if self.untaints else ():
            try:
                taints.remove(self.kube, node)
            except KubeError as error:
                log.error(
                    "Failed to remove uninitialized taint from node %s",
                    node["metadata"]["name"],
                    extra={"error": error},
                )
        if not self.version_available:
            self.version_available = is_true(self.kube.get(VERSION), "Available")
            log.info("ClusterVersion Available=True" if self.version_available else "ClusterVersion Available!=True")
        if not self.version_available:
            return False
        ready, wanted = node_list.ready(nodes), self.config["control_plane_count"]
        joined = sum(1 for n in ready if node_list.has_role(n, "master") or node_list.has_role(n, "arbiter"))
        waiting = "Waiting for all control-plane nodes to join the cluster (%d/%d)"
        log.info(
            waiting if joined < wanted else "All expected control-plane nodes have joined the cluster (%d/%d)",
            joined,
            wanted,
        )
        return joined >= wanted

    # The end of an installation with a service that stays

    def until_over(self) -> bool:
        """Start the finalizing stages when they are due; wait until the service ends the installation.

        Return False when the service no longer knows the cluster or this program: reports have no receiver.
        """
        log.info("monitor cluster installation status")
        post_install = self._start(self.post_install)
        denied = 0
        while True:
            state = ""
            try:
                state = self.cluster()["status"]
                denied = 0
            except ServiceError as error:
                # One that was deleted does not come back.
                denied += AUTHORIZATION_ERRORS if error.code == 404 else error.code in (401, 403)
                log.error(
                    "Failed to get cluster %s from assisted-service", self.config["cluster_id"], extra={"error": error}
                )
            if state in OVER or denied >= AUTHORIZATION_ERRORS:
                break
            self.done.wait(self.pause(PROGRESS_SECONDS))
        log.info(
            "%s",
            OVER.get(state, f"Got more than {AUTHORIZATION_ERRORS} errors from assisted service in a row, exiting"),
        )
        self.failed = self.failed or state == "error"
        self.done.set()
        if state:
            post_install.join()
        return bool(state)

    def post_install(self) -> None:
        """Go through the finalizing stages when they are due, and report the result to the service."""
        try:
            self.until("Waiting for the cluster to be finalized", lambda: self.cluster()["status"] == Status.FINALIZING)
        except _Stopped:
            return
        log.info("Start post install configs")
        stopped = "Stopped waiting for cluster operators to be available"
        report: list[dict[str, str]] = []
        try:
            self.finalizing(Finalizing.CLUSTER_OPERATORS)
            end = time.monotonic() + OPERATORS_SECONDS
            try:
                if not self.until(
                    Finalizing.CLUSTER_OPERATORS,
                    self._operators_available,
                    lambda: time.monotonic() > end,
                    PROGRESS_SECONDS,
                ):
                    raise _Stopped("context deadline exceeded")
            finally:
                report = self._operator_report()
            stopped = "Stopped waiting for router ca data"
            self.finalizing(Finalizing.ROUTER_CA)
            self.until("Start adding ingress ca to cluster", self._upload_ingress, pause=ROUTER_SECONDS)
        except _Stopped as error:
            log.error("%s: %s", stopped, error)
            self.failed = True
            end_of_all: dict[str, Any] = {"is_success": False, "error_info": f"{stopped}: {error}"}
            if report:
                end_of_all["data"] = {"CLUSTER_OPERATORS_REPORT": report}
        else:
            end_of_all = {"is_success": True}
            try:
                self.olm()
                self.finalizing(Finalizing.DONE)
            except _Stopped as error:  # the service reports such a cluster as degraded
                log.warning("Error while initializing OLM operators", extra={"error": error})
        try:
            self.until("Start complete installation step", lambda: self._report_end(end_of_all), pause=PROGRESS_SECONDS)
            log.info("Done complete installation step")
        except _Stopped:
            log.warning("the end of the installation could not be reported to the service")

    def _report_end(self, body: dict[str, Any]) -> bool:
        self.service.send("POST", f"{self._cluster_path}/actions/complete-installation", body)
        return True

    def _operator_report(self) -> list[dict[str, str]]:
        try:
            operators = self.kube.get(OPERATORS)["items"]
        except KubeError as error:
            log.warning("Failed to list cluster operators", extra={"error": error})
            return []
        for operator in operators:
            log.info(
                "Operator %s, statuses: %s", operator["metadata"]["name"], operator.get("status", {}).get("conditions")
            )
        found = [(operator["metadata"]["name"], *operator_state(operator)) for operator in operators]
        return [{"name": name, "status": state, "status_info": info} for name, state, info, __ in found]

    def finalizing(self, stage: str) -> None:
        """Report a finalizing stage, until the service accepts it."""

        def told() -> bool:
            self.service.send("PUT", f"{self._cluster_path}/progress", {"finalizing_stage": stage})
            return True

        self.until(f"Finalizing stage: {stage}", told)

    def _operators(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.service.get(f"{self._cluster_path}/monitored-operators")
        return found

    def _operators_available(self) -> bool:
        waiting = False
        for operator in self._operators():
            if operator.get("operator_type", "builtin") != "builtin":
                continue
            name = operator["name"]
            obj = self.kube.find(VERSION if name == "cvo" else f"{OPERATORS}/{name}")
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

    def _upload_ingress(self) -> bool:
        found = self.kube.find(INGRESS_CERT)
        if found is None:
            log.warning("fetching default-ingress-cert configmap from openshift-config-managed namespace")
            return False
        log.info(
            "Sending ingress certificate to inventory service. Certificate data %s", found["data"]["ca-bundle.crt"]
        )
        self.service.send("POST", f"{self._cluster_path}/uploads/ingress-cert", found["data"]["ca-bundle.crt"])
        log.info("Ingress ca successfully sent to inventory")
        return True

    def olm(self) -> None:
        """Follow the cluster's OLM operators; a stage that the service times out is skipped, and its unfinished operators fail."""
        self.finalizing(CSV_INITIALIZATION)
        operators = [operator for operator in self._operators() if operator.get("operator_type") == "olm"]
        if not operators:
            log.info("No OLM operators found.")
            return
        stages: tuple[tuple[str, str, Callable[[], bool]], ...] = (
            (
                CSV_INITIALIZATION,
                "Waiting for csv to be created",
                lambda: all(self._version_of(operator) for operator in operators),
            ),
            (APPLYING, "Applying manifests", lambda: self._apply_manifests(operators)),
            (CSV, "Waiting for OLM operators be installed", self._olm_available),
        )
        finished = True
        for stage, what, test in stages:
            if stage != CSV_INITIALIZATION:
                self.finalizing(stage)
            finished = self.until(what, test, over=partial(self._timed_out, stage)) and finished
        if not finished:
            self.until("Updating pending OLM operators", self._fail_unfinished)

    def _timed_out(self, stage: str) -> bool:
        progress = self.cluster().get("progress") or {}
        return progress.get("finalizing_stage") == stage and bool(progress.get("finalizing_stage_timed_out"))

    def _version_of(self, operator: dict[str, Any], kube: KubeClient | None = None) -> dict[str, Any] | None:
        """Return the current ClusterServiceVersion of an operator's Subscription."""
        kube, namespace = kube or self.kube, f"{OLM}/{operator['namespace']}"
        subscription = kube.find(f"{namespace}/subscriptions/{operator['subscription_name']}") or {}
        name = (subscription.get("status") or {}).get("currentCSV")
        return kube.find(f"{namespace}/clusterserviceversions/{name}") if name else None

    def _olm_available(self) -> bool:
        waiting = False
        for operator in self._operators():
            if operator.get("operator_type") != "olm" or operator.get("status") == "available":
                continue
            version = self._version_of(operator)
            status: dict[str, Any] = (version or {}).get("status") or {}
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

    def _fail_unfinished(self) -> bool:
        for operator in self._operators():
            if operator.get("operator_type") == "olm" and operator.get("status") not in ("available", "failed"):
                log.info("Updating operator %s status to 'failed'", operator["name"])
                self._report(operator, "failed", "Waiting for operator timed out", operator.get("version", ""))
        return True

    def _is_available(self, operator: dict[str, Any], state: str, info: str, version: str) -> bool:
        """Report changes of an operator to the service; return True once it has acknowledged that the operator is available."""
        name, before, said = operator["name"], operator.get("status", ""), operator.get("status_info", "")
        log.info("Checking availability of operator <%s>: %s", name, str(before == "available").lower())
        if before == "available":
            log.info("Service acknowledged <%s> operator is available for cluster %s", name, self.config["cluster_id"])
            return True
        if state == before and info in ("", said):
            return False
        log.info("Operator <%s> updated, status: %s -> %s, message: %s -> %s.", name, before, state, said, info)
        self._report(operator, state, info, version)
        return state == "available"

    def _report(self, operator: dict[str, Any], state: str, info: str, version: str) -> None:
        report = {"name": operator["name"], "status": state, "status_info": info, "version": version}
        self.service.send("PUT", f"{self._cluster_path}/monitored-operators", report)
        self.failed = self.failed or (state == "failed" and operator.get("operator_type") == "olm")

    def _apply_manifests(self, operators: list[dict[str, Any]]) -> bool:
        if not all(self._version_of(operator) for operator in operators):
            return False
        text = self.service.download(f"{self._cluster_path}/downloads/files?file_name=custom_manifests.json")
        names = {operator["name"] for operator in operators}
        return self._apply_all(
            self.kube,
            [entry["content"] for entry in load_json(text or b"[]", name="olm operators") if entry["name"] in names],
        )

    def apply_without_service(self, kube: KubeClient) -> bool:
        """Apply the operators' manifests from the ConfigMap that the service created: the service has ended by then."""
        data = (kube.find(OLM_MANIFESTS) or {}).get("data")
        if data is None:
            return False
        contents: list[str] = []
        for name in (name for name in data if name.endswith(".metadata.yaml")):
            operator = load_yaml(data[name], name="olm manifest")
            place = {"namespace": operator["namespace"], "subscription_name": operator["subscriptionName"]}
            if not self._version_of(place, kube):
                return False
            contents += [data[file] for file in operator["manifests"]]
        return self._apply_all(kube, contents)

    def _apply_all(self, kube: KubeClient, contents: list[str]) -> bool:
        """Apply manifests, base64 of YAML each; return whether all of them were accepted."""
        registry = Registry()
        documents = [
            document
            for content in contents
            for document in load_yaml_all(base64.b64decode(content), name="olm manifest")
            if document
        ]
        results = [
            self._apply(kube, registry, document) for document in documents
        ]  # a refused one does not block the others
        return all(results)

    def _apply(self, kube: KubeClient, registry: Registry, document: dict[str, Any]) -> bool:
        resource, metadata = registry.for_object(document), document["metadata"]
        prefix = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
        place = f"/namespaces/{metadata['namespace']}" if resource.namespaced else ""
        path = f"{prefix}{place}/{resource.plural}/{metadata['name']}?fieldManager=assisted-installer-controller&force=true"
        try:
            kube.patch(path, document, "application/apply-patch+yaml")
        except KubeError as error:
            log.error(
                "Failed to apply manifest file.", extra={"error": f"{document['kind']} {metadata['name']}: {error}"}
            )
            return False
        return True

    def _keep_logs(self) -> None:
        """Send this program's own log every few minutes, while there is a service."""
        # At once, too: upstream's bootstrap host fetches them when this program is ready.
        log.info("Start sending logs")
        while True:
            try:
                self._send_logs({})
            except ServiceError as error:
                log.warning("Failed to upload controller logs", extra={"error": error})
            if self.done.wait(LOGS_UPLOAD_SECONDS):
                return
            log.info("Start uploading controller logs (intermediate snapshot)")

    def _send_logs(self, files: dict[str, bytes]) -> None:
        archive = tarball({"assisted-installer-controller.logs": "\n".join(self.lines) + "\n", **files})
        self.service.upload(f"{self._cluster_path}/logs?logs_type=controller", "controller_logs.tar.gz", archive)

    def upload_logs(self) -> None:
        """Send the final logs, after a failure with the cluster's resources; retry for over an hour, as upstream does."""
        log.info("Upload final controller and cluster logs before exit")
        self._report_logs("requested")
        end = time.monotonic() + LOGS_SECONDS
        while not self._uploaded() and time.monotonic() < end:
            log.info("retry uploading logs in 30 seconds...")
            time.sleep(self.pause(LOOK_SECONDS))
        self._report_logs("completed")

    def _uploaded(self) -> bool:
        files: dict[str, bytes] = {}
        gathered = True
        if self.failed:
            log.info("Uploading oc must-gather logs")
            try:
                files["must-gather.tar.gz"] = must_gather(self.kube)
            except KubeError as error:
                log.error("Failed to collect must-gather logs %s", error)
                gathered = False
        try:
            self._send_logs(files)
        except ServiceError as error:
            log.error("Failed to upload logs", extra={"error": error})
            return False
        return gathered

    def _report_logs(self, state: str) -> None:
        try:
            self.service.send("PUT", f"{self._cluster_path}/logs-progress", {"logs_state": state})
        except ServiceError as error:
            log.error("failed to report log progress %s on cluster", state, extra={"error": error})

    def until(
        self, what: str, test: Callable[[], bool], over: Callable[[], bool] = lambda: False, pause: float = LOOK_SECONDS
    ) -> bool:
        """Poll until a test succeeds; return False when `over` does. It is bounded by the timeouts of the service and wait-for.

        Raise _Stopped when the installation is over meanwhile; the test runs at least once.
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
                raise _Stopped("context canceled")


class _Kept(logging.Handler):
    """Keeps the last lines of the log."""

    def __init__(self, lines: deque[str]) -> None:
        super().__init__()
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class _Stopped(Exception):
    """The installation is over; the message is Go's."""


def operator_state(obj: dict[str, Any]) -> tuple[str, str, str]:
    """Return status (available, progressing or failed), message and version of an operator in the service's format."""
    status = obj.get("status", {})
    version = (status.get("versions") or [{}])[0].get("version", "") or status.get("desired", {}).get("version", "")
    for entry in status.get("conditions", ()):
        if state := STATES.get((entry["type"], entry["status"])):
            return state, entry.get("message", ""), version
    return "progressing", "", version


def _stage(host: dict[str, Any]) -> str:
    return str((host.get("progress") or {}).get("current_stage", ""))


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
    config = {
        "cluster_id": environment["CLUSTER_ID"],
        "invoker": _invoker(kube),
        "openshift_version": environment.get("OPENSHIFT_VERSION", ""),
        "control_plane_count": int(environment.get("CONTROL_PLANE_COUNT") or 3),
    }
    service = Service(environment["INVENTORY_URL"], TOKEN.read_text(), retries=CONTROLLER_RETRIES)
    controller = Controller(kube, service, config)
    logs.setup([logging.StreamHandler(sys.stdout), _Kept(controller.lines)])
    log.info("Start running Assisted-controller. Configuration is:\n %s", config)
    controller.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
