"""Probes of the network with raw sockets: ARP and NDP (who has this address), ICMP echo (loss, latency, size).

Each probes many targets at once from one thread, in rounds. They need CAP_NET_RAW.
"""

from __future__ import annotations

import ipaddress
import os
import select
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

ETH_P_ARP = 0x0806
ARP_REQUEST, ARP_REPLY = 1, 2
ICMP_ECHO, ICMP_ECHO_REPLY = 8, 0
ICMP6_ECHO, ICMP6_ECHO_REPLY = 128, 129
NEIGHBOUR_SOLICIT, NEIGHBOUR_ADVERT = 135, 136
ICMP6_FILTER = 1
# linux/in.h, linux/in6.h; not in the socket module.
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_DO = 10, 23, 2
# asm-generic/socket.h: the kernel's time of arrival, a struct timespec, comes with each packet.
SO_TIMESTAMPNS = 35
BROADCAST = b"\xff" * 6
BURST = 64  # requests without a pause: a /22 at once would overrun the queues of small switches


def mac_text(raw: bytes) -> str:
    return raw.hex(":")


def _drain(sock: socket.socket, until: float) -> list[tuple[bytes, tuple[object, ...]]]:
    """Yield all datagrams that arrive until `end`."""
    found: list[tuple[bytes, tuple[object, ...]]] = []
    while True:
        left = until - time.monotonic()
        readable, __, __ = select.select([sock], [], [], max(left, 0))
        if not readable:
            return found
        while True:
            try:
                found.append(sock.recvfrom(65535))
            except BlockingIOError:
                break
        if left <= 0:
            return found


def arp(
    nic: str,
    mac: str,
    source: str,
    targets: list[str],
    rounds: int = 3,
    interval: float = 1.0,
    all_replies: bool = True,
) -> dict[str, set[str]]:
    """Send ARP requests on `nic`. Returns target -> MACs that answered; more than one is an address conflict.

    With `all_replies` unset, a target that answered is not probed again, and the last round ends when all have answered.
    """
    found: dict[str, set[str]] = {}
    own, sender = bytes.fromhex(mac.replace(":", "")), socket.inet_aton(source)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP)) as sock:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind((nic, ETH_P_ARP))

        def collect(until: float) -> None:
            for frame, __ in _drain(sock, until):
                if len(frame) < 42 or struct.unpack_from("!H", frame, 20)[0] != ARP_REPLY:
                    continue
                address = socket.inet_ntoa(frame[28:32])
                if address in wanted and frame[38:42] == sender:
                    found.setdefault(address, set()).add(mac_text(frame[22:28]))

        wanted = set(targets)
        for __ in range(rounds):
            ask = [target for target in targets if all_replies or target not in found]
            if not ask:
                break
            due = time.monotonic() + interval
            for at, target in enumerate(ask):
                packet = struct.pack("!HHBBH", 1, 0x0800, 6, 4, ARP_REQUEST) + own + sender + bytes(6)
                frame = BROADCAST + own + struct.pack("!H", ETH_P_ARP) + packet + socket.inet_aton(target)
                try:
                    sock.send(frame)
                except OSError:
                    return found  # the interface went down
                if at % BURST == BURST - 1:
                    collect(time.monotonic() + 0.02)
            collect(due)
    return found


def solicited_node(address: str) -> str:
    """Return the multicast group in which the owner of an IPv6 address listens for solicitations.

    The last 24 bits are the address's own. Source: RFC 4291, 2.7.1.
    """
    return str(
        ipaddress.IPv6Address(
            int(ipaddress.IPv6Address("ff02::1:ff00:0")) | int(ipaddress.IPv6Address(address)) & 0xFFFFFF
        )
    )


def ndp(
    nic: str, mac: str, source: str, targets: list[str], rounds: int = 3, interval: float = 1.0
) -> dict[str, set[str]]:
    """Solicit the targets' link-layer addresses on an interface; return target -> MACs.

    mac and source: the interface's own MAC and IPv6 address. Each of `rounds` takes `interval` seconds; a target
    without an answer is not in the result, one with several MACs is a duplicate address. Needs CAP_NET_RAW; raises
    OSError. Source: RFC 4861, 4.3 and 4.4.
    """
    found: dict[str, set[str]] = {}
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, nic.encode())
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
        _pass_only(sock, NEIGHBOUR_ADVERT)
        sock.bind((source, 0))
        index = socket.if_nametoindex(nic)
        wanted = {ipaddress.IPv6Address(target).packed: target for target in targets}
        for __ in range(rounds):
            due = time.monotonic() + interval
            for raw, target in wanted.items():
                # Options: source link-layer address, in units of eight bytes. The kernel fills in the checksum.
                packet = (
                    struct.pack("!BBHI", NEIGHBOUR_SOLICIT, 0, 0, 0)
                    + raw
                    + b"\x01\x01"
                    + bytes.fromhex(mac.replace(":", ""))
                )
                try:
                    sock.sendto(packet, (solicited_node(target), 0, 0, index))
                except OSError:
                    return found
            for packet, _sender in _drain(sock, due):
                target = wanted.get(packet[8:24], "") if packet[0] == NEIGHBOUR_ADVERT else ""
                options = packet[24:]
                while target and len(options) >= 8 and options[1]:
                    if options[0] == 2:
                        found.setdefault(target, set()).add(mac_text(options[2:8]))
                    options = options[options[1] * 8 :]
    return found


def _pass_only(sock: socket.socket, kind: int) -> None:
    """RFC 3542, 3.2: a bit for each ICMPv6 type; set means blocked."""
    blocked = bytearray(b"\xff" * 32)
    blocked[kind // 32 * 4 + (kind % 32) // 8] &= ~(1 << kind % 8) & 0xFF
    sock.setsockopt(socket.IPPROTO_ICMPV6, ICMP6_FILTER, bytes(blocked))


@dataclass(slots=True)
class Echo:
    """What became of some echo requests.

    sent: their number; times: round trips in seconds, one for each that was answered.
    """

    sent: int = 0
    times: list[float] = field(default_factory=list)

    @property
    def loss_percentage(self) -> float:
        return round(100.0 * (self.sent - len(self.times)) / self.sent, 4) if self.sent else 100.0

    @property
    def average_ms(self) -> float:
        return round(1000.0 * sum(self.times) / len(self.times), 3) if self.times else 0.0


def checksum(data: bytes) -> int:
    """RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def round_trip(sent: tuple[float, float], now: float, extra: list[tuple[int, int, bytes]]) -> float:
    """Return how many seconds an answer took.

    sent: monotonic and wall clock when the request was sent; now: monotonic clock; extra: ancillary data with the
    kernel's time of arrival, because a busy machine reads the answer later. Until now, when the wall clock was set
    meanwhile.
    """
    for level, kind, data in extra:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(data) == 16:
            seconds, nanoseconds = struct.unpack("qq", data)
            took: float = seconds + nanoseconds / 1e9 - sent[1]
            if 0 <= took <= now - sent[0]:
                return took
    return now - sent[0]


def ping(
    targets: list[str],
    count: int = 10,
    interval: float = 0.25,
    timeout: float = 3.0,
    nic: str = "",
    size: int = 56,
    dont_fragment: bool = False,
) -> dict[str, Echo]:
    """Send `count` echo requests to each target, `interval` s apart, and wait `timeout` s for the last answers.

    `size`: payload bytes. `nic`: send by this interface. Targets of both families may be mixed.
    """
    found = {target: Echo() for target in targets}
    families = {
        version: [target for target in found if ipaddress.ip_address(target).version == version] for version in (4, 6)
    }
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_ping, version, family, found, count, interval, timeout, nic, size, dont_fragment)
            for version, family in families.items()
            if family
        ]
    for job in jobs:
        job.result()
    return found


def _ping(
    version: int, targets: list[str], found: dict[str, Echo], count: int, interval: float, timeout: float, nic: str,
    size: int, dont_fragment: bool,
) -> None:  # fmt: skip
    request, answer = (ICMP_ECHO, ICMP_ECHO_REPLY) if version == 4 else (ICMP6_ECHO, ICMP6_ECHO_REPLY)
    kind, proto = (socket.AF_INET, socket.IPPROTO_ICMP) if version == 4 else (socket.AF_INET6, socket.IPPROTO_ICMPV6)
    ident = os.urandom(2)
    token = os.urandom(8)
    started: dict[tuple[str, int], tuple[float, float]] = {}  # by both clocks, monotonic and wall
    with socket.socket(kind, socket.SOCK_RAW, proto) as sock:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if nic:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, nic.encode())
        if version == 6:
            _pass_only(sock, ICMP6_ECHO_REPLY)
        if dont_fragment and version == 4:
            sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_DO)
        if dont_fragment and version == 6:
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_DO)

        def collect(until: float) -> None:
            while True:
                left = until - time.monotonic()
                if not select.select([sock], [], [], max(left, 0))[0]:
                    return
                try:
                    packet, extra, __, (address, *__) = sock.recvmsg(65535, socket.CMSG_SPACE(16))
                except BlockingIOError:
                    continue
                now = time.monotonic()
                data = packet[(packet[0] & 15) * 4 :] if version == 4 else packet
                if len(data) < 16 or data[0] != answer or data[4:6] != ident or data[8:16] != token[: len(data) - 8]:
                    continue
                sent = started.pop((address.partition("%")[0], struct.unpack_from("!H", data, 6)[0]), None)
                if sent is not None:
                    found[by_address[address.partition("%")[0]]].times.append(round_trip(sent, now, extra))
                if left <= 0:
                    return

        by_address = {str(ipaddress.ip_address(target)): target for target in targets}
        payload = (token + bytes(max(size - 8, 0)))[: max(size, 8)]
        for number in range(count):
            due = time.monotonic() + interval
            for at, (address, target) in enumerate(by_address.items()):
                header = struct.pack("!BBH2sH", request, 0, 0, ident, number)
                total = checksum(header + payload) if version == 4 else 0
                found[target].sent += 1
                started[address, number] = (time.monotonic(), time.time())
                try:
                    sock.sendto(struct.pack("!BBH2sH", request, 0, total, ident, number) + payload, (address, 0))
                except OSError:
                    del started[address, number]  # no route, or larger than the link's MTU: lost
                if at % BURST == BURST - 1:
                    collect(time.monotonic() + 0.01)
            if number < count - 1:
                collect(due)
        last = time.monotonic() + timeout
        while started and time.monotonic() < last:
            collect(min(time.monotonic() + 0.05, last))
