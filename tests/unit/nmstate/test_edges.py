"""Edges at which nmstate 2.2.38 behaves unexpectedly."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.nmstate import NmstateError, generate, load

DHCP = {"enabled": True, "dhcp": True}
ETH = {"name": "eth0", "type": "ethernet", "state": "up", "ipv4": DHCP}


def files(*interfaces: dict[str, Any], **more: Any) -> dict[str, str]:
    found = generate({"interfaces": list(interfaces), **more})
    assert len(dict(found)) == len(found)  # no two files of one name
    return dict(found)


@pytest.mark.parametrize("kind", ["Ethernet", "ethernt", "bonding", "wifi", "team", "unknown", "tun", None])
def test_an_unknown_type_is_ethernet(kind: str | None) -> None:
    assert files(ETH | {"type": kind}) == files(ETH)
    with pytest.raises(NmstateError, match="unknown field `link-aggregation`"):
        files(ETH | {"type": kind, "link-aggregation": {"mode": "active-backup"}})


@pytest.mark.parametrize("kind", ["Ethernet", "wifi"])
def test_a_port_of_an_unknown_type_has_one_file(kind: str) -> None:
    bond = {"name": "bond0", "type": "bond", "link-aggregation": {"mode": "active-backup", "port": ["eth1"]}}
    port = {"name": "eth1", "type": kind}
    assert files(bond, port) == files(bond, port | {"type": "ethernet"})
    bridge = {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "eth1"}]}}
    assert files(bridge, port) == files(bridge, port | {"type": "ethernet"})


@pytest.mark.parametrize(
    "text",
    [
        "interfaces: null",
        "routes: ~",
        "route-rules:",
        "description: null",
        "ovn: null",
        "interfaces: [{name: eth0, mtu: null}]",
        "interfaces: [{name: eth0, state: null}]",
        "interfaces: [{name: eth0, ipv4: {enabled: true, dhcp: null}}]",
        "interfaces: [{name: eth0, accept-all-mac-addresses: null}]",
        "interfaces: [{name: eth0, of-no-such-name: null}]",
        "routes: {config: [{destination: 0.0.0.0/0, metric: null}]}",
        "of-no-such-name: null",
    ],
)
def test_nulls_that_are_refused(text: str) -> None:
    with pytest.raises(NmstateError, match=r"null|None|unknown field"):
        generate(load(text))


@pytest.mark.parametrize(
    "more",
    [
        {"ipv6": None}, {"min-mtu": None}, {"controller": None}, {"description": None}, {"identifier": None}, {"ethtool": None},
        {"mac-address": None},
    ],
)  # fmt: skip
def test_nulls_that_are_nothing(more: dict[str, Any]) -> None:
    assert files(ETH | more) == files(ETH)
    assert files(ETH, hostname=None, **{"dns-resolver": None, "ovs-db": None}) == files(ETH)


def test_a_tab_is_text_and_a_newline_is_not() -> None:
    [text] = files(ETH | {"description": "a\tb"}).values()
    assert "a\tb" in text
    with pytest.raises(NmstateError, match="control characters"):
        files(ETH | {"description": "a\nb"})


def test_infiniband_needs_a_pkey() -> None:
    port = {"name": "ib0.8001", "type": "infiniband", "infiniband": {"mode": "datagram", "base-iface": "ib0"}}
    with pytest.raises(NmstateError, match="missing field `pkey`"):
        files(port)
    port["infiniband"]["pkey"] = "0x8001"
    assert files(port)


@pytest.mark.parametrize(
    ("mappings", "message"),
    [
        ([{"bridge": "br0"}], "missing field `localnet`"),
        ([{"localnet": "a"}], "localnet` key a missing the `bridge`"),
        ([{"localnet": "a", "bridge": "x"}, {"localnet": "a", "bridge": "y"}], "Found duplicate `localnet` key a"),
        ([{"localnet": "a", "bridge": "x", "state": "perhaps"}], "unknown variant `perhaps`"),
    ],
)
def test_bridge_mappings(mappings: list[dict[str, str]], message: str) -> None:
    with pytest.raises(NmstateError, match=message):
        files(ETH, ovn={"bridge-mappings": mappings})
    assert files(
        ETH,
        ovn={
            "bridge-mappings": [
                {"localnet": "a", "state": "absent"},
                {"localnet": "b", "bridge": "x", "state": "present"},
            ]
        },
    )


def test_numbers_where_text_is_wanted() -> None:
    assert generate(load("{hostname: {config: 1}, interfaces: [{name: eth0, ipv4: {enabled: true, dhcp: true}}]}"))
    route = {"destination": "198.51.100.0/24", "next-hop-address": "192.0.2.1"}
    static = {
        "name": "7",
        "type": "ethernet",
        "ipv4": {"enabled": True, "address": [{"ip": "192.0.2.2", "prefix-length": 24}]},
    }
    assert files(static, routes={"config": [route | {"next-hop-interface": 7}]}) == files(
        static, routes={"config": [route | {"next-hop-interface": "7"}]}
    )
    dns = {"config": {"server": ["192.0.2.53"], "search": [1]}}
    assert files(
        static,
        **{
            "dns-resolver": dns,
            "routes": {"config": [{**route, "destination": "0.0.0.0/0", "next-hop-interface": "7"}]},
        },
    )
    with pytest.raises(NmstateError, match="expected a string"):
        files(ETH | {"description": 1})


def test_loopback_by_another_name() -> None:
    address = {"enabled": True, "address": [{"ip": "127.0.0.1", "prefix-length": 8}]}
    assert files({"name": "bond0", "type": "loopback", "ipv4": address})
    with pytest.raises(NmstateError, match="IPv6 disabled"):
        files({"name": "bond0", "type": "loopback", "ipv4": address, "ipv6": {"enabled": False}})
