"""Extra networks of single roles: what follows for NICs, nmstate, leases and the switch, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import switch

HA = "topology: ha\n"
TWO = (
    "extra_networks:\n"
    "  - {name: storage0, ipv4: 192.168.221.0/24, roles: [master]}\n"
    "  - {name: edge1, ipv4: 192.168.222.0/24, roles: [worker]}\n"
    "  - {name: backup0, ipv4: 192.168.223.0/24}\n"
)
# Workers alone have a bond; masters have the next NIC in its place.
BOND = (
    "bonds: {bond0: {mode: 802.3ad, nics: [eth1, eth2]}}\n"
    "extra_networks:\n"
    "  - {name: storage0, ipv4: 192.168.221.0/24, interface: bond0, vlan: 200, roles: [worker]}\n"
    "  - {name: backup0, ipv4: 192.168.223.0/24}\n"
)


def planned(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "p.yml"
    path.write_text(text)
    return build.build(profile.load(path, None, "ostest"), "ostest")


def refused(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ProfileError) as raised:
        planned(tmp_path, text)
    return [str(problem).partition(": ")[2] for problem in raised.value.problems]


def cards(plan: Any, number: int) -> dict[str, str]:
    return {nic["name"]: nic["network"] for nic in plan["nodes"][number]["nics"]}


@pytest.mark.parametrize("addressing", ["static", "dhcp"])
def test_each_role_counts_its_own_nics(addressing: str, tmp_path: Path) -> None:
    plan = planned(tmp_path, HA + TWO + f"addressing: {addressing}\n")
    assert cards(plan, 0) == {"eth0": "ostestbm", "eth1": "storage0", "eth2": "backup0"}
    assert cards(plan, 3) == {"eth0": "ostestbm", "eth1": "edge1", "eth2": "backup0"}
    assert [network["name"] for network in plan["networks"]] == ["ostestbm", "storage0", "edge1", "backup0"]
    leases = {network["name"]: [one["name"] for one in network["reservations"]] for network in plan["networks"]}
    masters, workers = ["master-0", "master-1", "master-2"], ["worker-0", "worker-1"]
    some = addressing == "dhcp"
    assert leases == {
        "ostestbm": [*masters, *workers] if some else [], "storage0": masters if some else [],
        "edge1": workers if some else [], "backup0": [*masters, *workers] if some else [],
    }  # fmt: skip
    assert stored.findings(plan) == [] and not switch.needs_switch(plan)


def test_a_network_of_one_role_is_in_the_nmstate_of_its_nodes_alone(tmp_path: Path) -> None:
    text = (
        HA
        + TWO.replace("roles: [master]", "roles: [master], routes: [{destination: 10.9.0.0/16}]")
        + "addressing: static\n"
    )
    hosts = configs.agent_config(planned(tmp_path, text))["hosts"]
    found = {
        host["hostname"]: (
            {one["name"]: one["ipv4"]["address"][0]["ip"] for one in host["networkConfig"]["interfaces"]},
            [route["next-hop-address"] for route in host["networkConfig"]["routes"]["config"]],
        )
        for host in (hosts[2], hosts[4])
    }
    assert found == {
        "master-2": (
            {"eth0": "192.168.111.82", "eth1": "192.168.221.82", "eth2": "192.168.223.82"},
            ["192.168.111.1", "192.168.221.1"],
        ),
        "worker-1": (
            {"eth0": "192.168.111.84", "eth1": "192.168.222.84", "eth2": "192.168.223.84"},
            ["192.168.111.1"],
        ),
    }
    assert [one["name"] for one in hosts[4]["interfaces"]] == ["eth0", "eth1", "eth2"]


def test_a_bond_is_of_the_roles_that_have_a_network_on_it(tmp_path: Path) -> None:
    plan = planned(tmp_path, HA + BOND + "nodes: {worker-1: {nics: {bond0.200: {addresses: [192.168.221.9]}}}}\n")
    assert cards(plan, 0) == {"eth0": "ostestbm", "eth1": "backup0"} and "links" not in plan["nodes"][0]
    worker = plan["nodes"][4]
    assert cards(plan, 4) == {"eth0": "ostestbm", "eth1": "storage0", "eth2": "storage0", "eth3": "backup0"}
    assert [(link["name"], [one["ip"] for one in link["addresses"]]) for link in worker["links"]] == [
        ("bond0", []), ("bond0.200", ["192.168.221.9"])
    ]  # fmt: skip
    made = switch.of_plan(plan)
    assert [(one.name, one.taps, one.mode, one.vlans) for one in made.members] == [
        ("n3-bond0", ("n3-eth1", "n3-eth2"), "802.3ad", (200,)),
        ("n4-bond0", ("n4-eth1", "n4-eth2"), "802.3ad", (200,)),
    ]
    assert [(one.port, one.bridge) for one in made.uplinks] == [("sw-bond0.200", "storage0")]


def test_a_node_of_day_2_has_the_networks_of_its_role(tmp_path: Path) -> None:
    plan = planned(
        tmp_path, "topology: compact\nworker: {count: 1}\nnodes: {worker-0: {day2: true}}\naddressing: static\n" + TWO
    )
    [host] = configs.nodes_config(plan)["hosts"]
    found = {one["name"]: one["ipv4"]["address"][0]["ip"] for one in host["networkConfig"]["interfaces"]}
    assert found == {"eth0": "192.168.111.83", "eth1": "192.168.222.83", "eth2": "192.168.223.83"}


def test_a_machine_of_the_fault_extra_host_is_in_the_networks_of_a_master(tmp_path: Path) -> None:
    plan = planned(tmp_path, HA + TWO + "faults: [{kind: extra_host}]\n")
    assert plan["nodes"][5]["role"] == "extra" and cards(plan, 5) == cards(plan, 0)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("topology: compact\nextra_networks: [{name: a, ipv4: 10.9.0.0/24, roles: [worker]}]\n",
         ["extra_networks.0.roles.0 is 'worker': no node has this role; there is master"]),
        (HA + "extra_networks: [{name: a, ipv4: 10.9.0.0/24, roles: [arbiter, worker]}]\n",
         ["extra_networks.0.roles.0 is 'arbiter': no node has this role; there is master, worker"]),
        (HA + "extra_networks: [{name: a, ipv4: 10.9.0.0/24, roles: [worker, worker]}]\n",
         ["extra_networks.0.roles.1 is 'worker': is a duplicate; remove one"]),
        (HA + "extra_networks: [{name: a, ipv4: 10.9.0.0/24, roles: []}]\n",
         ["extra_networks.0.roles is []: must name a role; leave it out for all of master, worker"]),
        (HA + "extra_networks: [{name: a, ipv4: 10.9.0.0/24, roles: [control]}]\n",
         ["extra_networks.0.roles.0 is 'control': must be one of master, arbiter, worker"]),
        # eth1 is a NIC of the masters alone, so the workers' bond begins at a gap.
        (HA + "bonds: {bond0: {mode: 802.3ad, nics: [eth2, eth3]}}\nextra_networks:\n"
         "  - {name: a, ipv4: 10.9.0.0/24, interface: bond0, roles: [worker]}\n"
         "  - {name: b, ipv4: 10.9.1.0/24, interface: eth1, roles: [master]}\n",
         ["bonds.bond0.nics.0 is 'eth2': there is no such NIC: NICs are numbered without a gap, and no network or bond "
          "has eth1 (role worker)",
          "bonds.bond0.nics.1 is 'eth3': there is no such NIC: NICs are numbered without a gap, and no network or bond "
          "has eth1 (role worker)"]),
        (HA + "bonds: {bond0: {mode: 802.3ad, nics: [eth1, eth2]}}\nextra_networks:\n"
         "  - {name: a, ipv4: 10.9.0.0/24, interface: bond0, roles: [worker]}\n"
         "  - {name: b, ipv4: 10.9.1.0/24, interface: eth1}\n",
         ["extra_networks.1.interface is 'eth1': is a NIC of bond0: must be bond0, or another NIC (role worker)"]),
        (HA + "extra_networks:\n"
         "  - {name: a, ipv4: 10.9.0.0/24, interface: eth1, vlan: 5, roles: [worker]}\n"
         "  - {name: b, ipv4: 10.9.1.0/24, interface: eth1, vlan: 5, roles: [master]}\n",
         ["extra_networks.0.vlan is 5: VLAN 5 of eth1 is extra_networks.1 for role master: the switch has one network "
          "there; choose another"]),
        (HA + TWO + "nodes: {worker-0: {nics: {eth1: {addresses: [192.168.221.9]}}}}\n",
         ["nodes.worker-0.nics.eth1.addresses.0 is '192.168.221.9': is outside of its network, 192.168.222.0/24"]),
        (HA + BOND + "nodes: {master-0: {nics: {eth2: {}}}}\n",
         ["nodes.master-0.nics.eth2: there is no such interface; there are eth0, eth1"]),
        (HA + "boot: {mode: iscsi}\nmaster: {firmware: bios}\nworker: {firmware: bios}\n"
         "extra_networks: [{name: a, ipv4: 10.9.0.0/24, roles: [worker]}]\n",
         ["extra_networks.0.roles is ['worker']: must be left out: iPXE has one script for machines of all roles"]),
    ],
)  # fmt: skip
def test_contradictions(text: str, messages: list[str], tmp_path: Path) -> None:
    assert refused(tmp_path, text) == messages


def test_the_same_vlan_id_on_other_parents_is_another_port(tmp_path: Path) -> None:
    text = (
        "network: {interface: eth0}\n"
        "extra_networks:\n"
        "  - {name: a, ipv4: 10.9.0.0/24, interface: eth1, vlan: 5, roles: [worker]}\n"
        "  - {name: b, ipv4: 10.9.1.0/24, interface: eth0, vlan: 5, roles: [master]}\n"
    )
    made = switch.of_plan(planned(tmp_path, HA + text))
    assert {one.port: one.bridge for one in made.uplinks} == {
        "sw-eth0.5": "b", "sw-eth0.0": "ostestbm", "sw-eth1.5": "a"
    }  # fmt: skip
