"""What a node may do: the rules of Kubernetes' node authorizer and of its admission plugin NodeRestriction.

A node reads what a kubelet needs, and writes its own Node, its own lease, and the pods that are bound to it. Secrets and
ConfigMaps are readable in the namespaces of its pods; the real authorizer looks at each reference of a pod.
"""

from __future__ import annotations

from ..store import Object, Store
from .errors import ApiError
from .requests import Target

MIRROR = "kubernetes.io/config.mirror"
_PREFIX = "system:node:"
_LEASES = "leases.coordination.k8s.io"
_LEASE_NAMESPACE = "kube-node-lease"
_READ, _WRITE = frozenset({"get", "list", "watch"}), frozenset({"update", "patch"})
_RULES: dict[str, frozenset[str]] = {
    "nodes": _READ | _WRITE | {"create"},
    "nodes/status": frozenset({"get"}) | _WRITE,
    "pods": _READ | {"create", "delete"},
    "pods/status": frozenset({"get"}) | _WRITE,
    "services": _READ,
    "namespaces": _READ,
    "events": _WRITE | {"create"},
    "certificatesigningrequests.certificates.k8s.io": _READ | {"create"},
    "routes.route.openshift.io": _READ,  # the lab's router is a part of the kubelet
    _LEASES: _WRITE | {"get", "create", "delete"},
    "secrets": _READ,
    "configmaps": _READ,
}


def node_of(user: str) -> str:
    """Return the node that a user is, empty for another user."""
    return user.removeprefix(_PREFIX) if user.startswith(_PREFIX) else ""


def may(store: Store, node: str, verb: str, target: Target, fields: str) -> bool:
    """Return whether the authorizer lets a node do this.

    verb: as in RBAC; fields: the field selector of a read. Secrets and ConfigMaps must be named, and there must be a
    pod of the node in their namespace.
    """
    key = f"{target.resource.key}/{target.sub}" if target.sub else target.resource.key
    if verb not in _RULES.get(key, ()):
        return False
    if key == _LEASES:
        return target.namespace == _LEASE_NAMESPACE and target.name in ("", node)
    if key in ("secrets", "configmaps"):
        named = target.name or (fields.removeprefix("metadata.name=") if fields.startswith("metadata.name=") else "")
        pods = store.items("pods", target.namespace) if target.namespace else []
        return bool(named) and any(pod["spec"].get("nodeName") == node for pod in pods)
    return True


def restrict(store: Store, user: str, verb: str, target: Target, body: object) -> None:
    """Refuse writes of a node to what belongs to another one.

    user: any; those that are not nodes may pass. Raises ApiError 403, with the texts of the admission plugin
    NodeRestriction.
    """
    node, key, obj = node_of(user), target.resource.key, body if isinstance(body, dict) else {}
    if not node:
        return
    metadata = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    name = target.name or str((metadata or {}).get("name", ""))
    if key == "nodes" and name != node:
        raise _forbidden(target, name, f'node "{node}" is not allowed to modify node "{name}"')
    if key == _LEASES and name != node:
        raise _forbidden(target, name, "can only access node lease with the same name as the requesting node")
    if key != "pods":
        return
    if verb == "create":
        spec = obj.get("spec") if isinstance(obj.get("spec"), dict) else {}
        if MIRROR not in ((metadata or {}).get("annotations") or {}):
            raise _forbidden(
                target, name, f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
            )
        if (spec or {}).get("nodeName") != node:
            raise _forbidden(target, name, f'node "{node}" can only create pods with spec.nodeName set to itself')
        return
    pod: Object | None = store.find("pods", target.namespace, target.name)
    if pod is not None and pod["spec"].get("nodeName") != node:
        action = "delete pods" if verb == "delete" else "update pod status for pods"
        raise _forbidden(target, name, f'node "{node}" can only {action} with spec.nodeName set to itself')


def _forbidden(target: Target, name: str, why: str) -> ApiError:
    details = {"name": name, "group": target.resource.group, "kind": target.resource.plural}
    return ApiError(403, "Forbidden", f'{target.resource.key} "{name}" is forbidden: {why}', details)
