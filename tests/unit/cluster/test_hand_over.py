"""What the installation's controller asks of the API, against the API itself."""

from __future__ import annotations

import asyncio
import http.client
import io
import tarfile
from typing import Any

from ansible_collections.agentlab.ocp.payload.cluster import facts as cluster_facts
from ansible_collections.agentlab.ocp.payload.cluster import seed
from ansible_collections.agentlab.ocp.payload.cluster.kube import KubeClient
from ansible_collections.agentlab.ocp.payload.cluster.pki import Pair
from ansible_collections.agentlab.ocp.payload.cluster.resources import Registry
from ansible_collections.agentlab.ocp.payload.orchestrator.bare_metal import hand_over
from ansible_collections.agentlab.ocp.payload.orchestrator.must_gather import FOLDER, must_gather

from .test_render import HA, VIPS, cluster

BMHS = "baremetalhosts.metal3.io"


class Plain(KubeClient):
    """Without TLS, which the API has from elsewhere."""

    def __init__(self, api: Any) -> None:
        self.server, self._token, self._connection = str(api.http.make_url("")), "admin", None
        self._address = api.http.host, api.http.port

    def _open(self, timeout: float) -> Any:
        return http.client.HTTPConnection(*self._address, timeout=timeout)


def fill(api: Any) -> None:
    pair, registry = Pair("cert", "key"), Registry()
    facts = cluster_facts.build(cluster(**VIPS), HA, {"hyperkube": "hk"}, "assisted-installer")
    configs = {role: {"storage": {"files": []}} for role in ("master", "worker")}
    about = {
        "install_config": {},
        "pull_secret": "{}",
        "kubeadmin_hash": "",
        "router_ca": "CA",
        "root_ca": "",
        "registries": "",
    }
    for obj in seed.objects(facts, configs, router=pair, fips=False, pointer={}, **about):
        api.store.put(registry.for_object(obj).key, obj)


async def test_bare_metal_hosts_are_handed_over(api: Any) -> None:
    fill(api)
    assert await asyncio.to_thread(hand_over, Plain(api))
    hosts = api.store.items(BMHS)
    assert [host["spec"]["consumerRef"]["name"][-8:] for host in hosts] == [
        "master-0",
        "master-1",
        "master-2",
        "worker-0",
    ]
    assert all(host["spec"]["externallyProvisioned"] and host["spec"]["online"] for host in hosts)
    assert not any(host["metadata"].get("annotations") for host in hosts)
    revision = api.store.revision
    assert await asyncio.to_thread(hand_over, Plain(api)) and api.store.revision == revision


async def test_unwatched_bare_metal_hosts(api: Any) -> None:
    fill(api)
    api.store.delete("provisionings.metal3.io", "", "provisioning-configuration")
    host = api.store.get(BMHS, "openshift-machine-api", "m0")
    notes = {"baremetalhost.metal3.io/status": '{"provisioning": {"state": "externally provisioned"}}'}
    api.store.update(BMHS, {**host, "metadata": {**host["metadata"], "annotations": notes}})
    assert await asyncio.to_thread(hand_over, Plain(api))
    host = api.store.get(BMHS, "openshift-machine-api", "m0")
    assert host["status"]["provisioning"]["state"] == "externally provisioned" and host["status"]["lastUpdated"]
    assert not host["metadata"]["annotations"]


async def test_must_gather_has_no_keys(api: Any) -> None:
    fill(api)
    content = await asyncio.to_thread(must_gather, Plain(api))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        names = set(archive.getnames())
    assert {
        f"{FOLDER}/cluster-scoped-resources/config.openshift.io/clusterversions.yaml",
        f"{FOLDER}/cluster-scoped-resources/config.openshift.io/networks.yaml",
        f"{FOLDER}/namespaces/kube-system/core/configmaps.yaml",
        f"{FOLDER}/namespaces/openshift-machine-api/metal3.io/baremetalhosts.yaml",
    } <= names
    assert not [name for name in names if "secrets" in name or "machineconfigs" in name]
