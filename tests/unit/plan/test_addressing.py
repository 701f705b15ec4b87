"""DHCP and static addresses in one cluster."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, checks, configs, profile, stored

MIXED = {
    "topology": "ha",
    "addressing": "static",
    "worker": {"addressing": "dhcp"},
    "nodes": {"worker-1": {"addressing": "static"}},
}


def planned(raw: dict[str, Any]) -> Any:
    complete = profile.complete(raw)
    assert not checks.check(complete, "ostest")
    return build.build(complete, "ostest")


@pytest.mark.parametrize("stack", ["ipv4", "v6v4"])
def test_each_node_has_its_own_way(stack: str) -> None:
    plan = planned({**MIXED, "stack": stack})
    nodes = {node["name"]: node for node in plan["nodes"]}
    assert [node.get("addressing") for node in plan["nodes"]] == [None, None, None, "dhcp", None]
    last = [int(node["nics"][0]["addresses"][-1]["ip"].rpartition(".")[2]) for node in plan["nodes"]]
    assert last == [80, 81, 82, 23, 84]
    assert all(subnet["dhcp"] for subnet in plan["networks"][0]["subnets"])
    assert {one["name"] for one in plan["networks"][0]["reservations"]} == {"worker-0"}
    assert stored.findings(plan) == []
    hosts = {host["hostname"]: host for host in configs.agent_config(plan)["hosts"]}
    assert hosts["worker-1"]["networkConfig"]["interfaces"][0]["ipv4"]["dhcp"] is False
    assert ("networkConfig" in hosts["worker-0"]) == (stack == "v6v4")
    if stack == "v6v4":
        assert nodes["worker-0"]["network_config"]["interfaces"][0]["ipv6"]["dhcp-duid"] == "ll"


def test_a_static_address_is_not_in_the_range_of_leases() -> None:
    found = checks.check(profile.complete({**MIXED, "network": {"offsets": {"static_nodes": 40}}}), "ostest")
    assert [(".".join(path), value) for path, value, __ in found] == [("network.offsets.static_nodes", 40)]
