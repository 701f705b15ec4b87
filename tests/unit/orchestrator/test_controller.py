"""The controller against a service and a cluster that are played; whole installations are in tests/integration/cluster."""

from __future__ import annotations

import base64
import io
import json
import logging
import tarfile
import threading
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.cluster.kube import KubeError
from ansible_collections.agentlab.ocp.payload.cluster.patch import merge_patch
from ansible_collections.agentlab.ocp.payload.orchestrator import controller as module
from ansible_collections.agentlab.ocp.payload.orchestrator import finalizing as finalizing_module
from ansible_collections.agentlab.ocp.payload.orchestrator import joining, logs, operators
from ansible_collections.agentlab.ocp.payload.orchestrator import olm as olm_module
from ansible_collections.agentlab.ocp.payload.orchestrator.bare_metal import HOSTS, MACHINES, PROVISIONING, hand_over
from ansible_collections.agentlab.ocp.payload.orchestrator.controller import Controller
from ansible_collections.agentlab.ocp.payload.orchestrator.operators import operator_state
from ansible_collections.agentlab.ocp.payload.orchestrator.service import Service

from .conftest import FakeService


def test_operator_states() -> None:
    def conditions(**states: str) -> dict[str, Any]:
        return {
            "status": {
                "conditions": [{"type": name, "status": state, "message": name} for name, state in states.items()],
                "versions": [{"name": "operator", "version": "4"}],
            }
        }

    assert operator_state(conditions(Available="True", Progressing="True")) == ("available", "Available", "4")
    assert operator_state(conditions(Progressing="True", Available="True")) == ("progressing", "Progressing", "4"), (
        "the first counts"
    )
    assert operator_state(conditions(Degraded="False", Progressing="True", Available="False")) == (
        "progressing",
        "Progressing",
        "4",
    )
    assert operator_state(conditions(Available="False", Progressing="True")) == ("failed", "Available", "4")
    assert operator_state(conditions(Upgradeable="True")) == ("progressing", "", "4")
    assert operator_state(conditions(Available="False", Degraded="False")) == ("failed", "Available", "4")


class Api:
    """A cluster's API in which every operator is available, and OLM's are in a phase."""

    phase = "Succeeded"

    def another_client(self) -> Api:
        return self

    def get(self, path: str) -> Any:
        return {"items": []}

    def find(self, path: str) -> Any:
        if "/subscriptions/" in path:
            return {"status": {"currentCSV": "s.v4"}}
        if "/clusterserviceversions/" in path:
            return {"spec": {"version": "4"}, "status": {"phase": self.phase, "message": "of the phase"}}
        conditions = [{"type": "Available", "status": "True", "message": "all is well"}]
        return {"status": {"conditions": conditions, "versions": []}, "data": {"ca-bundle.crt": "PEM"}}


@pytest.mark.parametrize(
    ("kinds", "between"),
    [(["builtin"], []), (["builtin", "olm"], ["Applying olm manifests", "Waiting for olm operators csv"])],
)
def test_finalizing_stages(played: FakeService, kinds: list[str], between: list[str]) -> None:
    """Those of the Operator Lifecycle Manager come only with an operator of its: the cluster may be installed by then."""
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = 200, {"status": "finalizing", "hosts": []}
    operators = [
        {"name": name, "operator_type": name, "namespace": "ns", "subscription_name": "s", "status": "available"}
        for name in kinds
    ]
    played.answers["GET /v2/clusters/c/monitored-operators"] = 200, operators
    played.answers["GET /v2/clusters/c/downloads/files?file_name=custom_manifests.json"] = 200, []
    config = {"cluster_id": "c", "invoker": "assisted-installer", "control_plane_count": 3}
    Controller(Api(), Service(played.url, ""), config).finalizer.post_install()
    told = [
        json.loads(body) for method, path, body in played.calls if (method, path) == ("PUT", "/v2/clusters/c/progress")
    ]
    assert [entry["finalizing_stage"] for entry in told] == [
        "Waiting for cluster operators", "Adding router ca", "Waiting for olm operators csv initialization", *between, "Done",
    ]  # fmt: skip
    assert ("POST", "/v2/clusters/c/actions/complete-installation") in [call[:2] for call in played.calls]


OLM = {
    "name": "lvm", "operator_type": "olm", "namespace": "openshift-storage", "subscription_name": "lvms", "status": "progressing", "status_info": "",
}  # fmt: skip
CR = b"apiVersion: lvm.topolvm.io/v1alpha1\nkind: LVMCluster\nmetadata: {name: x, namespace: openshift-storage}\n"
TOO_LONG = {"progress": {"finalizing_stage": "Waiting for olm operators csv", "finalizing_stage_timed_out": True}}


class Applied(Api):
    def __init__(self, phase: str) -> None:
        self.phase, self.paths = phase, list[str]()

    def patch(self, path: str, body: Any, kind: str) -> None:
        self.paths.append(path.partition("?")[0])


def olm(
    played: FakeService, api: Api, operators: list[dict[str, Any]], clusters: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the controller's reports on operators to a service that returns them, and the cluster, in order."""
    played.answers["GET /v2/clusters/c/monitored-operators"] = [(200, [operator]) for operator in operators]
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = [(200, cluster) for cluster in clusters]
    manifests = [{"name": name, "content": base64.b64encode(CR).decode()} for name in ("lvm", "other")]
    played.answers["GET /v2/clusters/c/downloads/files?file_name=custom_manifests.json"] = 200, manifests
    config = {"cluster_id": "c", "invoker": "assisted-installer", "control_plane_count": 3}
    controller = Controller(api, Service(played.url, ""), config)
    controller.finalizer.olm()
    return [
        json.loads(body)
        for method, path, body in played.calls
        if (method, path) == ("PUT", "/v2/clusters/c/monitored-operators")
    ]


def test_olm_operators_are_reported_and_get_their_manifests(played: FakeService) -> None:
    api = Applied("Succeeded")
    told = olm(played, api, [OLM], [{"status": "finalizing"}])
    assert told == [{"name": "lvm", "status": "available", "status_info": "of the phase", "version": "4"}]
    assert api.paths == ["/apis/lvm.topolvm.io/v1alpha1/namespaces/openshift-storage/lvmclusters/x"]


def test_an_olm_operator_that_takes_too_long_has_failed(played: FakeService) -> None:
    told = olm(played, Applied("Installing"), [OLM], [TOO_LONG])
    assert told[-1] == {
        "name": "lvm",
        "status": "failed",
        "status_info": "Waiting for operator timed out",
        "version": "",
    }


def test_a_failed_olm_operator_may_recover_for_a_while(played: FakeService) -> None:
    told = olm(played, Applied("Failed"), [OLM], [*[{"status": "finalizing"}] * 12, TOO_LONG])
    assert told[0] == {"name": "lvm", "status": "failed", "status_info": "of the phase", "version": "4"}
    calls = [call[:2] for call in played.calls]
    told_at = calls.index(("PUT", "/v2/clusters/c/monitored-operators"))
    assert calls[:told_at].count(("GET", "/v2/clusters/c?exclude-hosts=true")) == 10


def test_manifests_of_operators_without_a_service() -> None:
    """In an agent-based installation they come from a ConfigMap, once the operators are there."""

    class Cluster(Applied):
        def find(self, path: str) -> Any:
            if path.endswith("/configmaps/olm-operator-manifests"):
                about = "manifests: [lvm-01.yaml]\nnamespace: openshift-storage\nsubscriptionName: lvms\n"
                return {"data": {"lvm.metadata.yaml": about, "lvm-01.yaml": base64.b64encode(CR).decode()}}
            if "/subscriptions/" in path:
                self.looks += 1
                return {"status": {"currentCSV": "s.v4"}} if self.looks > 2 else {}
            return super().find(path)

        looks = 0

    api = Cluster("Succeeded")
    config = {"cluster_id": "c", "invoker": "agent-installer", "control_plane_count": 1}
    controller = Controller(api, Service("http://127.0.0.1:9", ""), config)
    controller._loop("manifests", olm_module.apply_without_service)
    assert api.looks == 3 and api.paths == ["/apis/lvm.topolvm.io/v1alpha1/namespaces/openshift-storage/lvmclusters/x"]


class Cluster(Api):
    """A cluster's API that keeps objects by path; `broken` paths are not answered."""

    def __init__(self, **objects: Any) -> None:
        self.objects: dict[str, Any] = {}
        self.patches: list[tuple[str, Any]] = []
        self.broken: set[str] = set()

    def get(self, path: str) -> Any:
        if path in self.broken:
            raise KubeError(0, "no route to host")
        if path in self.objects:
            return self.objects[path]
        return {"items": [obj for key, obj in self.objects.items() if key.rpartition("/")[0] == path]}

    def find(self, path: str) -> Any:
        return self.objects.get(path)

    def ensure(self, path: str, body: Any) -> None:
        pass

    def patch(self, path: str, patch: Any, kind: str = "") -> None:
        self.patches.append((path, patch))
        path = path.removesuffix("/status")
        self.objects[path] = merge_patch(self.objects[path], patch)

    def node(self, name: str, ready: bool = True) -> dict[str, Any]:
        conditions = [{"type": "Ready", "status": str(ready)}]
        made: dict[str, Any] = {"metadata": {"name": name, "labels": {"a": "b"}}, "status": {"conditions": conditions}}
        self.objects[f"/api/v1/nodes/{name}"] = made
        return made


def controller_of(played: FakeService, cluster: Cluster, **config: Any) -> Controller:
    settings: Any = {"cluster_id": "c", "invoker": "assisted-installer", "control_plane_count": 3} | config
    return Controller(cluster, Service(played.url, "", wait=(0, 0)), settings)


def told(played: FakeService, method: str, path: str) -> list[Any]:
    return [json.loads(body) for m, p, body in played.calls if (m, p) == (method, f"/v2/clusters/c{path}")]


def uploaded(played: FakeService) -> dict[str, bytes]:
    """The files of the last logs."""
    body = [body for method, path, body in played.calls if method == "POST" and "/logs?" in path][-1]
    content = body.partition(b"\r\n\r\n")[2].rpartition(b"\r\n--")[0]
    return members(content)


def members(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive}


BUILTIN = {"name": "console", "operator_type": "builtin", "status": "progressing", "status_info": ""}
CONSOLE = {
    "metadata": {"name": "console"},
    "status": {"conditions": [{"type": "Available", "status": "False", "message": "route not yet available"}]},
}


def finalizing(played: FakeService, *ending: tuple[int, Any]) -> Cluster:
    """A service that finalizes a cluster for a while, and a cluster whose console does not come up."""
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = [*[(200, {"status": "finalizing"})] * 20, *ending]
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": []}
    played.answers["GET /v2/clusters/c/monitored-operators"] = 200, [BUILTIN]
    cluster = Cluster()
    cluster.objects[f"{operators.OPERATORS}/console"] = CONSOLE
    cluster.node("m0")
    return cluster


def test_a_cluster_that_does_not_come_up_is_reported_with_what_is_in_it(played: FakeService) -> None:
    cluster = finalizing(played, (200, {"status": "error", "hosts": []}))
    controller_of(played, cluster).run()
    assert told(played, "POST", "/actions/complete-installation") == [
        {
            "is_success": False,
            "error_info": "Stopped waiting for cluster operators to be available: context canceled",
            "data": {
                "CLUSTER_OPERATORS_REPORT": [
                    {"name": "console", "status": "failed", "status_info": "route not yet available"}
                ]
            },
        }
    ]
    assert [entry["logs_state"] for entry in told(played, "PUT", "/logs-progress")] == ["requested", "completed"]
    logs = uploaded(played)
    gathered = members(logs["must-gather.tar.gz"])
    nodes = json.loads(gathered["must-gather.local/must-gather/cluster-scoped-resources/core/nodes.yaml"])
    assert nodes["kind"] == "NodeList" and nodes["items"][0]["metadata"]["name"] == "m0"


def test_operators_that_take_too_long_are_a_failure_though_the_service_waits(
    played: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finalizing_module, "OPERATORS_SECONDS", 0)
    cluster = finalizing(played, (200, {"status": "error", "hosts": []}))
    controller_of(played, cluster).run()
    [end] = told(played, "POST", "/actions/complete-installation")
    assert end["error_info"] == "Stopped waiting for cluster operators to be available: context deadline exceeded"


def test_a_router_without_certificate_is_a_failure_of_its_own(played: FakeService) -> None:
    cluster = finalizing(played, (200, {"status": "error", "hosts": []}))
    cluster.objects[f"{operators.OPERATORS}/console"] = {
        "metadata": {"name": "console"}, "status": {"conditions": [{"type": "Available", "status": "True"}]},
    }  # fmt: skip
    controller_of(played, cluster).run()
    [end] = told(played, "POST", "/actions/complete-installation")
    assert end["error_info"] == "Stopped waiting for router ca data: context canceled" and not end["is_success"]


def test_a_cancelled_installation_ends_the_controller(played: FakeService) -> None:
    cluster = finalizing(played, (200, {"status": "cancelled", "hosts": []}))
    controller_of(played, cluster).run()
    assert "must-gather.tar.gz" in uploaded(played), "the operators had not come up"
    played.calls.clear()
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = 200, {"status": "cancelled", "hosts": []}
    controller_of(played, Cluster()).run()
    assert list(uploaded(played)) == ["assisted-installer-controller.logs"] and not told(
        played, "POST", "/actions/complete-installation"
    )


@pytest.mark.parametrize(("code", "looks"), [(404, 11), (401, 3)])
def test_a_service_that_does_not_know_the_cluster_any_more_ends_the_controller(
    played: FakeService, code: int, looks: int
) -> None:
    """A deleted cluster at once (after the client's own tries), a refused token after three looks."""
    controller = controller_of(played, Cluster())
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = code, {"reason": "no"}
    controller.finalizer.post_install = lambda: None
    assert not controller.finalizer.until_over()
    assert [call[:2] for call in played.calls] == [("GET", "/v2/clusters/c?exclude-hosts=true")] * looks


def test_a_stage_is_reported_until_the_service_takes_it(played: FakeService) -> None:
    played.answers["PUT /v2/clusters/c/progress"] = [(409, {}), (409, {}), (200, {})]
    controller_of(played, Cluster()).finalizer.finalizing("Done")
    assert len(told(played, "PUT", "/progress")) == 3


def test_logs_of_a_cluster_that_does_not_answer_are_tried_again(played: FakeService) -> None:
    cluster = Cluster()
    cluster.broken.add("/api/v1/nodes")
    controller = controller_of(played, cluster)
    controller.session.failed = True
    threading.Timer(0.2, cluster.broken.clear).start()
    controller.own_log.send_final()
    assert "must-gather.tar.gz" in uploaded(played)
    assert list(members(next(b for m, p, b in played.calls if "/logs?" in p).partition(b"\r\n\r\n")[2])) == [
        "assisted-installer-controller.logs"
    ]


def labelled_host(name: str, **fields: Any) -> dict[str, Any]:
    host = {
        "id": name,
        "requested_hostname": name,
        "role": "worker",
        "status": "installed",
        "progress": {"current_stage": "Done"},
    }
    return host | {"infra_env_id": "i", "node_labels": '{"zone": "z1"}'} | fields


def test_nodes_get_the_labels_of_their_hosts_when_they_are_ready(played: FakeService) -> None:
    hosts = [
        labelled_host("w0"),
        labelled_host("w1"),
        labelled_host("w2", status="error"),
        labelled_host("m0", node_labels=""),
    ]
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": hosts}
    cluster = Cluster()
    for name, ready in (("w0", True), ("w1", False), ("m0", True)):
        cluster.node(name, ready)
    controller = controller_of(played, cluster)
    assert not controller.joining.label_nodes(cluster)
    cluster.node("w1")
    assert controller.joining.label_nodes(cluster)
    labels = {"metadata": {"labels": {"zone": "z1"}}}
    assert cluster.patches == [("/api/v1/nodes/w0", labels), ("/api/v1/nodes/w1", labels)]
    assert cluster.objects["/api/v1/nodes/w0"]["metadata"]["labels"] == {"a": "b", "zone": "z1"}


def test_the_workers_pool_is_paused_while_a_node_goes_to_another(played: FakeService) -> None:
    hosts = [labelled_host("w0", machine_config_pool_name="infra")]
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": hosts}
    cluster = Cluster()
    cluster.objects[joining.WORKER_POOL] = {"spec": {"paused": False}}
    controller = controller_of(played, cluster)
    assert not controller.joining.label_nodes(cluster)
    cluster.node("w0")
    assert controller.joining.label_nodes(cluster)
    assert [patch for path, patch in cluster.patches if path == joining.WORKER_POOL] == [
        {"spec": {"paused": True}}, {"spec": {"paused": False}},
    ]  # fmt: skip


@pytest.mark.parametrize(("platform", "loops"), [("none", set()), ("baremetal", {"UpdateBMHs"})])
def test_loops_run_only_where_there_is_something_to_do(played: FakeService, platform: str, loops: set[str]) -> None:
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = (
        200,
        {"status": "installed", "platform": {"type": platform}},
    )
    controller = controller_of(played, Cluster())
    started: list[str] = []
    controller._loop = lambda what, step: started.append(what)
    controller.run()
    assert set(started) == {"ApproveCsrs", "WaitAndUpdateNodesStatus", "UpdateNodeLabels", *loops}


def test_labels_are_no_more_looked_for_when_no_host_has_any(played: FakeService) -> None:
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": [labelled_host("m0", node_labels="")]}
    assert controller_of(played, Cluster()).joining.label_nodes(Cluster())


def test_a_refused_token_ends_one_loop_though_others_continue(played: FakeService) -> None:
    """In an agent-based installation another service, or none, may answer at the address by then."""
    controller = controller_of(played, Cluster(), invoker="agent-installer")
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 401, {"reason": "no"}
    other = threading.Thread(
        target=controller._loop, args=("certificate requests", controller.joining.approve_requests), daemon=True
    )
    other.start()
    controller._loop("node status", controller.joining.update_hosts)
    assert len(played.calls) == 3
    controller.session.done.set()
    other.join(5)


def test_an_agent_based_installation_continues_without_the_service(
    played: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGENT_READY_SECONDS", 0)
    monkeypatch.setattr(module, "READY_SECONDS", 0)
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = 401, {"reason": "no"}
    controller = controller_of(played, Cluster(), invoker="agent-installer")
    assert controller.set_ready_state() is None
    with pytest.raises(SystemExit, match="Failed to retrieve cluster from assisted service"):
        controller_of(played, Cluster()).set_ready_state()


def test_the_controller_reports_once_that_it_is_ready(played: FakeService) -> None:
    """By an event with a name of its own: the bootstrap host looks for that."""
    cluster = Cluster()
    made: list[Any] = []
    cluster.ensure = lambda path, body: made.append((path, body))
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = 200, {"status": "installing"}
    assert controller_of(played, cluster).set_ready_state() == {"status": "installing"}
    [(path, event)] = made
    assert path == "/api/v1/namespaces/assisted-installer/events"
    assert event["metadata"] == {"name": "AssistedControllerIsReady", "namespace": "assisted-installer"}
    assert event["involvedObject"] == {"namespace": "assisted-installer", "name": "assisted-installer-controller"}


def node_host(
    name: str, stage: str, status: str = "installing-in-progress", address: str = "10.0.0.9"
) -> dict[str, Any]:
    inventory = json.dumps({"interfaces": [{"ipv4_addresses": [f"{address}/24"]}]})
    return labelled_host(name, status=status, progress={"current_stage": stage}, inventory=inventory)


def stages_of(played: FakeService) -> list[tuple[str, str]]:
    found = [
        (path.split("/")[5], json.loads(body))
        for method, path, body in played.calls
        if method == "PUT" and path.endswith("/progress")
    ]
    return [(host, body["current_stage"]) for host, body in found]


@pytest.mark.parametrize(
    ("stage", "ready", "told"),
    [
        ("Rebooting", False, ["Joined"]),
        ("Configuring", True, ["Joined", "Done"]),
        ("Joined", False, []),
        ("Joined", True, ["Done"]),
        ("Writing image to disk", True, ["Done"]),
        ("Done", True, []),
    ],
)
def test_stages_of_a_node_that_joins(played: FakeService, stage: str, ready: bool, told: list[str]) -> None:
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": [node_host("w0", stage)]}
    cluster = Cluster()
    cluster.node("w0", ready)
    assert not controller_of(played, cluster).joining.update_hosts(cluster)
    assert stages_of(played) == [("w0", name) for name in told]


def test_a_node_that_is_done_is_reported_with_its_boots(played: FakeService) -> None:
    """Each of the boots that it had as a node: one, unless it went down on the way."""
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": [node_host("w0", "Joined")]}
    cluster = Cluster()
    controller = controller_of(played, cluster)
    for boot, ready in (("a", False), ("b", False), ("b", True)):
        cluster.node("w0", ready)["status"]["nodeInfo"] = {"bootID": boot}
        controller.joining.update_hosts(cluster)
    [event] = [json.loads(body) for method, path, body in played.calls if (method, path) == ("POST", "/v2/events")]
    assert event["message"] == "Node w0 has been rebooted 2 times before completing installation"
    assert (event["name"], event["host_id"], event["cluster_id"]) == ("reboots_for_node", "w0", "c")


@pytest.mark.parametrize(
    ("statuses", "over"),
    [
        (["installed"], True),
        (["disabled"], True),
        (["error", "error"], True),
        (["error", "installed"], True),
        (["error", "installing-in-progress"], False),
    ],
)
def test_nodes_are_watched_as_long_as_one_may_join(played: FakeService, statuses: list[str], over: bool) -> None:
    hosts = [node_host(f"w{number}", "Rebooting", status) for number, status in enumerate(statuses)]
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": hosts}
    assert controller_of(played, Cluster()).joining.update_hosts(Cluster()) is over


@pytest.mark.parametrize(
    ("stage", "told"), [("Rebooting", True), ("Waiting for ignition", True), ("Configuring", False), ("Joined", False)]
)
def test_a_host_that_fetched_its_config_is_configuring(played: FakeService, stage: str, told: bool) -> None:
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": [node_host("w0", stage)]}
    cluster = Cluster()
    cluster.objects[f"{joining.MCS_PODS}?labelSelector=k8s-app=machine-config-server"] = {
        "items": [{"metadata": {"name": "mcs"}}]
    }
    cluster.objects[f"{joining.MCS_PODS}/mcs/log"] = (
        'Pool worker requested by address:"10.0.0.9:1" User-Agent:"Ignition/2.20.0" x'
    )
    controller_of(played, cluster).joining.update_hosts(cluster)
    assert stages_of(played) == ([("w0", "Configuring")] if told else [])


TAINTS = [
    {"key": "other", "effect": "NoSchedule"},
    {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"},
]
REAL = {"server": "vc.example.org", "user": "u", "password": "p"}
MADE_UP = {"server": "vcenterplaceholder", "user": "usernameplaceholder", "password": "passwordplaceholder"}


@pytest.mark.parametrize(
    ("platform", "invoker", "version", "center", "goes"),
    [
        ("vsphere", "agent-installer", "4.22.0-lab", REAL, False),
        ("vsphere", "agent-installer", "4.22.0-lab", MADE_UP, True),
        ("vsphere", "agent-installer", "4.22.0-lab", {}, True),
        ("vsphere", "agent-installer", "4.14.9", REAL, True),
        ("vsphere", "assisted-installer", "4.22.0", REAL, True),
        ("nutanix", "agent-installer", "4.22.0", {}, True),
        ("baremetal", "agent-installer", "4.22.0", {}, False),
        ("none", "assisted-installer", "", {}, False),
    ],
)
@pytest.mark.parametrize("service", [True, False])
def test_whose_taints_must_go(
    played: FakeService, platform: str, invoker: str, version: str, center: dict[str, str], goes: bool, service: bool
) -> None:
    """With the service or, after the bootstrap host has rebooted, without it."""
    overrides = {"platform": {platform: {"vcenters": [center]} if center else {}}}
    cluster = Cluster()
    cluster.objects[module.INSTALL_CONFIG] = {"data": {"install-config": json.dumps(overrides)}}
    known = {"platform": {"type": platform}, "install_config_overrides": json.dumps(overrides)} if service else None
    assert controller_of(played, cluster, invoker=invoker, openshift_version=version).must_untaint(known) is goes


def test_uninitialized_nodes_lose_their_taint(played: FakeService) -> None:
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = (
        200,
        {"hosts": [node_host("w0", "Joined"), node_host("w1", "Joined")]},
    )
    cluster = Cluster()
    cluster.objects[operators.VERSION] = {"status": {}}
    patches: list[Any] = []
    cluster.patch = lambda *arguments: patches.append(arguments)
    for name, ready in (("w0", False), ("w1", True)):
        cluster.node(name, ready)["spec"] = {"taints": TAINTS}
    controller = controller_of(played, cluster)
    removed = [{"op": "remove", "path": "/spec/taints/1"}], "application/json-patch+json"
    for untaints in (False, True):
        controller.session.untaints = untaints
        controller.joining.update_hosts(cluster)
        assert patches == ([("/api/v1/nodes/w0", *removed)] if untaints else []), "those that are not ready"
    patches.clear()
    assert not controller.complete()
    assert patches == [(f"/api/v1/nodes/{name}", *removed) for name in ("w0", "w1")], "all of them, without the service"


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (("progressing", "a"), [], None),
        (("progressing", "a"), [("Progressing", "True", "a")], None),
        (("progressing", "a"), [("Progressing", "True", "")], None),
        (("progressing", "a"), [("Progressing", "True", "b")], ("progressing", "b")),
        (("progressing", "a"), [("Available", "False", "")], ("failed", "")),
        (("available", "a"), [("Available", "False", "gone")], None),
    ],
)
def test_what_is_reported_of_an_operator(
    played: FakeService, before: tuple[str, str], now: list[tuple[str, str, str]], told: tuple[str, str] | None
) -> None:
    """What is new, but not that a message is gone; nothing of one that is not there, nor of one that has been available."""
    played.answers["GET /v2/clusters/c/monitored-operators"] = (
        200,
        [BUILTIN | {"status": before[0], "status_info": before[1]}],
    )
    cluster = Cluster()
    if now:
        conditions = [{"type": kind, "status": state, "message": text} for kind, state, text in now]
        cluster.objects[f"{operators.OPERATORS}/console"] = {
            "metadata": {"name": "console"},
            "status": {"conditions": conditions},
        }
    controller_of(played, cluster).finalizer.operators.builtin_available()
    reports = [
        json.loads(body)
        for method, path, body in played.calls
        if (method, path) == ("PUT", "/v2/clusters/c/monitored-operators")
    ]
    assert reports == ([{"name": "console", "status": told[0], "status_info": told[1], "version": ""}] if told else [])


def test_log_lines_are_those_of_logrus() -> None:
    record = logging.LogRecord("x", logging.WARNING, "x.py", 1, 'Failed to get "%s"', ("it",), None)
    record.created, record.error = 0, ValueError("why not")
    text = logs.LogrusFormatter().format(record)
    assert text == 'time="1970-01-01T00:00:00Z" level=warning msg="Failed to get \\"it\\"" error="why not"'


def bare_metal(cluster: Cluster, name: str, spec: dict[str, Any], **annotations: str) -> None:
    cluster.objects[f"{HOSTS}/{name}"] = {
        "metadata": {"name": name, "annotations": {f"baremetalhost.metal3.io/{key}": value for key, value in annotations.items()}},
        "spec": spec, "status": {"provisioning": {"state": "unmanaged"}},
    }  # fmt: skip


def machine(cluster: Cluster, name: str, role: str = "worker") -> None:
    labels = {"machine.openshift.io/cluster-api-machine-role": role}
    cluster.objects[f"{MACHINES}/{name}"] = {"metadata": {"name": name, "labels": labels}}


def test_bare_metal_hosts_get_their_machines_and_are_paused_no_longer() -> None:
    cluster = Cluster()
    cluster.objects[PROVISIONING] = {"spec": {}}
    bare_metal(cluster, "m0", {"consumerRef": {"name": "x-master-0"}}, paused="")
    bare_metal(cluster, "w0", {})
    bare_metal(cluster, "w1", {})
    machine(cluster, "x-master-0", "master")
    machine(cluster, "x-worker-a")
    assert not hand_over(cluster), "one machine for two hosts"
    machine(cluster, "x-worker-b")
    assert hand_over(cluster)
    hosts = {name: cluster.objects[f"{HOSTS}/{name}"] for name in ("m0", "w0", "w1")}
    assert {name: host["spec"]["consumerRef"]["name"] for name, host in hosts.items()} == {
        "m0": "x-master-0", "w0": "x-worker-a", "w1": "x-worker-b",
    }  # fmt: skip
    assert all(host["spec"]["externallyProvisioned"] and not host["metadata"]["annotations"] for host in hosts.values())
    before = len(cluster.patches)
    assert hand_over(cluster) and len(cluster.patches) == before, "nothing is left to do"


def test_unwatched_bare_metal_hosts_get_the_status_of_their_annotation() -> None:
    cluster = Cluster()
    bare_metal(cluster, "m0", {"consumerRef": {"name": "x-master-0"}}, status='{"poweredOn": true}')
    assert hand_over(cluster)
    host = cluster.objects[f"{HOSTS}/m0"]
    assert host["status"]["poweredOn"] and host["status"]["lastUpdated"] and not host["metadata"]["annotations"]
    assert "externallyProvisioned" not in host["spec"]
