"""The manifests that install a cluster's operators. The simulated cluster has no OLM; what it does with them is up to it."""

from __future__ import annotations

import base64
import json
from typing import Any

from ....plugins.module_utils.documents import load_yaml_all
from ..objects import Cluster
from .table import OPERATORS, selected_operators

_AVAILABILITY = "openshift-workload-availability"


def _document(api: str, kind: str, name: str, namespace: str, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def manifests(cluster: Cluster) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, str]]]:
    """Return the manifests that install the cluster's operators, by file name, and `custom_manifests.json`.

    The latter are applied by the controller when the operator's own kinds exist: {"name", "content": base64 of YAML}.
    """
    import yaml

    installed: dict[str, list[dict[str, Any]]] = {}
    custom: list[dict[str, str]] = []
    by_name = {op["name"]: op for op in cluster.get("monitored_operators", ())}
    for name in selected_operators(cluster):
        op, namespace = OPERATORS[name], OPERATORS[name].namespace
        documents = []
        if namespace != "openshift-operators":
            documents.append(_document("v1", "Namespace", namespace, ""))
            targets = {} if namespace == _AVAILABILITY else {"targetNamespaces": [namespace]}
            documents.append(_document("operators.coreos.com/v1", "OperatorGroup", namespace, namespace, spec=targets))
        subscription = by_name[name].get("subscription_name") or op.subscription
        spec = {
            "name": op.package or subscription,
            "source": op.source,
            "sourceNamespace": "openshift-marketplace",
            "installPlanApproval": "Automatic",
        }
        documents.append(_document("operators.coreos.com/v1alpha1", "Subscription", subscription, namespace, spec=spec))
        installed[f"50_openshift-{name}.yaml"] = documents
        texts = [
            _document(one["apiVersion"], one["kind"], one["name"], one.get("namespace", ""), spec=one["spec"])
            for one in op.custom_resources
        ]
        content = yaml.safe_dump_all(texts, sort_keys=False) if texts else ""
        custom.append({"name": name, "content": base64.b64encode(content.encode()).decode()})
    if custom:
        installed["olm_operator_manifests.yaml"] = [_config_map(custom)]
    return installed, custom


def _config_map(custom: list[dict[str, str]]) -> dict[str, Any]:
    """The same for a controller that cannot ask the service: ConfigMap `assisted-installer/olm-operator-manifests`."""
    import yaml

    data: dict[str, str] = {}
    for entry in custom:
        name = entry["name"]
        files: list[str] = []
        for document in filter(None, load_yaml_all(base64.b64decode(entry["content"]), name=entry["name"])):
            files.append(f"{name}-{len(files) + 1:02d}.yaml")
            data[files[-1]] = base64.b64encode(yaml.safe_dump(document, sort_keys=True).strip().encode()).decode()
        if files:
            op = OPERATORS[name]
            data[f"{name}.metadata.yaml"] = yaml.safe_dump(
                {"manifests": files, "namespace": op.namespace, "subscriptionName": op.subscription}
            )
    return _document("v1", "ConfigMap", "olm-operator-manifests", "assisted-installer", data=data)


def custom_files(custom: list[dict[str, str]]) -> dict[str, bytes]:
    """Return `custom_manifests.json` and `custom_manifests.yaml` of a cluster, by file name.

    `custom` is the second result of `manifests`. The JSON is for the controller, the YAML (all documents) for the
    installer.
    """
    text = b"".join(b"---\n" + base64.b64decode(entry["content"]) for entry in custom if entry["content"])
    return {"custom_manifests.json": json.dumps(custom).encode(), "custom_manifests.yaml": text}
