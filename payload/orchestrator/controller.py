"""The controller: runs in the new cluster until it is installed (`/usr/bin/assisted-installer-controller`).

It approves certificate requests, tells the service which hosts have joined, and ends the installation. With the invoker
`agent-installer` the service dies with the bootstrap host, so everything is done with what the cluster itself says; otherwise
it reports the finalizing stages to the service.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from ..cluster import nodes as node_list
from ..cluster.conditions import condition, is_true, merged, status
from ..cluster.kube import KubeClient, KubeError
from ..cluster.resources import Registry
from ..cluster.settings import seconds
from ..cluster.store import now
from .installer import find_host, host_addresses, machine_config_requests, tarball
from .service import CONTROLLER_BUSY_TRIES, Service, ServiceError

NAMESPACE = "assisted-installer"
CONFIG = Path("/etc/kubernetes/controller.json")
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
VERSION = "/apis/config.openshift.io/v1/clusterversions/version"
OPERATORS = "/apis/config.openshift.io/v1/clusteroperators"
INGRESS_CERT = "/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert"
MCS_PODS = "/api/v1/namespaces/openshift-machine-config-operator/pods"
# With the agent-installer the service may be gone for good.
READY_LIMIT_SECONDS = 300
AUTHORIZATION_ERRORS = 3
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
        self._cluster_path = f"/v2/clusters/{config['cluster_id']}"
        self._denied = 0

    def run(self) -> None:
        """Work until the cluster is installed."""
        with_service = not (self.agent_based and self.single)
        if with_service:
            self.set_ready_state()
        loops = [
            threading.Thread(
                target=self._loop, args=("certificate requests", self.approve_requests, self.kube.again()), daemon=True
            )
        ]
        if with_service:
            loops.append(
                threading.Thread(
                    target=self._loop, args=("node status", self.update_hosts, self.kube.again()), daemon=True
                )
            )
        for loop in loops:
            loop.start()
        if self.agent_based:
            self.until("the cluster version is available and the control plane complete", self.complete)
        else:
            self.post_install()
        self.done.set()
        for loop in loops:
            loop.join(self.poll)

    # Ready

    def set_ready_state(self) -> None:
        """Say by an event that the controller can reach both the service and the cluster; the bootstrap host waits for it."""
        end = time.monotonic() + READY_LIMIT_SECONDS
        while True:
            try:
                self.service.get(self._cluster_path)
                self.kube.get("/api/v1/nodes")
                break
            except (ServiceError, KubeError) as error:
                log.info("not ready yet: %s", error)
                if self.agent_based and time.monotonic() > end:
                    log.warning("the service did not answer within %d s; going on without it", READY_LIMIT_SECONDS)
                    return
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

    # Loops

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

    def update_hosts(self, kube: KubeClient) -> None:
        """Report Configuring, Joined and Done of the hosts that have rebooted."""
        hosts = [h for h in self.service.get(self._cluster_path)["hosts"] if _stage(h) not in ("Done", "Failed")]
        if not hosts:
            return
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

    def _loop(self, what: str, step: Callable[[KubeClient], None], kube: KubeClient) -> None:
        while not self.done.is_set():
            try:
                step(kube)
                self._denied = 0
            except ServiceError as error:
                log.info("%s: %s", what, error)
                self._denied += error.code in (401, 403)
                if self._denied >= AUTHORIZATION_ERRORS:
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

    def post_install(self) -> None:
        """Go through the finalizing stages."""
        if not self.until("the service finalizes the cluster", self._finalizing):
            return
        self.finalizing("Waiting for cluster operators")
        self.until("the monitored operators are available", self._operators_available)
        self.finalizing("Adding router ca")
        self.until("the router's certificate is uploaded", self._upload_ingress)
        self.finalizing("Waiting for olm operators csv initialization")
        if any(operator.get("operator_type") == "olm" for operator in self._operators()):
            self.finalizing("Applying olm manifests")
            self._apply_manifests()
            self.finalizing("Waiting for olm operators csv")
        self.finalizing("Done")
        self.service.send(
            "POST", f"{self._cluster_path}/actions/complete-installation", {"is_success": True, "error_info": ""}
        )
        self._upload_logs()

    def finalizing(self, stage: str) -> None:
        """Report a finalizing stage."""
        log.info("finalizing stage %s", stage)
        try:
            self.service.send("PUT", f"{self._cluster_path}/progress", {"finalizing_stage": stage})
        except ServiceError as error:
            log.warning("stage %s was not taken: %s", stage, error)

    def _finalizing(self) -> bool:
        state = self.service.get(self._cluster_path)["status"]
        if state in ("cancelled", "error", "installed", "adding-hosts"):
            raise _Ended(state)
        return bool(state == "finalizing")

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
            if (operator.get("status"), operator.get("status_info")) != (state, info):
                self.service.send(
                    "PUT",
                    f"{self._cluster_path}/monitored-operators",
                    {"name": name, "status": state, "status_info": info, "version": version},
                )
            waiting = waiting or state != "available"
        return not waiting

    def _upload_ingress(self) -> bool:
        found = self.kube.find(INGRESS_CERT)
        if found is None:
            return False
        self.service.send("POST", f"{self._cluster_path}/uploads/ingress-cert", found["data"]["ca-bundle.crt"])
        return True

    def _apply_manifests(self) -> None:
        try:
            text = self.service.download(f"{self._cluster_path}/downloads/files?file_name=custom_manifests.json")
        except ServiceError as error:
            log.info("no custom manifests: %s", error)
            return
        registry = Registry()
        for manifest in json.loads(text or b"[]"):
            for document in yaml.safe_load_all(base64.b64decode(manifest["content"])):
                if document:
                    self._apply(registry, document)

    def _apply(self, registry: Registry, document: dict[str, Any]) -> None:
        resource, metadata = registry.for_object(document), document["metadata"]
        prefix = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
        place = f"/namespaces/{metadata['namespace']}" if resource.namespaced else ""
        path = f"{prefix}{place}/{resource.plural}/{metadata['name']}?fieldManager=assisted-installer-controller&force=true"
        try:
            self.kube.patch(path, document, "application/apply-patch+yaml")
        except KubeError as error:
            log.warning("%s %s was not applied: %s", document["kind"], metadata["name"], error)

    def _upload_logs(self) -> None:
        path = f"{self._cluster_path}/logs-progress"
        summary = {
            "nodes.json": self.kube.get("/api/v1/nodes"),
            "clusteroperators.json": self.kube.get(OPERATORS),
            "clusterversion.json": self.kube.get(VERSION),
        }
        try:
            self.service.send("PUT", path, {"logs_state": "requested"})
            texts = {name: json.dumps(content, indent=1) for name, content in summary.items()}
            self.service.upload(
                f"{self._cluster_path}/logs?logs_type=controller", "controller_logs.tar.gz", tarball(texts)
            )
            self.service.send("PUT", path, {"logs_state": "completed"})
        except ServiceError as error:
            log.warning("logs were not uploaded: %s", error)

    def until(self, what: str, test: Callable[[], bool]) -> bool:
        """Poll until a test holds; False when the installation ended otherwise. The service's and wait-for's timeouts bound it."""
        log.info("waiting until %s", what)
        while True:
            try:
                if test():
                    return True
            except _Ended as error:
                log.info("the cluster is %s", error)
                return False
            except (ServiceError, KubeError) as error:
                log.info("%s: %s", what, error)
            time.sleep(self.poll)


class _Ended(Exception):
    """The cluster left the states in which there is something to do."""


def operator_state(obj: dict[str, Any] | None) -> tuple[str, str, str]:
    """Return status (available, progressing or failed), message and version of an operator as the service wants them."""
    if obj is None:
        return "progressing", "", ""
    conditions = {c["type"]: c for c in obj.get("status", {}).get("conditions", ())}
    version = (obj.get("status", {}).get("versions") or [{}])[0].get("version", "") or obj.get("status", {}).get(
        "desired", {}
    ).get("version", "")
    if status(obj, "Available") == "True" and status(obj, "Progressing") != "True":
        return "available", conditions["Available"].get("message", ""), version
    if status(obj, "Degraded") == "True":
        return "failed", conditions["Degraded"].get("message", ""), version
    return "progressing", conditions.get("Progressing", {}).get("message", ""), version


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
    Controller(kube, service, config).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
