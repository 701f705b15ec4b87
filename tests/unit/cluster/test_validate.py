"""What `validate` compares, and that it notices a cluster which is not as planned."""

from __future__ import annotations

import base64
import copy
import json
import socket
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import validate as module
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.pods import incomplete
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.configs import settings_manifest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


def node(planned: dict[str, Any], *addresses: str) -> dict[str, Any]:
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [
            *({"type": "InternalIP", "address": a} for a in addresses),
            {"type": "Hostname", "address": planned["name"]},
        ],
        "nodeInfo": {"architecture": "amd64"},
    }
    return {
        "metadata": {"name": planned["name"], "labels": {f"node-role.kubernetes.io/{planned['role']}": ""}},
        "status": status,
    }


def pod(phase: str, **state: Any) -> dict[str, Any]:
    statuses = [{"name": "c", "ready": phase == "Running" and not state, "restartCount": 0, **state}]
    return {"metadata": {"name": "assisted-installer-controller-7", "namespace": "assisted-installer", "labels": {}}, "spec": {},
            "status": {"phase": phase, "containerStatuses": statuses}}  # fmt: skip


LOOPING = {
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
    "lastState": {"terminated": {"exitCode": 2, "message": "first\nrequired key CLUSTER_ID missing value"}},
}


class Kube:
    """An installed cluster of a plan."""

    server = "https://api"

    def __init__(self, plan: dict[str, Any]) -> None:
        self.version = plan["release"]["version"]
        self.conditions = [{"type": "Available", "status": "True"}]
        self.found = [node(n, *(a["ip"] for a in n["nics"][0]["addresses"])) for n in plan["nodes"]]
        self.job: dict[str, Any] | None = {"status": {"succeeded": 1}}
        self.all_pods = [pod("Succeeded")]
        self.platform = {"type": "BareMetal", "baremetal": {
            "apiServerInternalIPs": plan["vips"]["api"], "ingressIPs": plan["vips"]["ingress"]}}  # fmt: skip
        self.platform_spec: dict[str, Any] = {}
        installer = plan["installer"]
        self.networks: dict[str, Any] = {
            "networkType": installer["network_type"],
            "clusterNetwork": [
                {"cidr": n["cidr"], "hostPrefix": n["host_prefix"]} for n in installer["cluster_network"]
            ],
            "serviceNetwork": list(installer["service_network"]),
        }
        self.fips = {node["role"]: installer["fips"] for node in plan["nodes"]}
        machine = [{"cidr": cidr} for cidr in installer["machine_network"]]
        self.install_config: dict[str, Any] = {
            "metadata": {"name": "one"}, "baseDomain": "test.metalkube.org", "networking": {"machineNetwork": machine}
        }  # fmt: skip
        self.mirrors: list[dict[str, Any]] = copy.deepcopy(installer["image_digest_sources"])
        self.auths: dict[str, Any] = {"registry.example.com": {"auth": "YTpi"}}
        self.secret = ""
        self.keys = {node["role"]: "ssh-ed25519 AAAA run\nssh-ed25519 BBBB team" for node in plan["nodes"]}
        core, settings = "/api/v1", settings_manifest(cast(Plan, plan))
        self.objects: dict[str, Any] = {
            core: {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]},
            f"{core}/namespaces/openshift-config/configmaps/agentlab-settings": copy.deepcopy(settings),
        }
        self.bmcs = {node["name"]: {"bmc": {"address": node["bmc"]["address"]}} for node in plan["nodes"]}

    def get(self, path: str) -> dict[str, Any]:
        return {"gitVersion": "v1.35.0"}

    def nodes(self) -> list[dict[str, Any]]:
        return self.found

    def cluster_version(self) -> dict[str, Any]:
        return {"status": {"conditions": self.conditions, "desired": {"version": self.version}}}

    def infrastructure(self) -> dict[str, Any]:
        return {"spec": {"platformSpec": self.platform_spec}, "status": {"platformStatus": self.platform}}

    def network(self) -> dict[str, Any]:
        return {"spec": {}, "status": self.networks}

    def rendered_config(self, pool: str) -> dict[str, Any]:
        users = [{"name": "core", "sshAuthorizedKeys": [self.keys[pool]]}]
        return {"spec": {"fips": self.fips[pool], "config": {"passwd": {"users": users}}}}

    def find(self, path: str, shape: object = dict) -> dict[str, Any] | None:
        secret = base64.b64encode((self.secret or json.dumps({"auths": self.auths})).encode()).decode()
        return {
            "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1": {
                "data": {"install-config": yaml.safe_dump(self.install_config)}
            },
            "/apis/config.openshift.io/v1/imagedigestmirrorsets": {
                "items": [{"spec": {"imageDigestMirrors": self.mirrors}}]
            },
            "/api/v1/namespaces/openshift-config/secrets/pull-secret": {"data": {".dockerconfigjson": secret}},
            **self.objects,
        }.get(path)

    def bare_metal_hosts(self) -> list[dict[str, Any]]:
        return [{"metadata": {"name": name}, "spec": spec} for name, spec in self.bmcs.items()]

    def cluster_operators(self) -> list[dict[str, Any]]:
        return [{"metadata": {"name": "etcd"}, "status": {"conditions": [{"type": "Available", "status": "True"}]}}]

    def controller_job(self) -> dict[str, Any] | None:
        return self.job

    def pods(self, namespace: str | None = None) -> list[dict[str, Any]]:
        return self.all_pods


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(module, "_names", lambda plan: ())
    monkeypatch.setattr(module, "_vips", lambda plan: ())
    return build.build(profile.load("ha_dualstack", PROFILES, "one"), "one")


def failed(plan: dict[str, Any], kube: Kube) -> dict[str, str]:
    checks = module.validate(plan, Path("none"), lambda path: kube)
    assert len(checks) > 8
    return {check.name: check.found for check in checks if not check.ok}


def test_a_cluster_as_planned(plan: dict[str, Any]) -> None:
    kube = Kube(plan)
    assert not failed(plan, kube)
    for address in kube.found[0]["status"]["addresses"][:2]:
        address["address"] = address["address"].replace("::", ":0:0:0:")  # another spelling of the same address
    assert not failed(plan, kube)


def test_another_release(plan: dict[str, Any]) -> None:
    kube = Kube(plan)
    kube.version = "4.21.0-lab"
    assert failed(plan, kube) == {"ClusterVersion": "4.21.0-lab: Available=True; planned: 4.22.0-lab"}
    plan["release"]["version"] = "4.21"
    assert not failed(plan, kube)
    plan["release"]["version"] = None
    assert not failed(plan, kube)
    kube.conditions = [{"type": "Available", "status": "True"}, {"type": "Failing", "status": "True"}]
    assert failed(plan, kube) == {"ClusterVersion": "4.21.0-lab: Available=True, Failing=True"}


def test_nodes_that_are_not_the_planned_ones(plan: dict[str, Any]) -> None:
    kube = Kube(plan)
    kube.found.append(node({"name": "stranger", "role": "worker"}, "192.168.111.99"))
    workers, masters = "worker-0, worker-1", "master-0, master-1, master-2"
    assert failed(plan, kube) == {
        "worker nodes": f"3 of 2 Ready: stranger, {workers}; planned: {workers}",
        "node names": "not part of this plan: stranger",
    }
    del kube.found[-1], kube.found[0]
    assert failed(plan, kube) == {"master nodes": f"2 of 3 Ready: master-1, master-2; planned: {masters}"}
    kube = Kube(plan)
    kube.found[0]["metadata"]["labels"] = {"node-role.kubernetes.io/worker": ""}
    assert failed(plan, kube) == {
        "master nodes": f"2 of 3 Ready: master-1, master-2; planned: {masters}",
        "worker nodes": f"3 of 2 Ready: master-0, {workers}; planned: {workers}",
    }
    kube = Kube(plan)
    kube.found[0]["status"]["conditions"][0]["status"] = "Unknown"
    assert failed(plan, kube) == {"master nodes": f"2 of 3 Ready: master-1, master-2; planned: {masters}"}


def test_nodes_that_have_each_others_roles(plan: dict[str, Any]) -> None:
    """The numbers of masters and workers were right, and all checks were ok."""
    kube = Kube(plan)
    labels = {one["metadata"]["name"]: one["metadata"] for one in kube.found}
    master, worker = labels["master-2"], labels["worker-0"]
    master["labels"], worker["labels"] = worker["labels"], master["labels"]
    assert failed(plan, kube) == {
        "master nodes": "3 of 3 Ready: master-0, master-1, worker-0; planned: master-0, master-1, master-2",
        "worker nodes": "2 of 2 Ready: master-2, worker-1; planned: worker-0, worker-1",
    }


def test_nodes_of_another_architecture(plan: dict[str, Any]) -> None:
    kube = Kube(plan)
    kube.found[1]["status"]["nodeInfo"]["architecture"] = "arm64"
    del kube.found[3]["status"]["nodeInfo"]
    assert failed(plan, kube) == {"architecture of the nodes": "master-1 arm64, worker-0 unknown; planned: amd64"}


def test_names_of_nodes_with_their_domain(plan: dict[str, Any]) -> None:
    kube = Kube(plan)
    for one in kube.found:
        one["metadata"]["name"] += ".one.test.metalkube.org"
    assert not failed(plan, kube)


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, set[str]], set[tuple[str, int]]]:
    """A plan, the addresses of its names, and where something listens: both as planned."""
    plan: Any = build.build(profile.load("ha_dualstack", PROFILES, "one"), "one")
    endpoints = [plan["endpoints"][name] for name in ("api", "api_int", "console")]
    names = {one["host"]: set(one["addresses"]) for one in endpoints}
    listening = {(address, one["port"]) for one in endpoints for address in one["addresses"]}

    def getaddrinfo(host: str, port: None, family: int, kind: int) -> list[tuple[Any, ...]]:
        found = [address for address in names.get(host, ()) if module._family(address) == family]
        if not found:
            raise OSError("Name or service not known")
        return [(family, kind, 6, "", (address, 0)) for address in found]

    def create_connection(place: tuple[str, int], timeout: float) -> socket.socket:
        if place not in listening:
            raise ConnectionRefusedError("[Errno 111] Connection refused")
        return socket.socket()

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(socket, "create_connection", create_connection)
    return plan, names, listening


def test_names_without_their_addresses(resolved: Any) -> None:
    plan, names, __ = resolved
    assert not failed(plan, Kube(plan))
    console = "console-openshift-console.apps.one.test.metalkube.org"
    del names["api.one.test.metalkube.org"]
    names["api-int.one.test.metalkube.org"].pop()
    names[console] |= {"192.168.111.99"}
    found = failed(plan, Kube(plan))
    assert found.pop("DNS api.one.test.metalkube.org") == "no address"
    assert found.pop("DNS api-int.one.test.metalkube.org") in plan["vips"]["api"]
    assert found.pop(f"DNS {console}") == ", ".join(sorted(["192.168.111.99", *plan["vips"]["ingress"]]))
    assert not found


def test_virtual_addresses_at_which_nothing_answers(resolved: Any) -> None:
    plan, __, listening = resolved
    api, ingress = plan["vips"]["api"][1], plan["vips"]["ingress"][0]
    listening -= {(api, 6443), (ingress, 443)}
    assert failed(plan, Kube(plan)) == {
        f"API address {api}": "port 6443: [Errno 111] Connection refused",
        f"ingress address {ingress}": "port 443: [Errno 111] Connection refused",
    }


@pytest.mark.parametrize("change", ["twice", "order", "one", "other", "none"])
def test_addresses_that_are_not_the_planned_ones(change: str, plan: dict[str, Any]) -> None:
    """In an installed cluster every node had its IPv6 address twice and no IPv4 address, and all checks were ok."""
    kube = Kube(plan)
    four, six = (a["ip"] for a in plan["nodes"][1]["nics"][0]["addresses"])
    kube.found[1] = node(
        plan["nodes"][1],
        *{"twice": (six, six), "order": (six, four), "one": (four,), "other": (four, "fd2e::99"), "none": ()}[change],
    )
    [(name, found)] = failed(plan, kube).items()
    assert name == "addresses of master-1"
    assert found.endswith(f"; planned: {four}, {six}")


@pytest.mark.parametrize("own", ["static", "dhcp"])
def test_a_node_that_gets_its_address_otherwise(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases and static addresses are of different ranges."""
    for name in ("_names", "_vips"):
        monkeypatch.setattr(module, name, lambda plan: ())
    given = {"topology": "compact", "addressing": "dhcp" if own == "static" else "static"}
    plans: list[Any] = [
        build.build(profile.complete({**given, "nodes": nodes}), "one")
        for nodes in ({"master-1": {"addressing": own}}, {})
    ]
    asked, otherwise = (plan["nodes"][1]["nics"][0]["addresses"][0]["ip"] for plan in plans)
    kube = Kube(plans[0])
    assert asked != otherwise and not failed(plans[0], kube)
    kube.found[1] = node(plans[0]["nodes"][1], otherwise)
    assert failed(plans[0], kube) == {"addresses of master-1": f"{otherwise}; planned: {asked}"}


@pytest.mark.parametrize(
    ("job", "pods", "reason"),
    [
        ({"status": {"active": 1}}, [pod("Running", **LOOPING)],
         "pod assisted-installer/assisted-installer-controller-7: CrashLoopBackOff: exit code 2: required key CLUSTER_ID missing value"),
        ({"status": {"active": 1}}, [pod("Running")], "pod assisted-installer/assisted-installer-controller-7 is still running"),
        ({"status": {"active": 1}}, [pod("Pending")], "pod assisted-installer/assisted-installer-controller-7: is Pending"),
        ({"status": {}}, [], "Job assisted-installer/assisted-installer-controller has no pod"),
        (None, [], "there is no Job assisted-installer/assisted-installer-controller"),
    ],
)  # fmt: skip
def test_a_controller_that_has_not_completed(job: Any, pods: list[Any], reason: str, plan: dict[str, Any]) -> None:
    """A controller that ended whenever it was started could end in success."""
    kube = Kube(plan)
    kube.job, kube.all_pods = job, pods
    assert failed(plan, kube)["assisted-installer-controller"] == reason
    assert not incomplete(None, [pod("Succeeded")])


def test_installer_provisioned_infrastructure_has_no_such_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_names", "_vips"):
        monkeypatch.setattr(module, name, lambda plan: ())
    plan: Any = build.build(profile.load("compact_ipi", PROFILES, "one"), "one")
    kube = Kube(plan)
    kube.job = None
    assert not failed(plan, kube)


def test_a_pod_that_fails_is_named(plan: dict[str, Any]) -> None:
    kube = Kube(plan)
    other = copy.deepcopy(pod("Running", **LOOPING))
    other["metadata"].update(name="router-default", namespace="openshift-ingress")
    kube.all_pods.append(other)
    [(name, found)] = failed(plan, kube).items()
    assert (name, found.split("; not: ")[0]) == ("pods", "1 of 2 running or completed")
    assert "openshift-ingress/router-default CrashLoopBackOff: exit code 2" in found


@pytest.mark.parametrize(
    ("platform", "found"),
    [
        ({"type": "None"}, "None"),
        ({"type": "BareMetal", "baremetal": {"apiServerInternalIPs": ["192.168.111.9"]}}, "BareMetal, 192.168.111.9"),
    ],
)
def test_another_platform_than_planned(platform: dict[str, Any], found: str, plan: dict[str, Any]) -> None:
    kube = Kube(plan)
    kube.platform = platform
    vips = ", ".join([*plan["vips"]["api"], *plan["vips"]["ingress"]])
    assert failed(plan, kube) == {"platform": f"{found}; planned: BareMetal, {vips}"}


@pytest.mark.parametrize("kind", ["UserManaged", "OpenShiftManagedDefault"])
def test_a_load_balancer_outside_of_the_cluster(kind: str, plan: dict[str, Any]) -> None:
    vips = [*plan["vips"]["api"], *plan["vips"]["ingress"]]
    plan["services"]["balancer"] = {"addresses": vips, "frontends": [], "stats": "/s", "machine": "lb"}
    kube = Kube(plan)
    kube.platform["baremetal"]["loadBalancer"] = {"type": kind}
    wrong = {} if kind == "UserManaged" else {
        "platform": f"BareMetal, {', '.join(vips)}, load balancer {kind}; planned: BareMetal, {', '.join(vips)}, load balancer UserManaged"
    }  # fmt: skip
    assert failed(plan, kube) == wrong


def test_an_external_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_names", lambda plan: ())
    monkeypatch.setattr(module, "_vips", lambda plan: ())
    plan: Any = build.build(profile.load("sno_oci", PROFILES, "one"), "one")
    kube = Kube(plan)
    kube.platform = {"type": "External", "external": {"cloudControllerManager": {"state": "External"}}}
    kube.platform_spec = {"external": {"platformName": "oci"}}
    assert not failed(plan, kube)
    kube.platform_spec = {"external": {"platformName": "aws"}}
    assert failed(plan, kube)["platform"].startswith(
        "External, aws, cloud controller manager External; planned: External, oci"
    )
    kube.platform = {"type": "External"}
    assert failed(plan, kube)["platform"].startswith("External, aws, cloud controller manager None;")
    kube.found[0]["spec"] = {"taints": [{"key": module.UNINITIALIZED}]}
    assert failed(plan, kube)["cloud provider"] == "nodes wait for it: master-0"


def test_a_cluster_without_a_plan(plan: dict[str, Any]) -> None:
    """Nodes are those that there are; nothing is compared with addresses, names and VIPs that are not planned."""
    kube = Kube(plan)
    checks = module.validate(None, Path("none"), lambda path: kube)
    assert [(check.name, check.ok) for check in checks] == [
        ("kubeconfig", True), ("nodes", True), ("ClusterVersion", True), ("ClusterOperators", True), ("pods", True)
    ]  # fmt: skip
    kube.found[0]["status"]["conditions"][0]["status"] = "False"
    [bad] = [check for check in module.validate(None, Path("none"), lambda path: kube) if not check.ok]
    assert (bad.name, bad.found) == (
        "nodes",
        f"{len(kube.found) - 1} of {len(kube.found)} Ready; not: {plan['nodes'][0]['name']}",
    )
