"""Faults of machines, cables and media in a real libvirt, at triggers that a service reports."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faultd, namespaces

sys.path.insert(0, str(Path(__file__).parent))
import guest
import small_lab

pytestmark = pytest.mark.slow

# A file server in place of the rendezvous host returns the service's responses.
SERVICE = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        cluster = json.load(open(sys.argv[1]))
        answer = json.dumps(cluster if self.path.endswith('/c') else [cluster]).encode()
        self.send_response(200); self.send_header('Content-Length', str(len(answer))); self.end_headers(); self.wfile.write(answer)
    def log_message(self, *args): pass
http.server.HTTPServer(('', 8090), Handler).serve_forever()
"""
# Without a listener, a reachable host refuses the connection.
PROBE = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), 5)
except ConnectionRefusedError:
    print('heard')
except OSError:
    print('deaf')
"""
SECONDS = 180
BYTES_PER_SECOND = 200_000
# 1 MiB of the medium, in requests of the machine's drive that are short enough to be delayed one by one.
READ = 1 << 20
READS = """for n in $(seq 0 15); do
virsh qemu-monitor-command agtest_master_0 --hmp "qemu-io -d scsi0-0-0-1 \\"read -q $((n * 65536)) 65536\\""
done"""


def until(test: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not test():
        assert time.monotonic() < end, what
        time.sleep(0.2)


@pytest.fixture
def faulty(lab: Any) -> Any:
    """A single node, booted from an image of a few hundred bytes, with faults."""

    def make(*faults: dict[str, Any]) -> Any:
        one = lab(
            "agtest",
            {
                "faults": [
                    {**({"node": "master-0"} if fault["kind"] != "service_down" else {}), **fault} for fault in faults
                ]
            },
        )
        one.play("prepare")
        guest.iso(one.run_dir / "agent.x86_64.iso", "an image")
        state = {
            "*image.Ignition": {"RendezvousIP": "192.168.111.1"},
            "*gencrypto.AuthConfig": {"WatcherAuthToken": "token"},
        }
        (one.run_dir / ".openshift_install_state.json").write_text(json.dumps(state))
        (one.run_dir / "service.json").write_text(json.dumps({"id": "c", "status": "insufficient", "hosts": []}))
        program = one.run_dir / "service.py"
        program.write_text(SERVICE)
        one.enter("sh", "-c", f"{sys.executable} {program} {one.run_dir}/service.json >/dev/null 2>&1 </dev/null &")
        assert one.play("boot")[0] == 2
        assert one.play("boot")[0] == 0
        return one

    return make


def domain(one: Any, *command: str) -> str:
    return one.enter("virsh", command[0], "agtest_master_0", *command[1:])


def log(one: Any) -> str:
    return (one.state_dir / "services/faults/log").read_text()


def test_from_the_boot_on(faulty: Any, guests: None) -> None:
    one = faulty(
        {"kind": "link_down"},
        {"kind": "mtu", "mtu": 1300},
        {"kind": "service_down", "service": "ntp", "seconds": 3},
        {"kind": "eject"},
    )
    mac = one.plan["nodes"][0]["nics"][0]["mac"]
    until(lambda: log(one).count(" begins ") == 4, log(one))
    assert "down" in domain(one, "domif-getlink", mac)
    device = next(line.split()[0] for line in domain(one, "domiflist").splitlines() if mac in line)
    assert one.enter("cat", f"/sys/class/net/{device}/mtu").strip() == "1300"
    for which in ("--details", "--inactive"):
        assert "agent" not in domain(one, "domblklist", which), (
            "the medium is out, and will be when the power comes back"
        )
    until(lambda: "service_down ntp ends" in log(one), log(one))
    assert one.play("prepare")[0] == 0  # the service that came back is known as the lab's
    assert (one.state_dir / "processes/faults.json").exists()


def test_at_their_triggers(faulty: Any, guests: None) -> None:
    one = faulty(
        {"kind": "pause", "when": "known", "seconds": 4},
        {"kind": "disk_lost", "when": "Installing"},
        {"kind": "power_off", "when": "Writing image to disk", "seconds": 2},
    )
    service = one.run_dir / "service.json"
    host = {
        "status": "known",
        "requested_hostname": "master-0",
        "progress": {},
        "progress_stages": ["Installing", "Writing image to disk"],
    }

    def update(**more: Any) -> None:
        service.write_text(json.dumps({"id": "c", "status": "installing", "hosts": [host | more]}))

    assert domain(one, "domstate").strip() == "running"
    update()
    until(lambda: domain(one, "domstate").strip() == "paused", log(one))
    until(lambda: domain(one, "domstate").strip() == "running", log(one))
    before = domain(one, "domid")
    update(status="installing", progress={"current_stage": "Writing image to disk"})
    until(lambda: "power_off master-0 ends" in log(one), log(one))
    assert domain(one, "domid") != before
    assert "disk_lost master-0 begins" in log(one)


def test_one_does_not_receive_from_the_other(lab: Any) -> None:
    """Two hosts on the lab's bridge, as namespaces with the nodes' MACs: the replies of one never arrive, its requests do."""
    one = lab("agtest", {"topology": "compact"})
    one.play("prepare")
    macs = [node["nics"][0]["mac"] for node in one.plan["nodes"][:2]]
    script = "\n".join(
        f"ip netns add n{i}; ip link add v{i} type veth peer name eth0 netns n{i}; ip link set v{i} master agtestbm up\n"
        f"ip -n n{i} link set eth0 address {mac} up; ip -n n{i} address add 192.168.111.{50 + i}/24 dev eth0"
        for i, mac in enumerate(macs)
    )
    one.enter("sh", "-ec", script)
    (one.run_dir / "probe.py").write_text(PROBE)

    def receives(asking: str, address: str) -> bool:
        return (
            one.enter("ip", "netns", "exec", asking, sys.executable, str(one.run_dir / "probe.py"), address).strip()
            == "heard"
        )

    assert receives("n1", "192.168.111.50")
    config = {"nodes": {f"master-{i}": {"nics": {"eth0": mac}} for i, mac in enumerate(macs)}}
    fault = {"kind": "arp_one_way", "node": "master-1", "peer": "master-0"}
    code = f"import sys; sys.path.insert(0, {str(Path(faultd.__file__).parent)!r}); import faultd; lab = faultd.Lab({config!r})\n"
    one.enter("sh", "-c", "ip -n n1 neigh flush all; ip -n n0 neigh flush all")
    one.enter(sys.executable, "-c", f"{code}lab.arp_one_way({fault!r}, None)")
    assert not receives("n1", "192.168.111.50")
    assert receives("n1", "192.168.111.1")
    one.enter(sys.executable, "-c", f"{code}lab.arp_both_ways({fault!r}, None)")
    assert receives("n1", "192.168.111.50")


def by_hand(one: Any, *arguments: str) -> None:
    """Call `agentlab fault` on the host of the lab."""
    verb = [sys.executable, "-m", small_lab.CLI, "fault", *arguments, "--cluster", one.cluster]
    subprocess.run(
        [*namespaces.enter(one.host, str(Path.cwd())), *verb], env=small_lab.environment(one), check=True, timeout=60
    )


def rate(one: Any) -> float:
    """Bytes per second that the machine reads of its medium."""
    begin = time.monotonic()
    one.enter("sh", "-c", READS)
    return READ / (time.monotonic() - begin)


def limit(one: Any) -> int:
    """Bytes per second that libvirt lets the machine read of its medium; 0 for any number."""
    values = dict(line.split(":") for line in domain(one, "blkdeviotune", "sdx").splitlines() if ":" in line)
    return int({name.strip(): value for name, value in values.items()}["read_bytes_sec"])


def test_a_medium_is_as_slow_as_asked_for_until_it_is_undone(booted: Any) -> None:
    slow = ("master-0", "slow_media", "--bytes-per-second", str(BYTES_PER_SECOND))
    assert limit(booted) == 0 and rate(booted) > 2 * BYTES_PER_SECOND
    by_hand(booted, *slow)
    assert limit(booted) == BYTES_PER_SECOND
    assert 0.7 < rate(booted) / BYTES_PER_SECOND < 1.3
    by_hand(booted, *slow, "--undo")
    assert limit(booted) == 0 and rate(booted) > 2 * BYTES_PER_SECOND
