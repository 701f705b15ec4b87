"""A worse line (faults `delay`, `loss` and `rate`), measured between two network namespaces that a bridge connects."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import relay

PARTNER = str(Path(__file__).with_name("line_partner.py"))
MIDDLE = "link add br0 type bridge; link set br0 up; link set lo up"


class Line:
    """Two namespaces at a bridge of a third one; `device` is the bridge's port of the first."""

    device = "p1"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        command = ["unshare", "-n", "-m", "sh", "-c", "mount -t sysfs sysfs /sys && exec sleep 600"]
        self.held = [subprocess.Popen(command) for __ in range(3)]
        for one in self.held:
            while Path(f"/proc/{one.pid}/comm").read_text() != "sleep\n":
                time.sleep(0.01)
        self.ip(0, MIDDLE)
        for number in (1, 2):
            self.ip(0, f"link add p{number} type veth peer name e0 netns {self.held[number].pid}")
            self.ip(0, f"link set p{number} master br0 up")
            self.ip(number, f"address add 192.0.2.{number}/24 dev e0; link set e0 up")
        self.server = subprocess.Popen(
            [*self.inside(2), sys.executable, PARTNER, "serve", "192.0.2.2"], stdout=subprocess.PIPE, text=True
        )
        assert self.server.stdout
        assert self.server.stdout.readline() == "ready\n"

    def inside(self, number: int) -> list[str]:
        return ["nsenter", "-n", "-m", "-t", str(self.held[number].pid), "--"]

    def ip(self, number: int, commands: str) -> str:
        done = ""
        for command in commands.split("; "):
            done += subprocess.run(
                [*self.inside(number), "ip", *command.split()], check=True, capture_output=True, text=True
            ).stdout
        return done

    def act(self, *words: str) -> subprocess.CompletedProcess[str]:
        action, *rest = words
        argv = [sys.executable, "-I", str(relay.__file__), action, str(self.directory), self.device, *rest]
        return subprocess.run([*self.inside(0), *argv], capture_output=True, text=True, timeout=60, check=False)

    def change(self, *words: str) -> None:
        done = self.act(*words)
        assert not done.returncode, done.stderr

    def measure(self, *words: str) -> dict[str, float]:
        argv = [*self.inside(1), sys.executable, PARTNER, "measure", "192.0.2.2", *words]
        return dict(json.loads(subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout))

    def close(self) -> None:
        processes: tuple[subprocess.Popen[Any], ...] = (self.server, *self.held)
        for one in processes:
            one.kill()
            one.wait()


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    one = Line(tmp_path)
    yield one
    for field in relay.FIELDS:
        one.act("unset", field)
    one.close()


def test_a_line_is_late_lossy_and_slow_as_asked_until_the_end(line: Line) -> None:
    before = line.measure()
    assert before["lost"] == 0 and before["rtt"] < 20 and before["kbits"] > 3_000, before
    line.change("set", "delay", "60")
    late = line.measure("datagrams")
    # Twice 60 ms, one for each way. Neither the relay nor netem delivers early, so that not even the fastest takes less.
    assert late["lost"] == 0 and 120 <= late["fastest"] <= late["rtt"] < 160, late
    line.change("set", "loss", "30")
    lossy = line.measure("datagrams")
    assert 38 < lossy["lost"] < 64, lossy  # 1 - 0.7 * 0.7 = 51 %
    assert lossy["fastest"] >= 120, lossy
    line.change("unset", "loss")
    line.change("unset", "delay")
    line.change("set", "rate", "1000")
    slow = line.measure()
    assert slow["whole"] and 500 < slow["kbits"] < 1100, slow
    line.change("unset", "rate")
    after = line.measure()
    assert after["lost"] == 0 and after["rtt"] < 20 and after["kbits"] > 3_000 and after["whole"], after
    assert not list(line.directory.glob("*.json"))
    assert "master br0" in line.ip(0, f"link show {line.device}")
    assert "line" not in line.ip(0, "-brief link show")


def test_segments_and_checksums_stay_offloaded(line: Line) -> None:
    line.change("set", "delay", "1")
    found = line.measure()
    assert found["whole"] and found["kbits"] > 2_000, found


# A frame with VLAN id 7, and what a packet socket reports: the tag is put aside (packet(7), PACKET_AUXDATA).
SENDS = """
import socket
one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
one.bind(('e0', 0))
one.send(b'\\xff' * 6 + bytes([2, 0, 0, 0, 0, 1]) + bytes.fromhex('81000007' '88b5') + b'tagged' * 10)
"""
RECEIVES = """
import socket, struct, sys
one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
one.bind(('e0', 3))
one.setsockopt(263, 8, 1)
one.settimeout(60)
print('ready', flush=True)
while True:
    data, extra, *__ = one.recvmsg(2048, 256)
    if data[12:20] == bytes.fromhex('88b5') + b'tagged':
        print(struct.unpack('=IIIHHHH', extra[0][2][:20])[5] & 0xfff)
        break
"""


def test_vlan_tags_pass(line: Line) -> None:
    line.change("set", "delay", "1")
    waits = subprocess.Popen([*line.inside(2), sys.executable, "-c", RECEIVES], stdout=subprocess.PIPE, text=True)
    assert waits.stdout
    assert waits.stdout.readline() == "ready\n"
    subprocess.run([*line.inside(1), sys.executable, "-c", SENDS], check=True, timeout=60)
    assert waits.communicate(timeout=60)[0] == "7\n"


def test_a_device_that_is_not_a_port_of_a_bridge_is_refused(line: Line) -> None:
    line.device = "br0"
    done = line.act("set", "loss", "10")
    assert (done.returncode, done.stderr) == (1, "br0: is not a port of a bridge\n")


def test_a_line_ends_with_its_device(line: Line) -> None:
    line.change("set", "loss", "10")
    pid = json.loads((line.directory / "line-p1.json").read_text())["pid"]
    line.ip(0, "link delete p1")
    end = time.monotonic() + 60
    while relay.start_time(pid) is not None:
        assert time.monotonic() < end
        time.sleep(0.05)
    line.change("unset", "loss")
    assert not list(line.directory.glob("*.json"))
