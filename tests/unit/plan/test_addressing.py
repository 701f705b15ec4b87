"""DHCP, SLAAC and static addresses in one cluster."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import network as network_xml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, checks, configs, names, profile, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.state.owner import Owner

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


# RFC 4291, appendix A: the universal bit is inverted, and ff:fe is in the middle.
@pytest.mark.parametrize(
    ("cidr", "mac", "address"),
    [
        ("2001:db8::/64", "34:56:78:9a:bc:de", "2001:db8::3656:78ff:fe9a:bcde"),
        ("fd2e:6f44:5dd8:c956::/64", "00:00:52:05:fa:09", "fd2e:6f44:5dd8:c956:200:52ff:fe05:fa09"),
    ],
)
def test_an_address_follows_from_the_mac(cidr: str, mac: str, address: str) -> None:
    assert names.slaac(cidr, mac) == address


@pytest.mark.parametrize("stack", ["ipv6", "v6v4", "dualstack"])
def test_slaac(stack: str) -> None:
    plan = planned(
        {"topology": "compact", "stack": stack, "addressing": "slaac", "nodes": {"master-1": {"addressing": "static"}}}
    )
    network = plan["networks"][0]
    dhcp = {subnet["family"]: subnet["dhcp"] is not None for subnet in network["subnets"]}
    assert dhcp.pop("ipv6") is False and all(dhcp.values())
    assert [(one["name"], one["duid"]) for one in network["reservations"]] == [
        ("master-0", None),
        ("master-2", None),
    ] * len(dhcp)
    for node in plan["nodes"]:
        addresses = {one["family"]: one for one in node["nics"][0]["addresses"]}
        six = names.slaac("fd2e:6f44:5dd8:c956::/64", node["nics"][0]["mac"])
        assert addresses["ipv6"] == {
            "family": "ipv6",
            "ip": "fd2e:6f44:5dd8:c956::51" if node["name"] == "master-1" else six,
            "prefix": 64,
        }
        assert (node["network_config"] is None) == (node["name"] != "master-1")
    assert [node.get("addressing") for node in plan["nodes"]] == [None, "static", None]
    assert plan["rendezvous"]["ip"] == plan["nodes"][0]["nics"][0]["addresses"][0]["ip"]
    assert stored.findings(plan) == []
    tree = network_xml.render(network, Owner("ostest", "/runs/ostest", 0, "root", "lab", "", "mark"), private=True)
    (served,) = (ip for ip in tree.findall("ip") if ip.get("family") == "ipv6")
    # libvirt's dnsmasq then advertises the prefix for SLAAC alone (ra-only).
    assert served.get("prefix") == "64" and served.find("dhcp") is None
