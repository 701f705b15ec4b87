from __future__ import annotations

import ipaddress
import uuid
from itertools import pairwise
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import TOPOLOGIES
from hypothesis import given, settings
from hypothesis import strategies as st

SCENARIOS = [
    f"{topology.upper()}_{stack}{dhcp}"
    for topology in TOPOLOGIES
    for stack in ("IPV4", "IPV6", "IPV4V6")
    for dhcp in ("", "_DHCP")
]


def plan_of(name: str, cluster: str = "ostest") -> Any:
    return build.build(profile.load(name, None, cluster), cluster)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_address_is_in_its_network_and_only_once(name: str) -> None:
    plan = plan_of(name)
    subnets = [ipaddress.ip_network(subnet["cidr"]) for subnet in plan["networks"][0]["subnets"]]
    addresses = [a["ip"] for node in plan["nodes"] for nic in node["nics"] for a in nic["addresses"]]
    addresses += [subnet["gateway"] for subnet in plan["networks"][0]["subnets"]]
    if plan["cluster"]["platform"] == "baremetal":
        addresses += plan["vips"]["api"] + plan["vips"]["ingress"]
    assert len(set(addresses)) == len(addresses)
    for address in addresses:
        assert any(ipaddress.ip_address(address) in subnet for subnet in subnets), address
    assert plan["rendezvous"] == {"node": "master-0", "ip": plan["nodes"][0]["nics"][0]["addresses"][0]["ip"]}


@settings(deadline=None)
@given(st.from_regex(r"[a-z]([-a-z0-9]{0,11}[a-z0-9])?", fullmatch=True))
def test_macs_and_uuids_follow_from_the_names(cluster: str) -> None:
    plan = plan_of("HA_IPV4", cluster)
    assert plan == plan_of("HA_IPV4", cluster)
    macs = [nic["mac"] for node in plan["nodes"] for nic in node["nics"]]
    assert len(set(macs)) == len(macs)
    assert all(mac.startswith("00:") for mac in macs)
    last = [int(mac[-2:], 16) for mac in macs]
    assert all((after - before) % 256 == 1 for before, after in pairwise(last))
    assert {uuid.UUID(node["uuid"]).version for node in plan["nodes"]} == {5}


def test_clusters_differ() -> None:
    one, other = plan_of("SNO_IPV4", "one")["nodes"][0], plan_of("SNO_IPV4", "other")["nodes"][0]
    assert one["nics"][0]["mac"] != other["nics"][0]["mac"]
    assert one["uuid"] != other["uuid"]


def test_dhcpv6_reserves_by_duid_and_asks_for_it() -> None:
    plan = plan_of("COMPACT_IPV6_DHCP")
    node = plan["nodes"][1]
    reservation = plan["networks"][0]["reservations"][1]
    assert reservation == {
        "mac": None,
        "duid": f"00:03:00:01:{node['nics'][0]['mac']}",
        "ip": "fd2e:6f44:5dd8:c956::15",
        "name": "master-1",
    }
    assert node["network_config"]["interfaces"][0]["ipv6"]["dhcp-duid"] == "ll"


def test_dual_stack_reserves_both_and_has_vips_of_both() -> None:
    plan = plan_of("HA_IPV4V6_DHCP")
    assert plan["vips"] == {
        "api": ["192.168.111.5", "fd2e:6f44:5dd8:c956::5"],
        "ingress": ["192.168.111.4", "fd2e:6f44:5dd8:c956::4"],
    }
    assert len(plan["networks"][0]["reservations"]) == 2 * len(plan["nodes"])


def test_overrides_reach_single_values() -> None:
    raw = {
        "topology": "ha",
        "worker": {"count": 3, "extra_disks": [{"size_gib": 5}, {"size_gib": 6, "bus": "virtio"}]},
        "nodes": {
            "worker-2": {
                "memory_mib": 4096,
                "nics": {"eth0": {"mac": "00:AA:00:00:00:01", "addresses": ["192.168.111.33"]}},
            },
            "master-0": {"bmc": {"password": "other"}, "root_device": "/dev/sdb"},
        },
        "extra_networks": [{"name": "storage0", "ipv4": "192.168.221.0/24"}],
        "network": {"offsets": {"api": 7}},
    }
    plan = build.build(profile.complete(raw), "ostest")
    nodes = {node["name"]: node for node in plan["nodes"]}
    assert (nodes["worker-2"]["memory_mib"], nodes["worker-1"]["memory_mib"]) == (4096, 2048)
    assert nodes["worker-2"]["nics"][0]["mac"] == "00:aa:00:00:00:01"
    assert nodes["worker-2"]["nics"][0]["addresses"] == [{"family": "ipv4", "ip": "192.168.111.33", "prefix": 24}]
    assert [disk["target"] for disk in nodes["worker-0"]["disks"]] == ["sda", "sdb", "vda"]
    assert nodes["master-0"]["bmc"]["username"] == "admin"
    assert nodes["master-0"]["bmc"]["password"] == "other"
    assert plan["vips"]["api"] == ["192.168.111.7"]
    assert nodes["master-1"]["nics"][1]["addresses"][0]["ip"] == "192.168.221.21"


def test_an_external_platform() -> None:
    """Only oci has a cloud controller manager unless the profile asks for one; what the minimal image loads is published."""
    for external, name, manager in (
        ({}, "agentlab", "None"),
        ({"platform_name": "oci"}, "oci", "External"),
        ({"cloud_controller_manager": "External"}, "agentlab", "External"),
    ):
        plan = build.build(profile.complete({"platform": "external", "external": external}), "ostest")
        assert plan["cluster"]["external"] == {"platform_name": name, "cloud_controller_manager": manager}
        section = configs.install_config(plan, pull_secret={}, ssh_key="", trust_bundle="")["platform"]["external"]
        assert section == {
            "platformName": name,
            **({"cloudControllerManager": "External"} if manager == "External" else {}),
        }
        assert plan["boot"]["mode"] == "minimal" and "bootArtifactsBaseURL" in configs.agent_config(plan)
        assert "minimalISO" not in configs.agent_config(plan)
    assert "external" not in build.build(profile.complete({}), "ostest")["cluster"]


def test_hosts_in_install_config() -> None:
    """What agent-config has of a host moves there as it is, with the BMC; agent-config then has none, which would win."""
    raw = {
        "topology": "ha",
        "addressing": "static",
        "installer": {"hosts_in": "install-config"},
        "master": {"root_device": "/dev/sda"},
    }
    plan = build.build(profile.complete(raw), "ostest")
    assert "hosts" not in configs.agent_config(plan)
    section = configs.install_config(plan, pull_secret={}, ssh_key="", trust_bundle="")["platform"]["baremetal"]
    assert section["provisioningNetwork"] == "Disabled" and len(section["hosts"]) == len(plan["nodes"])
    for node, host in zip(plan["nodes"], section["hosts"], strict=True):
        assert (host["name"], host["role"], host["bootMACAddress"]) == (
            node["name"],
            node["role"],
            node["nics"][0]["mac"],
        )
        assert host["bmc"] == {**node["bmc"], "disableCertificateVerification": True}
        assert host["networkConfig"] == node["network_config"]
        assert host.get("rootDeviceHints") == ({"deviceName": "/dev/sda"} if node["role"] == "master" else None)


@pytest.mark.parametrize(
    ("platform", "maker"), [("vsphere", "VMware, Inc."), ("nutanix", "Nutanix"), ("baremetal", None)]
)
def test_machines_of_a_platform(platform: str, maker: str | None) -> None:
    plan = build.build(profile.complete({"topology": "compact", "platform": platform}), "ostest")
    assert [node.get("manufacturer") for node in plan["nodes"]] == [maker] * 3
    assert plan["vips"] == {"api": ["192.168.111.5"], "ingress": ["192.168.111.4"]}


def test_several_masters_without_virtual_addresses_are_behind_the_load_balancer() -> None:
    plan = build.build(profile.complete({"topology": "ha", "platform": "none"}), "ostest")
    gateway = ["192.168.111.1"]
    assert (
        plan["vips"]
        == {"api": gateway, "ingress": gateway}
        == {
            "api": plan["endpoints"]["api_int"]["addresses"],
            "ingress": plan["endpoints"]["console"]["addresses"],
        }
    )
    assert {"ip": gateway[0], "names": ["api", "api-int", "virthost"]} in plan["networks"][0]["dns"]["hosts"]
    balancer = plan["services"]["balancer"]
    assert balancer and balancer["addresses"] == gateway
    assert {one["port"]: [node["name"] for node in one["backends"]] for one in balancer["frontends"]} == {
        6443: ["master-0", "master-1", "master-2"],
        22623: ["master-0", "master-1", "master-2"],
        443: ["worker-0", "worker-1"],
        80: ["worker-0", "worker-1"],
    }
    assert balancer["frontends"][0]["backends"][0]["ip"] == plan["rendezvous"]["ip"]


@pytest.mark.parametrize(
    "given",
    [
        {"platform": "none"},
        {"topology": "compact"},
        {
            "topology": "compact",
            "platform": "external",
            "vips": {"api": ["192.168.111.7"], "ingress": ["192.168.111.7"]},
        },
        {"topology": "compact", "platform": "none", "hypervisor": {"kind": "local"}},
    ],
)
def test_who_has_addresses_has_no_load_balancer(given: dict[str, Any]) -> None:
    plan = build.build(profile.complete(given), "ostest")
    assert "balancer" not in plan["services"] and plan["vips"]["api"] != ["192.168.111.1"]


def test_a_plan_shares_nothing_with_its_profile() -> None:
    complete = profile.complete({"installer": {"install_config": {"proxy": {"httpProxy": "http://p"}}}})
    plan = build.build(complete, "ostest")
    plan["installer"]["install_config"]["proxy"]["httpProxy"] = "http://q"
    assert complete["installer"]["install_config"]["proxy"]["httpProxy"] == "http://p"
