"""Operators, version, pools and certificates follow the nodes."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.cluster import cloud, olm, pki, seed
from ansible_collections.agentlab.ocp.payload.cluster import controllers as module
from ansible_collections.agentlab.ocp.payload.cluster import facts as cluster_facts
from ansible_collections.agentlab.ocp.payload.cluster.conditions import condition, is_true, merge_conditions
from ansible_collections.agentlab.ocp.payload.cluster.controllers import Controllers
from ansible_collections.agentlab.ocp.payload.cluster.operators import OPERATORS
from ansible_collections.agentlab.ocp.payload.cluster.resources import Registry
from ansible_collections.agentlab.ocp.payload.cluster.store import Store

from .test_render import HA, VIPS, cluster, host

OPERATOR_KEY = "clusteroperators.config.openshift.io"
VERSION_KEY = "clusterversions.config.openshift.io"


class Lab:
    """A leader's store and controllers, with nodes that are played."""

    def __init__(self, hosts: list[dict[str, Any]], bootstrap: bool = False, **fields: Any) -> None:
        images = {"hyperkube": "hk", "agent-installer-csr-approver": "controller"}
        self.facts = cluster_facts.build(cluster(**fields), hosts, images, "agent-installer")
        self.store, registry = Store(), Registry()
        self.store.begin_epoch(1)
        configs = {role: {"storage": {"files": []}} for role in ("master", "worker")}
        pair = pki.Pair("cert", "key")
        for obj in seed.objects(
            self.facts,
            configs,
            install_config={},
            fips=False,
            pull_secret="{}",
            kubeadmin_hash="",
            router=pair,
            router_ca="CA",
            root_ca="",
            registries="",
            pointer={},
        ):
            self.store.put(registry.for_object(obj).key, obj)
        self.controllers = Controllers(self.store, self.facts, pki.Signer.create("kubelet-signer"), 0, bootstrap)

    def node(self, name: str, *roles: str, ready: bool = True) -> None:
        obj = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {f"node-role.kubernetes.io/{role}": "" for role in roles}},
            "status": {"conditions": merge_conditions([], [condition("Ready", ready)])},
        }
        self.store.put("nodes", obj)

    def master(self, name: str, ready: bool = True) -> None:
        self.node(name, "master", "control-plane", ready=ready)

    def steps(self, number: int = 40) -> None:
        for __ in range(number):
            self.controllers.step()
            for pod in self.store.items("pods"):
                if not is_true(pod, "Ready"):
                    self.store.update(
                        "pods",
                        {
                            **pod,
                            "status": {
                                "phase": "Running",
                                "conditions": merge_conditions([], [condition("Ready", True)]),
                            },
                        },
                    )

    def version(self) -> dict[str, dict[str, str]]:
        obj = self.store.get(VERSION_KEY, "", "version")
        return {c["type"]: c for c in obj["status"]["conditions"]}


def test_nothing_without_nodes() -> None:
    lab = Lab(HA, **VIPS)
    lab.steps()
    assert not lab.store.items(OPERATOR_KEY)


def test_operators_follow_the_nodes() -> None:
    lab = Lab(HA, **VIPS)
    lab.master("m1")
    lab.master("m2")
    lab.steps()
    assert len(lab.store.items(OPERATOR_KEY)) == len(OPERATORS) >= 33
    etcd = lab.store.get(OPERATOR_KEY, "", "etcd")
    assert not is_true(etcd, "Available") and "2 of 3 are ready" in str(etcd)
    message = lab.version()["Progressing"]["message"]
    assert (
        message.startswith("Working towards 4.22.0-lab: ")
        and "% complete), waiting on authentication, console, etcd" in message
    )
    lab.master("m0")
    lab.steps()
    assert is_true(lab.store.get(OPERATOR_KEY, "", "etcd"), "Available")
    assert not is_true(lab.store.get(OPERATOR_KEY, "", "console"), "Available"), "it needs a worker"
    assert not lab.store.find("routes.route.openshift.io", "openshift-console", "console")
    lab.node("w0", "worker")
    lab.steps()
    assert (
        lab.version()["Available"]["status"] == "True"
        and lab.version()["Progressing"]["message"] == "Cluster version is 4.22.0-lab"
    )
    assert lab.store.get(VERSION_KEY, "", "version")["status"]["history"][0]["state"] == "Completed"
    assert (
        lab.store.get("routes.route.openshift.io", "openshift-console", "console")["spec"]["host"]
        == "console-openshift-console.apps.ostest.lab.test"
    )
    assert lab.store.get("configmaps", "openshift-config-managed", "default-ingress-cert")["data"] == {
        "ca-bundle.crt": "CA"
    }
    lab.master("m2", ready=False)
    lab.steps()
    assert is_true(lab.store.get(OPERATOR_KEY, "", "kube-apiserver"), "Degraded")
    assert lab.version()["Available"]["status"] == "True", "an installed cluster stays available"
    lab.master("m2")
    lab.steps()
    assert not is_true(lab.store.get(OPERATOR_KEY, "", "kube-apiserver"), "Degraded")


def test_settled_objects_are_not_written_again() -> None:
    lab = Lab([host("m0", 20)])
    lab.node("m0", "master", "control-plane", "worker")
    lab.steps(60)
    revision = lab.store.revision
    lab.steps()
    assert lab.store.revision == revision


def test_bootstrap_is_complete_only_off_the_bootstrap_host() -> None:
    for bootstrap in (True, False):
        lab = Lab(HA, bootstrap, **VIPS)
        lab.master("m1")
        lab.steps(3)
        assert not lab.store.find("configmaps", "kube-system", "bootstrap")
        lab.master("m2")
        lab.steps(3)
        assert bool(lab.store.find("configmaps", "kube-system", "bootstrap")) is not bootstrap


def test_the_controller_runs_once_and_moves_when_its_node_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(HA, **VIPS)
    lab.master("m1")
    lab.steps(2)
    [pod] = lab.store.items("pods", "assisted-installer")
    assert (pod["spec"]["nodeName"], pod["spec"]["containers"][0]["image"]) == ("m1", "controller")
    lab.master("m2")
    lab.store.put(
        "leases.coordination.k8s.io",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "m1", "namespace": "kube-node-lease"},
            "spec": {"renewTime": "2020-01-01T00:00:00.000000Z"},
        },
    )
    lab.steps(1)
    later = time.monotonic() + 2 * module.GRACE_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    lab.steps(2)
    node = lab.store.get("nodes", "", "m1")
    assert node["status"]["conditions"][0]["status"] == "Unknown"
    [pod] = lab.store.items("pods", "assisted-installer")
    assert pod["spec"]["nodeName"] == "m2"
    lab.store.update("pods", {**pod, "status": {"phase": "Succeeded", "conditions": []}})
    lab.steps(3)
    assert is_true(lab.store.get("jobs.batch", "assisted-installer", "assisted-installer-controller"), "Complete")
    assert len(lab.store.items("pods", "assisted-installer")) == 1


def test_a_clock_that_is_stepped_loses_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a snapshot is restored: machines continue minutes or days later, and leases are as old as the snapshot."""
    lab = Lab(HA, **VIPS)
    lab.master("m1")
    now = [time.monotonic(), time.time()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[1])

    def status() -> str:
        lab.steps(1)
        return str(lab.store.get("nodes", "", "m1")["status"]["conditions"][0]["status"])

    def renew() -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(now[1]))
        lease: Any = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"renewTime": stamp}}
        lab.store.put(module.LEASES, {**lease, "metadata": {"name": "m1", "namespace": "kube-node-lease"}})

    renew()
    assert status() == "True"
    now[:] = now[0] + module.GRACE_SECONDS - 1, now[1] + 86400
    assert status() == "True"
    renew()
    now[0] += module.GRACE_SECONDS - 1
    assert status() == "True"
    now[0] += module.GRACE_SECONDS + 1
    assert status() == "Unknown"


@pytest.mark.parametrize(
    ("hosts", "bootstrap", "approved"), [(HA, True, True), (HA, False, False), ([host("m0", 20)], False, True)]
)
def test_certificate_requests(hosts: list[dict[str, Any]], bootstrap: bool, approved: bool) -> None:
    lab = Lab(hosts, bootstrap)
    pair = pki.request("system:node:m1", ["system:nodes"])
    csr = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "csr-1"},
        "status": {},
        "spec": {"signerName": module.CLIENT_SIGNER, "request": base64.b64encode(pair.certificate.encode()).decode()},
    }
    lab.store.create(module.CSR, csr)
    lab.steps(2)
    status = lab.store.get(module.CSR, "", "csr-1")["status"]
    assert bool(status.get("certificate")) is approved


def test_a_bad_certificate_request_fails_alone() -> None:
    lab = Lab(HA, bootstrap=True)
    for name, text in (("bad", "garbage"), ("good", pki.request("n", []).certificate)):
        lab.store.create(
            module.CSR,
            {
                "kind": "CertificateSigningRequest",
                "metadata": {"name": name},
                "status": {},
                "spec": {"signerName": module.SERVING_SIGNER, "request": base64.b64encode(text.encode()).decode()},
            },
        )
    lab.steps(2)
    assert is_true(lab.store.get(module.CSR, "", "bad"), "Failed")
    assert lab.store.get(module.CSR, "", "good")["status"]["certificate"]


def test_pools_count_their_nodes() -> None:
    lab = Lab(HA, **VIPS)
    lab.master("m0")
    lab.steps(2)
    pool = lab.store.get(module.POOLS, "", "master")
    assert (pool["status"]["machineCount"], pool["status"]["updatedMachineCount"]) == (1, 0)
    node = lab.store.get("nodes", "", "m0")
    notes = {"machineconfiguration.openshift.io/currentConfig": pool["spec"]["configuration"]["name"]}
    lab.store.update("nodes", {**node, "metadata": {**node["metadata"], "annotations": notes}})
    lab.steps(2)
    assert is_true(lab.store.get(module.POOLS, "", "master"), "Updated")


def test_a_pool_of_ones_own_runs_what_the_workers_do() -> None:
    lab = Lab(HA, **VIPS)
    wanted = lab.store.get(module.POOLS, "", "worker")["spec"]["configuration"]["name"]
    pool = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": "infra"},
    }
    lab.store.create(
        module.POOLS, {**pool, "spec": {"nodeSelector": {"matchLabels": {"node-role.kubernetes.io/infra": ""}}}}
    )
    lab.node("w0", "worker", "infra")
    lab.node("w1", "worker")
    node = lab.store.get("nodes", "", "w0")
    notes = {"machineconfiguration.openshift.io/currentConfig": wanted}
    lab.store.update("nodes", {**node, "metadata": {**node["metadata"], "annotations": notes}})
    lab.steps(2)
    made = lab.store.get(module.POOLS, "", "infra")
    assert made["spec"]["configuration"]["name"] == wanted and is_true(made, "Updated")
    assert {name: lab.store.get(module.POOLS, "", name)["status"]["machineCount"] for name in ("infra", "worker")} == {
        "infra": 1,
        "worker": 1,
    }


SUBSCRIPTION = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "Subscription",
    "metadata": {"name": "lvms", "namespace": "openshift-storage"},
    "spec": {"name": "lvms-operator", "source": "redhat-operators", "sourceNamespace": "openshift-marketplace"},
}


def test_a_subscription_gets_its_operator_once_there_is_olm() -> None:
    lab = Lab(HA[:1], high_availability_mode="None")
    lab.store.create(olm.SUBSCRIPTIONS, SUBSCRIPTION)
    lab.steps(5)
    assert not lab.store.items(olm.VERSIONS)
    lab.node("m0", "master", "control-plane", "worker")
    lab.steps()
    [version] = lab.store.items(olm.VERSIONS)
    release = lab.facts["version"].partition("-")[0]
    assert version["metadata"]["name"] == f"lvms-operator.v{release}"
    assert (version["status"]["phase"], version["status"]["message"]) == (
        "Succeeded",
        "install strategy completed with no errors",
    )
    status = lab.store.get(olm.SUBSCRIPTIONS, "openshift-storage", "lvms")["status"]
    assert (status["currentCSV"], status["installedCSV"], status["state"]) == (
        *[version["metadata"]["name"]] * 2,
        "AtLatestKnown",
    )
    before = lab.store.items(olm.SUBSCRIPTIONS)
    lab.steps(3)
    assert lab.store.items(olm.SUBSCRIPTIONS) == before


def test_the_cloud_controller_manager_of_an_external_platform_is_the_lab_s() -> None:
    lab = Lab(HA)
    lab.controllers.facts["platform"] = "external"
    lab.master("m0", ready=False)
    node = lab.store.find("nodes", "", "m0")
    lab.store.put("nodes", {**node, "spec": {"taints": [{"key": cloud.UNINITIALIZED}]}})
    lab.controllers.step()
    assert lab.store.find("nodes", "", "m0")["spec"]["taints"] == []


@pytest.mark.parametrize("login", [True, False])
def test_the_cloud_provider_initializes_nodes_if_it_can_log_in(login: bool) -> None:
    lab = Lab(HA)
    lab.controllers.facts["platform"] = "vsphere"
    if login:
        namespace, name = cloud.CREDENTIALS
        lab.store.put("secrets", {"kind": "Secret", "metadata": {"namespace": namespace, "name": name}, "data": {}})
    lab.master("m0", ready=False)
    node = lab.store.find("nodes", "", "m0")
    lab.store.put("nodes", {**node, "spec": {"taints": [{"key": "other"}, {"key": cloud.UNINITIALIZED}]}})
    lab.controllers.step()
    left = lab.store.find("nodes", "", "m0")["spec"]["taints"]
    assert [taint["key"] for taint in left] == ["other", cloud.UNINITIALIZED][: 2 - login]
