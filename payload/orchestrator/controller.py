"""The controller: runs in the new cluster until it is installed (`/usr/bin/assisted-installer-controller`).

It approves certificate requests, tells the service which hosts have joined, labels their nodes, and ends the installation. With
the invoker `agent-installer` the service dies with the bootstrap host, so the end is what the cluster itself says; otherwise the
controller reports the finalizing stages, and how they ended, to the service, and stays until the service calls the installation over.
"""

from __future__ import annotations

import argparse
import base64
import json
import logging
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ..cluster import nodes as node_list
from ..cluster.conditions import condition, is_true, merged, status
from ..cluster.kube import KubeClient, KubeError
from ..cluster.resources import Registry
from ..cluster.settings import seconds
from ..cluster.store import now
from .bare_metal import hand_over
from .installer import find_host, host_addresses, machine_config_requests, tarball
from .must_gather import must_gather
from .service import CONTROLLER_BUSY_TRIES, Service, ServiceError

NAMESPACE = "assisted-installer"
CONFIG = Path("/etc/kubernetes/controller.json")
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
VERSION = "/apis/config.openshift.io/v1/clusterversions/version"
OPERATORS = "/apis/config.openshift.io/v1/clusteroperators"
OLM = "/apis/operators.coreos.com/v1alpha1/namespaces"
OLM_MANIFESTS = f"/api/v1/namespaces/{NAMESPACE}/configmaps/olm-operator-manifests"
INGRESS_CERT = "/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert"
MCS_PODS = "/api/v1/namespaces/openshift-machine-config-operator/pods"
WORKER_POOL = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker"
# Upstream's limits. With the agent-installer the service may be gone for good.
AGENT_READY_SECONDS, READY_SECONDS = 300, 4200
OPERATORS_SECONDS = 36000.0
LOGS_SECONDS = 4200.0
AUTHORIZATION_ERRORS = 3
LOGS_UPLOAD_SECONDS = 300.0
# Statuses of a cluster that has nothing left to do for a controller.
OVER = ("installed", "adding-hosts", "cancelled", "error")
# For so many looks an operator may have failed before that is told: it may still recover.
FAILED_LOOKS = 10
# Phase of a ClusterServiceVersion -> status of the operator; any other is progressing.
PHASES = {"Succeeded": "available", "Failed": "failed"}
CSV_INITIALIZATION, APPLYING, CSV = "Waiting for olm operators csv initialization", "Applying olm manifests", "Waiting for olm operators csv"
BEFORE_JOINED = ("Rebooting", "Waiting for ignition", "Configuring")
log = logging.getLogger("controller")


class Controller:
    """One run. `config` has cluster_id, base_url, service_token, invoker and control_plane_count."""

    def __init__(self, kube: KubeClient, service: Service, config: dict[str, Any]) -> None:
        self.kube, self.service, self.config = kube, service, config
        self.poll = seconds("CONTROLLER_POLL_SECONDS", 30)
        self.agent_based = config["invoker"] == "agent-installer"
        self.single = config["control_plane_count"] == 1
        self.done = threading.Event()
        self.failed = False
        self.lines: deque[str] = deque(maxlen=20000)
        self._failed_looks: Counter[str] = Counter()
        self._cluster_path = f"/v2/clusters/{config['cluster_id']}"

    def run(self) -> None:
        """Work until the cluster is installed, or its installation is given up."""
        with_service = not (self.agent_based and self.single)
        cluster = self.set_ready_state() if with_service else None
        loops = [self._start(self._loop, "certificate requests", self.approve_requests)]
        if with_service:
            loops += [self._start(self._loop, "node status", self.update_hosts), self._start(self._keep_logs)]
        if cluster and any(host.get("node_labels") for host in cluster["hosts"]):
            loops.append(self._start(self._loop, "node labels", self.label_nodes))
        if cluster and (cluster.get("platform") or {}).get("type") == "baremetal":
            loops.append(self._start(self._loop, "bare-metal hosts", hand_over))
        if self.agent_based:
            # The installation does not wait for it: as upstream's, it ends with this program.
            loops.append(self._start(self._loop, "the operators' manifests", self.apply_without_service))
            self.until("the cluster version is available and the control plane complete", self.complete)
            self.done.set()
        elif self.until_over():
            self.upload_logs()
        for loop in loops:
            loop.join(self.poll)

    def _start(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        return thread

    # Ready

    def set_ready_state(self) -> dict[str, Any] | None:
        """Say by an event that the controller can reach both the service and the cluster; the bootstrap host waits for it.

        Return the cluster as the service knows it; None when an agent-based installation has to go on without the service.
        Any other ends: its Job runs this program again.
        """
        limit = AGENT_READY_SECONDS if self.agent_based else READY_SECONDS
        end = time.monotonic() + limit
        while True:
            try:
                cluster: dict[str, Any] = self.service.get(self._cluster_path)
                self.kube.get("/api/v1/nodes")
                break
            except (ServiceError, KubeError) as error:
                log.info("not ready yet: %s", error)
                if time.monotonic() > end:
                    if not self.agent_based:
                        sys.exit("Failed to retrieve cluster from assisted service")
                    log.warning("the service did not answer within %d s; going on without it", limit)
                    return None
                time.sleep(self.poll)
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "assisted-installer-controller-ready-", "namespace": NAMESPACE},
            "involvedObject": {
                "kind": "Job",
                "namespace": NAMESPACE,
                "name": "assisted-installer-controller",
                "apiVersion": "batch/v1",
            },
            "type": "Normal",
            "reason": "AssistedControllerIsReady",
            "message": "Assisted controller managed to connect to assisted service and kube-apiserver and is ready to start",
            "firstTimestamp": now(),
            "lastTimestamp": now(),
            "count": 1,
            "source": {"component": "assisted-installer-controller"},
        }
        self.until(
            "the ready event is written", lambda: bool(self.kube.create(f"/api/v1/namespaces/{NAMESPACE}/events", body))
        )
        return cluster

    # Loops: each gets a client of its own, and ends with a step that returns True

    def approve_requests(self, kube: KubeClient) -> None:
        """Approve what kubelets ask for."""
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
                kube.patch(f"{CSRS}/{csr['metadata']['name']}/approval", {"status": {"conditions": approved}})
                log.info("approved %s of %s", csr["metadata"]["name"], csr["spec"].get("username"))

    def update_hosts(self, kube: KubeClient) -> bool:
        """Report Configuring, Joined and Done of the hosts that have rebooted; True when none is left."""
        hosts = [h for h in self.service.get(self._cluster_path)["hosts"] if _stage(h) not in ("Done", "Failed")]
        if not hosts:
            return True
        seen: set[str] = set()
        for node in kube.get("/api/v1/nodes")["items"]:
            host = find_host(hosts, node)
            if host is None:
                continue
            seen.add(host["id"])
            if _stage(host) in BEFORE_JOINED:
                self.report(host, "Joined")
            if is_true(node, "Ready") and _stage(host) in (*BEFORE_JOINED, "Joined"):
                self.report(host, "Done")
        asked = {address for __, address in machine_config_requests(self._machine_config_log(kube))}
        for host in hosts:
            if (
                host["id"] not in seen
                and _stage(host) in ("Rebooting", "Waiting for ignition")
                and asked & host_addresses(host)
            ):
                self.report(host, "Configuring")
        return False

    def label_nodes(self, kube: KubeClient) -> bool:
        """Give the nodes that are ready the labels of their hosts; True when all have them.

        The workers' pool is paused meanwhile if one of them is to go to another pool.
        """
        found = self.service.get(self._cluster_path)["hosts"]
        hosts = [h for h in found if h.get("node_labels") and h["status"] not in ("disabled", "error")]
        to_another_pool = any(h["role"] == "worker" and h.get("machine_config_pool_name") for h in hosts)
        if to_another_pool:
            self._pause_workers(kube, True)
        labelled = 0
        for node in node_list.ready(kube.get("/api/v1/nodes")["items"]):
            host = find_host(hosts, node)
            if host is None:
                continue
            labels = json.loads(host["node_labels"])
            if not labels.items() <= node["metadata"].get("labels", {}).items():
                kube.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": labels}})
                log.info("node %s has the labels of its host", node["metadata"]["name"])
            labelled += 1
        if labelled < len(hosts):
            return False
        if to_another_pool:
            self._pause_workers(kube, False)
        return True

    def _pause_workers(self, kube: KubeClient, pause: bool) -> None:
        if kube.get(WORKER_POOL)["spec"].get("paused", False) != pause:
            kube.patch(WORKER_POOL, {"spec": {"paused": pause}})

    def report(self, host: dict[str, Any], stage: str) -> None:
        """Tell the service the stage of a host."""
        log.info("host %s: stage %s", host.get("requested_hostname"), stage)
        path = f"/v2/infra-envs/{host['infra_env_id']}/hosts/{host['id']}/progress"
        self.service.send("PUT", path, {"current_stage": stage, "progress_info": ""})

    def _machine_config_log(self, kube: KubeClient) -> str:
        texts = []
        for pod in kube.get(f"{MCS_PODS}?labelSelector=app=machine-config-server")["items"]:
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
                    log.info("%s: finished", what)
                    return
                denied = 0
            except ServiceError as error:
                log.info("%s: %s", what, error)
                denied += error.code in (401, 403)
                if denied >= AUTHORIZATION_ERRORS:
                    log.warning("the service does not know this cluster any more; going on without it")
                    return
            except KubeError as error:
                log.info("%s: %s", what, error)
            self.done.wait(self.poll)

    # The end of an agent-based installation

    def complete(self) -> bool:
        """Tell whether the cluster version is available and all control-plane nodes are ready."""
        nodes = node_list.ready(self.kube.get("/api/v1/nodes")["items"])
        joined = sum(1 for n in nodes if node_list.has_role(n, "master") or node_list.has_role(n, "arbiter"))
        return is_true(self.kube.get(VERSION), "Available") and joined >= self.config["control_plane_count"]

    # The end of an installation with a service that stays

    def until_over(self) -> bool:
        """Start the finalizing stages when it is time for them; wait until the service calls the installation over.

        False when the service does not know the cluster, or this program, any more: nobody wants to hear of it.
        """
        post_install: threading.Thread | None = None
        denied = 0
        while True:
            state = ""
            try:
                state = self.service.get(self._cluster_path)["status"]
                denied = 0
            except ServiceError as error:
                log.info("the state of the cluster: %s", error)
                # One that was deleted does not come back.
                denied += AUTHORIZATION_ERRORS if error.code == 404 else error.code in (401, 403)
            if state == "finalizing" and post_install is None:
                post_install = self._start(self.post_install)
            if state in OVER or denied >= AUTHORIZATION_ERRORS:
                break
            self.done.wait(self.poll)
        log.info("the cluster is %s", state or "not known to the service")
        self.failed = self.failed or state == "error"
        self.done.set()
        if post_install:
            post_install.join()
        return bool(state)

    def post_install(self) -> None:
        """Go through the finalizing stages, and tell the service how that ended."""
        stopped = "Stopped waiting for cluster operators to be available"
        try:
            self.finalizing("Waiting for cluster operators")
            end = time.monotonic() + OPERATORS_SECONDS
            if not self.until("the monitored operators are available", self._operators_available, over=lambda: time.monotonic() > end):
                raise _Stopped("context deadline exceeded")
            stopped = "Stopped waiting for router ca data"
            self.finalizing("Adding router ca")
            self.until("the router's certificate is uploaded", self._upload_ingress)
        except _Stopped as error:
            log.error("%s: %s", stopped, error)
            self.failed = True
            end_of_all = {"is_success": False, "error_info": f"{stopped}: {error}", "data": self._operator_report()}
        else:
            end_of_all = {"is_success": True, "error_info": ""}
            try:
                self.olm()
                self.finalizing("Done")
            except _Stopped as error:  # the service calls such a cluster degraded
                log.warning("stopped: %s", error)
        try:
            self.until("the service has heard of the end", lambda: self._tell_end(end_of_all))
        except _Stopped as error:
            log.warning("stopped: %s", error)

    def _tell_end(self, body: dict[str, Any]) -> bool:
        self.service.send("POST", f"{self._cluster_path}/actions/complete-installation", body)
        return True

    def _operator_report(self) -> dict[str, Any]:
        try:
            operators = self.kube.get(OPERATORS)["items"]
        except KubeError as error:
            log.warning("no report of the operators: %s", error)
            return {}
        found = [(operator["metadata"]["name"], *operator_state(operator)) for operator in operators]
        return {"CLUSTER_OPERATORS_REPORT": [{"name": name, "status": state, "status_info": info} for name, state, info, __ in found]}

    def finalizing(self, stage: str) -> None:
        """Report a finalizing stage, until the service takes it."""

        def told() -> bool:
            self.service.send("PUT", f"{self._cluster_path}/progress", {"finalizing_stage": stage})
            return True

        self.until(f"the service knows of the stage {stage}", told)

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
            state, info, version = operator_state(obj)
            self._tell(operator, state, info, version)
            waiting = waiting or state != "available"
        return not waiting

    def _upload_ingress(self) -> bool:
        found = self.kube.find(INGRESS_CERT)
        if found is None:
            return False
        self.service.send("POST", f"{self._cluster_path}/uploads/ingress-cert", found["data"]["ca-bundle.crt"])
        return True

    def olm(self) -> None:
        """See the cluster's OLM operators through; a stage that the service calls too long is left, and what is unfinished then failed."""
        self.finalizing(CSV_INITIALIZATION)
        operators = [operator for operator in self._operators() if operator.get("operator_type") == "olm"]
        if not operators:
            return
        stages: tuple[tuple[str, str, Callable[[], bool]], ...] = (
            (CSV_INITIALIZATION, "all operators have a ClusterServiceVersion", lambda: all(self._version_of(operator) for operator in operators)),
            (APPLYING, "the operators' manifests are applied", lambda: self._apply_manifests(operators)),
            (CSV, "all operators are available", self._olm_available),
        )
        finished = True
        for stage, what, test in stages:
            if stage != CSV_INITIALIZATION:
                self.finalizing(stage)
            finished = self.until(what, test, over=partial(self._timed_out, stage)) and finished
        if not finished:
            self.until("unfinished operators are called failed", self._fail_unfinished)

    def _timed_out(self, stage: str) -> bool:
        progress = self.service.get(self._cluster_path).get("progress") or {}
        return progress.get("finalizing_stage") == stage and bool(progress.get("finalizing_stage_timed_out"))

    def _version_of(self, operator: dict[str, Any], kube: KubeClient | None = None) -> dict[str, Any] | None:
        """The ClusterServiceVersion that an operator's Subscription is at."""
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
            waiting = waiting or state != "available"
            if state == "failed" and self._failed_looks[operator["name"]] < FAILED_LOOKS:
                self._failed_looks[operator["name"]] += 1
            elif version is not None:
                self._tell(operator, state, status.get("message", ""), str(version["spec"].get("version", "")))
        return not waiting

    def _fail_unfinished(self) -> bool:
        for operator in self._operators():
            if operator.get("operator_type") == "olm" and operator.get("status") not in ("available", "failed"):
                self._tell(operator, "failed", "Waiting for operator timed out", operator.get("version", ""))
        return True

    def _tell(self, operator: dict[str, Any], state: str, info: str, version: str) -> None:
        if (operator.get("status"), operator.get("status_info")) != (state, info):
            report = {"name": operator["name"], "status": state, "status_info": info, "version": version}
            self.service.send("PUT", f"{self._cluster_path}/monitored-operators", report)
            self.failed = self.failed or (state == "failed" and operator.get("operator_type") == "olm")

    def _apply_manifests(self, operators: list[dict[str, Any]]) -> bool:
        if not all(self._version_of(operator) for operator in operators):
            return False
        text = self.service.download(f"{self._cluster_path}/downloads/files?file_name=custom_manifests.json")
        names = {operator["name"] for operator in operators}
        return self._apply_all(self.kube, [entry["content"] for entry in json.loads(text or b"[]") if entry["name"] in names])

    def apply_without_service(self, kube: KubeClient) -> bool:
        """Apply the operators' manifests from the ConfigMap that the service left: it is gone when they can be."""
        data = (kube.find(OLM_MANIFESTS) or {}).get("data")
        if data is None:
            return False
        contents: list[str] = []
        for name in (name for name in data if name.endswith(".metadata.yaml")):
            operator = yaml.safe_load(data[name])
            place = {"namespace": operator["namespace"], "subscription_name": operator["subscriptionName"]}
            if not self._version_of(place, kube):
                return False
            contents += [data[file] for file in operator["manifests"]]
        return self._apply_all(kube, contents)

    def _apply_all(self, kube: KubeClient, contents: list[str]) -> bool:
        """Apply manifests, base64 of YAML each; tell whether all of them were taken."""
        registry = Registry()
        documents = [document for content in contents for document in yaml.safe_load_all(base64.b64decode(content)) if document]
        results = [self._apply(kube, registry, document) for document in documents]  # one that is refused holds up no other
        return all(results)

    def _apply(self, kube: KubeClient, registry: Registry, document: dict[str, Any]) -> bool:
        resource, metadata = registry.for_object(document), document["metadata"]
        prefix = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
        place = f"/namespaces/{metadata['namespace']}" if resource.namespaced else ""
        path = f"{prefix}{place}/{resource.plural}/{metadata['name']}?fieldManager=assisted-installer-controller&force=true"
        try:
            kube.patch(path, document, "application/apply-patch+yaml")
        except KubeError as error:
            log.warning("%s %s was not applied: %s", document["kind"], metadata["name"], error)
            return False
        return True

    def _keep_logs(self) -> None:
        """Send this program's own log every few minutes, as long as there is a service."""
        while not self.done.wait(LOGS_UPLOAD_SECONDS):
            try:
                self._send_logs({})
            except ServiceError as error:
                log.warning("logs were not uploaded: %s", error)

    def _send_logs(self, files: dict[str, bytes]) -> None:
        archive = tarball({"assisted-installer-controller.logs": "\n".join(self.lines) + "\n", **files})
        self.service.upload(f"{self._cluster_path}/logs?logs_type=controller", "controller_logs.tar.gz", archive)

    def upload_logs(self) -> None:
        """Send the last logs, after a failure with what is in the cluster; go on trying for over an hour, as upstream does."""
        self._tell_logs("requested")
        end = time.monotonic() + LOGS_SECONDS
        while not self._uploaded() and time.monotonic() < end:
            time.sleep(self.poll)
        self._tell_logs("completed")

    def _uploaded(self) -> bool:
        files: dict[str, bytes] = {}
        gathered = True
        if self.failed:
            try:
                files["must-gather.tar.gz"] = must_gather(self.kube)
            except KubeError as error:
                log.warning("the cluster does not tell what is in it: %s", error)
                gathered = False
        try:
            self._send_logs(files)
        except ServiceError as error:
            log.warning("logs were not uploaded: %s", error)
            return False
        return gathered

    def _tell_logs(self, state: str) -> None:
        try:
            self.service.send("PUT", f"{self._cluster_path}/logs-progress", {"logs_state": state})
        except ServiceError as error:
            log.warning("the state of the logs was not told: %s", error)

    def until(self, what: str, test: Callable[[], bool], over: Callable[[], bool] = lambda: False) -> bool:
        """Poll until a test holds; False when `over` says so. The service's and wait-for's timeouts bound it.

        Raise _Stopped when the installation is over meanwhile; the test is tried once all the same.
        """
        log.info("waiting until %s", what)
        while True:
            try:
                if test():
                    return True
                if over():
                    log.warning("stopped waiting until %s", what)
                    return False
            except (ServiceError, KubeError) as error:
                log.info("%s: %s", what, error)
            if self.done.wait(self.poll):
                raise _Stopped("context canceled")


class _Kept(logging.Handler):
    """Keeps the last lines of the log."""

    def __init__(self, lines: deque[str]) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class _Stopped(Exception):
    """The installation is over; the text is the one that Go has for it."""


def operator_state(obj: dict[str, Any] | None) -> tuple[str, str, str]:
    """Return status (available, progressing or failed), message and version of an operator as the service wants them."""
    if obj is None:
        return "progressing", "", ""
    conditions = {c["type"]: c for c in obj.get("status", {}).get("conditions", ())}
    version = (obj.get("status", {}).get("versions") or [{}])[0].get("version", "") or obj.get("status", {}).get(
        "desired", {}
    ).get("version", "")
    for state, kind, wanted in (
        ("available", "Available", "True"),
        ("progressing", "Progressing", "True"),
        ("failed", "Degraded", "True"),
        ("failed", "Available", "False"),
    ):
        if status(obj, kind) == wanted:
            return state, conditions[kind].get("message", ""), version
    return "progressing", "", version


def _stage(host: dict[str, Any]) -> str:
    return str((host.get("progress") or {}).get("current_stage", ""))


def parser() -> argparse.ArgumentParser:
    """Return the options; what a controller has to know lies in a file of the node it runs on."""
    options = argparse.ArgumentParser(
        prog="assisted-installer-controller", description="ends the installation of this cluster"
    )
    options.add_argument("--config", type=Path, default=CONFIG)
    options.add_argument("--ca", type=Path, default=Path("/etc/kubernetes/ca.crt"))
    options.add_argument(
        "--server", default="https://localhost:6443", help="this node's member passes writes on to the leader"
    )
    return options


def main(argv: list[str] | None = None) -> int:
    """Run the controller."""
    options = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    config = json.loads(options.config.read_text())
    kube = KubeClient(options.server, options.ca.read_text(), token=config["token"])
    service = Service(config["base_url"], config["service_token"], busy_tries=CONTROLLER_BUSY_TRIES)
    controller = Controller(kube, service, config)
    logging.getLogger().addHandler(_Kept(controller.lines))
    controller.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
