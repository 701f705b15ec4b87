"""Bonds, VLANs, MTUs and routes of a profile: what follows from them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.nmstate import generate
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.machines import in_network
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import switch

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
BOND = "bonds: {bond0: {mode: 802.3ad, nics: [eth0, eth1]}}\n"
ON = BOND + "network: {interface: bond0, vlan: 100}\n"


def planned(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "p.yml"
    path.write_text(text)
    return build.build(profile.load(path, None, "ostest"), "ostest")


def interfaces(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in plan["nodes"][0]["network_config"]["interfaces"]}


def test_a_vlan_on_a_bond(tmp_path: Path) -> None:
    plan = planned(tmp_path, ON + "addressing: static\n")
    node = plan["nodes"][0]
    assert [(nic["name"], nic["port"], nic["addresses"]) for nic in node["nics"]] == [
        ("eth0", "n0-eth0", []), ("eth1", "n0-eth1", [])
    ]  # fmt: skip
    assert in_network(node, "ostestbm")["name"] == "bond0.100"
    assert plan["rendezvous"]["ip"] == "192.168.111.80"
    found = interfaces(plan)
    assert found["bond0.100"]["vlan"] == {"base-iface": "bond0", "id": 100}
    assert found["bond0"]["link-aggregation"]["port"] == ["eth0", "eth1"]
    assert found["bond0"]["ipv4"] == {"enabled": False}
    assert {route["next-hop-interface"] for route in node["network_config"]["routes"]["config"]} == {"bond0.100"}
    assert stored.findings(plan) == []


@pytest.mark.parametrize("addressing", ["static", "dhcp"])
@pytest.mark.parametrize("stack", ["ipv4", "ipv6", "dualstack", "v6v4"])
@pytest.mark.parametrize("mode", ["active-backup", "balance-xor", "802.3ad"])
def test_networkmanager_gets_it(mode: str, stack: str, addressing: str, tmp_path: Path) -> None:
    plan = planned(tmp_path, ON.replace("802.3ad", mode) + f"stack: {stack}\naddressing: {addressing}\n")
    files = dict(generate(plan["nodes"][0]["network_config"]))
    assert "mode=" + mode in files["bond0.nmconnection"]
    assert "parent=bond0\n" in files["bond0.100.nmconnection"]
    assert "controller=bond0\n" in files["eth1.nmconnection"] or "master=bond0\n" in files["eth1.nmconnection"]
    assert f"cloned-mac-address={plan['nodes'][0]['nics'][0]['mac'].upper()}" in files["bond0.nmconnection"]


def test_a_lease_is_for_the_mac_of_the_bond(tmp_path: Path) -> None:
    plan = planned(tmp_path, ON + "stack: v6v4\n")
    six, four = plan["networks"][0]["reservations"]
    mac = plan["nodes"][0]["nics"][0]["mac"]
    assert (six["duid"], four["mac"]) == (f"00:03:00:01:{mac}", mac)


def test_addresses_begin_with_the_first_family(tmp_path: Path) -> None:
    plan = planned(tmp_path, "topology: compact\nstack: v6v4\n")
    for addresses in (
        plan["vips"]["api"], plan["installer"]["machine_network"], plan["installer"]["service_network"],
        [entry["cidr"] for entry in plan["installer"]["cluster_network"]], [plan["rendezvous"]["ip"], "192.168.111.20"],
    ):  # fmt: skip
        assert [":" in address for address in addresses] == [True, False]
    assert profile.scenario("SNO_IPV6V4") == {"topology": "sno", "stack": "v6v4", "addressing": "static"}


def test_other_networks_take_the_next_nics(tmp_path: Path) -> None:
    extra = (
        "extra_networks: [{name: a, ipv4: 10.9.0.0/24}, {name: b, ipv4: 10.9.1.0/24, interface: bond0, mtu: 1400}]\n"
    )
    plan = planned(tmp_path, BOND + "network: {interface: bond0, vlan: 7, mtu: 1400}\n" + extra)
    node = plan["nodes"][0]
    assert [in_network(node, name)["name"] for name in ("ostestbm", "a", "b")] == ["bond0.7", "eth2", "bond0"]
    assert [nic["name"] for nic in node["nics"]] == ["eth0", "eth1", "eth2"]
    assert "port" not in node["nics"][2]


MTUS = "network: {mtu: 9000}\nextra_networks: [{name: a, ipv4: 10.9.0.0/24, mtu: 1500}, {name: b, ipv4: 10.9.1.0/24}]\n"


def test_a_static_nic_has_the_mtu_of_its_network(tmp_path: Path) -> None:
    """Nothing else sets it: no lease has it."""
    plan = planned(tmp_path, "addressing: static\n" + MTUS)
    assert [one.get("mtu") for one in interfaces(plan).values()] == [9000, None, 9000]
    host = configs.agent_config(plan)["hosts"][0]
    files = dict(generate(host["networkConfig"]))
    assert ["mtu=9000\n" in files[f"eth{number}.nmconnection"] for number in range(3)] == [True, False, True]


def test_a_machine_outside_of_the_cluster_has_the_mtu_of_its_network(tmp_path: Path) -> None:
    plan = planned(tmp_path, MTUS + "machines: [{name: m, networks: [{name: a}, {name: b}]}]\n")
    found = plan["machines"][0]["network_config"]["interfaces"]
    assert [one.get("mtu") for one in found] == [None, 9000]


@pytest.mark.parametrize(("stack", "found"), [("dualstack", {None}), ("ipv6", {9000})])
def test_an_ipv4_lease_has_the_mtu(stack: str, found: set[int | None], tmp_path: Path) -> None:
    """DHCPv6 has no such option, and a router advertisement cannot raise the MTU of a NIC."""
    plan = planned(tmp_path, f"stack: {stack}\nnetwork: {{mtu: 9000}}\n")
    assert {one.get("mtu") for one in interfaces(plan).values()} == found


def test_a_route_has_the_gateway_or_a_next_hop(tmp_path: Path) -> None:
    routes = "network: {routes: [{destination: 10.9.0.0/16}, {destination: 10.10.0.0/16, next_hop: 192.168.111.7}]}\n"
    plan = planned(tmp_path, routes)
    assert [route["next_hop"] for route in plan["networks"][0]["routes"]] == ["192.168.111.1", "192.168.111.7"]
    assert plan["nodes"][0]["network_config"]["routes"]["config"][1] == {
        "destination": "10.10.0.0/16", "next-hop-address": "192.168.111.7", "next-hop-interface": "eth0", "table-id": 254
    }  # fmt: skip
    assert not switch.needs_switch(plan)


def test_no_lab_without_bonds_and_vlans_has_a_switch() -> None:
    for path in PROFILES.glob("*.yml"):
        plan = build.build(profile.load(path, None), "ostest")
        assert switch.needs_switch(plan) == (path.stem == "sno_bond_vlan")
        assert bool(switch.commands(switch.of_plan(plan))) == switch.needs_switch(plan)


def test_each_mode_has_its_ports(tmp_path: Path) -> None:
    extra = "extra_networks: [{name: a, ipv4: 10.9.0.0/24, interface: bond1}, {name: b, ipv4: 10.9.1.0/24, interface: bond2}]\n"
    more = ON.replace(
        "bonds: {",
        "bonds: {bond1: {mode: balance-xor, nics: [eth2, eth3]}, bond2: {mode: active-backup, nics: [eth4, eth5]}, ",
    )
    made = switch.of_plan(planned(tmp_path, more + extra))
    lines = [" ".join(command) for command in switch.commands(made)]
    lacp = "lacp=active bond_mode=balance-tcp other_config:lacp-time=fast"
    assert f"add-bond sw-bond0 n0-bond0 n0-eth0 n0-eth1 {lacp} trunks=100" in lines
    assert "add-port sw-bond0 sw-bond0.100 tag=100" in lines
    assert "add-port sw-bond1 n0-bond1-o trunks=0" in lines
    assert "add-port sw-bond2 n0-eth5 trunks=0" in lines
    assert list(switch.flows(made)) == ["n0-bond1-l"]
