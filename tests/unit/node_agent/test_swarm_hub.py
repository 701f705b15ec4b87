"""The swarm's kube-api mode against a fake hub that serves the custom resources."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import hub, main
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings, SwarmError
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_hub import FakeHub
from ansible_collections.agentlab.ocp.tests.unit.node_agent.test_swarm import FAST
from ansible_collections.agentlab.ocp.tests.unit.node_agent.test_swarm_bmc import Running, image


@pytest.fixture
def fake(service: FakeAssisted, tmp_path: Path) -> Iterator[FakeHub]:
    made = FakeHub(service)
    made.start()
    (tmp_path / "kubeconfig").write_text(made.kubeconfig())
    yield made
    made.stop()


def run(tmp_path: Path, **more: Any) -> tuple[Swarm, dict[str, Any]]:
    swarm = Swarm(Settings(kubeconfig=tmp_path / "kubeconfig", **FAST, **more))

    async def whole() -> dict[str, Any]:
        return await asyncio.wait_for(swarm.run(), 60)

    return swarm, asyncio.run(whole())


def test_clusters_are_installed_and_removed(fake: FakeHub, service: FakeAssisted, tmp_path: Path) -> None:
    template = {
        "AgentClusterInstall": {"spec": {"sshPublicKey": "ssh-ed25519 key"}},
        "NMStateConfig": {"spec": {"config": {"interfaces": []}, "interfaces": []}},
        "InfraEnv": {"spec": {"nmStateConfigLabelSelector": {"matchLabels": {"agentlab.io/swarm": "true"}}}},
    }
    swarm, result = run(tmp_path, clusters=3, topology={"sno": 1, "tna": 1, "ha": 1}, template=template, keep=True)
    assert result["ends"] == {"installed": 3} and not result["errors"] and not service.errors and not fake.refused
    kinds = {plural for plural, __, __ in fake.objects}
    assert kinds == {
        "namespaces", "secrets", "clusterimagesets", "clusterdeployments", "agentclusterinstalls", "nmstateconfigs", "infraenvs", "agents",
    }  # fmt: skip
    installs = {
        name: found["spec"] for (plural, __, name), found in fake.objects.items() if plural == "agentclusterinstalls"
    }
    assert installs["swarm-1"]["provisionRequirements"] == {"controlPlaneAgents": 2, "arbiterAgents": 1}
    assert installs["swarm-2"]["provisionRequirements"] == {"controlPlaneAgents": 3, "workerAgents": 2}
    assert installs["swarm-2"]["apiVIPs"] and "apiVIPs" not in installs["swarm-0"]
    assert all(spec["sshPublicKey"] == "ssh-ed25519 key" for spec in installs.values())
    agents = [found for (plural, __, __), found in fake.objects.items() if plural == "agents"]
    assert len(agents) == 1 + 3 + 5 and all(agent["spec"]["approved"] for agent in agents)
    assert [agent["spec"]["role"] for agent in agents if "role" in agent["spec"]] == ["arbiter"]
    assert {headers.get("x-secret-key") for headers in service.headers} == {
        f"token-ie-swarm-{number}" for number in range(3)
    }
    assert ("POST", "/api/assisted-install/v2/clusters") not in service.requests
    assert swarm.settings.url == service.url and swarm.settings.agent_version == service.image
    run(tmp_path, clusters=1, name="another")
    assert {where for __, where, __ in fake.objects} == {
        "",
        "swarm-0",
        "swarm-1",
        "swarm-2",
    }  # what is ours is gone, the rest is not
    assert ("clusterimagesets", "", "another-1") not in fake.objects


def test_discovers_what_is_there(fake: FakeHub, service: FakeAssisted, tmp_path: Path) -> None:
    plan = Swarm(Settings("http://x"))
    for cluster in hub_clusters():
        for entry in hub.manifests(cluster, plan.settings, "4.22"):
            namespace = entry["metadata"].get("namespace", "")
            plural = hub.PLACES[entry["kind"]].rsplit("/", 1)[1]
            assert fake.create(plural, namespace, entry).status == 201
    __, result = run(tmp_path, discover=True)
    assert result["ends"] == {"installed": 2} and not result["errors"] and not fake.refused
    assert ("infraenvs", "swarm-1", "swarm-1") in fake.objects and len(service.hosts) == 1 + 5
    with pytest.raises(SwarmError, match="the hub has no InfraEnv with a cluster that is not installed"):
        run(tmp_path, discover=True)


def test_a_host_that_is_switched_on_appears(fake: FakeHub, service: FakeAssisted, tmp_path: Path, port: str) -> None:
    """With BMCs, a client of the hub inserts the image that the InfraEnv names; the agent is then approved and installed."""
    running = Running(Settings(kubeconfig=tmp_path / "kubeconfig", topology={"sno": 1}, bmc=port, keep=True, **FAST))
    [system] = running.systems(1).values()
    bmc = running.bmc(system)
    bmc.insert(image(running.swarm, system["Name"]))
    time.sleep(0.5)
    assert not service.hosts
    bmc.power_on()
    assert running.end()["ends"] == {"installed": 1} and not running.result["errors"] and not fake.refused
    assert set(service.hosts) == {system["UUID"]}
    [agent] = [found for (plural, __, __), found in fake.objects.items() if plural == "agents"]
    assert agent["spec"]["approved"]


def hub_clusters() -> list[Any]:
    from ansible_collections.agentlab.ocp.payload.node_agent.swarm.hardware import plan_clusters

    return plan_clusters(Settings("http://x", clusters=2, topology={"sno": 1, "ha": 1}))


def test_a_hub_that_refuses(fake: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(SwarmError, match="spec lacks releaseImage"):
        run(tmp_path, template={"ClusterImageSet": {"spec": None}})
    (tmp_path / "kubeconfig").write_text(fake.kubeconfig().replace("hub-token", "another"))
    with pytest.raises(SwarmError, match=r"POST .*clusterimagesets: \[401\] Unauthorized"):
        run(tmp_path)
    assert not fake.objects


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "KeyError: 'contexts'"),
        ("a: [", "line 2: did not find expected node content"),
        (json.dumps({"contexts": [], "current-context": "x"}), "current-context does not name an existing context"),
    ],
)
def test_kubeconfigs_that_are_wrong(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    assert main.main(["--kubeconfig", str(path)]) == 2
    assert f"--kubeconfig {path}: {message}" in capsys.readouterr().err


AUTHORITY = {
    "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://h", "certificate-authority": "/nowhere/ca.crt"}}],
    "users": [{"name": "u", "user": {}}],
}  # fmt: skip


@pytest.mark.parametrize("flag", ["--kubeconfig", "--template"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file or directory"),
        ("", "Is a directory"),
        ("a: [", "line 2: did not find expected node content"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_once(
    flag: str, text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.yaml"
    if text:
        path.write_text(text)
    elif text == "":
        path.mkdir()
    assert main.main([flag, str(path)]) == 2
    assert capsys.readouterr().err == f"agentlab swarm: {flag} {path}: {message}\n"


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({}, "certificate-authority /nowhere/ca.crt: No such file or directory"),
        (
            {"client-certificate": "/nowhere/tls.crt", "client-key": "/nowhere/tls.key"},
            "client-certificate /nowhere/tls.crt, client-key /nowhere/tls.key: No such file or directory",
        ),
    ],
)
def test_a_file_that_a_kubeconfig_names(
    user: dict[str, str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads(json.dumps(AUTHORITY))
    if user:
        del config["clusters"][0]["cluster"]["certificate-authority"]
        config["users"][0]["user"] = user
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    assert main.main(["--kubeconfig", str(path)]) == 2
    assert capsys.readouterr().err == f"agentlab swarm: --kubeconfig {path}: {message}\n"


def test_templates(tmp_path: Path) -> None:
    path = tmp_path / "template.yaml"
    path.write_text("kind: InfraEnv\napiVersion: x\nspec: {proxy: {httpProxy: http://p}}\n---\n")
    assert hub.load_template(path) == {"InfraEnv": {"spec": {"proxy": {"httpProxy": "http://p"}}}}
    path.write_text("kind: Toaster\n")
    with pytest.raises(SwarmError, match="kind 'Toaster' must be one of Namespace"):
        hub.load_template(path)
    assert hub.laid_over({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": [2]}) == {
        "a": {"b": 3, "c": 2},
        "d": [2],
    }


@pytest.mark.parametrize(
    "config",
    [None, {}, {"systemd": {"units": [{"name": "agent.service", "contents": "ExecStart=/bin/agent --url x"}]}}],
)
def test_discovery_ignition_without_an_agent(config: Any) -> None:
    with pytest.raises(SwarmError, match=r"InfraEnv ie: its discovery Ignition has no agent\.service"):
        hub.agent_unit(config, "ie")
