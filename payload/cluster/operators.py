"""ClusterOperators and ClusterVersion: they are created, progress and become available as nodes do."""

from __future__ import annotations

from dataclasses import dataclass

from . import nodes as node_list
from .conditions import condition, is_true, merge_conditions
from .facts import ClusterFacts, count
from .objects import make
from .store import Object, Store, timestamp

RESOURCE = "clusteroperators.config.openshift.io"
VERSION = "clusterversions.config.openshift.io"
# Number of manifests of the cluster-version operator; only the ratio is visible.
MANIFESTS = 963
# Number of operators that advance in one step.
PACE = 12


@dataclass(frozen=True)
class Operator:
    """A ClusterOperator.

    `needs` is what its operand waits for: a majority of the control plane, all of it, or a router and a node for workloads.
    `degraded` is its reason while a control-plane node is not ready; empty: it does not depend on that.
    """

    name: str
    needs: str
    degraded: str = ""


_CONTROL, _WHOLE, _COMPUTE = "control plane", "whole control plane", "compute"
OPERATORS: tuple[Operator, ...] = (
    Operator("config-operator", _CONTROL),
    Operator("cloud-credential", _CONTROL),
    Operator("cluster-autoscaler", _CONTROL),
    Operator("baremetal", _CONTROL),
    Operator("network", _WHOLE, "RolloutHung"),
    Operator("dns", _CONTROL),
    Operator("etcd", _WHOLE, "NodeController_MasterNodesReady"),
    Operator("kube-apiserver", _WHOLE, "NodeController_MasterNodesReady"),
    Operator("kube-controller-manager", _WHOLE, "NodeController_MasterNodesReady"),
    Operator("kube-scheduler", _WHOLE, "NodeController_MasterNodesReady"),
    Operator("cloud-controller-manager", _CONTROL),
    Operator("machine-api", _CONTROL),
    Operator("machine-approver", _CONTROL),
    Operator("control-plane-machine-set", _CONTROL),
    Operator("openshift-apiserver", _CONTROL),
    Operator("openshift-controller-manager", _CONTROL),
    Operator("service-ca", _CONTROL),
    Operator("operator-lifecycle-manager", _CONTROL),
    Operator("operator-lifecycle-manager-catalog", _CONTROL),
    Operator("operator-lifecycle-manager-packageserver", _CONTROL),
    Operator("olm", _CONTROL),
    Operator("marketplace", _CONTROL),
    Operator("kube-storage-version-migrator", _CONTROL),
    Operator("csi-snapshot-controller", _CONTROL),
    Operator("storage", _CONTROL),
    Operator("openshift-samples", _CONTROL),
    Operator("node-tuning", _CONTROL),
    Operator("insights", _CONTROL),
    Operator("machine-config", _WHOLE, "RequiredPoolsFailed"),
    Operator("image-registry", _COMPUTE),
    Operator("ingress", _COMPUTE),
    Operator("monitoring", _COMPUTE),
    Operator("authentication", _COMPUTE),
    Operator("console", _COMPUTE),
)


@dataclass
class Operators:
    """Advances a few operators per step."""

    store: Store
    facts: ClusterFacts

    def step(self) -> None:
        """Update operators and version from the nodes' state."""
        known = self.store.items("nodes")
        if not known:
            return
        budget = PACE
        for operator in OPERATORS:
            obj = self.store.find(RESOURCE, "", operator.name)
            if obj is None:
                if budget:
                    self._create(operator)
                    budget -= 1
                continue
            wanted = self._conditions(operator, obj, known)
            settles = is_true({"status": {"conditions": wanted}}, "Available") and not is_true(obj, "Available")
            if settles and not budget:
                continue
            budget -= settles
            self._set(operator, obj, wanted)
        self._version()

    def _create(self, operator: Operator) -> None:
        name = operator.name
        # In the order in which operators write them, on which the assisted controller relies.
        conditions = [
            condition("Degraded", False),
            condition("Progressing", True, "Initializing", f"Deploying {name} {self.facts['version']}"),
            condition("Available", False, "Initializing", f"{name} is being deployed"),
            condition("Upgradeable", True),
        ]
        status = {"versions": [], "relatedObjects": [], "conditions": merge_conditions([], conditions)}
        self.store.create(RESOURCE, make("config.openshift.io/v1", "ClusterOperator", name, spec={}, status=status))

    def _set(self, operator: Operator, obj: Object, wanted: list[Object]) -> None:
        status = {**obj["status"], "conditions": merge_conditions(obj["status"]["conditions"], wanted)}
        if is_true({"status": status}, "Available") and not status["versions"]:
            status["versions"] = [{"name": "operator", "version": self.facts["version"]}]
        if status != obj["status"]:
            self.store.update(RESOURCE, {**obj, "status": status})

    def _conditions(self, operator: Operator, obj: Object, known: list[Object]) -> list[Object]:
        name, version = operator.name, self.facts["version"]
        lacking = self._lacking(operator, known)
        if lacking and not is_true(obj, "Available"):
            return [
                condition("Available", False, "Waiting", lacking),
                condition("Progressing", True, "Waiting", lacking),
                condition("Degraded", False),
            ]
        unready = [
            n["metadata"]["name"] for n in known if node_list.has_role(n, "control-plane") and not is_true(n, "Ready")
        ]
        degraded = condition("Degraded", False)
        if operator.degraded and unready:
            degraded = condition(
                "Degraded",
                True,
                operator.degraded,
                "The control plane nodes " + ", ".join(f'"{n}"' for n in unready) + " are not ready",
            )
        available = condition("Available", True, "AsExpected", f"{name} is available")
        if lacking and operator.needs == _COMPUTE:
            available = condition("Available", False, "NoReplicas", lacking)
        return [available, condition("Progressing", False, "AsExpected", f"Deployed {version}"), degraded]

    def _lacking(self, operator: Operator, known: list[Object]) -> str:
        """Return what an operator still waits for; empty if nothing."""
        masters = node_list.ready(known, "control-plane")
        if operator.needs != _COMPUTE:
            replicas = count(self.facts, "master")
            wanted = replicas if operator.needs == _WHOLE else min(replicas, 2)
            return (
                ""
                if len(masters) >= wanted
                else f"waiting for control plane nodes: {len(masters)} of {wanted} are ready"
            )
        routers = [p for p in self.store.items("pods", "openshift-ingress") if is_true(p, "Ready")]
        if not node_list.ready(known, "worker"):
            return "no node is available for workloads"
        return "" if routers else "waiting for a router pod"

    def _version(self) -> None:
        obj = self.store.find(VERSION, "", "version")
        if obj is None:
            return
        version = self.facts["version"]
        operators = [self.store.find(RESOURCE, "", operator.name) for operator in OPERATORS]
        waiting = sorted(
            o.name
            for o, obj_ in zip(OPERATORS, operators, strict=True)
            if obj_ is None or not is_true(obj_, "Available")
        )
        status = dict(obj.get("status") or {})
        image = self.facts["images"].get("release", "")
        history = status.get("history") or [
            {
                "state": "Partial",
                "startedTime": timestamp(),
                "completionTime": None,
                "version": version,
                "image": image,
                "verified": False,
            }
        ]
        installed = history[0]["state"] == "Completed"
        done = MANIFESTS * (len(OPERATORS) - len(waiting)) // len(OPERATORS)
        percent = done * 100 // MANIFESTS
        conditions = [
            condition("RetrievedUpdates", False, "NoChannel", "The update channel has not been configured."),
            condition("ReleaseAccepted", True, "PayloadLoaded", f'Payload loaded version="{version}" image="{image}"'),
            condition("ImplicitlyEnabledCapabilities", False, "AsExpected", "Capabilities match configured spec"),
        ]
        if waiting and not installed:
            names = (
                ", ".join(waiting) if len(waiting) <= 5 else ", ".join(waiting[:5]) + f", and {len(waiting) - 5} more"
            )
            progress = (
                f"Working towards {version}: {done} of {MANIFESTS} done ({percent}% complete), waiting on {names}"
            )
            conditions += [
                condition("Available", False, "", ""),
                condition("Failing", False, "", ""),
                condition("Progressing", True, "ClusterOperatorsNotAvailable", progress),
            ]
        elif waiting:
            text = (
                f"Cluster operators {', '.join(waiting)} are not available"
                if len(waiting) > 1
                else f"Cluster operator {waiting[0]} is not available"
            )
            conditions += [
                condition("Available", True, "", f"Done applying {version}"),
                condition("Failing", True, "ClusterOperatorNotAvailable", text),
                condition("Progressing", False, "", f"Error while reconciling {version}: {text}"),
            ]
        else:
            if not installed:
                history = [{**history[0], "state": "Completed", "completionTime": timestamp()}]
            conditions += [
                condition("Available", True, "", f"Done applying {version}"),
                condition("Failing", False, "", ""),
                condition("Progressing", False, "", f"Cluster version is {version}"),
            ]
        status.update(
            desired={"version": version, "image": image, "channels": []},
            history=history,
            availableUpdates=None,
            observedGeneration=obj["metadata"]["generation"],
            versionHash="",
            conditions=merge_conditions(status.get("conditions") or [], conditions),
        )
        if status != obj.get("status"):
            self.store.update(VERSION, {**obj, "status": status})
