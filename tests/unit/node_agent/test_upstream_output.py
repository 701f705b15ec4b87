"""Results of a comparison with upstream's programs: output byte for byte, odd input, odd machines."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent import (
    PROGRAMS,
    connectivity_check,
    container_image_availability,
    disk_speed_check,
    disks,
    domain_resolution,
    flags,
    free_addresses,
    gpus,
    host,
    install,
    inventory,
    logs_sender,
    network,
    next_step_runner,
    ntp_synchronizer,
    probes,
    protocol,
    rest,
    vips_verifier,
)
from ansible_collections.agentlab.ocp.payload.node_agent.flags import Dry
from ansible_collections.agentlab.ocp.payload.node_agent.network import Nic
from ansible_collections.agentlab.ocp.payload.node_agent.program import marshal
from ansible_collections.agentlab.ocp.payload.node_agent.steps import Context

UUID = "11111111-2222-3333-4444-555555555555"
Tool = Callable[[str, str], Path]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A program of the host that is a shell script; what it was called with is in the file that it returns."""

    def make(name: str, body: str) -> Path:
        path = tmp_path / "tools" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/{name}.log\n{body}\n')
        path.chmod(0o755)
        return tmp_path / f"{name}.log"

    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:{os.environ['PATH']}")
    return make


def put(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_json_is_that_of_the_upstream() -> None:
    model = {"wwn": "", "name": "sda", "eligible": False, "size": 0, "loss": 0.0, "rtt": 10.0, "part": 0.25, "reasons": None, "holders": [],
             "model": "A <&> Ü\u2028", "nested": {"b": "", "a": [{"z": 1, "c": ""}]}}  # fmt: skip
    assert marshal(model) == (
        '{"holders":[],"model":"A \\u003c\\u0026\\u003e Ü\\u2028","name":"sda","nested":{"a":[{"z":1}]},"part":0.25,"reasons":null,"rtt":10}'
    )
    assert marshal({"name": "half \udcff"}) == '{"name":"half ?"}'


def run(programs: Path, name: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    quiet = ["--with-journal-logging=false", "--with-text-logging=false"]
    return subprocess.run(
        [programs / name, *quiet, *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )


def test_flags_as_go_reads_them(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    known = (flags.Flag("interval", 60, "x"), flags.Flag("insecure", False, "y"))
    assert flags.parse("agent", known, ["--interval=0x10", "-insecure", "-help=false", "rest"]).interval == 16
    for argv, text in ((["---x"], "bad flag syntax: ---x"), (["-=x"], "bad flag syntax: -=x"), (["-interval"], "flag needs an argument"),
                       (["-help", "-nonsense"], "flag provided but not defined: -nonsense")):  # fmt: skip
        with pytest.raises(SystemExit) as end:
            flags.parse("agent", known, argv)
        assert end.value.code == 2 and capsys.readouterr().err.startswith(text)
    with pytest.raises(SystemExit) as end:
        flags.parse("agent", known, ["-h"])
    usage = capsys.readouterr().err
    assert end.value.code == 0 and usage.index("-help") < usage.index("-insecure") < usage.index("-interval int")
    monkeypatch.setenv("DRY_ENABLE", "perhaps")
    with pytest.raises(SystemExit) as end:
        flags.dry_flags()
    assert end.value.code == 1 and "level=fatal" in capsys.readouterr().err


def test_exit_codes_for_wrong_arguments(programs: Path) -> None:
    for name in PROGRAMS:
        if name in ("agent", "next_step_runner", "logs_sender", "inventory"):
            continue
        code = {"ntp_synchronizer": 1, "domain_resolution": 1, "container_image_availability": 1}.get(name, 255)
        assert run(programs, name).returncode == code, name
        done = run(programs, name, *(["--request"] if "--request" in run(programs, name).stderr else []), "{")
        assert done.returncode == 255 and "Traceback" not in done.stderr, name
    done = run(programs, "domain_resolution", "--request", '{"domains":[{"domain_name":"127.0.0.1"}]}')
    assert json.loads(done.stdout)["resolutions"][0]["ipv4_addresses"] == ["127.0.0.1"]
    assert (
        "--cacert /no/such"
        in run(programs, "agent", "--url", "https://x", "--infra-env-id", UUID, "--cacert", "/no/such").stderr
    )


@pytest.mark.parametrize("text", ['"x"', "5", '{"a":1}', "[5]", "[null]", "["])
def test_arguments_of_a_wrong_type_are_refused(text: str) -> None:
    for step in (connectivity_check.step, free_addresses.step, vips_verifier.step):
        with pytest.raises(ValueError, match="argument"):
            step([text], Context())


def test_no_arguments_give_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "outgoing_nics", list)
    assert connectivity_check.step(["null"], Context()).output == '{"remote_hosts":null}'
    assert vips_verifier.step(["[]"], Context()).output == "null"
    assert free_addresses.step(["null"], Context()).output == "[]"


PROXIES = {
    "HTTP_PROXY": "proxy:3128",
    "https_proxy": "http://other:1",
    "NO_PROXY": "10.0.0.0/8, .inner.example,plain.example,api.example:6443,2001:db8::5",
}


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://192.0.2.1:8090/x", "http://proxy:3128"), ("https://192.0.2.1/x", "http://other:1"), ("http://10.1.2.3:8090", ""),
        ("http://localhost:8090", ""), ("http://127.0.0.9", ""), ("http://[::1]:8090", ""), ("http://[2001:db8::5]:8090", ""),
        ("http://a.inner.example", ""), ("http://inner.example", "http://proxy:3128"), ("http://plain.example", ""), ("http://a.plain.example", ""),
        ("http://notplain.example", "http://proxy:3128"), ("https://api.example:6443", ""), ("https://api.example", "http://other:1"),
    ],
)  # fmt: skip
def test_proxies(url: str, proxy: str) -> None:
    assert rest.proxy_of(url, PROXIES) == proxy
    assert rest.proxy_of(url, {**PROXIES, "NO_PROXY": "*"}) == rest.proxy_of(url, {}) == ""


def test_own_authorities_are_added_to_the_systems(tmp_path: Path) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=lab", "-keyout",
         tmp_path / "key", "-out", tmp_path / "ca.pem"], capture_output=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    known = rest.tls().cert_store_stats()["x509_ca"]
    assert rest.tls(cacert=str(tmp_path / "ca.pem")).cert_store_stats()["x509_ca"] == known + 1


def nic(name: str = "eth0", *addresses: str) -> Nic:
    import ipaddress

    return Nic(
        name, "52:54:00:00:00:01", "physical", 9000, [], [ipaddress.ip_interface(address) for address in addresses]
    )


def test_a_bad_address_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def ping(targets: list[str], *args: object, **more: object) -> dict[str, probes.Echo]:
        return {target: probes.Echo(10, [0.001] * 9) for target in targets}

    monkeypatch.setattr(probes, "ping", ping)
    monkeypatch.setattr(probes, "arp", lambda *args, **more: {"192.0.2.11": {"52:54:00:00:00:0b"}})
    peer = {
        "host_id": UUID,
        "nics": [{"name": "eth0", "mac": "52:54:00:00:00:0B", "ip_addresses": ["nonsense", "192.0.2.11/24", ""]}],
    }
    remote = connectivity_check.check([peer, {"nics": None}], [nic("eth0", "192.0.2.10/24")])["remote_hosts"]
    assert remote[0] == {"host_id": "", "l2_connectivity": None, "l3_connectivity": None, "mtu_report": None}
    assert [(link["remote_ip_address"], link["successful"]) for link in remote[1]["l3_connectivity"]] == [
        ("192.0.2.11", True),
        ("nonsense", False),
    ]
    assert remote[1]["l3_connectivity"][0]["packet_loss_percentage"] == 10
    assert [link["successful"] for link in remote[1]["l2_connectivity"]] == [True]
    assert [(entry["remote_ip_address"], entry["mtu_successful"]) for entry in remote[1]["mtu_report"]] == [
        ("192.0.2.11", True),
        ("nonsense", False),
    ]


def test_each_free_address_is_asked_for_where_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, set[str]] = {}

    def arp(name: str, mac: str, source: str, targets: list[str], **more: object) -> dict[str, set[str]]:
        asked[source] = set(targets)
        return {"10.0.0.9": {"m"}}

    def ping(targets: list[str], *args: object) -> dict[str, probes.Echo]:
        asked["echo"] = set(targets)
        return {target: probes.Echo(2, [0.1] if target == "10.0.0.2" else []) for target in targets}

    monkeypatch.setattr(probes, "arp", arp)
    monkeypatch.setattr(probes, "ping", ping)
    found = free_addresses.scan("10.0.0.0/28", [nic("eth0", "10.0.0.10/29")])
    assert asked == {
        "10.0.0.10": {f"10.0.0.{n}" for n in range(8, 16)} - {"10.0.0.10"},
        "echo": {f"10.0.0.{n}" for n in range(8)},
    }
    assert {f"10.0.0.{n}" for n in range(16)} - set(found["free_addresses"]) == {"10.0.0.2", "10.0.0.9", "10.0.0.10"}


def test_round_trip_by_the_kernels_clock() -> None:
    def arrived(at: float) -> list[tuple[int, int, bytes]]:
        return [(socket.SOL_SOCKET, probes.SO_TIMESTAMPNS, struct.pack("qq", int(at), round(at % 1 * 1e9)))]

    sent = (50.0, 1000.0)
    assert probes.round_trip(sent, 50.3, arrived(1000.01)) == pytest.approx(0.01)
    for stepped in (900.0, 4600.0):  # the clock was set in between
        assert probes.round_trip(sent, 50.3, arrived(stepped)) == pytest.approx(0.3)
    assert probes.round_trip(sent, 50.3, []) == pytest.approx(0.3)


LINKS = [
    {
        "ifname": "lo",
        "flags": ["LOOPBACK", "UP", "LOWER_UP"],
        "address": "00:00:00:00:00:00",
        "addr_info": [{"local": "::1", "prefixlen": 128}],
    },
    {
        "ifname": "nocarrier0",
        "flags": ["NO-CARRIER", "BROADCAST", "MULTICAST", "UP"],
        "address": "52:54:00:00:00:01",
        "mtu": 1500,
    },
    {
        "ifname": "nosys0",
        "flags": ["BROADCAST", "MULTICAST"],
        "address": "52:54:00:00:00:02",
        "linkinfo": {"info_kind": "bridge"},
    },
    {"ifname": "tun7", "flags": ["POINTOPOINT", "UP", "LOWER_UP"], "linkinfo": {"info_kind": "tun"}},
    {"ifname": "gre7", "flags": [], "address": "10.0.0.1", "linkinfo": {"info_kind": "gre"}},
    {
        "ifname": "six0",
        "flags": ["UP", "LOWER_UP"],
        "address": "52:54:00:00:00:03",
        "addr_info": [{"local": "2001:db8::1", "prefixlen": 128}],
    },
]


def test_interfaces_of_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        network,
        "ip",
        lambda *args: LINKS if "address" in args else [{"dst": "2001:db8::/64", "dev": "six0"}, {"dst": "default"}],
    )
    put(tmp_path, {"sys/class/net/six0/speed": "4294967295\n", "sys/class/net/nocarrier0/speed": "nonsense\n"})
    found = {entry["name"]: entry for entry in inventory.interfaces(tmp_path)}
    assert [(one["mac_address"], one["type"], one["flags"]) for one in found.values()] == [
        ("", "device", ["up", "loopback", "running"]), ("52:54:00:00:00:01", "device", ["up", "broadcast", "multicast"]),
        ("52:54:00:00:00:02", "bridge", ["broadcast", "multicast"]), ("", "tuntap", ["up", "pointtopoint", "running"]), ("", "gre", []),
        ("52:54:00:00:00:03", "device", ["up", "running"]),
    ]  # fmt: skip
    assert found["six0"]["ipv6_addresses"] == ["2001:db8::1/64"] and found["lo"]["ipv6_addresses"] == ["::1/128"]
    assert (found["six0"]["speed_mbps"], found["nocarrier0"]["speed_mbps"]) == (2**31 - 1, 0)


def test_routes_fit_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"type": "blackhole", "dst": "10.66.0.0/16"}, {"type": "unreachable", "dst": "2001:db8::/48", "dev": "lo", "metric": 4294967295},
            {"dst": "10.0.0.0/8", "nexthops": [{"dev": "eth1", "gateway": "10.0.0.2"}, {"dev": "eth2"}]}]  # fmt: skip
    monkeypatch.setattr(network, "ip", lambda *args: rows if args[0] == "-4" else [])
    assert [(one["interface"], one["destination"], one["gateway"], one["metric"]) for one in network.routes()] == [
        ("lo", "2001:db8::", "", -1), ("eth1", "10.0.0.0", "10.0.0.2", 0)
    ]  # fmt: skip


def block(root: Path, name: str, number: int, udev: str | bytes, home: str = "", **files: str) -> None:
    base = f"{home or 'devices/virtual'}/block/{name}"
    put(root, {f"sys/{base}/dev": f"{number}:0", f"sys/{base}/size": "2048", f"run/udev/data/b{number}:0": udev,
               **{f"sys/{base}/{key.replace('__', '/')}": value for key, value in files.items()}})  # fmt: skip
    (root / "sys/block").mkdir(exist_ok=True)
    (root / f"sys/block/{name}").symlink_to(f"../{base}")


def test_odd_disks(tmp_path: Path) -> None:
    iscsi = "E:ID_PATH=ip-192.0.2.1:3260-iscsi-iqn.{}-lun-0\n"
    block(
        tmp_path,
        "sda",
        1,
        iscsi.format("a"),
        "devices/platform/host2/session1/target2:0:0/2:0:0:1",
        device__state="running\n",
    )
    block(
        tmp_path,
        "sdb",
        2,
        iscsi.format("b"),
        "devices/platform/host3/session2/target3:0:0/3:0:0:1",
        device__state="offline\n",
    )
    for number, (name, kind, ese) in enumerate(
        (("dasda", "ECKD", "1"), ("dasdb", "ECKD", "0"), ("dasdc", "FBA", "0"), ("dasdd", "", ""))
    ):
        home = f"devices/css0/0.0.000{number}/0.0.020{number}"
        put(tmp_path, {f"sys/{home}/discipline": kind, f"sys/{home}/ese": ese})
        block(tmp_path, name, 10 + number, "", home)
    block(tmp_path, "dm-0", 20, "E:DM_WWN=0x7\nE:SCSI_IDENT_SERIAL=one\nE:ID_SERIAL_SHORT=two\n", dm__uuid="mpath-1")
    block(
        tmp_path,
        "sdc",
        21,
        b"E:ID_MODEL=Bad\xff Model\nE:ID_VENDOR=udev\n",
        device__vendor="My Vendor  \n",
        size="garbage",
    )
    put(tmp_path, {"sys/class/iscsi_session/session1/targetname": "iqn.a\n", "sys/class/iscsi_session/session2/targetname": "iqn.b\n",
                   "sys/class/iscsi_host/host2/ipaddress": "192.0.2.9\n", "sys/firmware/ibft/target0/target-name": "iqn.a\n"})  # fmt: skip
    found = {one["name"]: one for one in disks.disks(tmp_path)}
    reasons = {name: one["installation_eligibility"]["not_eligible_reasons"] for name, one in found.items()}
    assert reasons["sda"] is None and found["sda"]["iscsi"] == {"host_ip_address": "192.0.2.9"}
    assert reasons["sdb"] == ["iSCSI disk is not in running state", "iSCSI disk is missing from iBFT"]
    assert [found[f"dasd{letter}"]["drive_type"] for letter in "abcd"] == ["ECKD (ESE)", "ECKD", "FBA", "Unknown"]
    assert not any(reasons[f"dasd{letter}"] for letter in "abcd")
    assert (found["dm-0"]["drive_type"], found["dm-0"]["wwn"], found["dm-0"]["serial"]) == ("Multipath", "0x7", "one")
    assert (found["sdc"]["model"], found["sdc"]["vendor"], found["sdc"]["size_bytes"]) == (
        "Bad\ufffd Model",
        "My Vendor",
        0,
    )


def test_a_multipath_device_and_its_paths(tmp_path: Path) -> None:
    """What udev of the lab OS has of two iSCSI sessions to one LUN, which multipathd has made dm-0 of."""
    serial = "60000000000000000e00000000010001"
    for number, name in enumerate(("sda", "sdb"), 1):
        udev = (
            f"E:ID_VENDOR=IET\nE:ID_MODEL=VIRTUAL-DISK\nE:ID_SERIAL=3{serial}\nE:ID_SERIAL_SHORT={serial}\nE:ID_SCSI_SERIAL=one\n"
            f"E:ID_WWN_WITH_EXTENSION=0x{serial}\nE:ID_PATH=ip-192.168.14{number}.1:3260-iscsi-iqn.a-lun-1\n"
        )
        home = f"devices/platform/host{number}/session{number}/target{number}:0:0/{number}:0:0:1"
        block(tmp_path, name, number, udev, home, device__state="running\n")
        put(tmp_path, {f"sys/{home}/block/{name}/holders/dm-0/dev": "9:0\n", f"sys/class/iscsi_session/session{number}/targetname": "iqn.a\n",
                       f"sys/class/iscsi_host/host{number}/ipaddress": f"192.168.14{number}.20\n"})  # fmt: skip
    put(tmp_path, {"sys/firmware/ibft/target0/target-name": "iqn.a\n"})
    mapped = (
        f"E:DM_NAME=mpatha\nE:DM_UUID=mpath-3{serial}\nE:DM_TYPE=scsi\nE:DM_WWN=0x{serial}\nE:DM_SERIAL=3{serial}\n"
    )
    block(tmp_path, "dm-0", 9, mapped, dm__uuid=f"mpath-3{serial}\n")
    found = {one["name"]: one for one in disks.disks(tmp_path)}
    assert all(one["installation_eligibility"]["eligible"] for one in found.values())  # the service refuses paths
    assert [found[name]["holders"] for name in ("sda", "sdb", "dm-0")] == ["dm-0", "dm-0", ""]
    assert [found[name]["drive_type"] for name in ("sda", "sdb", "dm-0")] == ["iSCSI", "iSCSI", "Multipath"]
    assert {one["wwn"] for one in found.values()} == {f"0x{serial}"}
    assert [found["dm-0"][key] for key in ("path", "serial", "model", "vendor", "hctl")] == [
        "/dev/dm-0",
        "",
        "",
        "",
        "",
    ]


def test_machine_that_reports_nonsense(tmp_path: Path, tool: Tool) -> None:
    put(tmp_path, {"proc/cpuinfo": "processor : 0\ncpu MHz : fast\nmachine : IBM 8561\n", "sys/devices/system/cpu/present": "0-3,8\n",
                   "proc/meminfo": "MemTotal:\n", "sys/devices/system/memory/block_size_bytes": "0x?\n"})  # fmt: skip
    processor = inventory.cpu(tmp_path)
    assert (processor["count"], processor["frequency"], processor["model_name"]) == (5, 0.0, "IBM 8561")
    assert inventory.count_listed("0-") == 1 and inventory.count_listed("x") == inventory.count_listed("") == 0
    assert inventory.memory(tmp_path)["physical_bytes"] == 0
    put(tmp_path, {"sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n"})
    tool("systemd-detect-virt", "echo none; exit 1")
    assert inventory.system_vendor(tmp_path, ["hypervisor"])["virtual"] is False  # the root partition of Hyper-V


def test_gpu_names(tmp_path: Path) -> None:
    known = "# list\n10dd  Before\n10de  NVIDIA Corporation\n\t20af  Other\n\t20b0  GA100 [A100 SXM4 40GB]\n\t\t20b0 1234  Sub\nC 00  Class\n"
    device = "sys/bus/pci/devices/00:02.0"
    put(
        tmp_path,
        {
            f"{device}/class": "0x030200",
            f"{device}/vendor": "0x10de",
            f"{device}/device": "0x20b0",
            "usr/share/misc/pci.ids": known,
        },
    )
    assert gpus.find_gpus(tmp_path) == [
        {
            "address": "00:02.0",
            "vendor_id": "10de",
            "device_id": "20b0",
            "vendor": "NVIDIA Corporation",
            "name": "GA100 [A100 SXM4 40GB]",
        }
    ]


def test_bmc(tmp_path: Path, tool: Tool) -> None:
    assert (inventory.bmc_address(tmp_path), inventory.bmc_v6address(tmp_path)) == ("0.0.0.0", "::/0")
    put(tmp_path, {"dev/ipmi0": ""})
    dynamic = "IPv6 Dynamic Address 0:\\n    Source/Type:    DHCPv6\\n    Address:    ::/0\\n    Status:    active\\n"
    static = "IPv6 Static Address 0:\\n    Enabled:    yes\\n    Address:    2001:db8::7/64\\n    Status:    active\\n"
    tool(
        "ipmitool",
        f"""case "$*" in
"lan print 12") echo "IP Address Source       : Static"; echo "IP Address              : 192.0.2.77";;
"lan print 1") echo "IP Address              : 192.0.2.66"; exit 1;;
"lan6 print 12 enables") echo "IPv6/IPv4 Addressing Enables: both";;
"lan6 print 12 dynamic_addr") printf "{dynamic}";;
"lan6 print 12 static_addr") printf "{static}";;
*) echo "Invalid channel" >&2; exit 1;; esac""",
    )
    assert (inventory.bmc_address(tmp_path), inventory.bmc_v6address(tmp_path)) == ("192.0.2.77", "2001:db8::7")


def test_core_dumps_are_gathered(tmp_path: Path, tool: Tool) -> None:
    log = tool(
        "coredumpctl",
        """[ "$1" = dump ] && { [ $2 = 8 ] && exit 1; touch "$4"; exit; }
echo "Sun 2026-11-22 06:00:00 UTC 7 0 0 SIGSEGV present /usr/bin/crio 1.2M"
echo "Sun 2026-11-22 06:00:00 UTC 8 0 0 SIGABRT present /usr/bin/kubelet 1.2M"
echo "Sun 2026-11-22 06:00:00 UTC 9 0 0 SIGABRT missing /usr/bin/gone -"; echo""",
    )
    assert [*logs_sender.core_dumps(tmp_path)] == ["coredumpctl dump 8: exit code 1: "]
    assert (tmp_path / "coredump_exe_crio_pid_7").exists() and "dump 9" not in log.read_text()


def test_nothing_but_references_reaches_podman(tool: Tool) -> None:
    log = tool("podman", "exit 0")
    for images in ('["-x y"]', '["good/x;rm"]', '"x"', "[5]"):
        with pytest.raises(ValueError, match="list of image references"):
            container_image_availability.step([f'{{"images":{images},"timeout":9}}'], Context())
    assert not log.exists()
    log = tool("chronyc", "exit 0")
    for source in ('"-x"', '"a b"', '"a;b"', "5"):
        with pytest.raises(ValueError, match="Invalid NTP source"):
            ntp_synchronizer.step([f'{{"ntp_source":{source}}}'], Context())
    assert not log.exists()
    good = ("192.0.2.1", "2001:db8::1", "fe80::1%eth0", "ntp-1.example.org", "::1")
    assert all(ntp_synchronizer.SOURCE.fullmatch(text) for text in good)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"role": "toast"}, "role toast"),
        ({"host_id": "x"}, "host_id x is not a valid UUID"),
        ({"installer_image": "-x"}, "installer_image -x is not a valid image"),
        ({"mco_image": "a b"}, "mco_image a b"), ({"proxy": {"https_proxy": "https://h:1"}}, "should start with http://"),
        ({"service_ips": ["x"]}, "'x' does not appear"), ({"installer_args": '["--nonsense"]'}, "unexpected flag --nonsense"),
        ({"must_gather_image": "ba d"}, "ba d is not an image"),
    ],
)  # fmt: skip
def test_install_requests_as_the_upstream_refuses_them(
    change: dict[str, Any], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "known_disk", str)
    request = {"cluster_id": UUID, "infra_env_id": UUID, "host_id": UUID, "role": "master", "boot_device": "/dev/null",
               "installer_args": '["--append-karg", "ip=dhcp", "-n"]', "controller_image": "reg:5000/c@sha256:12",
               "installer_image": "reg.example/i:1", "proxy": {"http_proxy": "http://u:p@h:1"}, "service_ips": ["192.0.2.1"]}  # fmt: skip
    install.validate(request)
    with pytest.raises(ValueError, match=problem):
        install.validate({**request, **change})


DRY = Context(dry=Dry(True, UUID, "192.0.2.99/24", "52:54:00:00:00:99", "dry-7"))


def test_rehearsal(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output of upstream's programs in a dry run, which does not touch the machine."""
    log = tool("podman", "exit 1")
    monkeypatch.setattr(network, "outgoing_nics", lambda: [nic("eth0", "192.0.2.10/24")])
    peer = {"host_id": UUID, "nics": [{"name": "eth0", "mac": "52:54:00:00:00:0b", "ip_addresses": ["192.0.2.11"]}]}
    (remote,) = json.loads(connectivity_check.step([json.dumps([peer])], DRY).output)["remote_hosts"]
    assert remote["l2_connectivity"][0]["successful"] and remote["l3_connectivity"] == [
        {"remote_ip_address": "192.0.2.11", "successful": True}
    ]
    assert (
        disk_speed_check.step(['{"path":"/dev/nowhere"}', "5"], DRY).output
        == '{"io_sync_duration":1,"path":"/dev/nowhere"}'
    )
    image = container_image_availability.step(['{"images":["reg/a"]}'], DRY).output
    assert (
        image == '{"images":[{"download_rate":100,"name":"reg/a","result":"success","size_bytes":400000000,"time":10}]}'
    )
    assert ntp_synchronizer.step(['{"ntp_source":"192.0.2.1"}'], DRY).output == '{"ntp_sources":[]}'
    assert '"succeeded"' in vips_verifier.step(['[{"vip":"192.0.2.10","vip_type":"api"}]'], DRY).output
    assert not log.exists()
    told = inventory.rehearsed_inventory(
        {
            "hostname": "h",
            "interfaces": [{"name": "lo", "ipv4_addresses": []}, {"name": "e", "ipv4_addresses": ["1.1.1.1/8"]}],
        },
        DRY.dry,
    )
    assert told == {
        "hostname": "dry-7",
        "interfaces": [{"name": "e", "ipv4_addresses": ["192.0.2.99/24"], "mac_address": "52:54:00:00:00:99"}],
    }


def test_rehearsal_ends_with_its_reboot(tmp_path: Path) -> None:
    import threading

    stop, marker = threading.Event(), tmp_path / "reboot"
    thread = threading.Thread(target=next_step_runner.watch, args=(stop, str(marker)))
    thread.start()
    marker.touch()
    thread.join(5)
    assert stop.is_set()


def test_last_instruction_is_given_its_time() -> None:
    me = protocol.Identity(UUID, UUID, "image")
    conversation = protocol.poll(me, protocol.ReplyCache())
    next(conversation)
    answer = {"next_instruction_seconds": 5, "post_step_action": "exit", "instructions": []}
    assert conversation.send(protocol.Response(200, answer)) == protocol.Wait(5, poll=True)
    with pytest.raises(StopIteration):
        conversation.send(False)


def test_invalid_names() -> None:
    with pytest.raises(ValueError, match="must have a domain name"):
        domain_resolution.step(['{"domains":[{}]}'], Context())
    with pytest.raises(ValueError, match="must have a domain name"):
        domain_resolution.step(['{"domains":"x"}'], Context())
    (bad,) = json.loads(domain_resolution.step(['{"domains":[{"domain_name":"bad name!"}]}'], Context()).output)[
        "resolutions"
    ]
    assert bad == {"cnames": None, "domain_name": "bad name!", "ipv4_addresses": [], "ipv6_addresses": []}


def test_tools_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="chronyc: No such file"):
        ntp_synchronizer.step(['{"ntp_source":""}'], Context())
    result = container_image_availability.step(['{"images":["reg/a"],"timeout":5}'], Context())
    assert result.exit_code == 2 and "podman: No such file" in result.error
    assert host.run(["no-such-program"]).exit_code == host.NOT_FOUND
    assert network.nics() == [] and network.routes() == []
