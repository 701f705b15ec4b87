"""What a node image takes from the cluster, its tokens, the approval of requests, and the modules, against the API on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import cli, state
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import (
    day2,
    inspection,
    joining,
    node_image,
    node_task,
    validate,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.client import ClusterClient
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.joining import (
    CLIENT_SIGNER,
    SERVING_SIGNER,
    NodeMonitor,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.validate import Check
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import ClusterError, LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.resources import data_url
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import phases, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.build import build
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import Message

from .test_joining import CSRS, Clock, Rest, csr, kubeconfig

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
URL = "https://api-int.ostest.test:22623/config/worker"
SECRET = "/api/v1/namespaces/openshift-config/secrets/agent-auth-token"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def thing(api: str, kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def node(name: str, *, role: str = "worker", ready: bool = True, architecture: str = "amd64") -> dict[str, Any]:
    return {
        **thing("v1", "Node", name),
        "metadata": {"name": name, "labels": {f"node-role.kubernetes.io/{role}": ""}},
        "spec": {},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.168.111.20"}, {"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "nodeInfo": {"architecture": architecture},
        },
    }


def objects(state: str = "Completed") -> Iterator[tuple[str, dict[str, Any]]]:
    config, mco = "config.openshift.io", "machineconfiguration.openshift.io"
    history = [{"version": "4.22.0", "image": "quay.io/release@sha256:1", "state": state}]
    yield (
        f"clusterversions.{config}",
        thing(f"{config}/v1", "ClusterVersion", "version", spec={"clusterID": "c37c"}, status={"history": history}),
    )
    yield (
        f"proxies.{config}",
        thing(f"{config}/v1", "Proxy", "cluster", spec={}, status={"httpProxy": "http://proxy:3128"}),
    )
    yield (
        f"infrastructures.{config}",
        thing(
            f"{config}/v1", "Infrastructure", "cluster", spec={"platformSpec": {"type": "BareMetal"}},
            status={"platformStatus": {"type": "BareMetal"}},
        ),
    )  # fmt: skip
    yield (
        f"imagedigestmirrorsets.{config}",
        thing(
            f"{config}/v1", "ImageDigestMirrorSet", "lab",
            spec={"imageDigestMirrors": [{"source": "quay.io/release", "mirrors": ["mirror.test/release"]}]},
        ),
    )  # fmt: skip
    text = yaml.safe_dump({"metadata": {"name": "ostest"}, "baseDomain": "test"})
    yield "configmaps", thing("v1", "ConfigMap", "cluster-config-v1", "kube-system", data={"install-config": text})
    yield (
        "secrets",
        thing("v1", "Secret", "pull-secret", "openshift-config", data={".dockerconfigjson": b64('{"auths":{}}')}),
    )
    pointer = {
        "ignition": {
            "version": "3.2.0",
            "config": {"merge": [{"source": URL}]},
            "security": {"tls": {"certificateAuthorities": [{"source": data_url("CA")}]}},
        }
    }
    yield (
        "secrets",
        thing(
            "v1",
            "Secret",
            "worker-user-data-managed",
            "openshift-machine-api",
            data={"userData": b64(json.dumps(pointer))},
        ),
    )
    ssh = {"config": {"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 KEY"]}]}}}
    yield f"machineconfigs.{mco}", thing(f"{mco}/v1", "MachineConfig", "99-worker-ssh", spec=ssh)
    chrony = {"path": "/etc/chrony.conf", "contents": {"source": data_url("server ntp.test\n")}}
    yield (
        f"machineconfigs.{mco}",
        thing(
            f"{mco}/v1", "MachineConfig", "50-workers-chrony-configuration",
            spec={"config": {"storage": {"files": [chrony]}}},
        ),
    )  # fmt: skip
    yield "namespaces", thing("v1", "Namespace", "openshift-config", status={"phase": "Active"})
    yield "nodes", node("master-0", role="master")


@pytest.fixture
def filled(api: Any, tmp_path: Path) -> Callable[..., ClusterClient]:
    """A client of an installed cluster. It is called in the thread of the API's loop."""

    def fill(**changes: Any) -> ClusterClient:
        for resource, one in objects(**changes):
            api.store.create(resource, one)
        return ClusterClient(kubeconfig(tmp_path, str(api.http.make_url(""))))

    return fill


async def test_inspect(filled: Callable[..., ClusterClient]) -> None:
    kube = filled()
    assert await asyncio.to_thread(inspection.inspect, kube) == {
        "cluster_id": "c37c",
        "name": "ostest",
        "api": "api.ostest.test",
        "version": "4.22.0",
        "release_image": "quay.io/release@sha256:1",
        "pull_secret": '{"auths":{}}',
        "trust_bundle": "",
        "proxy": {"httpProxy": "http://proxy:3128", "httpsProxy": "", "noProxy": ""},
        "architecture": "amd64",
        "image_sources": [{"source": "quay.io/release", "mirrors": ["mirror.test/release"]}],
        "platform": "BareMetal",
        "ssh_key": "ssh-ed25519 KEY",
        "endpoint": {"ca_certificate": b64("CA"), "url": URL},
        "fips": False,
        "chrony": "server ntp.test\n",
    }
    assert await asyncio.to_thread(inspection.members, kube) == [
        {"name": "master-0", "addresses": ["192.168.111.20", "master-0"]}
    ]


async def test_a_cluster_that_is_not_installed_is_refused(filled: Callable[..., ClusterClient]) -> None:
    kube = filled(state="Partial")
    with pytest.raises(
        ClusterError, match="the cluster is not installed yet: its ClusterVersion has no completed release"
    ):
        await asyncio.to_thread(inspection.inspect, kube)


async def test_without_a_control_plane(api: Any, filled: Callable[..., ClusterClient]) -> None:
    kube = filled()
    await api.call("DELETE", "/api/v1/nodes/master-0")
    with pytest.raises(ClusterError, match="unable to determine target cluster architecture"):
        await asyncio.to_thread(inspection.inspect, kube)


async def test_tokens_are_kept_for_a_day(api: Any, filled: Callable[..., ClusterClient]) -> None:
    """They are valid for two days; a node image that is made on the second has others."""
    kube = filled()
    first = await asyncio.to_thread(node_image.stored_tokens, kube, NOW)
    assert first.new
    assert first.values["AuthTokenExpiry"] == "2030-01-04T03:04:05Z"
    await asyncio.to_thread(node_image._store, kube, first.values)
    later = await asyncio.to_thread(node_image.stored_tokens, kube, NOW + timedelta(hours=24))
    assert later == node_image.Tokens(first.values, False)
    assert await asyncio.to_thread(joining.watcher_token, kube) == first.values["WatcherAuthToken"]
    stale = await asyncio.to_thread(node_image.stored_tokens, kube, NOW + timedelta(hours=25))
    assert stale.new
    await asyncio.to_thread(node_image._store, kube, stale.values)
    again = await asyncio.to_thread(node_image.stored_tokens, kube, NOW + timedelta(hours=25))
    assert again == node_image.Tokens(stale.values, False)
    await api.call(
        "PATCH", SECRET, {"data": {"agentAuthToken": b64("no.jwt")}}, Content_Type="application/merge-patch+json"
    )
    assert (await asyncio.to_thread(node_image.stored_tokens, kube, NOW)).new


async def test_approves_the_requests_of_the_node_alone(api: Any, filled: Callable[..., ClusterClient]) -> None:
    """worker-1 is followed; worker-10 has its name in its own, and must wait for a user."""
    kube, reported = filled(), list[Message]()
    others = [
        (await api.call("POST", CSRS, csr(CLIENT_SIGNER, name), 201, "boot"))["metadata"]["name"]
        for name in ("worker-1", "worker-10")
    ]
    one = NodeMonitor(
        "192.168.111.20", ["worker-1"], Rest(), kube, reported.append, lambda __: True, Clock(), approve=kube.approve
    )
    assert not await asyncio.to_thread(one.step)
    decided = {
        each["metadata"]["name"]: bool((each.get("status") or {}).get("conditions"))
        for each in await asyncio.to_thread(kube.certificate_requests)
    }
    assert decided == {others[0]: True, others[1]: False}
    assert f"Node 192.168.111.20: CSR {others[0]} with signerName {CLIENT_SIGNER} approved" in [
        m.text for m in reported
    ]


@pytest.mark.parametrize(
    ("signer", "name", "user", "expected"),
    [
        (CLIENT_SIGNER, "worker-1", "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper", True),
        (CLIENT_SIGNER, "worker-1.ostest.test", "bootstrapper", True),
        (CLIENT_SIGNER, "worker-10", "bootstrapper", False),
        (CLIENT_SIGNER, "worker-1", "system:node:worker-2", False),
        (SERVING_SIGNER, "worker-1", "system:node:worker-1", True),
        (SERVING_SIGNER, "worker-1", "system:node:worker-2", False),
        (SERVING_SIGNER, "worker-1", "bootstrapper", False),
    ],
)
def test_approvable(signer: str, name: str, user: str, expected: bool) -> None:
    one = csr(signer, name)
    one["spec"]["username"] = user
    assert joining.approvable(one, signer, ["worker-1.ostest.test"]) is expected


async def test_waits_for_the_serving_certificate(api: Any, filled: Callable[..., ClusterClient]) -> None:
    """A node can be ready before its kubelet asks for it, and then no user would approve the request."""
    kube = filled()
    api.store.create("nodes", node("worker-1"))
    clock = Clock()
    one = NodeMonitor(
        "192.168.111.20", ["worker-1"], Rest(), kube, lambda __: None, lambda __: True, clock, kube.approve
    )
    assert not await asyncio.to_thread(one.step)
    body = csr(SERVING_SIGNER, "worker-1")
    body["spec"]["username"] = "system:node:worker-1"
    api.store.create(
        "certificatesigningrequests.certificates.k8s.io", {**body, "status": {}, "metadata": {"name": "csr-2"}}
    )
    assert not await asyncio.to_thread(one.step)
    assert await asyncio.to_thread(one.step)
    other = NodeMonitor(
        "192.168.111.20", ["master-0"], Rest(), kube, lambda __: None, lambda __: True, clock, kube.approve
    )
    assert not await asyncio.to_thread(other.step)
    clock.now += joining.SERVING_SECONDS
    assert await asyncio.to_thread(other.step)


def plan(raw: dict[str, Any] | None = None) -> Plan:
    given = raw or {
        "topology": "compact",
        "worker": {"count": 2},
        "nodes": {f"worker-{n}": {"day2": True} for n in (0, 1)},
    }
    return build(profile.complete(given), "ostest")


def test_chosen() -> None:
    assert [node["name"] for node in day2.chosen_nodes(plan())] == ["worker-0", "worker-1"]
    assert day2.follow(plan(), day2.chosen_nodes(plan(), ["worker-1"])) == [
        {"name": "worker-1", "address": "192.168.111.24"}
    ]
    with pytest.raises(LabError, match="master-0: not a day-2 node of cluster ostest; there are worker-0, worker-1"):
        day2.chosen_nodes(plan(), ["master-0"])
    with pytest.raises(LabError, match="cluster ostest has no node to add"):
        day2.chosen_nodes(plan({"topology": "compact"}))


async def test_joined(api: Any, filled: Callable[..., ClusterClient]) -> None:
    """What is wrong with the nodes in the end is one message."""
    kube = filled()
    wanted = day2.follow(plan(), day2.chosen_nodes(plan()))
    with pytest.raises(LabError, match="worker-0 is not part of the cluster; worker-1 is not part of the cluster"):
        await asyncio.to_thread(day2.joined_nodes, kube, wanted)
    api.store.create("nodes", node("worker-0", ready=False))
    api.store.create("nodes", node("worker-1", role="infra", architecture="arm64"))
    with pytest.raises(LabError) as error:
        await asyncio.to_thread(day2.joined_nodes, kube, wanted)
    assert str(error.value) == (
        "worker-0 is not Ready; worker-1 has the role infra: must be worker; worker-1 has the architecture arm64: must be amd64"
    )
    await api.call("DELETE", "/api/v1/nodes/worker-0")
    api.store.create("nodes", node("worker-0"))
    assert day2.table(await asyncio.to_thread(day2.joined_nodes, kube, wanted[:1])) == (
        f"worker-0  {wanted[0]['address']}  Ready  worker  amd64"
    )


def given(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "directory": str(folder / "add-nodes"), "kubeconfig": str(folder / "auth" / "kubeconfig"), "assets": str(folder), "pxe": False,
        "plan": plan(), "only": [], "architecture": "", "os_image": None, "release_profile": None, "cache": None, **more,
    }  # fmt: skip


def test_without_an_installed_cluster(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="Nodes join an installed cluster: install it first, `agentlab deploy`"):
        node_task.create(given(tmp_path), check=False)
    assert not (tmp_path / "add-nodes").exists()


async def test_nodes_that_have_joined_are_left_alone(
    api: Any, filled: Callable[..., ClusterClient], tmp_path: Path
) -> None:
    """Nothing is made for them, whatever has become of the tokens since."""
    filled()
    for name in ("worker-0", "worker-1"):
        api.store.create("nodes", node(name))
    found = await asyncio.to_thread(node_task.create, given(tmp_path), check=False)
    assert (found["changed"], found["missing"]) == (False, [])
    assert [one["name"] for one in found["nodes"]] == ["worker-0", "worker-1"]
    assert not (tmp_path / "add-nodes").exists()


async def test_check_mode_writes_nothing(api: Any, filled: Callable[..., ClusterClient], tmp_path: Path) -> None:
    filled()
    found = await asyncio.to_thread(node_task.create, given(tmp_path), check=True)
    assert found["changed_files"] == ["nodes-config.yaml", "node.x86_64.iso"]
    assert "worker-1" in found["diff"][0]["after"]
    assert not (tmp_path / "add-nodes").exists()
    await api.call("GET", SECRET, code=404)


async def test_a_refusal_leaves_no_tokens(api: Any, filled: Callable[..., ClusterClient], tmp_path: Path) -> None:
    """The architecture is refused before the cluster has new tokens."""
    filled()
    with pytest.raises(ValueError, match='CPU architecture "s390x" only supports platform "none"'):
        await asyncio.to_thread(node_task.create, given(tmp_path, architecture="s390x"), check=False)
    await api.call("GET", SECRET, code=404)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "--name", "worker-9"], "--name is for a single node: --mac-address is required"),
        (["create", "--mac-address", "x"], "--mac-address x: must be a MAC address such as"),
        (["create", "--mac-address", "52:54:00:aa:bb:01", "--root-device-hint", "sda"], "must be KEY:VALUE"),
        (
            ["create", "--mac-address", "52:54:00:aa:bb:01", "-c", "sparc"],
            "--cpu-architecture sparc: must be one of amd64",
        ),
        (["create", "--pxe", "--output-name", "x.iso"], "--output-name x.iso: must be the name of an ISO"),
        (["create", "--kubeconfig", "missing"], "missing: no such file"),
        (["create"], "failed to load nodes-config.yaml file"),
        (["monitor"], "--ip-addresses cannot be empty"),
        (["monitor", "--ip-addresses", "192.0.2.1,worker"], "worker is not valid IP address"),
    ],
)
async def test_verb_refuses(
    arguments: list[str], message: str, filled: Callable[..., ClusterClient], tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    filled()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "auth" / "kubeconfig"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert await asyncio.to_thread(cli.main, ["node-image", *arguments]) == 1
    assert message in capsys.readouterr().err


async def test_validate_misses_a_node_that_was_added(
    api: Any, filled: Callable[..., ClusterClient], tmp_path: Path
) -> None:
    """Before `add-nodes` the worker is not asked for; after it the check fails without the worker, and passes with it."""
    filled()

    async def found() -> list[Check]:
        here = phases.present(plan({"worker": {"count": 1}, "nodes": {"worker-0": {"day2": True}}}), tmp_path)
        checks = await asyncio.to_thread(
            lambda: list(validate._nodes(here, ClusterClient(tmp_path / "auth" / "kubeconfig")))
        )
        return [one for one in checks if one.name == "worker nodes"]

    assert await found() == []
    state.finish(tmp_path, phases.ADD_NODES, failed=False)
    assert await found() == [Check("worker nodes", False, "0 of 1 Ready: none; planned: worker-0")]
    api.store.create("nodes", node("worker-0", ready=False))
    assert not (await found())[0].ok
    await api.call("DELETE", "/api/v1/nodes/worker-0")
    api.store.create("nodes", node("worker-0"))
    assert await found() == [Check("worker nodes", True, "1 of 1 Ready: worker-0")]


async def test_settled(api: Any, filled: Callable[..., ClusterClient]) -> None:
    """Nodes that are Ready need not be followed, unless a request of theirs waits, or one that is to be approved is still to come."""
    kube, wanted = filled(), day2.follow(plan(), day2.chosen_nodes(plan(), ["worker-1"]))

    async def settled(*, served: bool = False) -> bool:
        return await asyncio.to_thread(lambda: day2.all_settled(kube, wanted, served=served))

    assert not await settled()
    api.store.create("nodes", node("worker-1"))
    assert await settled()
    assert not await settled(served=True)
    body = csr(SERVING_SIGNER, "worker-1")
    body["spec"]["username"] = "system:node:worker-1"
    api.store.create(
        "certificatesigningrequests.certificates.k8s.io", {**body, "status": {}, "metadata": {"name": "csr-2"}}
    )
    assert not await settled()
    await asyncio.to_thread(kube.approve, "csr-2")
    assert await settled(served=True)
