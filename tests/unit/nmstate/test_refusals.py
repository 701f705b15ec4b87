"""Impossible states: one line, the interface's name in it, and never a traceback."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.nmstate import NmstateError, generate, load
from hypothesis import given, settings
from hypothesis import strategies as st

STATIC = {"enabled": True, "address": [{"ip": "192.0.2.2", "prefix-length": 24}]}


def bond(**options: Any) -> dict[str, Any]:
    return {"name": "bond0", "type": "bond", "link-aggregation": {"mode": "active-backup", "port": ["eth1"], **options}}


def eth(**fields: Any) -> dict[str, Any]:
    return {"name": "eth0", "type": "ethernet", **fields}


def vlan_port(**vlan: Any) -> dict[str, Any]:
    return {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "eth1", "vlan": vlan}]}}


@pytest.mark.parametrize(
    ("interfaces", "message"),
    [
        ([{"type": "ethernet"}], r"interfaces\[0\]: missing field `name`"),
        (["eth0"], r"interfaces\[0\]: expected a mapping"),
        ([eth(state="sideways")], "interface eth0.state: unknown variant `sideways`"),
        ([eth(mtu=-1)], "interface eth0.mtu: -1 is out of range"),
        ([eth(mtu=True)], "interface eth0.mtu: expected an integer"),
        ([eth(ipv4={"enabled": "perhaps"})], "interface eth0.ipv4.enabled: Need to be boolean"),
        ([eth(ipv4={"autoconf": True})], "interface eth0.ipv4: unknown field `autoconf`"),
        (
            [eth(ipv4={"enabled": True, "address": [{"ip": "2001:db8::1", "prefix-length": 64}]})],
            "eth0: Got IPv6 address",
        ),
        ([eth(ipv6={"enabled": True, "address": [{"ip": "fe80::1%eth0", "prefix-length": 64}]})], "invalid IP address"),
        ([eth(ipv6={"enabled": True}, mtu=1000)], "eth0: MTU should be >= 1280"),
        ([eth(ipv6={"enabled": True, "dhcp": True, "token": "1::5"})], "eth0: Desired IPv6 token should be lead"),
        ([eth(ipv6={"enabled": True, "dhcp": True, "token": "x"})], "eth0: Desired IPv6 token 'x' is not a valid"),
        ([eth(identifier="mac-address")], "eth0: identifier mac-address needs mac-address"),
        ([eth(description="a\n[connection]\nid=b")], "interface eth0.description: control characters"),
        ([eth(**{"profile-name": "../../etc/passwd"})], "eth0: '../../etc/passwd' cannot be the name of a file"),
        ([eth(name="../up")], "cannot be the name of a file"),
        ([eth(ethtool={"feature": {"warp": True}})], "eth0: Unsupported ethtool feature feature-warp"),
        ([eth(dispatch={"post-activation": "rm -rf /"})], "eth0: Dispatch script is not supported"),
        ([eth(controller="none")], "eth0: desired controller none not found"),
        ([eth(controller="bond0"), bond()], "eth0: has controller bond0 but not listed"),
        ([bond(mode=None)], "bond0: Bond mode is mandatory"),
        ([bond(mode="fast")], "bond0.link-aggregation.mode: unknown variant `fast`"),
        ([bond(options={"miimon": 1, "arp_interval": 1})], "bond0: Bond miimon and arp interval"),
        ([bond(**{"ports-config": [{"name": "eth9"}]})], "bond0: The port names specified in `port` conflict"),
        ([bond(options={"balance_slb": True})], "bond0: To enable balance-slb"),
        ([bond(), {**eth(), "name": "eth1", "ipv4": STATIC}], "Interface eth1 cannot have IP enabled"),
        (
            [
                bond(),
                {"name": "eth1", "type": "infiniband"},
                {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "eth1"}]}},
            ],
            "eth1",
        ),
        ([{"name": "v", "type": "vlan", "vlan": {"id": 5}}], "interface v: Missing 'vlan.base-iface'"),
        (
            [{"name": "v", "type": "vlan", "vlan": {"id": 70000, "base-iface": "a"}}],
            "interface v.vlan.id: 70000 is out of range",
        ),
        (
            [
                {"name": "v", "type": "vlan", "vlan": {"id": 5, "base-iface": "b"}},
                {"name": "b", "type": "bond", "state": "absent"},
            ],
            "v: cannot be in up state",
        ),
        ([{"name": "r", "type": "vrf", "vrf": {"port": []}}], "interface r: Route table ID undefined"),
        (
            [{"name": "m", "type": "mac-vlan", "mac-vlan": {"base-iface": "a", "mode": "vepa", "promiscuous": False}}],
            "interface m: Disable accept-all",
        ),
        (
            [{"name": "o", "type": "ovs-bridge", "mac-address": "52:54:00:00:00:01"}],
            "interface o: OVS Bridge can not hold MAC",
        ),
        (
            [{"name": "p", "type": "ovs-interface", "patch": {"peer": "q"}, "ipv4": STATIC}],
            "interface p: OVS patch interface",
        ),
        ([{"name": "x", "type": "xfrm"}], "NotImplementedError: interface x: Does not support iface type: xfrm"),
        ([{"name": "lo", "type": "loopback", "ipv4": {"enabled": False}}], "interface lo: Loopback"),
        ([vlan_port(mode="access", **{"enable-native": True})], "br0: Bridge VLAN filtering `enable-native: true`"),
        ([vlan_port(mode="trunk")], "br0: Bridge VLAN filtering trunk mode cannot have empty"),
        (
            [vlan_port(mode="trunk", **{"trunk-tags": [{"id": 5}, {"id-range": {"min": 1, "max": 9}}]})],
            "br0: Bridge VLAN trunk tag 5 is overlapping",
        ),
    ],
)
def test_interfaces(interfaces: list[Any], message: str) -> None:
    with pytest.raises(NmstateError, match=message) as error:
        generate({"interfaces": interfaces})
    assert "\n" not in str(error.value) and error.value.kind in str(error.value)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            {"routes": {"config": [{"destination": "0.0.0.0/0"}]}},
            "NotImplementedError: Route with empty next hop interface",
        ),
        ({"routes": {"config": [{"destination": "x", "next-hop-interface": "eth0"}]}}, "Invalid IP network 'x'"),
        (
            {"routes": {"config": [{"destination": "0.1.0.0/16", "next-hop-interface": "eth0"}]}},
            "0.0.0.0/8 and its subnet",
        ),
        ({"routes": {"config": [{"destination": "::/0", "next-hop-interface": "eth0"}]}}, "marked as IPv6 disabled"),
        (
            {"routes": {"config": [{"destination": "10.0.0.0/8", "next-hop-interface": "eth0", "weight": 0}]}},
            "weight 0",
        ),
        (
            {
                "routes": {
                    "config": [{"destination": "10.0.0.0/8", "next-hop-interface": "eth0", "route-type": "blackhole"}]
                }
            },
            "cannot have a next hop",
        ),
        ({"route-rules": {"config": [{"priority": 5}]}}, "Neither ip-from, ip-to nor family"),
        ({"route-rules": {"config": [{"family": "ipv6", "ip-from": "10.0.0.0/8"}]}}, "mismatches with the family"),
        ({"route-rules": {"config": [{"family": "ipv4", "iif": "eth7"}]}}, "The interface eth7 required by route rule"),
        ({"dns-resolver": {"config": {"server": ["ns1"]}}}, "Invalid DNS server string ns1"),
        ({"dns-resolver": {"config": {"server": ["2001:db8::1"]}}}, r'interface for DNS server \["2001:db8::1"\]'),
        ({"dns-resolver": {"config": {"server": ["fe80::1%eth9"]}}}, "interface eth9 which does not exist"),
        ({"dns-resolver": {"config": {"options": ["fast"]}}}, "Unsupported DNS option fast"),
        ({"dns-resolver": {"config": {"server": "192.0.2.1"}}}, "dns-resolver.config.server: expected a list"),
    ],
)
def test_routing(rest: dict[str, Any], message: str) -> None:
    with pytest.raises(NmstateError, match=message):
        generate({"interfaces": [eth(ipv4=STATIC)], **rest})


@pytest.mark.parametrize("state", [5, "x", [], {"interfaces": {}}, {"interfaces": "eth0"}, {5: 5}, {"routes": []}])
def test_not_a_state(state: Any) -> None:
    with pytest.raises(NmstateError):
        generate(state)


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "\t",
        "a: b: c",
        "a: &a [*a]",
        "!!python/object:os.system x",
        "\x00",
        "- " * 3000,
        "[" * 3000,
        "? [a]\n: b",
    ],
)
def test_bad_yaml(text: str) -> None:
    with pytest.raises(NmstateError) as error:
        generate(load(text))
    assert "\n" not in str(error.value)


def test_billion_laughs() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)
    ]
    with pytest.raises(NmstateError, match="network state:4:10: document contains excessive aliasing"):
        generate(load("\n".join(levels)))


def test_yaml_is_read_as_nmstate_reads_it() -> None:
    state = load(
        "{mac: 52:54:00:11:22:33, no: no, hex: 0x30, oct: 010, nil: ~, float: 1.5, date: 2001-01-01, on: true}"
    )
    assert state == {
        "mac": "52:54:00:11:22:33",
        "no": "no",
        "hex": 48,
        "oct": 10,
        "nil": None,
        "float": 1.5,
        "date": "2001-01-01",
        "on": True,
    }
    assert load("a: &x {b: 1}\nc: *x") == {"a": {"b": 1}, "c": {"b": 1}}


NAMES = st.sampled_from(["eth0", "eth1", "bond0", "br0", "lo", "vrf0", "eth0.5"])
TYPES = st.sampled_from(
    [
        "ethernet",
        "bond",
        "vlan",
        "linux-bridge",
        "ovs-bridge",
        "ovs-interface",
        "vrf",
        "dummy",
        "vxlan",
        "loopback",
        "infiniband",
        "mac-vlan",
        "ipsec",
        "hsr",
        "odd",
        None,
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 70000),
    st.sampled_from(["up", "eth0", "192.0.2.1", "::1", "0x5", "", "10.0.0.0/8"]),
    NAMES,
)
KEYS = st.sampled_from(
    [
        "mode",
        "port",
        "ports-config",
        "options",
        "name",
        "enabled",
        "dhcp",
        "autoconf",
        "address",
        "ip",
        "prefix-length",
        "base-iface",
        "id",
        "vlan",
        "route-table-id",
        "token",
        "miimon",
        "peer",
        "right",
        "pkey",
    ]
)
TREES = st.recursive(
    LEAVES, lambda t: st.one_of(st.lists(t, max_size=3), st.dictionaries(KEYS, t, max_size=4)), max_leaves=12
)
SECTIONS = st.sampled_from(
    [
        "ipv4",
        "ipv6",
        "link-aggregation",
        "bridge",
        "vlan",
        "vrf",
        "vxlan",
        "controller",
        "copy-mac-from",
        "mac-address",
        "mtu",
        "state",
        "ethtool",
        "patch",
        "infiniband",
        "libreswan",
        "veth",
        "identifier",
    ]
)
INTERFACE = st.builds(
    lambda name, kind, rest: {"name": name, "type": kind, **rest},
    NAMES,
    TYPES,
    st.dictionaries(SECTIONS, TREES, max_size=3),
)
ROUTE_KEYS = st.sampled_from(
    [
        "destination",
        "next-hop-interface",
        "next-hop-address",
        "table-id",
        "metric",
        "route-type",
        "state",
        "ip-from",
        "family",
        "iif",
        "priority",
        "route-table",
    ]
)
RULES = st.fixed_dictionaries({"config": st.lists(st.dictionaries(ROUTE_KEYS, LEAVES, max_size=4), max_size=2)})
LINKED = st.builds(
    lambda kind, controller, port, name: [
        {
            "name": controller,
            "type": kind,
            "link-aggregation" if kind == "bond" else "bridge": {"mode": "balance-rr", "port": [port]}
            if kind == "bond"
            else {"port": [{"name": port}]},
        },
        {"name": name, "type": "ethernet", "controller": controller},
    ],
    st.sampled_from(["bond", "linux-bridge", "ovs-bridge"]),
    NAMES,
    NAMES,
    NAMES,
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(INTERFACE, max_size=4),
    LINKED,
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "routes": RULES,
            "route-rules": RULES,
            "dns-resolver": st.fixed_dictionaries(
                {"config": st.dictionaries(st.sampled_from(["server", "search"]), st.lists(LEAVES, max_size=3))}
            ),
        },
    ),
)
def test_any_state_is_written_or_refused(
    interfaces: list[Any], linked: list[Any], with_links: bool, rest: dict[str, Any]
) -> None:
    try:
        found = generate({"interfaces": interfaces + (linked if with_links else []), **rest})
    except NmstateError as error:
        assert "\n" not in str(error)
        return
    for name, text in found:
        assert name.endswith(".nmconnection") and "/" not in name and text.startswith("[connection]\n")
        assert "None" not in text and "{" not in text


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        generate(load(text))
    except NmstateError as error:
        assert "\n" not in str(error)
