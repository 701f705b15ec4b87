"""Several hypervisors: two sandboxes of one host, one L2 network over VXLAN between them, all BMCs behind one address. No machine is started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

pytestmark = pytest.mark.slow

CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
TWO = {"topology": "compact", "stack": "dualstack", "hypervisors": [{"name": "second"}]}
GATEWAYS = ("192.168.111.1", "fd2e:6f44:5dd8:c956::1")
NODE = """
set -e
ip link set lo up
ip link add port type veth peer name eth0
ip link set port master agtestbm up
ip link set eth0 address "$0"
ip link set eth0 netns "$1"
"""


def running(one: Any, name: str = "") -> namespaces.Running:
    state_dir = Path(f"{one.state_dir}{name and '-' + name}")
    return namespaces.Running(**json.loads((state_dir / "sandbox.json").read_text()))


def inside(one: Any, name: str, *command: str, check: bool = True) -> str:
    """Run a command in the sandbox of a further hypervisor and return its output."""
    words = [*namespaces.enter(one.host), *namespaces.enter(running(one, name)), *command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def agentlab(one: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**one.environment(), "AGENTLAB_RUNS": str(one.run_dir.parent)}
    command = [*namespaces.enter(one.host), sys.executable, "-m", CLI, *arguments, "--cluster", "agtest"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_two_sandboxes_are_one_lab(lab: Any, traces: Any) -> None:
    before = traces()
    one = lab("agtest", TWO)
    one.play("prepare")
    assert [node.get("hypervisor") for node in one.plan["nodes"]] == [None, "second", None]
    assert one.enter("virsh", "list", "--all", "--name").split() == ["agtest_master_0", "agtest_master_2"]
    assert inside(one, "second", "virsh", "list", "--all", "--name").split() == ["agtest_master_1"]
    # Guests keep their MTU: a packet of 1500 bytes passes without being fragmented.
    for gateway in GATEWAYS:
        size = 1472 if "." in gateway else 1452
        inside(one, "second", "ping", "-c", "1", "-W", "5", "-M", "do", "-s", str(size), gateway)
    # DHCP, DNS and router advertisements are those of the first.
    assert "dnsmasq" not in inside(one, "second", "ps", "-eo", "comm=")
    # All BMCs are behind one address, with sessions and passwords of the first.
    status = json.loads(agentlab(one, "status", "-o", "json").stdout)
    assert {(host["power"], host["medium"], host["problem"]) for host in status["hosts"]} == {("off", None, None)}
    assert one.play("prepare")[1].count("changed=0") == 2
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


def host_pid(one: Any) -> int:
    """Return the pid of the second sandbox's first process, as this process sees it: the host is a sandbox itself."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"AGENTLAB_PROCESS={one.state_dir}-second/keeper".encode() in environment and b"keeper" in Path(
            f"/proc/{entry}/cmdline"
        ).read_bytes():
            return int(entry)
    raise AssertionError("the second sandbox has no first process")
