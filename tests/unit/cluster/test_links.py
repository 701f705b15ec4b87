"""What `validate` compares with the networks of the nodes; each check has a node on which it fails."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import links
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import validate as module
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
PLAN = build.build(profile.load("sno_bond_vlan", PROFILES), "one")
MACS = [nic["mac"] for nic in PLAN["nodes"][0]["nics"]]
PARTNER = {"aggregator": 1, "num_ports": 2, "partner_mac": "aa:bb:cc:dd:ee:ff"}


def port(name: str, mac: str, aggregator: int = 1) -> dict[str, Any]:
    state = {"state": "ACTIVE", "mii_status": "UP", "perm_hwaddr": mac, "ad_aggregator_id": aggregator}
    return {"ifname": name, "address": MACS[0], "mtu": 9000, "master": "bond0",
            "linkinfo": {"info_slave_kind": "bond", "info_slave_data": state}}  # fmt: skip


def vlan(name: str, number: int, mtu: int) -> dict[str, Any]:
    info = {"info_kind": "vlan", "info_data": {"protocol": "802.1Q", "id": number}}
    return {"ifname": name, "address": MACS[0], "mtu": mtu, "link": "bond0", "linkinfo": info}


def held(*addresses: str) -> dict[str, Any]:
    scopes = ((ip, "link" if ip.startswith("fe80") else "global") for ip in addresses)
    return {"addr_info": [{"local": ip, "scope": scope} for ip, scope in scopes]}


def node() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Links and routes of a node as planned, with the kernel's names of its NICs."""
    bond = {"info_kind": "bond", "info_data": {"mode": "802.3ad", "ad_info": dict(PARTNER)}}
    return (
        [
            {"ifname": "lo", "address": "00:00:00:00:00:00", "mtu": 65536},
            port("enp1s0", MACS[0]),
            port("enp2s0", MACS[1]),
            {"ifname": "enp3s0", "address": MACS[2], "mtu": 1500} | held("fe80::1", "192.168.222.80"),
            {"ifname": "bond0", "address": MACS[0], "mtu": 9000, "linkinfo": bond},
            vlan("bond0.100", 100, 9000),
            vlan("bond0.200", 200, 1500) | held("192.168.221.80"),
        ],
        [
            {"dst": "default", "gateway": "192.168.111.1", "dev": "bond0.100"},
            {"dst": "10.99.0.0/16", "gateway": "192.168.111.9", "dev": "bond0.100"},
            {"dst": "192.168.111.0/24", "dev": "bond0.100"},
            {"dst": "default", "gateway": "fd2e:6f44:5dd8:c956::1", "dev": "bond0.100"},
            {"dst": "fd99::/64", "gateway": "fd2e:6f44:5dd8:c956::1", "dev": "bond0.100"},
        ],
    )


def failed(change: Callable[[list[Any], list[Any]], object] = lambda links, routes: None) -> dict[str, str]:
    there, routes = copy.deepcopy(node())
    change(there, routes)
    text = "\n".join(["", json.dumps(there), "", json.dumps(routes), "[]"])
    checks = list(module._links(PLAN, lambda address, command: text))
    assert len(checks) == (9 if len(there) == 7 else 8), "the address of a VLAN that is missing has no check of its own"
    return {check.name: check.found for check in checks if not check.ok}


def test_a_node_as_planned() -> None:
    assert failed() == {}


@pytest.mark.parametrize(
    ("change", "name", "found"),
    [
        (lambda links, __: links[4]["linkinfo"]["info_data"].update(mode="active-backup", ad_info={}), "bond0",
         "active-backup of eth0 and eth1, MTU 9000"),
        (lambda links, __: links[2].pop("master"), "bond0", "802.3ad of eth0, LACP partner, MTU 9000"),
        (lambda links, __: links[2]["linkinfo"]["info_slave_data"].update(mii_status="DOWN"), "bond0",
         "802.3ad of eth0 and eth1 (down), LACP partner, MTU 9000"),
        (lambda links, __: links[2]["linkinfo"]["info_slave_data"].update(ad_aggregator_id=2), "bond0",
         "802.3ad of eth0 and eth1 (not aggregated), LACP partner, MTU 9000"),
        (lambda links, __: links[4]["linkinfo"]["info_data"]["ad_info"].update(partner_mac="00:00:00:00:00:00"), "bond0",
         "802.3ad of eth0 and eth1, no LACP partner, MTU 9000"),
        (lambda links, __: links[3].update(master="bond0"), "bond0", "802.3ad of eth0 and eth1 and eth2 (not aggregated), LACP partner, MTU 9000"),
        (lambda links, __: links[4].update(mtu=1500), "bond0", "802.3ad of eth0 and eth1, LACP partner, MTU 1500"),
        (lambda links, __: links[6]["linkinfo"]["info_data"].update(id=201), "bond0.200", "VLAN 201 on bond0, MTU 1500"),
        (lambda links, __: links[6].update(link="enp3s0"), "bond0.200", "VLAN 200 on enp3s0, MTU 1500"),
        (lambda links, __: links.pop(6), "bond0.200", "missing, MTU unknown"),
        (lambda links, __: links[6].update(held("192.168.222.81")), "storage0", "192.168.222.81 on bond0.200"),
        (lambda links, __: links[3].update(held("fe80::1")), "backup0", "no address on enp3s0"),
        (lambda __, routes: routes.pop(1), "route 10.99.0.0/16", "missing"),
        (lambda __, routes: routes[1].update(gateway="192.168.111.1"), "route 10.99.0.0/16", "via 192.168.111.1 on bond0.100"),
        (lambda __, routes: routes.pop(0), "default gateway (IPv4)", "missing"),
        (lambda __, routes: routes.pop(4), "route fd99::/64", "missing"),
        (lambda __, routes: routes[3].update(gateway="fe80::1"), "default gateway (IPv6)", "via fe80::1 on bond0.100"),
        (lambda __, routes: routes.append({"dst": "default", "gateway": "192.168.222.1", "dev": "enp3s0"}),
         "default gateway (IPv4)", "via 192.168.111.1 on bond0.100, via 192.168.222.1 on enp3s0"),
    ],
)  # fmt: skip
def test_a_node_that_is_not_as_planned(change: Any, name: str, found: str) -> None:
    [(subject, text)] = failed(change).items()
    assert subject == f"{name} of master-0"
    assert text.split("; planned: ")[0] == found


def test_a_node_that_does_not_answer() -> None:
    def silent(address: str, command: str) -> str:
        raise OSError(f"ssh to {address}: Connection refused")

    [check] = module._links(PLAN, silent)
    assert check == module.Check("network of master-0", False, "ssh to fd2e:6f44:5dd8:c956::50: Connection refused")
    [check] = module._links(PLAN, lambda address, command: "not JSON\n[]\n[]")
    assert not check.ok


STATIC = build.build(profile.load("ha_dualstack_static", PROFILES), "one")
GATEWAYS = [
    {"dst": "default", "gateway": "192.168.111.1", "dev": "enp1s0"},
    {"dst": "default", "gateway": "fd2e:6f44:5dd8:c956::1", "dev": "enp1s0"},
]


def gateways(node: Any, routes: list[dict[str, str]], plan: Any = None) -> dict[str, tuple[bool, str]]:
    """The default gateways of a node whose one NIC the kernel calls enp1s0: whether they are as planned, and what was found."""
    card = {"ifname": "enp1s0", "address": node["nics"][0]["mac"], "mtu": 1500}
    found = links.findings(plan or STATIC, node, links.NodeLinks({"enp1s0": card}, routes))
    return {one.subject: (one.ok, one.found) for one in found}


def test_each_static_node_has_the_default_gateway_of_its_network() -> None:
    """Of all families, without bonds, VLANs or segments."""
    assert links.needs_check(STATIC)
    for one in STATIC["nodes"]:
        assert gateways(one, GATEWAYS) == {
            "default gateway (IPv4)": (True, "via 192.168.111.1 on enp1s0"),
            "default gateway (IPv6)": (True, "via fd2e:6f44:5dd8:c956::1 on enp1s0"),
        }
    mixed = build.build(
        profile.complete({"topology": "compact", "nodes": {"master-1": {"addressing": "static"}}}), "one"
    )
    assert links.needs_check(mixed) and gateways(mixed["nodes"][1], GATEWAYS[1:], mixed) == {
        "default gateway (IPv4)": (False, "missing")
    }


@pytest.mark.parametrize(
    ("routes", "family", "found"),
    [
        ([GATEWAYS[0] | {"gateway": "192.168.111.9"}, GATEWAYS[1]], "IPv4", "via 192.168.111.9 on enp1s0"),
        ([GATEWAYS[0], GATEWAYS[1] | {"gateway": "fe80::1"}], "IPv6", "via fe80::1 on enp1s0"),
        ([GATEWAYS[0]], "IPv6", "missing"),
        ([GATEWAYS[0], GATEWAYS[1] | {"dev": "enp2s0"}], "IPv6", "via fd2e:6f44:5dd8:c956::1 on enp2s0"),
    ],
)
def test_a_static_node_with_another_default_gateway(routes: Any, family: str, found: str) -> None:
    wrong = {name: text for name, (ok, text) in gateways(STATIC["nodes"][4], routes).items() if not ok}
    assert wrong == {f"default gateway ({family})": found}


def test_a_nmstate_of_the_profile_has_its_own_default_gateway_or_none() -> None:
    def planned(routes: list[dict[str, Any]]) -> Any:
        config = {"interfaces": [{"name": "eth0", "type": "ethernet"}], "routes": {"config": routes}}
        raw = {"addressing": "static", "nodes": {"master-0": {"network_config": config}}}
        return build.build(profile.complete(raw), "one")

    own = {"destination": "0.0.0.0/0", "next-hop-address": "192.168.111.9", "next-hop-interface": "eth0"}
    plan = planned([own])
    moved = [{"dst": "default", "gateway": "192.168.111.9", "dev": "br-ex"}]  # OVN-Kubernetes' bridge
    assert gateways(plan["nodes"][0], moved, plan) == {"default gateway (IPv4)": (True, "via 192.168.111.9 on enp1s0")}
    assert not gateways(plan["nodes"][0], GATEWAYS, plan)["default gateway (IPv4)"][0]
    plan = planned([own | {"destination": "10.9.0.0/16"}])
    assert gateways(plan["nodes"][0], [], plan) == {}, "a network without a way out"


def test_plans_with_leases_and_without_links_and_routes_ask_no_node() -> None:
    assert links.needs_check(PLAN)
    assert not links.needs_check(build.build(profile.load("ha_dualstack", PROFILES), "one"))
    outside = {"name": "out0", "ipv4": "192.168.230.0/24", "mtu": 9000}
    assert not links.needs_check(build.build(profile.complete({"outside_networks": [outside]}), "one"))


ROLES = build.build(profile.load("compact_segments_static", PROFILES), "one")


def nics(number: int, *more: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    """What is compared of a node whose role has a network of its own; more: entries after the first NIC."""
    one = ROLES["nodes"][number]
    gateway = "192.168.112.1" if one["role"] == "worker" else "192.168.111.1"
    first = {"ifname": "enp1s0", "address": one["nics"][0]["mac"], "mtu": 1500, "link_type": "ether"}
    bridge = {
        "ifname": "cni0",
        "address": "02:00:00:00:00:01",
        "link_type": "ether",
        "linkinfo": {"info_kind": "bridge"},
    }
    there = {entry["ifname"]: entry for entry in (first, bridge, *more)}
    seen = links.NodeLinks(there, [{"dst": "default", "gateway": gateway, "dev": "enp1s0"}])
    return {finding.subject: (finding.ok, finding.found) for finding in links.findings(ROLES, one, seen)}


def second(number: int, address: str, mac: str = "") -> dict[str, Any]:
    mac = mac or ROLES["nodes"][number]["nics"][1]["mac"]
    return {"ifname": "enp2s0", "address": mac, "mtu": 1500, "link_type": "ether"} | held(address)


@pytest.mark.parametrize(
    ("number", "address", "network"), [(0, "192.168.221.80", "storage0"), (3, "192.168.222.83", "edge1")]
)
def test_each_role_has_the_networks_of_its_own(number: int, address: str, network: str) -> None:
    found = nics(number, second(number, address))
    assert found == {
        "NICs": (True, "eth0 and eth1"),
        network: (True, f"{address} on enp2s0"),
        "default gateway (IPv4)": found["default gateway (IPv4)"],
    }
    assert found["default gateway (IPv4)"][0]


def test_a_node_in_the_network_of_another_role() -> None:
    """A worker with the masters' network, with their NIC as a third one, and without a second."""
    assert nics(3, second(3, "192.168.221.83"))["edge1"] == (False, "192.168.221.83 on enp2s0")
    third = {"ifname": "enp3s0", "address": "52:54:00:00:00:99", "mtu": 1500, "link_type": "ether"}
    assert nics(3, second(3, "192.168.222.83"), third)["NICs"] == (False, "enp3s0 and eth0 and eth1")
    found = nics(3)
    assert (found["NICs"], found["edge1"]) == ((False, "eth0"), (False, "no address on eth1"))


@pytest.mark.parametrize(
    ("mtus", "failed"),
    [
        ((9000, 1400, 1500), {}),
        ((1500, 1400, 1500), {"eth0": "MTU 1500"}),
        ((9000, 9000, 1500), {"eth1": "MTU 9000"}),
        ((9000, None, 1500), {"eth1": "MTU unknown"}),
    ],
)
def test_mtus_of_nics_that_are_not_the_default(mtus: tuple[int | None, ...], failed: dict[str, str]) -> None:
    """Of NICs that carry a network themselves; None: the node has no such NIC."""
    extra = [{"name": "a", "ipv4": "10.9.0.0/24", "mtu": 1400}, {"name": "b", "ipv4": "10.9.1.0/24", "mtu": 1500}]
    plan = build.build(profile.complete({"network": {"mtu": 9000}, "extra_networks": extra}), "one")
    assert links.needs_check(plan)
    node = plan["nodes"][0]
    cards = {
        f"enp{number}s0": {"ifname": f"enp{number}s0", "address": nic["mac"], "mtu": mtu}
        for number, (nic, mtu) in enumerate(zip(node["nics"], mtus, strict=True), 1)
        if mtu
    }
    seen = links.NodeLinks(cards, [{"dst": "default", "gateway": "192.168.111.1", "dev": "enp1s0"}])
    found = [one for one in links.findings(plan, node, seen) if "MTU" in one.expected]
    assert [(one.subject, one.expected) for one in found] == [("eth0", "MTU 9000"), ("eth1", "MTU 1400")]
    assert {one.subject: one.found for one in found if not one.ok} == failed
