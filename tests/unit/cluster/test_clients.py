"""Kubernetes' Python client and our small one, against the API on loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.client import ClusterClient

kubernetes = pytest.importorskip("kubernetes")
pytest.importorskip("kubernetes.dynamic")


async def test_python_client(api: Any) -> None:
    api.store.create(
        "nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n", "labels": {"a": "b"}},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": []},
        },
    )
    configuration = kubernetes.client.Configuration(host=str(api.http.make_url("")).rstrip("/"))
    configuration.api_key = {"authorization": "Bearer admin"}
    await asyncio.to_thread(use, kubernetes.client.ApiClient(configuration))


def use(client: Any) -> None:
    core, custom = kubernetes.client.CoreV1Api(client), kubernetes.client.CustomObjectsApi(client)
    assert kubernetes.client.VersionApi(client).get_code().git_version == "v1.35.0"
    [node] = core.list_node(label_selector="a=b").items
    assert node.status.conditions[0].type == "Ready"
    core.patch_node("n", {"metadata": {"labels": {"c": "d"}}})
    assert core.read_node("n").metadata.labels == {"a": "b", "c": "d"}
    core.create_namespaced_config_map("default", {"metadata": {"name": "x"}, "data": {"k": "v"}})
    events = kubernetes.watch.Watch().stream(core.list_namespaced_config_map, "default", timeout_seconds=1)
    assert [(e["type"], e["object"].data) for e in events] == [("ADDED", {"k": "v"})]
    custom.create_cluster_custom_object(
        "config.openshift.io", "v1", "clusteroperators", {"metadata": {"name": "etcd"}, "spec": {}}
    )
    custom.patch_cluster_custom_object_status(
        "config.openshift.io", "v1", "clusteroperators", "etcd", {"status": {"conditions": []}}
    )
    [operator] = custom.list_cluster_custom_object("config.openshift.io", "v1", "clusteroperators")["items"]
    assert operator["status"] == {"conditions": []}
    dynamic = kubernetes.dynamic.DynamicClient(client)
    assert (
        dynamic.resources.get(api_version="config.openshift.io/v1", kind="ClusterOperator")
        .get(name="etcd")
        .metadata.name
        == "etcd"
    )
    with pytest.raises(kubernetes.client.ApiException) as caught:
        core.read_namespaced_config_map("none", "default")
    assert caught.value.status == 404


async def test_cluster_client_with_a_token(api: Any, tmp_path: Path) -> None:
    api.store.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bootstrap", "namespace": "kube-system"},
                                    "data": {"status": "complete"}})  # fmt: skip
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "admin",
        "clusters": [{"name": "c", "cluster": {"server": str(api.http.make_url("")).rstrip("/")}}],
        "users": [{"name": "admin", "user": {"token": "admin"}}],
        "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "admin"}}],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    assert await asyncio.to_thread(lambda: ClusterClient(tmp_path / "kubeconfig").bootstrap_status()) == "complete"
