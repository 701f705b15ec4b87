"""A topology is a row of data: nothing else needs to know it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import settings as swarm
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    build,
    configs,
    drawing,
    profile,
    reference,
    schema,
    secrets,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import TOPOLOGIES, Group, Size, Topology

TWIN = Topology(
    "two nodes that fence each other, and a worker",
    "TWIN",
    Group(2, Size(8, 32768, 100), Size(3, 5120, 30), least=2, most=2),
    worker=Group(1, Size(4, 16384, 100), Size(1, 2048, 25), most=3),
    fencing=True,
)
SEVEN = Topology(
    "seven control-plane nodes",
    "7CONTROL",
    Group(7, Size(4, 24576, 100), Size(1, 3072, 20), least=7, most=7),
    aliases=("7_masters",),
)


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOPOLOGIES, "twin", TWIN)
    monkeypatch.setitem(TOPOLOGIES, "7control", SEVEN)


def load(tmp_path: Path, text: str) -> dict[str, object]:
    path = tmp_path / "p.yml"
    path.write_text(text)
    return profile.load(path)


def test_counts_sizes_and_fencing(tmp_path: Path) -> None:
    plan = build.build(load(tmp_path, "topology: twin\n"), "ostest")
    assert [(node["name"], node["vcpus"], node["memory_mib"], node["disks"][0]["size_gib"]) for node in plan["nodes"]] == [
        ("master-0", 3, 5120, 30), ("master-1", 3, 5120, 30), ("worker-0", 1, 2048, 25),
    ]  # fmt: skip
    assert "fencing through the BMCs" in drawing.svg(plan)
    plan = secrets.with_passwords(plan, {"bmc": "password", "registry": "x", "registry_http": "x", "nodes": {}})
    config = configs.install_config(plan, pull_secret={}, ssh_key="", trust_bundle="")
    assert [entry["hostname"] for entry in config["controlPlane"]["fencing"]["credentials"]] == ["master-0", "master-1"]
    plan["installer"]["fencing_by"] = "macAddress"
    config = configs.install_config(plan, pull_secret={}, ssh_key="", trust_bundle="")
    credentials = config["controlPlane"]["fencing"]["credentials"]
    assert [entry["macAddress"] for entry in credentials] == [node["nics"][0]["mac"] for node in plan["nodes"][:2]]
    assert not any("hostname" in entry for entry in credentials)


def test_limits(tmp_path: Path) -> None:
    assert load(tmp_path, "topology: 7control\n")["master"]["count"] == 7
    with pytest.raises(ProfileError) as caught:
        load(tmp_path, "topology: twin\nworker: {count: 4}\nmaster: {count: 3}\n")
    assert [(problem.field, problem.remedy) for problem in caught.value.problems] == [
        ("worker.count", "must be from 0 to 3 with topology twin"),
        ("master.count", "must be 2 with topology twin"),
    ]


def test_scenario_schema_and_page() -> None:
    assert profile.scenario("TWIN_IPV4V6_DHCP") == {"topology": "twin", "stack": "dualstack", "addressing": "dhcp"}
    assert "twin" in schema.profile()["properties"]["topology"]["enum"]
    assert "| `twin` | two nodes that fence each other, and a worker | 2 | 0 | 1 |" in reference.page()


def test_swarm() -> None:
    assert swarm.alias("7_masters:9") == "7control:9"
    settings = swarm.Settings(url="http://127.0.0.1:1", topology={"7_masters": 1.0})
    assert (swarm.topology("7control").masters, swarm.topologies(settings)) == (7, ["7control"])
    with pytest.raises(swarm.SwarmError, match="--topology twin: must be one of sno"):
        swarm.Settings(url="http://127.0.0.1:1", topology={"twin": 1.0})
