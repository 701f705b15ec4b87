"""Segments of the machine network: what follows for nodes in one, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import links
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import validate as module
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.machines import address_of, home, in_network

NONE = "topology: compact\nplatform: none\n"
EDGE = "segments: {edge0: {ipv4: 192.168.112.0/24}}\n"
WORKER = "worker: {count: 1, segment: edge0}\n"
BALANCER = "installer: {install_config: {platform: {baremetal: {loadBalancer: {type: UserManaged}}}}}\n"


def planned(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "p.yml"
    path.write_text(text)
    return build.build(profile.load(path, None, "ostest"), "ostest")


def test_a_node_in_a_segment_has_all_from_there(tmp_path: Path) -> None:
    plan = planned(tmp_path, NONE + EDGE + WORKER + "addressing: static\n")
    worker = plan["nodes"][3]
    assert [network["purpose"] for network in plan["networks"]] == ["machine", "segment"]
    assert (home(worker, plan["networks"])["name"], address_of(worker, plan["networks"])) == ("edge0", "192.168.112.83")
    assert in_network(worker, "edge0")["name"] == "eth0"
    config = worker["network_config"]
    assert config["dns-resolver"]["config"]["server"] == ["192.168.112.1"]
    assert [route["next-hop-address"] for route in config["routes"]["config"]] == ["192.168.112.1"]
    assert plan["networks"][1]["dns"] == plan["networks"][0]["dns"]
    assert plan["rendezvous"]["ip"] == "192.168.111.80" and plan["vips"]["ingress"] == ["192.168.111.1"]
    behind = plan["services"]["balancer"]["frontends"][2]
    assert (behind["name"], behind["backends"]) == ("ingress", [{"name": "worker-0", "ip": "192.168.112.83"}])
    assert stored.findings(plan) == []


def test_each_segment_has_its_own_leases(tmp_path: Path) -> None:
    plan = planned(tmp_path, NONE + EDGE + WORKER + "network: {routes: [{destination: 10.9.0.0/16}]}\n")
    leases = {network["name"]: [one["name"] for one in network["reservations"]] for network in plan["networks"]}
    assert leases == {"ostestbm": ["master-0", "master-1", "master-2"], "edge0": ["worker-0"]}
    assert plan["nodes"][0]["network_config"] and not plan["nodes"][3]["network_config"], "a route of the first segment"


def test_machine_networks_are_those_that_the_service_takes(tmp_path: Path) -> None:
    """Several of a family only with an outside load balancer; other platforms ask no worker for an address in one."""
    assert planned(tmp_path, NONE + EDGE + WORKER)["installer"]["machine_network"] == ["192.168.111.0/24"]
    plan = planned(tmp_path, "topology: compact\n" + EDGE + WORKER + BALANCER)
    config = configs.install_config(plan, pull_secret={}, ssh_key="", trust_bundle="")
    assert config["networking"]["machineNetwork"] == [{"cidr": "192.168.111.0/24"}, {"cidr": "192.168.112.0/24"}]
    assert config["platform"]["baremetal"]["apiVIPs"] == ["192.168.111.1"]  # the lab's load balancer


@pytest.mark.parametrize(("gateway", "failed"), [("192.168.112.1", []), ("192.168.111.1", ["default gateway (IPv4)"])])
def test_validate_compares_the_gateway_of_each_segment(gateway: str, failed: list[str], tmp_path: Path) -> None:
    plan = planned(tmp_path, NONE + EDGE + WORKER)
    worker = plan["nodes"][3]
    assert links.needs_check(plan)
    card = {"ifname": "enp1s0", "address": worker["nics"][0]["mac"], "mtu": 1500}
    seen = links.NodeLinks({"enp1s0": card}, [{"dst": "default", "gateway": gateway, "dev": "enp1s0"}])
    assert [one.subject for one in links.findings(plan, worker, seen) if not one.ok] == failed


@pytest.mark.parametrize(("address", "ok"), [("192.168.112.23", True), ("192.168.111.23", False)])
def test_validate_compares_addresses_with_those_of_the_segment(address: str, ok: bool, tmp_path: Path) -> None:
    plan = planned(tmp_path, NONE + EDGE + WORKER)
    worker = plan["nodes"][3]
    node = {"status": {"addresses": [{"type": "InternalIP", "address": address}]}}
    check = module._addresses(worker, home(worker, plan["networks"])["name"], node)
    assert check.ok == ok
