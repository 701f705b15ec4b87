"""Operators of the Operator Lifecycle Manager in the new cluster: their versions, and the manifests that follow them."""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping, Sequence

from ...plugins.module_utils.documents import load_yaml, load_yaml_all
from ..cluster.kube import KubeClient, KubeError, Object
from ..cluster.resources import Registry

NAMESPACE = "assisted-installer"
OLM = "/apis/operators.coreos.com/v1alpha1/namespaces"
OLM_MANIFESTS = f"/api/v1/namespaces/{NAMESPACE}/configmaps/olm-operator-manifests"
log = logging.getLogger("controller")


def version_of(kube: KubeClient, operator: Mapping[str, object]) -> Object | None:
    """Return the current ClusterServiceVersion of an operator's Subscription; `operator` has its place.

    operator: with `namespace` and `subscription_name`. None while there is no Subscription, or it has no version yet.
    Raises `KubeError`.
    """
    namespace = f"{OLM}/{operator['namespace']}"
    subscription = kube.find(f"{namespace}/subscriptions/{operator['subscription_name']}") or {}
    name = (subscription.get("status") or {}).get("currentCSV")
    return kube.find(f"{namespace}/clusterserviceversions/{name}") if name else None


def apply_without_service(kube: KubeClient) -> bool:
    """Apply the operators' manifests from the ConfigMap that the service created: the service has ended by then.

    Returns False while the ConfigMap or a version is missing, and when a manifest was refused: call it again. Raises
    `KubeError`.
    """
    data = (kube.find(OLM_MANIFESTS) or {}).get("data")
    if data is None:
        return False
    contents: list[str] = []
    for name in (name for name in data if name.endswith(".metadata.yaml")):
        operator = load_yaml(data[name], name="olm manifest")
        place = {"namespace": operator["namespace"], "subscription_name": operator["subscriptionName"]}
        if not version_of(kube, place):
            return False
        contents += [data[file] for file in operator["manifests"]]
    return apply_all(kube, contents)


def apply_all(kube: KubeClient, contents: Sequence[str]) -> bool:
    """Apply manifests, base64 of YAML each; return whether all of them were accepted."""
    registry = Registry()
    documents = [
        document
        for content in contents
        for document in load_yaml_all(base64.b64decode(content), name="olm manifest")
        if document
    ]
    results = [_apply(kube, registry, document) for document in documents]  # a refused one does not block the others
    return all(results)


def _apply(kube: KubeClient, registry: Registry, document: Object) -> bool:
    resource, metadata = registry.for_object(document), document["metadata"]
    prefix = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    place = f"/namespaces/{metadata['namespace']}" if resource.namespaced else ""
    path = f"{prefix}{place}/{resource.plural}/{metadata['name']}?fieldManager=assisted-installer-controller&force=true"
    try:
        kube.patch(path, document, "application/apply-patch+yaml")
    except KubeError as error:
        log.error("Failed to apply manifest file.", extra={"error": f"{document['kind']} {metadata['name']}: {error}"})
        return False
    return True
