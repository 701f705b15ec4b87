"""The assisted-installer-controller in the cluster: its objects and its pod, with the names and keys of upstream's templates."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ...plugins.module_utils.vocabulary import Component
from .facts import ClusterFacts
from .objects import Object, config_map, make

NAMESPACE, NAME = "assisted-installer", "assisted-installer-controller"
CONFIG, SECRET = f"{NAME}-config", f"{NAME}-secret"
# Environment variable -> key of the ConfigMap.
_KEYS = {
    "CLUSTER_ID": "cluster-id",
    "INVENTORY_URL": "inventory-url",
    "SKIP_CERT_VERIFICATION": "skip-cert-verification",
    "CONTROL_PLANE_COUNT": "control-plane-count",
    "CHECK_CLUSTER_VERSION": "check-cluster-version",
    "MUST_GATHER_IMAGE": "must-gather-image",
    "OPENSHIFT_VERSION": "openshift-version",
}


def objects(facts: ClusterFacts, service: Mapping[str, str]) -> list[Object]:
    """Return the controller's objects; `service` is the assisted service: `base_url`, `token`."""
    data = {
        "cluster-id": facts["id"],
        "inventory-url": service.get("base_url", ""),
        "skip-cert-verification": "false",
        "control-plane-count": str(sum(1 for host in facts["hosts"] if host["role"] != "worker")),
        "check-cluster-version": "true",
        "must-gather-image": facts["images"].get(Component.MUST_GATHER, ""),
        "openshift-version": facts["version"],
    }
    token = base64.b64encode(service.get("token", "").encode()).decode()
    return [
        config_map(NAMESPACE, CONFIG, data),
        make("v1", "Secret", SECRET, NAMESPACE, data={"pull-secret-token": token}, type="Opaque"),
        make("v1", "ServiceAccount", NAME, NAMESPACE),
    ]


def pod(image: str) -> dict[str, Any]:
    """Return the fields of the pod's spec."""
    variables = [
        {"name": name, "valueFrom": {"configMapKeyRef": {"name": CONFIG, "key": key}}} for name, key in _KEYS.items()
    ]
    return {
        "serviceAccountName": NAME,
        "restartPolicy": "OnFailure",
        "containers": [
            {
                "name": NAME,
                "image": image,
                "command": [NAME],
                "env": variables,
                "volumeMounts": [
                    {"name": "host-ca-bundle", "mountPath": "/etc/pki"},
                    {"name": "pull-secret", "mountPath": "/etc/assisted-installer-controller"},
                ],
            }
        ],
        "volumes": [
            {"name": "host-ca-bundle", "hostPath": {"path": "/etc/pki", "type": "DirectoryOrCreate"}},
            {
                "name": "pull-secret",
                "secret": {"secretName": SECRET, "items": [{"key": "pull-secret-token", "path": "token"}]},
            },
        ],
    }
