"""Table output, which `kubectl get` and `oc get` request (`as=Table;g=meta.k8s.io;v=v1`).

Columns are those of the real API server and of the CustomResourceDefinitions of OpenShift; priority 1 shows with `-o wide`.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable
from typing import Any

from ...plugins.module_utils.vocabulary import MACHINE_CONFIGURATION
from .resources import MACHINE_CONFIGS, POOLS, Resource

Object = dict[str, Any]


def _path(path: str) -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        at: Any = obj
        for part in path.split("."):
            at = at.get(part) if isinstance(at, dict) else None
        return "" if at is None else str(at)

    return read


def condition(obj: Object, kind: str, field: str = "status") -> str:
    """Return a field of the condition `kind`, empty if the object has no such condition."""
    for entry in obj.get("status", {}).get("conditions", ()):
        if entry["type"] == kind:
            return str(entry.get(field, ""))
    return ""


def age(timestamp: str) -> str:
    """Return the time since an RFC 3339 timestamp in kubectl's format."""
    if not timestamp:
        return "<unknown>"
    elapsed = max(0, int(time.time() - calendar.timegm(time.strptime(timestamp[:19], "%Y-%m-%dT%H:%M:%S"))))
    minutes, hours, days = elapsed // 60, elapsed // 3600, elapsed // 86400
    if elapsed < 120:
        return f"{elapsed}s"
    if minutes < 10:
        return f"{minutes}m{elapsed % 60}s" if elapsed % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    return f"{days}d{hours % 24}h" if days < 8 and hours % 24 else f"{days}d"


def _age(obj: Object) -> str:
    return age(obj["metadata"].get("creationTimestamp", ""))


def _operator_message(operator: Object) -> str:
    for kind, bad in (("Available", "False"), ("Degraded", "True"), ("Progressing", "True")):
        if condition(operator, kind) == bad:
            return condition(operator, kind, "message")
    return ""


def _condition(kind: str, field: str = "status") -> Callable[[Object], str]:
    return lambda obj: condition(obj, kind, field)


def _time_since(kind: str) -> Callable[[Object], str]:
    return lambda obj: age(stamp) if (stamp := condition(obj, kind, "lastTransitionTime")) else ""


def _node_status(node: Object) -> str:
    ready = {"True": "Ready", "False": "NotReady"}.get(condition(node, "Ready"), "NotReady")
    return ready + (",SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else "")


def _node_roles(node: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = sorted(
        label.removeprefix(prefix) for label in node["metadata"].get("labels", {}) if label.startswith(prefix)
    )
    return ",".join(roles) or "<none>"


def _node_address(kind: str) -> Callable[[Object], str]:
    def read(node: Object) -> str:
        return next((a["address"] for a in node.get("status", {}).get("addresses", ()) if a["type"] == kind), "<none>")

    return read


def _csr_condition(csr: Object) -> str:
    conditions = [c["type"] for c in csr.get("status", {}).get("conditions", ())] or ["Pending"]
    if csr.get("status", {}).get("certificate"):
        conditions.append("Issued")
    return ",".join(conditions)


def _containers(pod: Object) -> list[Object]:
    return pod.get("status", {}).get("containerStatuses") or []


def _pod_ready(pod: Object) -> str:
    containers = pod.get("spec", {}).get("containers", ())
    ready = sum(1 for c in _containers(pod) if c.get("ready"))
    return f"{ready}/{len(containers)}"


def _pod_state(pod: Object) -> str:
    """Return the phase, or the reason of a container's waiting or terminated state, as kubectl shows it."""
    states = [c.get("state") or {} for c in _containers(pod)]
    reasons = [state[kind].get("reason") for state in states for kind in ("waiting", "terminated") if kind in state]
    return str(next((reason for reason in reasons if reason), pod.get("status", {}).get("phase", "")))


def _version(operator: Object) -> str:
    return next((v["version"] for v in operator.get("status", {}).get("versions", ()) if v["name"] == "operator"), "")


def _completed(version: Object) -> str:
    return next((h["version"] for h in version.get("status", {}).get("history", ()) if h["state"] == "Completed"), "")


def _count(field: str) -> Callable[[Object], str]:
    return lambda obj: str(len(obj.get(field) or ()))


_NAME = ("Name", 0, _path("metadata.name"))
_AGE = ("Age", 0, _age)
Column = tuple[str, int, Callable[[Object], str]]

_COLUMNS: dict[str, tuple[Column, ...]] = {
    "nodes": (
        _NAME,
        ("Status", 0, _node_status),
        ("Roles", 0, _node_roles),
        _AGE,
        ("Version", 0, _path("status.nodeInfo.kubeletVersion")),
        ("Internal-IP", 1, _node_address("InternalIP")),
        ("External-IP", 1, _node_address("ExternalIP")),
        ("OS-Image", 1, _path("status.nodeInfo.osImage")),
        ("Kernel-Version", 1, _path("status.nodeInfo.kernelVersion")),
        ("Container-Runtime", 1, _path("status.nodeInfo.containerRuntimeVersion")),
    ),
    "clusterversions.config.openshift.io": (
        _NAME,
        ("Version", 0, _completed),
        ("Available", 0, _condition("Available")),
        ("Progressing", 0, _condition("Progressing")),
        ("Since", 0, _time_since("Progressing")),
        ("Status", 0, _condition("Progressing", "message")),
    ),
    "clusteroperators.config.openshift.io": (
        _NAME,
        ("Version", 0, _version),
        ("Available", 0, _condition("Available")),
        ("Progressing", 0, _condition("Progressing")),
        ("Degraded", 0, _condition("Degraded")),
        ("Since", 0, _time_since("Available")),
        ("Message", 0, _operator_message),
    ),
    POOLS: (
        _NAME,
        ("Config", 0, _path("status.configuration.name")),
        ("Updated", 0, _condition("Updated")),
        ("Updating", 0, _condition("Updating")),
        ("Degraded", 0, _condition("Degraded")),
        ("MachineCount", 0, _path("status.machineCount")),
        ("ReadyMachineCount", 0, _path("status.readyMachineCount")),
        ("UpdatedMachineCount", 0, _path("status.updatedMachineCount")),
        ("DegradedMachineCount", 0, _path("status.degradedMachineCount")),
        _AGE,
    ),
    MACHINE_CONFIGS: (
        _NAME,
        (
            "GeneratedByController",
            0,
            lambda o: (
                o["metadata"].get("annotations", {}).get(f"{MACHINE_CONFIGURATION}/generated-by-controller-version", "")
            ),
        ),
        ("IgnitionVersion", 0, _path("spec.config.ignition.version")),
        _AGE,
    ),
    "routes.route.openshift.io": (
        _NAME,
        ("Host/Port", 0, _path("spec.host")),
        ("Path", 0, _path("spec.path")),
        ("Services", 0, _path("spec.to.name")),
        ("Port", 0, _path("spec.port.targetPort")),
        ("Termination", 0, _path("spec.tls.termination")),
        ("Wildcard", 0, _path("spec.wildcardPolicy")),
    ),
    "certificatesigningrequests.certificates.k8s.io": (
        _NAME,
        _AGE,
        ("SignerName", 0, _path("spec.signerName")),
        ("Requestor", 0, _path("spec.username")),
        ("RequestedDuration", 0, lambda o: "<none>"),
        ("Condition", 0, _csr_condition),
    ),
    "pods": (
        _NAME,
        ("Ready", 0, _pod_ready),
        ("Status", 0, _pod_state),
        ("Restarts", 0, lambda o: str(sum(c.get("restartCount", 0) for c in _containers(o)))),
        _AGE,
        ("IP", 1, _path("status.podIP")),
        ("Node", 1, _path("spec.nodeName")),
    ),
    "configmaps": (_NAME, ("Data", 0, _count("data")), _AGE),
    "secrets": (_NAME, ("Type", 0, lambda o: o.get("type", "Opaque")), ("Data", 0, _count("data")), _AGE),
    "namespaces": (_NAME, ("Status", 0, _path("status.phase")), _AGE),
    "events": (
        ("Last Seen", 0, lambda e: age(e.get("lastTimestamp") or e["metadata"].get("creationTimestamp", ""))),
        ("Type", 0, _path("type")),
        ("Reason", 0, _path("reason")),
        ("Object", 0, lambda e: f"{e['involvedObject'].get('kind', '').lower()}/{e['involvedObject'].get('name', '')}"),
        ("Message", 0, _path("message")),
    ),
    "leases.coordination.k8s.io": (_NAME, ("Holder", 0, _path("spec.holderIdentity")), _AGE),
}
_COLUMNS["projects.project.openshift.io"] = (
    _NAME,
    ("Display Name", 0, lambda o: ""),
    ("Status", 0, _path("status.phase")),
)


def table(
    resource: Resource, items: list[Object], revision: str, headers: bool = True, include: str = "Metadata"
) -> Object:
    """Return the Table of `items`; `include` is the query parameter `includeObject`: None, Metadata or Object."""
    columns = _COLUMNS.get(resource.key, (_NAME, _AGE))
    definitions = [
        {
            "name": name,
            "type": "string",
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": priority,
        }
        for name, priority, __ in columns
    ]
    rows = []
    for item in items:
        row: Object = {"cells": [read(item) for *__, read in columns]}
        if include == "Object":
            row["object"] = item
        elif include == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": item["metadata"],
            }
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": revision},
        "columnDefinitions": definitions if headers else [],
        "rows": rows,
    }
