"""Controllers of the leader: sign certificates, watch leases, schedule pods, count pools."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ...plugins.module_utils.vocabulary import MACHINE_CONFIGURATION, UNINITIALIZED, ClusterNames, Component
from . import assisted, cloud
from . import nodes as node_list
from .conditions import condition, is_true, merge_conditions
from .facts import ClusterFacts, count, single_node
from .objects import config_map, make
from .olm import Lifecycle
from .operators import Operators
from .pki import Signer
from .resources import POOLS
from .store import Object, Store, timestamp

CSR = "certificatesigningrequests.certificates.k8s.io"
LEASES = "leases.coordination.k8s.io"
JOBS = "jobs.batch"
# A node whose lease is older is unknown, as kube-controller-manager's --node-monitor-grace-period.
GRACE_SECONDS = 50.0
CLIENT_SIGNER, SERVING_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
INSTALLER = "assisted-installer"
CONTROLLER = "assisted-installer-controller"
ROUTER = "router-default"


@dataclass
class Controllers:
    """All controllers of one leader; operators take a step every `settle` seconds. On the bootstrap host they approve all certificate requests."""

    store: Store
    facts: ClusterFacts
    signer: Signer
    settle: float
    bootstrap: bool = False
    _renewals: dict[str, tuple[str, float]] = field(default_factory=dict)
    _next: float = field(default=0.0)
    _operators: Operators = field(init=False)
    _lifecycle: Lifecycle = field(init=False)

    def __post_init__(self) -> None:
        self._operators = Operators(self.store, self.facts)
        self._lifecycle = Lifecycle(self.store, self.facts)

    def step(self) -> None:
        """Run what is due; called about once a second."""
        steps: tuple[Callable[[], None], ...] = (
            self._sign,
            self._watch_leases,
            self._initialize_nodes,
            self._place_controller,
            self._place_routers,
            self._count_pools,
            self._ingress,
            self._finish_bootstrap,
        )
        for step in steps:
            step()
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self.settle
            self._operators.step()
            self._lifecycle.step()

    def _approves(self) -> bool:
        # On a single node no other member can approve it: upstream's post-reboot script does this.
        started = self.store.find("configmaps", "kube-system", "bootstrap")
        return self.bootstrap or (single_node(self.facts) and not started)

    def _sign(self) -> None:
        for csr in self.store.items(CSR):
            if csr["status"].get("certificate"):
                continue
            if self._approves() and not csr["status"].get("conditions"):
                csr = self._update_status(
                    CSR,
                    csr,
                    {
                        "conditions": merge_conditions(
                            [], [condition("Approved", True, "BootstrapApprove", "approved while the cluster starts")]
                        )
                    },
                )
            signer = csr["spec"].get("signerName")
            if not is_true(csr, "Approved") or is_true(csr, "Denied") or signer not in (CLIENT_SIGNER, SERVING_SIGNER):
                continue
            try:
                pem = self.signer.sign_request(
                    base64.b64decode(csr["spec"]["request"]).decode(), client=signer == CLIENT_SIGNER
                )
            except ValueError as error:
                failed = merge_conditions(
                    csr["status"]["conditions"], [condition("Failed", True, "SignerValidationFailure", str(error))]
                )
                if not is_true(csr, "Failed"):
                    self._update_status(CSR, csr, {**csr["status"], "conditions": failed})
                continue
            self._update_status(CSR, csr, {**csr["status"], "certificate": base64.b64encode(pem.encode()).decode()})

    def _watch_leases(self) -> None:
        # By when a renewal was seen here, as upstream's node lifecycle controller: a new leader gives every node one lease period,
        # and a clock that is stepped, as after a snapshot is restored, loses none.
        for node in self.store.items("nodes"):
            name = node["metadata"]["name"]
            lease = self.store.find(LEASES, "kube-node-lease", name)
            if lease is None or is_unknown(node):
                continue
            renewed = lease["spec"]["renewTime"]
            if self._renewals.get(name, ("", 0))[0] != renewed:
                self._renewals[name] = renewed, time.monotonic()
            if time.monotonic() - self._renewals[name][1] < GRACE_SECONDS:
                continue
            gone = condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
            conditions = merge_conditions(
                node["status"]["conditions"], [{**gone, "lastHeartbeatTime": lease["spec"]["renewTime"]}]
            )
            self._update_status("nodes", node, {**node["status"], "conditions": conditions})

    def _initialize_nodes(self) -> None:
        # The cloud provider's part. That of an integrated platform needs credentials; an external one's is the lab's.
        tainted = [node for node in self.store.items("nodes") if cloud.is_tainted(node)]
        if self.facts["platform"] != "external" and not self.store.find("secrets", *cloud.CREDENTIALS):
            return
        for node in tainted:
            taints = [taint for taint in node["spec"]["taints"] if taint["key"] != UNINITIALIZED]
            self.store.update("nodes", {**node, "spec": {**node["spec"], "taints": taints}})

    def _place_controller(self) -> None:
        ready = node_list.ready(self.store.items("nodes"), "master")
        image = self.facts["images"].get(Component.CSR_APPROVER)
        if not image:
            return
        job = self.store.find(JOBS, INSTALLER, CONTROLLER)
        pods = [p for p in self.store.items("pods", INSTALLER) if p["metadata"]["labels"].get("job-name") == CONTROLLER]
        if job and not is_true(job, "Complete") and any(p["status"].get("phase") == "Succeeded" for p in pods):
            complete = merge_conditions([], [condition("Complete", True, "CompletionsReached")])
            self._update_status(JOBS, job, {"succeeded": 1, "completionTime": timestamp(), "conditions": complete})
            return
        if job and is_true(job, "Complete"):
            return
        names = {node["metadata"]["name"] for node in self.store.items("nodes") if not is_unknown(node)}
        for pod in pods:
            if pod["spec"]["nodeName"] not in names or pod["status"].get("phase") == "Failed":
                self.store.delete("pods", INSTALLER, pod["metadata"]["name"])
                pods = [p for p in pods if p is not pod]
        if pods or not ready:
            return
        if job is None:
            self.store.create(JOBS, make("batch/v1", "Job", CONTROLLER, INSTALLER, spec={}, status={"active": 1}))
        name, node = f"{CONTROLLER}-{self.store.revision}", ready[-1]["metadata"]["name"]
        self._pod(INSTALLER, name, {"job-name": CONTROLLER}, node, **assisted.pod(image, self.facts["version"]))

    def _place_routers(self) -> None:
        replicas = 1 if single_node(self.facts) or count(self.facts, "worker") == 1 else 2
        known = self.store.items("nodes")
        candidates = [n["metadata"]["name"] for n in node_list.ready(known, "worker")]
        pods = self.store.items("pods", "openshift-ingress")
        names = {node["metadata"]["name"] for node in known if not is_unknown(node)}
        for pod in pods:
            if pod["spec"]["nodeName"] not in names:
                self.store.delete("pods", "openshift-ingress", pod["metadata"]["name"])
                pods = [p for p in pods if p is not pod]
        used = {pod["spec"]["nodeName"] for pod in pods}
        for node in [n for n in candidates if n not in used][: max(0, replicas - len(pods))]:
            self._pod(
                "openshift-ingress",
                f"{ROUTER}-{node}".replace(".", "-"),
                {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"},
                node,
                containers=[{"name": "router", "image": self.facts["images"].get(Component.HYPERKUBE, "")}],
            )

    def _pod(self, namespace: str, name: str, labels: dict[str, str], node: str, **fields: object) -> None:
        spec = {"nodeName": node, "hostNetwork": True, **fields}
        self.store.create(
            "pods", make("v1", "Pod", name, namespace, labels, spec=spec, status={"phase": "Pending", "conditions": []})
        )

    def _count_pools(self) -> None:
        known, pools = self.store.items("nodes"), self.store.items(POOLS)
        names = {pool["metadata"]["name"] for pool in pools}
        for pool in pools:
            role = pool["metadata"]["name"]
            # A node belongs to one pool: the control plane's, else a custom pool, else the workers'.
            before = {"master"} if role != "worker" else names - {"worker"}
            members = [
                n
                for n in known
                if node_list.has_role(n, role)
                and (role == "master" or not any(node_list.has_role(n, r) for r in before))
            ]
            if "configuration" not in pool["spec"]:  # a custom pool, whose nodes run the workers' config
                worker = self.store.get(POOLS, "", "worker")
                pool = {**pool, "spec": {**pool["spec"], "configuration": worker["spec"]["configuration"]}}
            known_status = pool.get("status") or {"conditions": []}
            wanted = pool["spec"]["configuration"]["name"]
            updated = [
                n
                for n in members
                if n["metadata"].get("annotations", {}).get(f"{MACHINE_CONFIGURATION}/currentConfig") == wanted
            ]
            ready = [n for n in updated if is_true(n, "Ready")]
            done = len(ready) == len(members)
            status = {
                **known_status,
                "configuration": {"name": wanted},
                "machineCount": len(members),
                "updatedMachineCount": len(updated),
                "readyMachineCount": len(ready),
                "unavailableMachineCount": len(members) - len(ready),
                "conditions": merge_conditions(
                    known_status["conditions"],
                    [
                        condition(
                            "Updated", done, "", f"All nodes are updated with MachineConfig {wanted}" if done else ""
                        ),
                        condition(
                            "Updating",
                            not done,
                            "",
                            "" if done else f"All nodes are updating to MachineConfig {wanted}",
                        ),
                        condition("Degraded", False),
                        condition("NodeDegraded", False),
                        condition("RenderDegraded", False),
                    ],
                ),
            }
            if status != known_status:
                self._update_status(POOLS, pool, status)

    def _ingress(self) -> None:
        """Publish the router's CA and the console's route when a router serves."""
        if self.store.find("configmaps", "openshift-config-managed", "default-ingress-cert"):
            return
        authority = self.store.find("configmaps", "openshift-ingress-operator", "router-ca")
        if authority is None or not any(is_true(p, "Ready") for p in self.store.items("pods", "openshift-ingress")):
            return
        host = ClusterNames.of(self.facts["domain"]).console
        trust = {"ca-bundle.crt": authority["data"]["tls.crt"]}
        self.store.put("configmaps", config_map("openshift-config-managed", "default-ingress-cert", trust))
        for name, namespace in (("console", "openshift-console"), ("downloads", "openshift-console")):
            own = host.replace("console-", f"{name}-", 1)
            spec = {
                "host": own,
                "port": {"targetPort": "https"},
                "to": {"kind": "Service", "name": name, "weight": 100},
                "tls": {"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
                "wildcardPolicy": "None",
            }
            admitted = {
                "host": own,
                "routerName": "default",
                "conditions": merge_conditions([], [condition("Admitted", True)]),
            }
            route = make("route.openshift.io/v1", "Route", name, namespace, spec=spec, status={"ingress": [admitted]})
            self.store.put("routes.route.openshift.io", route)
        self.store.put(
            "configmaps", config_map("openshift-config-managed", "console-public", {"consoleURL": f"https://{host}"})
        )

    def _finish_bootstrap(self) -> None:
        """Record that the cluster no longer needs its bootstrap host; only an installed member can."""
        wanted = max(1, min(count(self.facts, "master") - 1, 2))
        if self.bootstrap or self.store.find("configmaps", "kube-system", "bootstrap"):
            return
        if len(node_list.ready(self.store.items("nodes"), "master")) >= wanted:
            self.store.create("configmaps", config_map("kube-system", "bootstrap", {"status": "complete"}))

    def _update_status(self, resource: str, obj: Object, status: Object) -> Object:
        return self.store.update(resource, {**obj, "status": status})


def is_unknown(node: Object) -> bool:
    """Return whether a node is unknown because its lease expired."""
    return any(c["type"] == "Ready" and c["status"] == "Unknown" for c in node.get("status", {}).get("conditions", ()))
