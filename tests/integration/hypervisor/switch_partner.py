"""Plays a machine at the switch of a sandbox, in which it runs: `python3 switch_partner.py`; prints what it found as JSON.

The lab's taps are opened as QEMU opens them, and their frames are relayed to taps of a second switch, which has the machine's side
of the bonds: LACP on bond0, a static link aggregation on bond1. Its network `guest` is a namespace of its own, so that TCP really
passes both switches.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

TUNSETIFF, TAP = 0x400454CA, 0x1002  # IFF_TAP | IFF_NO_PI
MEGABYTES = 8


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tap(name: str) -> int:
    found = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(found, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP))
    return found


def relay(pairs: list[tuple[int, int]]) -> None:
    other = {one: two for pair in pairs for one, two in (pair, pair[::-1])}
    poll = select.poll()
    for descriptor in other:
        poll.register(descriptor, select.POLLIN)
    while True:
        for descriptor, __ in poll.poll():
            try:
                os.write(other[descriptor], os.read(descriptor, 65536))
            except OSError:
                continue  # no frame any more, or the other end is down


def connected(port: str, address: str, number: int) -> None:
    """Connect an internal port of the second switch to a namespace, over a bridge as the lab's networks do."""
    bridge, near, far = f"gb{number}", f"gn{number}", f"gf{number}"
    run("ip", "link", "add", bridge, "type", "bridge")
    run("ip", "link", "add", near, "mtu", "9000", "type", "veth", "peer", "name", far, "mtu", "9000", "netns", "guest")
    for link in (port, near):
        run("ip", "link", "set", link, "master", bridge, "up")
    run("ip", "link", "set", bridge, "up")
    run("ip", "-n", "guest", "address", "add", address, "dev", far)
    run("ip", "-n", "guest", "link", "set", far, "up")


def tcp(server: str, from_guest: bool) -> str:
    """Send some megabytes; return `ok`, or what went wrong."""
    client = (
        "import socket, sys\n"
        f"with socket.create_connection(({server!r}, 5555), 20) as c:\n"
        "    c.settimeout(20)\n"
        f"    mine = {from_guest}\n"
        f"    data, got = bytes(range(256)) * 4096 * {MEGABYTES}, b''\n"
        "    if mine:\n        c.sendall(data)\n        c.shutdown(1)\n"
        "    while part := c.recv(1 << 16):\n        got += part\n"
        "    print('ok' if got == (b'ok' if mine else data) else len(got))\n"
    )
    data = bytes(range(256)) * 4096 * MEGABYTES
    with socket.create_server((server, 5555)) as listener:
        listener.settimeout(20)

        def serve() -> None:
            with listener.accept()[0] as peer:
                peer.settimeout(20)
                if not from_guest:
                    peer.sendall(data)
                    return
                got = bytearray()
                while part := peer.recv(1 << 16):
                    got += part
                peer.sendall(b"ok" if got == data else b"no")

        thread = threading.Thread(target=serve)
        thread.start()
        done = subprocess.run(
            ["ip", "netns", "exec", "guest", sys.executable, "-c", client],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        thread.join()
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def main() -> None:
    pairs = []
    for number in range(5):
        pairs.append((tap(f"n0-eth{number}"), tap(f"g{number}")))
        run("ip", "link", "set", f"g{number}", "mtu", "9000", "arp", "off", "up")
    threading.Thread(target=relay, args=(pairs,), daemon=True).start()
    lacp = "lacp=active bond_mode=balance-tcp other_config:lacp-time=fast trunks=100"
    words = (
        f"-- add-br guest -- set Bridge guest datapath_type=netdev -- add-bond guest glag g0 g1 {lacp} "
        "-- add-port guest p100 tag=100 -- set Interface p100 type=internal mtu_request=9000 "
        "-- add-br static -- set Bridge static datapath_type=netdev fail_mode=secure "
        "-- add-port static g2 -- set Interface g2 ofport_request=2 -- add-port static g3 -- set Interface g3 ofport_request=3 "
        "-- add-port static p0 -- set Interface p0 type=internal mtu_request=9000 ofport_request=1 "
        "-- add-br single -- set Bridge single datapath_type=netdev -- add-port single g4 trunks=300 "
        "-- add-port single p300 tag=300 -- set Interface p300 type=internal mtu_request=9000"
    )
    run("ovs-vsctl", "--timeout=20", *words.split())
    for flow in ("in_port=2,actions=output:1", "in_port=3,actions=output:1", "in_port=1,actions=output:2"):
        run("ovs-ofctl", "add-flow", "static", flow)
    os.makedirs("/run/netns", exist_ok=True)
    run("ip", "netns", "add", "guest")
    for number, (port, address) in enumerate(
        (("p100", "192.168.111.20/24"), ("p0", "192.168.221.20/24"), ("p300", "192.168.222.20/24"))
    ):
        connected(port, address, number)
    end = time.monotonic() + 20
    bond = ""
    while "lacp_status: negotiated" not in bond and time.monotonic() < end:
        time.sleep(0.2)
        bond = run("ovs-appctl", "-t", "/run/openvswitch/vswitchd.ctl", "bond/show", "n0-bond0")
    print(json.dumps({
        "lacp": "negotiated" if "lacp_status: negotiated" in bond else bond,
        "enabled": bond.count(": enabled"),
        **{f"{server} {way}": tcp(server, way == "from the machine")
           for server in ("192.168.111.1", "192.168.221.1", "192.168.222.1")
           for way in ("from the machine", "to the machine")},
    }))  # fmt: skip


if __name__ == "__main__":
    main()
