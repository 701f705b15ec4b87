"""Who reaches a lab through its host: three network namespaces play a neighbour, the host and the sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import names
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import processes
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
GATEWAY, LAN_HOST, LAN_NEIGHBOUR = "192.168.111.1", "192.0.2.1", "192.0.2.2"
PORTS = {"bmc": 8000, "registry": 5000, "http": 8089, "ntp": 10123}
NETWORK = {
    "name": "nbbm",
    "bridge": "nbbm",
    "nat": False,
    "subnets": [{"family": "ipv4", "cidr": "192.168.111.0/24", "gateway": GATEWAY}],
}
SERVER = """
import socket, sys, threading
def serve(port):
    with socket.create_server(("", int(port))) as server:
        while True:
            server.accept()[0].close()
for port in sys.argv[1:]:
    threading.Thread(target=serve, args=(port,)).start()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1.5).close()"
REMOVE = """
import sys
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import uplink
print(uplink.exists(*sys.argv[1:]), uplink.remove(*sys.argv[1:]))
"""
# In the host's namespace: what `prepare` does there.
ENSURE = """
import json, sys
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces, uplink
plan, running = json.loads(sys.argv[1]), json.loads(sys.argv[2])
done = uplink.ensure(namespaces.RunningSandbox(**running), plan) if running else uplink.guard_services(plan)
print(len(done))
"""


class Place:
    """A network namespace with a process that keeps it."""

    def __init__(self, name: str) -> None:
        self.name = f"nb-{os.getpid()}-{name}"
        run("ip", "netns", "add", self.name)
        self.keeper = subprocess.Popen(["ip", "netns", "exec", self.name, "sleep", "600"])
        self.servers: list[subprocess.Popen[bytes]] = []
        self("ip", "link", "set", "lo", "up")

    def __call__(self, *command: str) -> str:
        return run("ip", "netns", "exec", self.name, *command)

    def python(self, program: str, *arguments: str) -> str:
        return self(sys.executable, "-c", program, *arguments)

    def serve(self) -> None:
        self.servers.append(
            subprocess.Popen(
                ["ip", "netns", "exec", self.name, sys.executable, "-c", SERVER, *map(str, PORTS.values())]
            )
        )
        for port in PORTS.values():
            for __ in range(100):
                if self.reaches("127.0.0.1", port):
                    break
                time.sleep(0.1)

    def reaches(self, address: str, port: int) -> bool:
        command = ["ip", "netns", "exec", self.name, sys.executable, "-c", CONNECT, address, str(port)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def close(self) -> None:
        for process in (*self.servers, self.keeper):
            process.kill()
            process.wait()
        run("ip", "netns", "delete", self.name)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.fixture
def places() -> Iterator[dict[str, Place]]:
    made = {name: Place(name) for name in ("neighbour", "host", "sandbox")}
    neighbour, host, sandbox = made.values()
    run("ip", "link", "add", "lan", "netns", host.name, "type", "veth", "peer", "name", "lan", "netns", neighbour.name)
    for place, address in ((host, LAN_HOST), (neighbour, LAN_NEIGHBOUR)):
        place("ip", "address", "add", f"{address}/24", "dev", "lan")
        place("ip", "link", "set", "lan", "up")
    host("ip", "route", "add", "default", "via", LAN_NEIGHBOUR)
    neighbour("ip", "route", "add", "default", "via", LAN_HOST)
    host("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    for place in (sandbox, host):
        place("ip", "link", "add", "nbbm", "type", "bridge")
    sandbox("ip", "address", "add", f"{GATEWAY}/24", "dev", "nbbm")
    sandbox("ip", "link", "set", "nbbm", "up")
    yield made
    for place in made.values():
        place.close()


def plan(tmp_path: Path, **hypervisor: Any) -> str:
    return json.dumps({
        "cluster": {"name": "nb"}, "networks": [NETWORK], "services": {name: {"port": port} for name, port in PORTS.items()},
        "hypervisor": {"kind": "sandbox", "egress": False, "route": False, "state_dir": str(tmp_path / "nb"),
                       "uplink": names.uplink("nb"), **hypervisor},
    })  # fmt: skip


def claim(tmp_path: Path) -> str:
    """Make the state directory of the cluster; return its mark."""
    who = owner.Owner("nb", str(tmp_path / "run"), 0, "root", "lab", "")
    return owner.claim(tmp_path / "nb", owner.Caller(who)).mark


def connect(places: dict[str, Place], tmp_path: Path, **hypervisor: bool) -> None:
    claim(tmp_path)
    pid = places["sandbox"].keeper.pid
    running = {
        "cluster": "nb",
        "netns": places["sandbox"].name,
        "pid": pid,
        "start": processes.start_time(pid),
        "work": str(tmp_path / "nb/work"),
    }
    text = plan(tmp_path, **hypervisor)
    assert places["host"].python(ENSURE, text, json.dumps(running)).strip() == "1"
    assert places["host"].python(ENSURE, text, json.dumps(running)).strip() == "0"


@pytest.mark.parametrize(
    "hypervisor",
    [
        pytest.param({"egress": True}, marks=pytest.mark.slow),
        pytest.param({"route": True}, marks=pytest.mark.slow),
        pytest.param({"egress": True, "route": True}, marks=pytest.mark.slow),
    ],
    ids="-".join,
)
def test_only_this_host_reaches_a_sandbox(
    places: dict[str, Place], tmp_path: Path, hypervisor: dict[str, bool]
) -> None:
    neighbour, host, sandbox = places.values()
    sandbox.serve()
    connect(places, tmp_path, **hypervisor)
    inside = names.uplink("nb")["address"]
    for port in PORTS.values():
        assert host.reaches(inside, port)
        assert host.reaches(GATEWAY, port) == bool(hypervisor.get("route"))
        assert not neighbour.reaches(inside, port)
        assert not neighbour.reaches(GATEWAY, port)
    # A host that masquerades what it forwards, as those with containers do, changes nothing.
    host(
        "nft",
        "add table ip theirs; add chain ip theirs post { type nat hook postrouting priority 100; }; add rule ip theirs post masquerade",
    )
    assert not neighbour.reaches(GATEWAY, PORTS["bmc"]) and not neighbour.reaches(inside, PORTS["bmc"])


def test_the_way_out_stays_open(places: dict[str, Place], tmp_path: Path) -> None:
    neighbour, __, sandbox = places.values()
    neighbour.serve()
    connect(places, tmp_path, egress=True)
    assert sandbox.reaches(LAN_NEIGHBOUR, PORTS["http"])


def test_only_this_host_reaches_services_without_a_sandbox(places: dict[str, Place], tmp_path: Path) -> None:
    """Linux takes packets for the gateway's address on any device, also of a host that forwards nothing."""
    neighbour, host, __ = places.values()
    host("ip", "address", "add", f"{GATEWAY}/24", "dev", "nbbm")
    host("ip", "link", "set", "nbbm", "up")
    host.serve()
    assert neighbour.reaches(GATEWAY, PORTS["bmc"])
    claim(tmp_path)
    text = plan(tmp_path, kind="local")
    assert host.python(ENSURE, text, "null").strip() == "1"
    assert host.python(ENSURE, text, "null").strip() == "0"
    for port in PORTS.values():
        assert host.reaches(GATEWAY, port)
        assert not neighbour.reaches(GATEWAY, port)
    assert "agentlab-nb" in host("nft", "list", "tables")


@pytest.mark.parametrize("kind", ["sandbox", pytest.param("local", marks=pytest.mark.slow)])
def test_another_cluster_of_the_name_keeps_its_rules(places: dict[str, Place], tmp_path: Path, kind: str) -> None:
    """Two users, two state directories, one name: links and tables of the first are neither replaced nor removed."""
    host = places["host"]
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    marks = claim(first), claim(second)
    if kind == "sandbox":
        connect(places, first, egress=True)
    else:
        assert host.python(ENSURE, plan(first, kind="local"), "null").strip() == "1"

    def seen() -> str:
        return host("nft", "list", "ruleset") + host("ls", "/sys/class/net")

    before = seen()
    assert "agentlab-nb" in before
    with pytest.raises(
        AssertionError,
        match=r"the (link al-nb|nftables table inet agentlab-nb) of this host does not have the cluster's mark",
    ):
        host.python(ENSURE, plan(second, kind="local"), "null")
    with pytest.raises(AssertionError, match="does not have the cluster's mark"):
        connect(places, second, egress=True)
    assert host.python(REMOVE, "nb", marks[1]).strip() == "False False"
    assert host.python(REMOVE, "nb", "").strip() == "False False"
    assert seen() == before
    assert host.python(REMOVE, "nb", marks[0]).strip() == "True True"
    assert "agentlab-nb" not in seen() and "al-nb" not in seen()
