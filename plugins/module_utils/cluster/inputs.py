"""What an installed cluster was given: install-config, pull secret, mirrors and keys, as its API has them."""

from __future__ import annotations

import base64
from typing import Any

from ..documents import DocumentError, load_yaml
from ..errors import ClusterError
from ..installer.models import ImageSource
from ..shapes import ShapeError, check
from . import shapes
from .client import CONFIG, ClusterClient

_INSTALL_CONFIG = "install-config of kube-system/cluster-config-v1"
Object = dict[str, Any]


def install_config(kube: ClusterClient) -> Object:
    """Return the install-config of the cluster, without its secrets. Raises `ClusterError`."""
    written = text(kube, "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1", "install-config")
    try:
        found = load_yaml(written, name=_INSTALL_CONFIG)
        if isinstance(found, dict) and found["metadata"]["name"] and found["baseDomain"]:
            check(found, shapes.INSTALL_CONFIG, _INSTALL_CONFIG)
            return found
    except (DocumentError, ShapeError) as error:
        raise ClusterError(str(error)) from error
    except (KeyError, TypeError):
        pass
    raise ClusterError(
        "ConfigMap kube-system/cluster-config-v1: install-config has no metadata.name and baseDomain of the cluster"
    )


def text(kube: ClusterClient, path: str, key: str) -> str:
    """Return what a ConfigMap or Secret has at `key`, base64 in a Secret; nothing without it. Raises `ClusterError`."""
    return ((kube.find(path, shapes.CONFIG_MAP) or {}).get("data") or {}).get(key) or ""


def pull_secret(kube: ClusterClient) -> str:
    """Return the pull secret of the cluster, JSON; nothing without one. Raises `ClusterError`."""
    encoded = text(kube, "/api/v1/namespaces/openshift-config/secrets/pull-secret", ".dockerconfigjson")
    try:
        return base64.b64decode(encoded).decode()
    except ValueError as error:
        raise ClusterError(f"Secret openshift-config/pull-secret: .dockerconfigjson is not base64: {error}") from error


def image_sources(kube: ClusterClient) -> list[ImageSource]:
    """Return the mirrors of the cluster: ImageDigestMirrorSets, and ImageContentSourcePolicies of older ones. Raises `ClusterError`."""
    kinds = (
        (f"{CONFIG}/imagedigestmirrorsets", "imageDigestMirrors"),
        ("/apis/operator.openshift.io/v1alpha1/imagecontentsourcepolicies", "repositoryDigestMirrors"),
    )
    return [
        {"source": str(entry["source"]), "mirrors": [str(mirror) for mirror in entry.get("mirrors") or []]}
        for path, field in kinds
        for one in (kube.find(path, shapes.MIRRORS) or {}).get("items") or []
        for entry in (one.get("spec") or {}).get(field) or []
    ]


def ssh_key(spec: Object) -> str:
    """Return the keys that may log in by the spec of a MachineConfig, a line each."""
    users = ((spec.get("config") or {}).get("passwd") or {}).get("users") or []
    return "\n".join(key for user in users for key in user.get(shapes.SSH_KEYS) or [])
