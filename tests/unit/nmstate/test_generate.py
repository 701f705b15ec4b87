"""Keyfiles of network states: each kind of interface, and what ties them together."""

from __future__ import annotations

import configparser
import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.nmstate import generate, load

GOLDEN = Path(__file__).parent / "golden"
STATES = sorted(path.stem for path in GOLDEN.glob("*.yaml"))


def sections(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(delimiters="=", strict=True)
    parser.optionxform = str
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def one(**interface: Any) -> dict[str, dict[str, str]]:
    """Return the sections of the only profile of an interface."""
    state = {"interfaces": [{"name": "eth0", "type": "ethernet", **interface}]}
    ((__, text),) = generate(state)
    return sections(text)


def profiles(*interfaces: dict[str, Any], **rest: Any) -> dict[str, dict[str, dict[str, str]]]:
    found = generate({"interfaces": list(interfaces), **rest})
    return {name.removesuffix(".nmconnection"): sections(text) for name, text in found}


@pytest.mark.parametrize("name", STATES)
def test_golden(name: str) -> None:
    found = generate(load((GOLDEN / f"{name}.yaml").read_text()))
    assert found == [tuple(pair) for pair in json.loads((GOLDEN / f"{name}.json").read_text())]


@pytest.mark.skipif(not shutil.which("nmcli"), reason="nmcli is not installed")
@pytest.mark.parametrize("name", STATES)
def test_network_manager_reads_it(name: str) -> None:
    for file, text in generate(load((GOLDEN / f"{name}.yaml").read_text())):
        command = ["nmcli", "--offline", "connection", "modify", "connection.autoconnect-priority", "1"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (file, done.stderr)


def test_the_state_is_not_changed() -> None:
    state = load((GOLDEN / "bond_vlan.yaml").read_text())
    before = copy.deepcopy(state)
    assert generate(state) == generate(state) and state == before


def test_nothing() -> None:
    assert generate({}) == generate(None) == generate({"interfaces": []}) == []


class TestAddresses:
    def test_dhcp_options(self) -> None:
        found = one(
            ipv4={
                "enabled": True,
                "dhcp": True,
                "dhcp-client-id": "iaid+duid",
                "dhcp-custom-hostname": "a.example.org",
            },
            ipv6={
                "enabled": True,
                "dhcp": True,
                "dhcp-duid": "LLT",
                "addr-gen-mode": "stable-privacy",
                "dhcp-custom-hostname": "a.b",
            },
        )
        assert found["ipv4"]["dhcp-client-id"] == "duid" and found["ipv4"]["dhcp-fqdn"] == "a.example.org"
        assert found["ipv6"]["dhcp-duid"] == "llt" and found["ipv6"]["addr-gen-mode"] == "1"
        assert found["ipv6"]["method"] == "dhcp" and found["ipv6"]["dhcp-hostname"] == "a.b"

    def test_static_in_addition_to_dhcp(self) -> None:
        found = one(ipv4={"enabled": True, "dhcp": True, "address": [{"ip": "192.0.2.1", "prefix-length": "24"}]})
        assert found["ipv4"]["method"] == "auto" and found["ipv4"]["address0"] == "192.0.2.1/24"

    def test_link_local_and_learned_addresses_are_left_out(self) -> None:
        addresses = [
            {"ip": "fe80::1", "prefix-length": 64},
            {"ip": "2001:db8::1", "prefix-length": 64, "valid-life-time": "100sec"},
            {"ip": "2001:DB8:0:0::2", "prefix-length": 64, "valid-life-time": "forever"},
        ]
        found = one(ipv6={"enabled": True, "address": addresses})["ipv6"]
        assert found["address0"] == "2001:db8::2/64" and "address1" not in found

    @pytest.mark.parametrize(
        ("token", "expected"), [("::5", "::5"), ("::0.0.250.193", "::fac1"), ("::1:0:0:5", "::1:0:0:5"), ("::", None)]
    )
    def test_token(self, token: str, expected: str | None) -> None:
        found = one(ipv6={"enabled": True, "dhcp": True, "autoconf": True, "token": token})
        assert found["ipv6"].get("token") == expected

    @pytest.mark.parametrize(
        ("wait", "v4", "v6"),
        [
            ("any", "true", "true"),
            ("ipv4", "false", "true"),
            ("ipv6", "true", "false"),
            ("ipv4+ipv6", "false", "false"),
        ],
    )
    def test_wait_ip(self, wait: str, v4: str, v6: str) -> None:
        found = one(**{"wait-ip": wait})
        assert (found["ipv4"]["may-fail"], found["ipv6"]["may-fail"]) == (v4, v6)

    def test_loopback(self) -> None:
        found = profiles(
            {
                "name": "lo",
                "type": "loopback",
                "ipv4": {"enabled": True, "address": [{"ip": "127.0.0.2", "prefix-length": 8}]},
            }
        )
        assert found["lo"]["ipv4"]["address0"] == "127.0.0.2/8" and found["lo"]["ipv6"]["address0"] == "::1/128"


class TestLinks:
    @pytest.mark.parametrize(
        ("option", "value", "expected"),
        [
            ("miimon", "140", "140"),
            ("all_slaves_active", "delivered", "1"),
            ("tlb_dynamic_lb", True, "1"),
            ("use_carrier", "off", "0"),
            ("xmit_hash_policy", 1, "layer3+4"),
            ("fail_over_mac", "2", "follow"),
            ("lacp_rate", "fast", "fast"),
            ("ad_actor_system", "aa:bb:cc:dd:ee:ff", "AA:BB:CC:DD:EE:FF"),
            ("arp_missed_max", 2, None),
            ("arp_missed_max", 3, "3"),
            ("arp_ip_target", "", None),
        ],
    )
    def test_bond_options(self, option: str, value: Any, expected: str | None) -> None:
        aggregation = {"mode": "802.3ad", "options": {option: value}, "port": []}
        found = profiles({"name": "bond0", "type": "bond", "link-aggregation": aggregation})
        assert found["bond0"]["bond"].get(option) == expected

    @pytest.mark.parametrize(
        ("number", "mode"),
        list(
            enumerate(
                ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
            )
        ),
    )
    def test_bond_modes_by_number(self, number: int, mode: str) -> None:
        for spelled in (number, str(number), mode):
            found = profiles(
                {"name": "bond0", "type": "bond", "link-aggregation": {"mode": spelled, "ports": ["eth0"]}}
            )
            assert found["bond0"]["bond"]["mode"] == mode and found["eth0"]["connection"]["master"] == "bond0"

    def test_ports_by_mac(self) -> None:
        found = profiles(
            {"name": "bond0", "type": "bond", "link-aggregation": {"mode": "active-backup", "port": ["port0"]}},
            {"name": "port0", "type": "ethernet", "identifier": "mac-address", "mac-address": "52:54:00:00:00:01"},
        )
        assert found["port0"]["ethernet"] == {"mac-address": "52:54:00:00:00:01"}
        assert (
            "interface-name" not in found["port0"]["connection"] and found["port0"]["connection"]["master"] == "bond0"
        )

    def test_controller_property(self) -> None:
        found = profiles(
            {"name": "eth1", "type": "ethernet", "controller": "br0"},
            {"name": "br0", "type": "linux-bridge", "ipv4": {"enabled": True, "dhcp": True}},
        )
        assert found["eth1"]["connection"]["master"] == "br0" and found["eth1"]["connection"]["slave-type"] == "bridge"
        assert "ipv4" not in found["eth1"]

    def test_ignored_ports(self) -> None:
        found = profiles(
            {"name": "bond0", "type": "bond", "link-aggregation": {"mode": "balance-rr", "port": ["eth0", "eth1"]}},
            {"name": "eth0", "type": "ethernet", "state": "ignore"},
        )
        assert sorted(found) == ["bond0", "eth1"]

    def test_a_bond_takes_the_mac_of_a_port(self) -> None:
        found = profiles(
            {
                "name": "bond0",
                "type": "bond",
                "copy-mac-from": "eth0",
                "link-aggregation": {"mode": "balance-rr", "port": ["eth0"]},
            },
            {
                "name": "eth0",
                "type": "ethernet",
                "permanent-mac-address": "52:54:00:00:00:01",
                "mac-address": "52:54:00:00:00:02",
            },
        )
        assert found["bond0"]["ethernet"]["cloned-mac-address"] == "52:54:00:00:00:01"

    @pytest.mark.parametrize(
        ("vlan", "flags"),
        [
            ({}, "1"),
            ({"reorder-headers": False}, "0"),
            ({"registration-protocol": "gvrp"}, "3"),
            ({"registration-protocol": "mvrp", "loose-binding": True}, "13"),
        ],
    )
    def test_vlan_flags(self, vlan: dict[str, Any], flags: str) -> None:
        found = profiles({"name": "eth0.5", "type": "vlan", "vlan": {"base-iface": "eth0", "id": "5", **vlan}})
        assert found["eth0.5"]["vlan"] == {"flags": flags, "id": "5", "parent": "eth0"}

    def test_vxlan(self) -> None:
        vxlan = {
            "base-iface": "eth1",
            "id": 100,
            "remote": "192.0.2.9",
            "local": "192.0.2.8",
            "learning": False,
            "destination-port": 4789,
        }
        found = profiles({"name": "vx0", "type": "vxlan", "vxlan": vxlan})
        assert found["vx0"]["vxlan"] == {
            "destination-port": "4789",
            "id": "100",
            "learning": "false",
            "local": "192.0.2.8",
            "parent": "eth1",
            "remote": "192.0.2.9",
        }

    def test_infiniband(self) -> None:
        found = profiles(
            {
                "name": "ib0",
                "type": "infiniband",
                "mtu": 2044,
                "infiniband": {"mode": "connected", "pkey": "0xffff", "base-iface": ""},
            }
        )
        assert found["ib0"]["infiniband"] == {"mtu": "2044", "transport-mode": "connected"}
        assert "ethernet" not in found["ib0"]

    def test_linux_bridge_options(self) -> None:
        options = {
            "group-addr": "01:80:C2:00:00:00",
            "group-fwd-mask": 8,
            "hash-max": 4096,
            "multicast-router": 2,
            "vlan-protocol": "802.1ad",
            "stp": {"enabled": "yes"},
        }
        found = profiles({"name": "br0", "type": "linux-bridge", "bridge": {"options": options}})
        assert found["br0"]["bridge"] == {
            "group-address": "1;128;194;0;0;0",
            "group-forward-mask": "8",
            "multicast-hash-max": "4096",
            "multicast-router": "enabled",
            "stp": "true",
            "vlan-protocol": "802.1ad",
        }

    def test_an_ovs_bridge_without_ports_gets_one(self) -> None:
        found = profiles({"name": "br0", "type": "ovs-bridge"})
        assert sorted(found) == ["br0-br", "br0-if", "br0-port"]
        assert found["br0-if"]["ovs-interface"] == {"type": "internal"}

    def test_ovs_external_ids_and_bond(self) -> None:
        port = {
            "name": "bond0",
            "link-aggregation": {"mode": "lacp", "port": [{"name": "eth2"}, {"name": "eth1"}], "bond-updelay": 5},
        }
        found = profiles(
            {
                "name": "br0",
                "type": "ovs-bridge",
                "ovs-db": {"external_ids": {"a": 1, "b": None}},
                "bridge": {"port": [port]},
            }
        )
        assert found["br0-br"]["ovs-external-ids"] == {"data.a": "1"}
        assert found["bond0-port"]["ovs-port"] == {"bond-updelay": "5", "lacp": "active"}
        assert found["eth1"]["connection"]["slave-type"] == "ovs-port"

    def test_down_and_absent(self) -> None:
        found = profiles(
            {"name": "eth0", "type": "ethernet", "state": "down"},
            {"name": "eth1", "type": "ethernet", "state": "absent", "whatever": 1},
        )
        assert list(found) == ["eth0"] and found["eth0"]["connection"]["autoconnect"] == "false"

    def test_profile_name(self) -> None:
        assert list(profiles({"name": "eth0", "type": "ethernet", "profile-name": "Wired connection 1"})) == [
            "Wired connection 1"
        ]

    def test_ethernet_settings(self) -> None:
        found = one(
            mtu="1400",
            ethernet={"auto-negotiation": True, "speed": 1000, "duplex": "full"},
            ethtool={
                "feature": {"gro": False, "rx-checksum": True},
                "coalesce": {"adaptive-rx": True, "rx-usecs": 5},
                "pause": {"autoneg": True, "rx": True},
            },
            mptcp={"address-flags": ["subflow", "backup"]},
        )
        assert found["ethernet"] == {"auto-negotiate": "true", "mtu": "1400"}
        assert found["ethtool"] == {
            "coalesce-adaptive-rx": "1",
            "coalesce-rx-usecs": "5",
            "feature-gro": "false",
            "feature-rx": "true",
            "pause-autoneg": "true",
        }
        assert found["connection"]["mptcp-flags"] == str(0x20 | 0x40 | 0x08)


class TestRouting:
    ETH = {"name": "eth0", "type": "ethernet", "ipv4": {"enabled": True, "dhcp": True}}  # noqa: RUF012

    def test_networks_are_tidied_up(self) -> None:
        routes = [
            {
                "destination": "198.51.100.7/24",
                "next-hop-interface": "eth0",
                "next-hop-address": "192.0.2.1",
                "metric": -1,
                "table-id": 0,
            }
        ]
        found = profiles(self.ETH, routes={"config": routes + routes})
        assert (
            found["eth0"]["ipv4"]["route0"] == "198.51.100.0/24,192.0.2.1,0" and "route1" not in found["eth0"]["ipv4"]
        )

    def test_rules_find_their_table(self) -> None:
        static = {
            "name": "eth1",
            "type": "ethernet",
            "ipv4": {"enabled": True, "address": [{"ip": "192.0.2.2", "prefix-length": 24}]},
        }
        rules = [
            {"ip-from": "192.0.2.0/24", "route-table": 200, "priority": 31000},
            {"ip-to": "198.51.100.1", "action": "blackhole"},
            {"family": "ipv4", "iif": "eth1", "suppress-prefix-length": 0, "route-table": 254},
        ]
        routes = [
            {"destination": "0.0.0.0/0", "next-hop-interface": "eth1", "next-hop-address": "192.0.2.1", "table-id": 200}
        ]
        found = profiles(self.ETH, static, routes={"config": routes}, **{"route-rules": {"config": rules}})
        assert found["eth1"]["ipv4"]["routing-rule0"] == "priority 31000 from 192.0.2.0/24 table 200"
        assert found["eth1"]["ipv4"]["routing-rule1"] == "priority 31001 to 198.51.100.1/32 type blackhole table 254"
        assert (
            found["eth1"]["ipv4"]["routing-rule2"]
            == "priority 31002 from 0.0.0.0/0 iif eth1 suppress_prefixlength 0 table 254"
        )

    def test_name_servers_prefer_static_interfaces(self) -> None:
        static = {
            "name": "eth1",
            "type": "ethernet",
            "ipv4": {"enabled": True, "address": [{"ip": "192.0.2.2", "prefix-length": 24}]},
        }
        dns = {"config": {"server": ["192.0.2.1"], "search": ["example.org"]}}
        found = profiles(self.ETH, static, **{"dns-resolver": dns})
        assert "dns" not in found["eth0"]["ipv4"] and found["eth1"]["ipv4"]["dns"] == "192.0.2.1"

    def test_search_domains_alone(self) -> None:
        found = profiles(self.ETH, **{"dns-resolver": {"config": {"search": ["example.org"]}}})
        assert found["eth0"]["ipv4"]["dns-search"] == "example.org" and found["eth0"]["ipv4"]["dns-priority"] == "40"

    def test_link_local_name_server(self) -> None:
        six = {"name": "eth2", "type": "ethernet", "ipv6": {"enabled": True, "dhcp": True, "autoconf": True}}
        found = profiles(self.ETH, six, **{"dns-resolver": {"config": {"server": ["fe80::1%eth2", "192.0.2.1"]}}})
        assert found["eth2"]["ipv6"]["dns"] == "fe80::1" and found["eth0"]["ipv4"]["dns-priority"] == "50"
