"""The assisted-installer-controller in the cluster: its objects and its pod, with the names and keys of upstream's templates."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from .objects import Object, config_map, make

NAMESPACE, NAME = "assisted-installer", "assisted-installer-controller"
CONFIG, SECRET = f"{NAME}-config", f"{NAME}-secret"
#: The service's token in the controller's container.
TOKEN = Path("/etc/assisted-installer-controller/token")
# Environment variable -> key of the ConfigMap.
_KEYS = {
    "CLUSTER_ID": "cluster-id",
    "INVENTORY_URL": "inventory-url",
    "SKIP_CERT_VERIFICATION": "skip-cert-verification",
    "CONTROL_PLANE_COUNT": "control-plane-count",
    "CHECK_CLUSTER_VERSION": "check-cluster-version",
    "MUST_GATHER_IMAGE": "must-gather-image",
}


def manifests(
    *,
    cluster_id: str,
    url: str,
    token: str,
    control_plane_count: int,
    must_gather_image: str = "",
    insecure: bool = False,
    check_version: bool = True,
) -> dict[str, Object]:
    """Return the objects from which the controller knows its cluster and service, by the file names that upstream's installer gives them."""
    data = {
        "cluster-id": cluster_id,
        "inventory-url": url,
        "skip-cert-verification": str(insecure).lower(),
        "control-plane-count": str(control_plane_count),
        "check-cluster-version": str(check_version).lower(),
        "must-gather-image": must_gather_image,
    }
    secret = base64.b64encode(token.encode()).decode()
    return {
        f"{NAME}-cm.yaml": config_map(NAMESPACE, CONFIG, data),
        f"{NAME}-secret.yaml": make(
            "v1", "Secret", SECRET, NAMESPACE, data={"pull-secret-token": secret}, type="Opaque"
        ),
        f"{NAME}-sa.yaml": make("v1", "ServiceAccount", NAME, NAMESPACE),
    }


def pod(image: str, version: str) -> dict[str, Any]:
    """Return the fields of the pod's spec; `version` is OpenShift's."""
    variables: list[Object] = [
        {"name": name, "valueFrom": {"configMapKeyRef": {"name": CONFIG, "key": key}}} for name, key in _KEYS.items()
    ]
    variables.append({"name": "OPENSHIFT_VERSION", "value": version})
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
                    {"name": "pull-secret", "mountPath": str(TOKEN.parent)},
                ],
            }
        ],
        "volumes": [
            {"name": "host-ca-bundle", "hostPath": {"path": "/etc/pki", "type": "DirectoryOrCreate"}},
            {
                "name": "pull-secret",
                "secret": {"secretName": SECRET, "items": [{"key": "pull-secret-token", "path": TOKEN.name}]},
            },
        ],
    }
