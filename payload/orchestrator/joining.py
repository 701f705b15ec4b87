"""Nodes that join the new cluster: their certificate requests, the stages of their hosts, their labels."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.vocabulary import MACHINE_CONFIGURATION, Stage, Status
from ..cluster import nodes as node_list
from ..cluster.conditions import condition, is_true, merge_conditions
from ..cluster.kube import KubeClient, KubeError, Object
from ..cluster.store import timestamp
from . import taints
from .hosts import FETCHED, find_host, host_addresses, machine_config_requests, stage_of
from .service import ServiceError
from .session import Session

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MCS_PODS = "/api/v1/namespaces/openshift-machine-config-operator/pods"
WORKER_POOL = f"/apis/{MACHINE_CONFIGURATION}/v1/machineconfigpools/worker"
# Upstream waits until it has seen such a worker fetch its config; here another member may have that log.
BEFORE_JOINED = (Stage.REBOOTING, Stage.IGNITION, Stage.CONFIGURING)
AFTER_FETCHED = tuple(stage for stage in FETCHED if stage != Stage.IGNITION)
log = logging.getLogger("controller")


class NodeJoiner:
    """What the controller does for the nodes; each loop has a client of its own, and ends when a step returns True."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._boots: dict[str, set[str]] = defaultdict(set)

    def approve_requests(self, kube: KubeClient) -> None:
        """Approve the certificate requests of kubelets.

        All that are pending are approved, without a look at their content. Raises `KubeError`.
        """
        for csr in kube.get(CSRS)["items"]:
            if not csr.get("status", {}).get("conditions"):
                approved = merge_conditions(
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
        """Report Configuring, Joined and Done of the hosts that have rebooted; True when there is none left that still may.

        Hosts in error do not count as left. Raises `KubeError` and `ServiceError`, after which it is called again.
        """
        hosts = self.session.hosts("disabled")
        reported = {
            h.get("requested_hostname"): [h["status"], stage_of(h), (h.get("progress") or {}).get("progress_info", "")]
            for h in hosts
        }
        log.info("Hosts status: %s", reported)
        left = [host for host in hosts if host["status"] != Status.INSTALLED]
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
        requested = {address for __, address in machine_config_requests(self._machine_config_log(kube))}
        for host in self.session.hosts("disabled"):
            if stage_of(host) not in AFTER_FETCHED and requested & host_addresses(host):
                log.info(
                    "Host %s %r found in mcs logs, moving it to Configuring state",
                    host.get("requested_hostname"),
                    host["id"],
                )
                self.report(host, Stage.CONFIGURING)
        return False

    def _update_host(self, kube: KubeClient, node: Object, host: Mapping[str, object], known: set[str]) -> None:
        name, ready = node["metadata"]["name"], is_true(node, "Ready")
        changed = [address for address in node_list.addresses(node)[:1] if address not in known]
        for address in changed:
            log.warning("Please be aware: host %s got ip change to %s", name, address)
        identity = (name, host["id"], node["status"].get("nodeInfo", {}).get("systemUUID", ""))
        try:
            if stage_of(host) in BEFORE_JOINED:
                log.info(
                    "Found new joined node %s with inventory id %s, kubernetes id %s, updating its status to Joined",
                    *identity,
                )
                self.report(host, Stage.JOINED)
            if not ready and self.session.untaints:
                taints.remove(kube, node)
            if ready and stage_of(host) != Stage.DONE:
                log.info(
                    "Found new ready node %s with inventory id %s, kubernetes id %s, updating its status to Done",
                    *identity,
                )
                self.report(host, Stage.DONE)
                self._report_reboots(name, host)
        except (ServiceError, KubeError) as error:
            log.error("Failed to update node %s installation status", name, extra={"error": error})

    def _report_reboots(self, name: str, host: Mapping[str, object]) -> None:
        # Upstream counts them on the node; here the boots that the node has reported count.
        reboots = max(1, len(self._boots[name]))
        event = {
            "name": "reboots_for_node",
            "category": "user",
            "severity": "info",
            "host_id": host["id"],
            "infra_env_id": host["infra_env_id"],
            "cluster_id": self.session.config["cluster_id"],
            "event_time": timestamp(),
            "message": f"Node {name} has been rebooted {reboots} times before completing installation",
        }
        log.info("number of reboots for node %s is %d", name, reboots)
        self.session.service.send("POST", "/v2/events", event)

    def label_nodes(self, kube: KubeClient) -> bool:
        """Give the nodes that are ready the labels of their hosts; True when all have them.

        The workers' pool is paused meanwhile if one of them is to go to another pool.
        """
        log.info("Setting node labels if required")
        hosts = [host for host in self.session.hosts("disabled", "error") if host.get("node_labels")]
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

    def report(self, host: Mapping[str, Any], stage: str) -> None:
        """Report the stage of a host to the service."""
        path = f"/v2/infra-envs/{host['infra_env_id']}/hosts/{host['id']}/progress"
        self.session.service.send("PUT", path, {"current_stage": stage, "progress_info": ""})

    def _machine_config_log(self, kube: KubeClient) -> str:
        texts = []
        for pod in kube.get(f"{MCS_PODS}?labelSelector=k8s-app=machine-config-server")["items"]:
            try:
                texts.append(kube.get(f"{MCS_PODS}/{pod['metadata']['name']}/log"))
            except KubeError as error:
                if error.code != 404:  # another member keeps it
                    raise
        return "\n".join(texts)
