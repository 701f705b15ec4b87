"""Several hypervisors: one L2 network over VXLAN between them, all BMCs behind one address. No machine runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

from tests import hosts

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
TWO = {"topology": "compact", "stack": "dualstack", "hypervisors": [{"name": "second"}]}
GATEWAYS = {"192.168.111.1": 1472, "fd2e:6f44:5dd8:c956::1": 1452}
"""Addresses of the first hypervisor, and the payload of a UDP datagram that makes a packet of 1500 bytes."""
NODE = """
set -e
ip link set lo up
ip link add port address 52:54:00:00:00:01 type veth peer name eth0 address "$0"
ip link set port master agtestbm up
ip link set eth0 up
"""
"""In the sandbox, what is connected to the bridge as a machine with the MAC $0."""
OFFER = r"""
import socket, struct, sys
mac = bytes.fromhex(sys.argv[1].replace(":", ""))
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
client.bind(("", 68))
client.settimeout(10)
asked = struct.pack("!BBBBIHH16s16s64s128s4s", 1, 1, 6, 0, 7, 0, 0x8000, b"", mac, b"", b"", bytes.fromhex("63825363"))
client.sendto(asked + bytes.fromhex("350101ff"), ("255.255.255.255", 67))
print(socket.inet_ntoa(client.recv(2048)[16:20]))
"""
"""DHCPDISCOVER (RFC 2131) with the MAC sys.argv[1]; prints the offered address."""
WHOLE = r"""
import socket, sys
address, size = sys.argv[1], int(sys.argv[2])
six = ":" in address
client = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP, 23 if six else 10, 2)  # MTU_DISCOVER: DO
client.connect((address, 5353))
client.settimeout(10)
client.send(bytes(size))
print(len(client.recv(2048)))
"""
"""Sends a datagram of sys.argv[2] bytes to the address sys.argv[1], unfragmented, and prints the size of the echo."""
ECHO = r"""
import select, socket
servers = [socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6)]
servers[1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
for server in servers:
    server.bind(("", 5353))
print("ready", flush=True)
while True:
    for server in select.select(servers, [], [])[0]:
        server.sendto(*server.recvfrom(2048))
"""


def running(one: Any, name: str = "") -> namespaces.RunningSandbox:
    state_dir = Path(f"{one.state_dir}{name and '-' + name}")
    return namespaces.RunningSandbox(**json.loads((state_dir / "sandbox.json").read_text()))


def inside(one: Any, name: str, *command: str, check: bool = True) -> str:
    """Run a command in the sandbox of a further hypervisor and return its output."""
    words = [*namespaces.enter(one.host), *namespaces.enter(running(one, name)), *command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def at(host: namespaces.RunningSandbox, *command: str) -> str:
    """Run a command on a host and return its output."""
    done = subprocess.run([*namespaces.enter(host), *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def agentlab(one: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "AGENTLAB_RUNS": str(one.run_dir.parent)}
    command = [*namespaces.enter(one.host), sys.executable, "-m", CLI, *arguments, "--cluster", "agtest"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_two_sandboxes_are_one_lab(lab: Any, traces: Any) -> None:
    before = traces()
    one = lab("agtest", TWO)
    one.play("prepare")
    assert [node.get("hypervisor") for node in one.plan["nodes"]] == [None, "second", None]
    assert one.enter("virsh", "list", "--all", "--name").split() == ["agtest_master_0", "agtest_master_2"]
    assert inside(one, "second", "virsh", "list", "--all", "--name").split() == ["agtest_master_1"]
    # A machine can start there; no instruction of it is executed.
    inside(one, "second", "virsh", "start", "--paused", "agtest_master_1")
    inside(one, "second", "virsh", "destroy", "agtest_master_1")
    # A packet of 1500 bytes passes as it is.
    with subprocess.Popen([*one.inside(), sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True) as echo:
        assert echo.stdout and echo.stdout.readline() == "ready\n"
        for gateway, size in GATEWAYS.items():
            assert int(inside(one, "second", sys.executable, "-c", WHOLE, gateway, str(size))) == size
        echo.kill()
    # DHCP and DNS are those of the first hypervisor, and of it alone.
    comm = "for pid in /proc/[0-9]*; do cat $pid/comm; done"
    assert "dnsmasq" not in inside(one, "second", "sh", "-c", comm).split()
    [node] = [node for node in one.plan["nodes"] if node.get("hypervisor")]
    mac = node["nics"][0]["mac"]
    plug = [sys.executable, "-c", OFFER, mac]
    inside(one, "second", "sh", "-c", NODE, mac)
    assert inside(one, "second", *plug).strip() == node["nics"][0]["addresses"][0]["ip"]
    inside(one, "second", "ip", "link", "delete", "port")
    # All BMCs are behind one address, with sessions and passwords of the first.
    status = json.loads(agentlab(one, "status", "-o", "json").stdout)
    assert {(host["power"], host["medium"], host["problem"]) for host in status["hosts"]} == {("off", None, None)}
    assert {*re.findall(r"changed=(\d+)", one.play("prepare")[1])} == {"0"}
    # One that goes away is named, and prepare brings it back.
    os.kill(host_pid(one), signal.SIGKILL)
    done = agentlab(one, "power", "master-1")
    assert done.returncode == 1 and "hypervisor second: its BMCs at" in done.stderr, done.stdout + done.stderr
    assert agentlab(one, "power", "master-0").stdout.strip().endswith("off")
    one.play("prepare")
    assert agentlab(one, "power", "master-1").stdout.strip().endswith("off")
    one.play("destroy")
    assert traces() == before
    assert not one.parent.exists()


def test_the_second_is_reached_by_ssh(lab: Any, traces: Any, far: namespaces.RunningSandbox, base: Path) -> None:
    second = {"name": "second", "kind": "ssh", "host": "192.0.2.2", "user": "root", "address": "192.0.2.2"}
    profile = {
        "topology": "compact",
        "hypervisor": {"address": "192.0.2.1"},
        "hypervisors": [{**second, "state_dir": str(base / "there")}],
    }

    before = traces(), hosts.traces(far)
    one = lab("agtest", profile)
    one.play("prepare")
    assert at(far, "virsh", "list", "--all", "--name").split() == ["agtest_master_1"]
    with subprocess.Popen([*one.inside(), sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True) as echo:
        assert echo.stdout and echo.stdout.readline() == "ready\n"
        assert int(at(far, sys.executable, "-c", WHOLE, "192.168.111.1", "1472")) == 1472
        echo.kill()
    assert agentlab(one, "power", "master-1").stdout.strip().endswith("off")
    assert {*re.findall(r"changed=(\d+)", one.play("prepare")[1])} == {"0"}
    # While it is away, what is on it stays in the list of what `destroy` removes.
    at(far, "ip", "link", "set", "dev", "under", "down")
    done = subprocess.run(
        one.command("destroy"), capture_output=True, text=True, env=one.environment(), cwd=ROOT, check=False
    )
    assert done.returncode and "second" in done.stdout and "UNREACHABLE" in done.stdout, done.stdout + done.stderr
    assert not one.state_dir.exists() and (one.run_dir / "state.json").exists()
    at(far, "ip", "link", "set", "dev", "under", "up")
    one.play("destroy")
    assert (traces(), hosts.traces(far)) == before
    assert not (one.run_dir / "state.json").exists() and not (base / "there").exists()


def test_one_that_does_not_fit_is_refused(lab: Any, traces: Any, far: namespaces.RunningSandbox, base: Path) -> None:
    second = {"name": "second", "kind": "ssh", "host": "192.0.2.2", "user": "root", "address": "192.0.2.2"}
    here = {"address": "192.0.2.1", "domain_type": "qemu"}
    one = lab(
        "agtest",
        {"topology": "compact", "hypervisor": here, "hypervisors": [{**second, "state_dir": str(base / "there")}]},
    )
    program = base / "ssh/bin/qemu-system-x86_64"
    program.parent.mkdir()

    def refused() -> str:
        before = traces(), hosts.traces(far)
        done = agentlab(one, "prepare")
        assert done.returncode in (2, 4) and done.stderr.count("first failure: ") == 1, done.stdout + done.stderr
        assert (traces(), hosts.traces(far)) == before
        assert not one.parent.exists() and not (base / "there").exists()
        return done.stderr

    program.write_text("#!/bin/sh\necho QEMU emulator version 3.1.0\n")
    program.chmod(0o755)
    assert re.search(
        r"\[second\]: hypervisor second has QEMU 3\.1, and the first one \d+\.\d+: install the same version on both",
        refused(),
    )
    program.write_text("#!/bin/sh\nexit 1\n")
    assert "[second]: hypervisor second: qemu-system-x86_64 does not run: " in refused()
    at(far, "ip", "link", "set", "dev", "under", "down")
    assert (
        "[second]: " in (printed := refused())
        and "192.0.2.2" in printed
        and "Next: start root@192.0.2.2 and its sshd" in printed
    )


def test_logs_of_all_are_gathered(lab: Any, far: namespaces.RunningSandbox, base: Path) -> None:
    second = {"name": "second", "kind": "ssh", "host": "192.0.2.2", "user": "root", "address": "192.0.2.2"}
    profile = {
        "topology": "compact",
        "hypervisor": {"address": "192.0.2.1"},
        "hypervisors": [{**second, "state_dir": str(base / "there")}, {"name": "third"}],
    }
    one = lab("agtest", profile)
    one.play("prepare")
    report = one.run_dir / "report"
    # Of each, a machine with a console and a log of QEMU.
    at(far, "virsh", "start", "--paused", "agtest_master_1")
    one.enter("virsh", "start", "--paused", "agtest_master_0")
    inside(one, "third", "virsh", "start", "--paused", "agtest_master_2")
    (base / "there/agtest-second/console/agtest_master_1.log").write_bytes(b"password=canary\r\n")

    def gathered(number: int, service: str) -> list[str]:
        domain = f"agtest_master_{number}"
        wanted = (
            f"console/{domain}.log",
            f"libvirt/{domain}.xml",
            f"libvirt/qemu/{domain}.log",
            f"services/{service}.log",
        )
        return [name for name in wanted if (report / name).exists()]

    def summary() -> str:
        shutil.rmtree(report, ignore_errors=True)
        one.play("gather")
        assert not list(one.run_dir.glob("logs/*.xz"))
        assert {path.stat().st_mode & 0o777 for path in report.rglob("*") if path.is_file()} == {0o600}
        return (report / "summary.txt").read_text()

    printed = summary()
    assert "hypervisor" not in printed.replace("(hypervisor", ""), printed
    assert [len(gathered(0, "bmc")), len(gathered(1, "second-bmc")), len(gathered(2, "third-bmc"))] == [4, 4, 4], (
        printed
    )
    assert (report / "libvirt/second-agtestbm.xml").exists() and "is paused" in printed
    assert "canary" not in (report / "console/agtest_master_1.log").read_text()
    # One that has gone away is named, and the others are collected: what a sandbox has left, too.
    at(far, "ip", "link", "set", "dev", "under", "down")
    os.kill(host_pid(one, "third"), signal.SIGKILL)
    printed = summary()
    assert "not gathered: hypervisor second: nothing was fetched from 192.0.2.2" in printed, printed
    assert "not gathered: hypervisor third, libvirt: cluster agtest has no running sandbox" in printed, printed
    assert [len(gathered(0, "bmc")), len(gathered(1, "second-bmc"))] == [4, 0], printed
    assert "libvirt/agtest_master_2.xml" not in printed and len(gathered(2, "third-bmc")) == 3, printed
    at(far, "ip", "link", "set", "dev", "under", "up")
    one.play("destroy")
    assert at(far, "ls", "/var/log/libvirt/qemu") == ""


def host_pid(one: Any, name: str = "second") -> int:
    """Return the pid of the first process of another sandbox, as this process sees it: the host is a sandbox itself."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if (
            f"AGENTLAB_PROCESS={one.state_dir}-{name}/keeper".encode() in environment
            and b"keeper" in Path(f"/proc/{entry}/cmdline").read_bytes()
        ):
            return int(entry)
    raise AssertionError(f"the sandbox {name} has no first process")
