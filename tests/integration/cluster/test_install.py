"""Single node and three masters with a worker, from `install` to an available cluster, with the service on the rendezvous host and elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.pods import trouble

from .installation import SETTINGS, Installation, through_openshift_install
from .lab import Lab, signers, until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "keepalived", "kubectl", "openssl"))),
    reason="needs root, iproute2, keepalived, kubectl and openssl",
)
VIPS = {"api_vips": [{"ip": "192.168.111.5"}], "ingress_vips": [{"ip": "192.168.111.4"}]}
AVAILABLE = "jsonpath={.status.conditions[?(@.type=='Available')].status}"


@pytest.fixture
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    made = Lab(tmp_path, request.param, SETTINGS)
    try:
        yield made
    finally:
        made.close()


def available(lab: Lab) -> bool:
    return lab.kubectl("get", "clusterversion", "version", "-o", AVAILABLE, check=False) == "True"


@pytest.mark.slow
@pytest.mark.skipif(
    "AGENTLAB_REAL_CONTROLLER" not in os.environ,
    reason="AGENTLAB_REAL_CONTROLLER is not set: the path of a build of upstream's assisted-installer-controller",
)
@pytest.mark.parametrize("lab", ["192.168.111.20"], indirect=True)
def test_real_controller_on_a_single_node(lab: Lab, tmp_path: Path) -> None:
    Installation(
        lab, signers(tmp_path / "tls"), {"master-0": "master"}, on_host=True, high_availability_mode="None"
    ).run()
    until("the cluster is available", lambda: available(lab))

    def controller() -> str:
        pods = lab.objects("pods", "-n", "assisted-installer")
        return " ".join([pod["status"]["phase"] + trouble(pod) for pod in pods])

    until("the controller has completed", lambda: controller() == "Succeeded", 60)


@pytest.mark.slow
@pytest.mark.parametrize("lab", ["192.168.111.20"], indirect=True)
def test_single_node_with_the_configs_of_openshift_install(lab: Lab, tmp_path: Path) -> None:
    """As with the real assisted service, which knows its configs from there."""
    run = Installation(
        lab, signers(tmp_path / "tls"), {"master-0": "master"}, on_host=True, high_availability_mode="None"
    )
    (tmp_path / "configs").mkdir()
    run.render = through_openshift_install(tmp_path / "configs")
    run.run()
    until("the cluster is available", lambda: available(lab))
    until("every pod works", lambda: not any(map(trouble, lab.objects("pods", "-A"))))


@pytest.mark.slow
@pytest.mark.parametrize("lab", ["192.168.111.20"], indirect=True)
def test_single_node(lab: Lab, tmp_path: Path) -> None:
    run = Installation(
        lab, signers(tmp_path / "tls"), {"master-0": "master"}, on_host=True, high_availability_mode="None"
    )
    run.run()
    until("the cluster is available", lambda: available(lab))
    assert run.stages["master-0"] == [
        "Starting installation: bootstrap",
        "Installing: bootstrap",
        "Waiting for bootkube",
        "Writing image to disk",
        *(f"Writing image to disk: {percent}%" for percent in (6, 40, 52, 99, 100)),
        "Rebooting",
    ]
    assert (
        lab.kubectl("get", "configmap", "-n", "kube-system", "bootstrap", "-o", "jsonpath={.data.status}") == "complete"
    )

    def phases() -> dict[str, str]:
        return {pod["metadata"]["name"].rsplit("-", 1)[0]: pod["status"]["phase"] for pod in lab.objects("pods", "-A")}

    until("the controller has completed", lambda: phases()["assisted-installer-controller"] == "Succeeded")
    until("every pod works", lambda: not any(map(trouble, lab.objects("pods", "-A"))))
    assert {phases()[name] for name in ("etcd-master", "kube-apiserver-master", "machine-config-server-master")} == {
        "Running"
    }


@pytest.mark.slow
@pytest.mark.parametrize("lab", ["192.168.111.20"], indirect=True)
def test_a_cluster_that_does_not_come_up(lab: Lab, tmp_path: Path) -> None:
    """The service ends it; the controller reports which operators are missing, and keeps the cluster's objects."""
    lab.settings.write_text(json.dumps({**SETTINGS, "OPERATOR_SETTLE_SECONDS": "8"}))
    run = Installation(
        lab, signers(tmp_path / "tls"), {"master-0": "master"}, on_host=False, high_availability_mode="None"
    )
    run.limits = {"FINALIZING_STAGE_WAITING_FOR_CLUSTER_OPERATORS_TIMEOUT": "5s"}
    run.run()
    until("the service reports error", lambda: run.cluster["status"] == "error")
    until("the logs are complete", lambda: run.cluster.get("logs_info") == "completed")
    [report] = [fields["report"] for name, fields in run.events if name == "cluster_operator_report"]
    known = {"name": "config-operator", "status": "progressing", "status_info": "Deploying config-operator 4.22.0-lab"}
    assert known in json.loads(report) or known | {
        "status": "available",
        "status_info": "config-operator is available",
    } in json.loads(report)
    [archive] = (tmp_path / "service").rglob("controller.tar.gz")
    with tarfile.open(archive) as logs:
        assert logs.getnames() == ["assisted-installer-controller.logs", "must-gather.tar.gz"]
        log = logs.extractfile("assisted-installer-controller.logs")
        assert (
            log is not None and b"Stopped waiting for cluster operators to be available: context canceled" in log.read()
        )


@pytest.mark.slow
@pytest.mark.parametrize("lab", ["192.168.111.5"], indirect=True)
@pytest.mark.parametrize("on_host", [True, False])
def test_three_masters_and_a_worker(lab: Lab, tmp_path: Path, on_host: bool) -> None:
    roles = {"master-0": "master", "master-1": "master", "master-2": "master", "worker-0": "worker"}
    run = Installation(lab, signers(tmp_path / "tls"), roles, on_host=on_host, **VIPS)
    run.run()
    until("the cluster is available", lambda: available(lab))
    writing = ["Writing image to disk", *(f"Writing image to disk: {percent}%" for percent in (6, 40, 52, 99, 100))]
    after = ["Configuring", "Joined", "Done"]
    assert run.stages["master-0"][:14] == [
        "Starting installation: bootstrap",
        "Installing: master",
        *writing,
        "Waiting for control plane: Waiting for bootstrap node preparation",
        "Waiting for control plane: Waiting for masters to join bootstrap control plane",
        "Waiting for bootkube",
        "Waiting for bootkube: waiting for ETCD bootstrap to be complete",
        "Waiting for controller: waiting for controller pod ready event",
        "Rebooting",
    ]
    for name in ("master-1", "master-2"):
        assert run.stages[name][:9] == ["Starting installation: master", "Installing: master", *writing, "Rebooting"]
        assert run.stages[name][9:] == after
    assert run.stages["worker-0"][:10] == [
        "Starting installation: worker",
        "Installing: worker",
        *writing,
        "Waiting for control plane",
        "Rebooting",
    ]
    if not on_host:
        until("the service reports installed", lambda: run.cluster["status"] == "installed")
        assert all(stages[-1] == "Done" for stages in run.stages.values())
        zones = {node["metadata"]["name"]: node["metadata"]["labels"].get("zone") for node in lab.objects("nodes")}
        assert zones == roles
        hosts = lab.objects("baremetalhosts", "-n", "openshift-machine-api")
        assert {host["metadata"]["name"] for host in hosts if host["spec"].get("consumerRef")} == set(roles)
        assert all(host["spec"]["externallyProvisioned"] for host in hosts)
        # An installation that ended well: nothing of the cluster is in the logs.
        until("the logs are complete", lambda: run.cluster.get("logs_info") == "completed")
        [archive] = (tmp_path / "service").rglob("controller.tar.gz")
        with tarfile.open(archive) as logs:
            assert logs.getnames() == ["assisted-installer-controller.logs"]
