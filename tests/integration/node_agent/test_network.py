"""The network steps as programs, on a real (virtual) Ethernet."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.tests.integration.node_agent.conftest import Lab, ip


def test_inventory(lab: Lab) -> None:
    done = lab.exec("a", lab.programs / "inventory", "--with-journal-logging=false")
    nics = {nic["name"]: nic for nic in json.loads(done.stdout)["interfaces"]}
    assert nics["eth0"] | {"speed_mbps": 0} == {
        "name": "eth0", "mac_address": lab.macs["a"], "type": "veth", "mtu": 1500, "speed_mbps": 0, "has_carrier": True,
        "flags": ["up", "broadcast", "multicast", "running"],
        "ipv4_addresses": ["192.0.2.10/27"], "ipv6_addresses": ["2001:db8::a/64"],
    }  # fmt: skip
    assert {"interface": "eth0", "destination": "192.0.2.0", "family": 2} in json.loads(done.stdout)["routes"]


def test_connectivity(lab: Lab) -> None:
    wrong = lab.peer("c", "192.0.2.12") | {"host_id": "other"}
    wrong["nics"][0]["mac"] = "52:54:00:00:00:77"
    started = time.monotonic()
    hosts = [lab.peer("b", "192.0.2.11/27", "2001:db8::b"), lab.peer("nobody", "192.0.2.20", "2001:db8::20"), wrong]
    report = lab.program("a", "connectivity_check", hosts)
    assert time.monotonic() - started < 10
    found = {one["host_id"]: one for one in report["remote_hosts"]}
    good = found["b"]
    assert [(link["remote_ip_address"], link["successful"]) for link in good["l3_connectivity"]] == [
        ("192.0.2.11", True),
        ("2001:db8::b", True),
    ]
    assert not any("packet_loss_percentage" in link for link in good["l3_connectivity"])
    assert all(0 < link["average_rtt_ms"] < 50 for link in good["l3_connectivity"])
    common = {"outgoing_nic": "eth0", "remote_mac": lab.macs["b"], "successful": True}
    assert good["l2_connectivity"] == [
        {**common, "outgoing_ip_address": "192.0.2.10", "remote_ip_address": "192.0.2.11"},
        {**common, "outgoing_ip_address": "2001:db8::a", "remote_ip_address": "2001:db8::b"},
    ]
    assert good["mtu_report"] is None
    assert found["nobody"]["l3_connectivity"] == [
        {"remote_ip_address": "192.0.2.20"},
        {"remote_ip_address": "2001:db8::20"},
    ]
    assert found["nobody"]["l2_connectivity"] is None
    assert ["successful" in link for link in found["other"]["l2_connectivity"]] == [False]


def test_dhcpv6_address(lab: Lab) -> None:
    """An address by DHCPv6 is a /128; the prefix comes from the router."""
    for command in ("addr {} 2001:db8:1::e/128 dev eth0 nodad", "-6 route {} 2001:db8:1::/64 dev eth0 proto ra"):
        for name in ("a", "b"):
            ip("-n", lab.ns(name), *command.format("add").replace("::e", "::f" if name == "b" else "::e").split())
    try:
        nics = json.loads(lab.exec("a", lab.programs / "inventory", "--with-journal-logging=false").stdout)[
            "interfaces"
        ]
        assert "2001:db8:1::e/64" in next(nic for nic in nics if nic["name"] == "eth0")["ipv6_addresses"]
        report = lab.program("a", "connectivity_check", [lab.peer("b", "2001:db8:1::f")])["remote_hosts"][0]
        assert report["l2_connectivity"][0]["outgoing_ip_address"] == "2001:db8:1::e"
        assert report["l2_connectivity"][0]["successful"] and report["l3_connectivity"][0]["successful"]
    finally:
        for name, last in (("a", "e"), ("b", "f")):
            ip("-n", lab.ns(name), "addr", "del", f"2001:db8:1::{last}/128", "dev", "eth0")
            ip("-n", lab.ns(name), "-6", "route", "del", "2001:db8:1::/64", "dev", "eth0", "proto", "ra")


def test_address_conflict(lab: Lab) -> None:
    for name in ("b", "c"):
        ip("-n", lab.ns(name), "addr", "add", "192.0.2.30/27", "dev", "eth0")
    try:
        report = lab.program("a", "connectivity_check", [lab.peer("b", "192.0.2.30")])
    finally:
        for name in ("b", "c"):
            ip("-n", lab.ns(name), "addr", "del", "192.0.2.30/27", "dev", "eth0")
    links = report["remote_hosts"][0]["l2_connectivity"]
    assert [(link["remote_mac"], link.get("successful", False)) for link in links] == [
        (lab.macs["b"], True),
        (lab.macs["c"], False),
    ]


def test_mtu(lab: Lab) -> None:
    hosts = [
        lab.peer("b", "192.0.2.11", "2001:db8::b"),
        lab.peer("d", "192.0.2.13", "2001:db8::d"),
        lab.peer("x", "192.0.2.20"),
    ]
    report = lab.program("c", "connectivity_check", hosts)
    found = {one["host_id"]: one["mtu_report"] or [] for one in report["remote_hosts"]}
    assert [(entry["remote_ip_address"], entry["mtu_successful"]) for entry in found["d"]] == [
        ("192.0.2.13", True),
        ("2001:db8::d", True),
    ]
    assert [entry.get("mtu_successful") for entry in found["b"]] == [None, None]
    assert found["x"] == []


def test_free_addresses(lab: Lab) -> None:
    (answer,) = lab.program("a", "free_addresses", ["192.0.2.0/27"])
    taken = {f"192.0.2.{n}" for n in (1, 10, 11, 12, 13)}
    assert answer["network"] == "192.0.2.0/27"
    assert set(answer["free_addresses"]) == {f"192.0.2.{n}" for n in range(32)} - taken
    bad = lab.exec(
        "a", lab.programs / "free_addresses", "--with-journal-logging=false", '["192.0.2.5/24"]', check=False
    )
    assert bad.returncode == 255 and "Network 192.0.2.5/24 is not a valid CIDR" in bad.stderr


def test_vips(lab: Lab) -> None:
    vips = ["192.0.2.11", "192.0.2.25", "2001:db8::b", "2001:db8::25", "192.0.2.10"]
    answer = lab.program("a", "vips_verifier", [{"vip": vip, "vip_type": "api"} for vip in vips])
    assert {entry["vip"]: entry["verification"] for entry in answer} == dict(
        zip(vips, ["failed", "succeeded", "failed", "succeeded", "failed"], strict=True)
    )


@pytest.fixture(scope="module")
def dnsmasq(lab: Lab) -> Path:
    lab.daemon(
        "gw", "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--interface=eth0",
        "--bind-interfaces", "--dhcp-range=192.0.2.24,192.0.2.26,255.255.255.224,10m", "--dhcp-authoritative",
        "--dhcp-host=00:1a:4a:00:00:01,192.0.2.28", f"--dhcp-leasefile={lab.tmp}/leases", "--pid-file=",
        "--address=/api.ostest.test/192.0.2.5", "--host-record=node.ostest.test,192.0.2.10,2001:db8::a",
        "--cname=alias.ostest.test,node.ostest.test", "--user=root",
    )  # fmt: skip
    resolv = lab.tmp / "resolv.conf"
    resolv.write_text("nameserver 192.0.2.1\noptions timeout:1\n")
    time.sleep(0.5)
    return resolv


def test_dhcp(lab: Lab, dnsmasq: Path) -> None:
    folder = lab.tmp / "etc"
    folder.mkdir()
    made = not Path("/etc/keepalived").exists()
    request = {"interface": "eth0", "api_vip_mac": "00:1a:4a:00:00:01", "ingress_vip_mac": "00:1a:4a:00:00:02"}
    binds = {folder: "/etc/keepalived"}
    Path("/etc/keepalived").mkdir(exist_ok=True)
    try:
        first = lab.program("a", "dhcp_lease_allocate", request, binds=binds)
        assert first["api_vip_address"] == "192.0.2.28"
        assert first["ingress_vip_address"] in {"192.0.2.24", "192.0.2.25", "192.0.2.26"}
        lease = first["ingress_vip_lease"]
        assert re.match(
            r'lease \{\n  interface "ingress";\n  fixed-address 192\.0\.2\.2[456];\n  option subnet-mask 255', lease
        )
        assert "option dhcp-server-identifier 192.0.2.1;" in lease and re.search(r"expire \d \d{4}/\d\d/\d\d ", lease)
        assert 'option host-name "00-1a-4a-00-00-02-ingress";' in lease
        assert (folder / "lease-ingress").read_text().strip() == lease
        request |= {"api_vip_lease": first["api_vip_lease"], "ingress_vip_lease": lease.replace('"ingress"', '"x"')}
        ip(
            "-n", lab.ns("b"), "link", "add", "link", "eth0", "name", "api", "type", "macvlan"
        )  # of a run that was killed
        again = lab.program("b", "dhcp_lease_allocate", request, binds=binds)
        assert again["ingress_vip_address"] == first["ingress_vip_address"]
    finally:
        if made:
            Path("/etc/keepalived").rmdir()
    assert "ingress" not in ip("-n", lab.ns("a"), "link")


def test_domain_resolution(lab: Lab, dnsmasq: Path) -> None:
    names = ["api.ostest.test", "alias.ostest.test", "validateNoWildcardDNS.ostest.test.", "no.such"]
    request = {"domains": [{"domain_name": name} for name in names]}
    answer = lab.program("a", "domain_resolution", request, binds={dnsmasq: "/etc/resolv.conf"})
    found = {entry["domain_name"]: entry for entry in answer["resolutions"]}
    assert found["api.ostest.test"]["ipv4_addresses"] == ["192.0.2.5"]
    assert found["alias.ostest.test"] == {
        "domain_name": "alias.ostest.test", "ipv4_addresses": ["192.0.2.10"], "ipv6_addresses": ["2001:db8::a"],
        "cnames": ["node.ostest.test."],
    }  # fmt: skip
    for name in names[2:]:
        assert found[name]["ipv4_addresses"] == found[name]["ipv6_addresses"] == [] and found[name]["cnames"] is None


@pytest.fixture(scope="module")
def ntp(lab: Lab) -> Iterator[dict[str, Path]]:
    """A time server on gw; a client on a that knows none. Returns their run directories."""
    run = {name: lab.tmp / f"chrony-{name}" for name in ("gw", "a")}
    made = not Path("/run/chrony").exists()
    Path("/run/chrony").mkdir(mode=0o700, exist_ok=True)
    for name, text in {"gw": "local stratum 8\nallow all\n", "a": "cmdallow 127.0.0.1\n"}.items():
        run[name].mkdir(mode=0o700)
        (lab.tmp / f"{name}.conf").write_text(f"{text}pidfile {run[name]}/pid\n")
        lab.daemon(
            name, "chronyd", "-x", "-u", "root", "-d", "-f", lab.tmp / f"{name}.conf", binds={run[name]: "/run/chrony"}
        )
    time.sleep(1)
    yield run
    if made:
        Path("/run/chrony").rmdir()


def test_ntp(lab: Lab, ntp: dict[str, Path]) -> None:
    state = ""
    for __ in range(20):
        answer = lab.program("a", "ntp_synchronizer", {"ntp_source": "192.0.2.1"}, binds={ntp["a"]: "/run/chrony"})
        (source,) = answer["ntp_sources"]
        assert source["source_name"] == "192.0.2.1"
        state = source["source_state"]
        if state == "synced":
            break
        time.sleep(1)
    assert state == "synced"
