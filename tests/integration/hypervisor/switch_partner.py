"""Plays two machines at the switch of a sandbox, in which it runs: `python3 switch_partner.py`; prints what it found as JSON.

The lab's taps are opened as QEMU opens them, and their frames are relayed to taps of a second switch, which has the machines' side
of the bonds: LACP on bond0 of both, and on the first a static link aggregation on bond1 and active-backup on bond2. The networks of
the machines, `guest` and `second`, are namespaces of their own, so that TCP really passes both switches.
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
# The lab's tap -> the machine's; eth5 and eth6 are bond2.
TAPS = {f"n0-eth{number}": f"g{number}" for number in range(7)} | {f"n1-eth{number}": f"h{number}" for number in (0, 1)}
# Port of the second switch, namespace of the machine, its address, and the lab's.
WAYS = (
    ("p100", "guest", "192.168.111.20/24", "192.168.111.1"),
    ("p0", "guest", "192.168.221.20/24", "192.168.221.1"),
    ("p300", "guest", "192.168.222.20/24", "192.168.222.1"),
    ("p5", "guest", "192.168.223.20/24", "192.168.223.1"),
    ("q100", "second", "192.168.111.21/24", "192.168.111.1"),
)


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


def bond(name: str) -> str:
    """Describe a bond of either switch."""
    return run("ovs-appctl", "-t", "/run/openvswitch/vswitchd.ctl", "bond/show", name)


def until(name: str, text: str) -> str:
    """Wait until the description of a bond has a text; return `ok`, or the description without it after 20 s."""
    end = time.monotonic() + 20
    while text not in (found := bond(name)):
        if time.monotonic() > end:
            return found
        time.sleep(0.2)
    return "ok"


def active() -> str:
    """Return the active member of the machine's bond2."""
    return bond("gback").partition("active member mac: ")[2].partition("(")[2].partition(")")[0]


def connected(port: str, guest: str, address: str, number: int) -> None:
    """Connect an internal port of the second switch to the namespace `guest`, over a bridge as the lab's networks do."""
    bridge, near, far = f"gb{number}", f"gn{number}", f"gf{number}"
    run("ip", "link", "add", bridge, "type", "bridge")
    run("ip", "link", "add", near, "mtu", "9000", "type", "veth", "peer", "name", far, "mtu", "9000", "netns", guest)
    for link in (port, near):
        run("ip", "link", "set", link, "master", bridge, "up")
    run("ip", "link", "set", bridge, "up")
    run("ip", "-n", guest, "address", "add", address, "dev", far)
    run("ip", "-n", guest, "link", "set", far, "up")


def tcp(server: str, guest: str, from_guest: bool) -> str:
    """Send some megabytes from or to the namespace `guest`; return `ok`, or what went wrong."""
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
            ["ip", "netns", "exec", guest, sys.executable, "-c", client],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        thread.join()
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def both(server: str, guest: str, what: str) -> dict[str, str]:
    return {f"{what} {'from' if way else 'to'} the machine": tcp(server, guest, way) for way in (True, False)}


def main() -> None:
    pairs = []
    for lab, machine in TAPS.items():
        pairs.append((tap(lab), tap(machine)))
        run("ip", "link", "set", machine, "mtu", "9000", "arp", "off", "up")
    threading.Thread(target=relay, args=(pairs,), daemon=True).start()
    lacp = "lacp=active bond_mode=balance-tcp other_config:lacp-time=fast trunks=100"
    words = (
        f"-- add-br guest -- set Bridge guest datapath_type=netdev -- add-bond guest glag g0 g1 {lacp} "
        "-- add-port guest p100 tag=100 -- set Interface p100 type=internal mtu_request=9000 "
        "-- add-br static -- set Bridge static datapath_type=netdev fail_mode=secure "
        "-- add-port static g2 -- set Interface g2 ofport_request=2 -- add-port static g3 -- set Interface g3 ofport_request=3 "
        "-- add-port static p0 -- set Interface p0 type=internal mtu_request=9000 ofport_request=1 "
        "-- add-br single -- set Bridge single datapath_type=netdev -- add-port single g4 trunks=300 "
        "-- add-port single p300 tag=300 -- set Interface p300 type=internal mtu_request=9000 "
        "-- add-br backup -- set Bridge backup datapath_type=netdev -- add-bond backup gback g5 g6 bond_mode=active-backup "
        "-- add-port backup p5 -- set Interface p5 type=internal mtu_request=9000 "
        f"-- add-br second -- set Bridge second datapath_type=netdev -- add-bond second hlag h0 h1 {lacp} "
        "-- add-port second q100 tag=100 -- set Interface q100 type=internal mtu_request=9000"
    )
    run("ovs-vsctl", "--timeout=20", *words.split())
    for flow in ("in_port=2,actions=output:1", "in_port=3,actions=output:1", "in_port=1,actions=output:2"):
        run("ovs-ofctl", "add-flow", "static", flow)
    os.makedirs("/run/netns", exist_ok=True)
    for guest in ("guest", "second"):
        run("ip", "netns", "add", guest)
    for number, (port, guest, address, __) in enumerate(WAYS):
        connected(port, guest, address, number)
    found = {f"LACP of {name}": until(name, "lacp_status: negotiated") for name in ("n0-bond0", "n1-bond0")}
    enabled = [bond(name).count(": enabled") for name in ("n0-bond0", "n1-bond0")]
    found["enabled"] = "ok" if enabled == [2, 2] else f"{enabled}"
    for port, guest, __, server in WAYS:
        found |= both(server, guest, port)
    # The cable of the active NIC is unplugged; the switch finds the machine at the port of the other.
    lost = active()
    run("ip", "link", "set", lost, "down")
    other = "g6" if lost == "g5" else "g5"
    found["failover"] = until("gback", f"({other})")
    found |= both("192.168.223.1", "guest", "p5 by the other NIC")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
