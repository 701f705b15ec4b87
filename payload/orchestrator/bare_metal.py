"""Bare-metal hosts of a new cluster: the controller hands them over to their operator.

The installer's manifests describe installed hosts and their machines; they are linked for
the control plane only (`metal3.io/v1alpha1`, `machine.openshift.io/v1beta1`).
"""

from __future__ import annotations

import logging
from typing import Any

from ...plugins.module_utils.documents import load_json
from ..cluster.kube import KubeClient, Object
from ..cluster.store import timestamp

NAMESPACE = "openshift-machine-api"
METAL3 = "/apis/metal3.io/v1alpha1"
HOSTS = f"{METAL3}/namespaces/{NAMESPACE}/baremetalhosts"
PROVISIONING = f"{METAL3}/provisionings/provisioning-configuration"
MACHINE_API = "machine.openshift.io/v1beta1"
MACHINES = f"/apis/{MACHINE_API}/namespaces/{NAMESPACE}/machines"
ROLE = "machine.openshift.io/cluster-api-machine-role"
PAUSED, STATUS = "baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/status"
log = logging.getLogger("bare-metal")


def hand_over(kube: KubeClient) -> bool:
    """Link every host to its machine and let its operator continue; return True when nothing is left to do.

    With a Provisioning object hosts become externally provisioned and are no longer paused; without one no operator watches them,
    and their status is the one in their annotation.
    """
    hosts = kube.get(HOSTS)["items"]
    taken = {(host["spec"].get("consumerRef") or {}).get("name") for host in hosts}
    free = [
        machine["metadata"]["name"]
        for machine in kube.get(MACHINES)["items"]
        if machine["metadata"].get("labels", {}).get(ROLE) == "worker" and machine["metadata"]["name"] not in taken
    ]
    provisioning = kube.find(PROVISIONING) is not None
    waiting = [host for host in hosts if not _update(kube, host, free, provisioning)]
    return not waiting


def _update(kube: KubeClient, host: Object, free: list[str], provisioning: bool) -> bool:
    name, annotations = host["metadata"]["name"], host["metadata"].get("annotations") or {}
    spec: dict[str, Any] = {}
    if provisioning:
        if (host.get("status") or {}).get("provisioning", {}).get("state", "") not in ("", "unmanaged"):
            return True
        if not host["spec"].get("externallyProvisioned"):
            spec["externallyProvisioned"] = True
        dropped = PAUSED
    else:
        if annotations.get(STATUS):
            kube.patch(
                f"{HOSTS}/{name}/status",
                {"status": {"lastUpdated": timestamp(), **load_json(annotations[STATUS], name=STATUS)}},
            )
        dropped = STATUS
    if not host["spec"].get("consumerRef"):
        if not free:
            log.info("no machine is left for bare-metal host %s yet", name)
            return False
        spec["consumerRef"] = {
            "apiVersion": MACHINE_API,
            "kind": "Machine",
            "namespace": NAMESPACE,
            "name": free.pop(0),
        }
    if spec or dropped in annotations:
        log.info("bare-metal host %s is handed over", name)
        kube.patch(f"{HOSTS}/{name}", {"metadata": {"annotations": {dropped: None}}, "spec": spec})
    return True
