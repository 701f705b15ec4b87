"""Bonds, VLANs, MTUs and routes of a profile: what follows from them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.nmstate import generate
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.machines import in_network
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
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


def test_a_route_has_the_gateway_or_a_next_hop(tmp_path: Path) -> None:
    routes = "network: {routes: [{destination: 10.9.0.0/16}, {destination: 10.10.0.0/16, next_hop: 192.168.111.7}]}\n"
    plan = planned(tmp_path, routes)
    assert [route["next_hop"] for route in plan["networks"][0]["routes"]] == ["192.168.111.1", "192.168.111.7"]
    assert plan["nodes"][0]["network_config"]["routes"]["config"][1] == {
        "destination": "10.10.0.0/16", "next-hop-address": "192.168.111.7", "next-hop-interface": "eth0", "table-id": 254
    }  # fmt: skip
    assert not switch.wanted(plan)


def test_no_lab_without_bonds_and_vlans_has_a_switch() -> None:
    for path in PROFILES.glob("*.yml"):
        plan = build.build(profile.load(path, None), "ostest")
        assert switch.wanted(plan) == (path.stem == "sno_bond_vlan")
        assert bool(switch.commands(switch.of_plan(plan))) == switch.wanted(plan)


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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("bonds: {bond0: {mode: lacp, nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\n",
         "p.yml:1:17: bonds.bond0.mode is 'lacp': must be one of active-backup, balance-xor, 802.3ad"),
        ("bonds: {bond0: {mode: balance-rr, nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\n",
         "p.yml:1:17: bonds.bond0.mode is 'balance-rr': did you mean balance-xor? must be one of"),
        ("bonds: {team0: {mode: 802.3ad, nics: [eth0, eth1]}}\n",
         "p.yml:1:9: bonds.team0: must be the name of a bond: bond0, bond1, ..."),
        ("bonds: {bond0: {nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\n", "bonds.bond0.mode: is missing: must be one of active-backup"),
        (BOND, "p.yml:1:9: bonds.bond0: no network is on it; set `network.interface: bond0`"),
        ("bonds: {bond0: {mode: 802.3ad, nics: [eth0]}}\nnetwork: {interface: bond0}\n",
         "p.yml:1:32: bonds.bond0.nics is ['eth0']: must be at least two NICs, such as [eth0, eth1]"),
        ("bonds: {bond0: {mode: 802.3ad, nics: [eth0, eth0]}}\nnetwork: {interface: bond0}\n",
         "bonds.bond0.nics.1 is 'eth0': is already in bond0; a NIC is in one bond, once"),
        ("bonds: {bond0: {mode: 802.3ad, nics: [eth0, eth5]}}\nnetwork: {interface: bond0}\n",
         "p.yml:1:45: bonds.bond0.nics.1 is 'eth5': there is no such NIC: NICs are numbered without a gap, and no network or bond has eth1"),
        (BOND + "network: {interface: eth1}\n",
         "p.yml:2:11: network.interface is 'eth1': is a NIC of bond0: must be bond0, or another NIC"),
        ("network: {interface: bond0}\n",
         "p.yml:1:11: network.interface is 'bond0': there is no such bond; there is none; define it in `bonds`"),
        ("network: {interface: eth3}\n", "network.interface is 'eth3': there is no such NIC: NICs are numbered without a gap"),
        ("network: {vlan: 4095}\n", "p.yml:1:11: network.vlan is 4095: must be from 1 to 4094"),
        ("network: {vlan: 0}\n", "p.yml:1:11: network.vlan is 0: must be from 1 to 4094"),
        (ON + "extra_networks: [{name: a, ipv4: 10.9.0.0/24, interface: bond0, vlan: 100}]\n",
         "p.yml:3:65: extra_networks.0.vlan is 100: is already the VLAN id of network on bond0; each on one parent must be unique"),
        ("extra_networks: [{name: a, ipv4: 10.9.0.0/24, interface: eth0}]\nnetwork: {interface: eth0}\n",
         "extra_networks.0.interface is 'eth0': already carries network untagged; set `vlan`"),
        ("network: {interface: eth0}\nextra_networks: [{name: a, ipv4: 10.9.0.0/24, interface: eth0, vlan: 5, mtu: 9000}]\n",
         "p.yml:2:73: extra_networks.0.mtu is 9000: must be at most 1500, the MTU of eth0, on which eth0.5 is"),
        ("network: {mtu: 900}\n", "network.mtu is 900: must be from 1280 to 9216"),
        ("network: {routes: [{destination: 0.0.0.0/0}]}\n", "network.routes.0.destination is '0.0.0.0/0': is a second default gateway"),
        ("extra_networks: [{name: a, ipv4: 10.9.0.0/24, routes: [{destination: 0.0.0.0/0, next_hop: 10.9.0.7}]}]\n",
         "p.yml:1:57: extra_networks.0.routes.0.destination is '0.0.0.0/0': is a second default gateway: the machine network's gateway is the default one"),
        ("network: {routes: [{destination: 10.9.0.0/16, next_hop: 10.0.0.1}]}\n",
         "p.yml:1:47: network.routes.0.next_hop is '10.0.0.1': is outside of its network, 192.168.111.0/24"),
        ("network: {routes: [{destination: 10.9.0.0/16, next_hop: 'fd00::1'}]}\n",
         "network.routes.0.next_hop is 'fd00::1': must be an IPv4 address, as the destination 10.9.0.0/16"),
        ("network: {routes: [{destination: 'fd09::/64'}]}\n",
         "network.routes.0.destination is 'fd09::/64': is IPv6, and this network has no IPv6 addresses"),
        ("network: {routes: [{destination: 10.9.0.5/16}]}\n", "must be a network in CIDR form without host bits"),
        ("network: {routes: [{}]}\n", "network.routes.0.destination: is missing"),
        ("network: {routes: [{destination: 192.168.111.0/24}]}\n", "is network, in which the nodes are themselves"),
        ("network: {routes: [{destination: 10.9.0.0/16}, {destination: 10.9.0.0/16, next_hop: 192.168.111.9}]}\n",
         "network.routes.1.destination is '10.9.0.0/16': is already a destination of network.routes.0; remove one"),
        (ON + "hypervisor: {kind: local}\n", "bonds: bonds require `hypervisor: {kind: sandbox}`, whose switch knows them, not local"),
        ("network: {vlan: 5}\nhypervisor: {kind: local}\n",
         "p.yml:1:11: network.vlan is 5: VLANs require `hypervisor: {kind: sandbox}`"),
        (ON + "boot: {mode: pxe}\n", "boot.mode is 'pxe': loads files before the network is configured, and bonds are below"),
        ("topology: compact\nnetwork: {vlan: 5}\nfaults: [{kind: arp_one_way, node: master-1, peer: master-0}]\n",
         "faults.0.kind is 'arp_one_way': requires NICs without VLANs"),
        (ON + "nodes: {master-0: {nics: {eth0: {addresses: [192.168.111.90]}}}}\n",
         "nodes.master-0.nics.eth0.addresses is ['192.168.111.90']: are those of a bond or a VLAN on it; there are bond0.100"),
        (ON + "nodes: {master-0: {nics: {bond0.100: {mac: '00:00:00:00:00:01'}}}}\n",
         "nodes.master-0.nics.bond0.100.mac is '00:00:00:00:00:01': follows from its NIC"),
        (ON + "nodes: {master-0: {nics: {bond0.7: {}}}}\n",
         "nodes.master-0.nics.bond0.7: there is no such interface; there are eth0, eth1, bond0.100"),
        ("stack: v4v6\n", "stack is 'v4v6': must be one of ipv4, ipv6, dualstack, v6v4"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(text: str, wanted: str, tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        planned(tmp_path, text)
    found = [str(problem).replace(str(tmp_path / "p.yml"), "p.yml") for problem in caught.value.problems]
    assert len(found) == 1, found
    assert wanted in found[0]
