"""`dhcp_lease_allocate`: lease the cluster's virtual addresses from the network's DHCP server, with MACs of their own.

Each address is requested on a macvlan interface that exists only for the exchange. The lease is stored in the format of
dhclient's lease file (dhclient.leases(5)), which is what the service stores and what keepalived's monitor reads.
"""

from __future__ import annotations

import ipaddress
import os
import re
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import fields, host
from .probes import checksum
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context, argument

FOLDER = Path("/etc/keepalived")
VIPS, MOST_LEASE = ("api", "ingress"), 65536
SECONDS = 28.0
RETRY_SECONDS = 3.0
ETH_P_IP = 0x0800
MAGIC = b"\x63\x82\x53\x63"
DISCOVER, OFFER, REQUEST, ACK, NAK = 1, 2, 3, 5, 6
SUBNET_MASK, ROUTERS, DNS, HOSTNAME, DOMAIN, BROADCAST, WANTED, LEASE_TIME, KIND, SERVER, ASK, RENEW, REBIND, CLIENT = (
    1, 3, 6, 12, 15, 28, 50, 51, 53, 54, 55, 58, 59, 61,
)  # fmt: skip
# Option -> (name in a lease file, how it is written), in the order of the file.
SHOWN = {
    SUBNET_MASK: ("subnet-mask", "ip"), ROUTERS: ("routers", "ip"), LEASE_TIME: ("dhcp-lease-time", "int"),
    KIND: ("dhcp-message-type", "int"), DNS: ("domain-name-servers", "ip"), SERVER: ("dhcp-server-identifier", "ip"),
    RENEW: ("dhcp-renewal-time", "int"), BROADCAST: ("broadcast-address", "ip"), REBIND: ("dhcp-rebinding-time", "int"),
    HOSTNAME: ("host-name", "text"), DOMAIN: ("domain-name", "text"),
}  # fmt: skip
LEASE = re.compile(r"lease\s*\{[^}{]*\}")


@dataclass(slots=True)
class Answer:
    """An offer or acknowledgement of a server: the address and its options by number (RFC 2132)."""

    kind: int
    address: str
    options: dict[int, bytes] = field(default_factory=dict)


def packet(kind: int, mac: bytes, transaction: bytes, options: dict[int, bytes]) -> bytes:
    """Return an Ethernet broadcast with a DHCP message: the interface has no address to send from.

    kind: DHCPDISCOVER or DHCPREQUEST; mac: six bytes; transaction: four; options: number -> value of at most 255 bytes.
    Source: RFC 2131, 2 and 4.1.
    """
    message = struct.pack(
        "!BBBB4sHH16s16s192s4s", 1, 1, 6, 0, transaction, 0, 0x8000, bytes(16), mac, bytes(192), MAGIC
    )
    everything = {KIND: bytes([kind]), CLIENT: b"\x01" + mac, **options}
    for number, value in everything.items():
        message += bytes([number, len(value)]) + value
    message = (message + b"\xff").ljust(300, b"\0")
    udp = struct.pack("!HHHH", 68, 67, 8 + len(message), 0) + message
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return b"\xff" * 6 + mac + struct.pack("!H", ETH_P_IP) + header + udp


def parse(frame: bytes, transaction: bytes) -> Answer | None:
    """Return the DHCP reply in an Ethernet frame.

    None if it is anything else, or for another transaction. A frame that is cut off yields the options that are whole.
    """
    if len(frame) < 14 + 20 + 8 + 240 or frame[23] != 17:
        return None
    start = 14 + (frame[14] & 15) * 4
    if frame[start : start + 4] != struct.pack("!HH", 67, 68):
        return None
    message = frame[start + 8 :]
    if message[0] != 2 or message[4:8] != transaction or message[236:240] != MAGIC:
        return None
    options: dict[int, bytes] = {}
    rest = message[240:]
    while len(rest) >= 2 and rest[0] != 255:
        if rest[0] == 0:
            rest = rest[1:]
            continue
        options[rest[0]] = rest[2 : 2 + rest[1]]
        rest = rest[2 + rest[1] :]
    return Answer(options.get(KIND, b"\0")[0], socket.inet_ntoa(message[16:20]), options)


class Exchange:
    """The conversation with a server over one interface.

    nic must be up and may have no address; mac: with colons; until: monotonic time at which attempts end. Needs
    CAP_NET_RAW; raises OSError.
    """

    def __init__(self, nic: str, mac: str, hostname: str, until: float) -> None:
        self._mac, self._until = bytes.fromhex(mac.replace(":", "")), until
        self._transaction = os.urandom(4)
        self._common = {HOSTNAME: hostname.encode(), ASK: bytes(SHOWN)}
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        self._socket.bind((nic, ETH_P_IP))

    def ask(self, kind: int, options: dict[int, bytes], wanted: tuple[int, ...], tries: int) -> Answer | None:
        """Send a message until a reply of a wanted kind arrives; return it.

        kind and options: as of `packet`; wanted: kinds of replies; tries: how often it is sent, each time with a pause
        of RETRY_SECONDS at most. None: no such reply in time.
        """
        frame = packet(kind, self._mac, self._transaction, {**self._common, **options})
        for __ in range(tries):
            again = min(time.monotonic() + RETRY_SECONDS, self._until)
            self._socket.send(frame)
            while (left := again - time.monotonic()) > 0:
                if select.select([self._socket], [], [], left)[0]:
                    answer = parse(self._socket.recv(65535), self._transaction)
                    if answer and answer.kind in wanted:
                        return answer
            if time.monotonic() >= self._until:
                break
        return None

    def lease(self, previous: str) -> Answer:
        """Return an acknowledged lease, of the previous address if the server still grants it. Raises TimeoutError."""
        if previous:
            answer = self.ask(REQUEST, {WANTED: socket.inet_aton(previous)}, (ACK, NAK), 2)
            if answer and answer.kind == ACK:
                return answer
        while time.monotonic() < self._until:
            offer = self.ask(DISCOVER, {}, (OFFER,), 100)
            if offer is None:
                break
            wanted = {WANTED: socket.inet_aton(offer.address), SERVER: offer.options.get(SERVER, bytes(4))}
            answer = self.ask(REQUEST, wanted, (ACK, NAK), 2)
            if answer and answer.kind == ACK:
                return answer
        raise TimeoutError(f"no DHCP server granted a lease within {SECONDS:g} seconds")

    def close(self) -> None:
        self._socket.close()


def option_text(value: bytes, how: str) -> str:
    if how == "int":
        return str(int.from_bytes(value, "big"))
    if how == "text":
        return '"' + value.rstrip(b"\0").decode(errors="replace").replace('"', "") + '"'
    return ",".join(str(ipaddress.IPv4Address(value[at : at + 4])) for at in range(0, len(value) - 3, 4))


def lease_text(name: str, answer: Answer, now: float) -> str:
    """Return a lease in the format of dhclient's lease file.

    now: seconds since 1970. Times are UTC with the day of the week first; a server that sends no lease time grants an
    hour.
    """
    seconds = int.from_bytes(answer.options.get(LEASE_TIME, b"\0\0\x0e\x10"), "big")
    lines = [f'interface "{name}"', f"fixed-address {answer.address}"]
    lines += [
        f"option {label} {option_text(answer.options[n], how)}"
        for n, (label, how) in SHOWN.items()
        if answer.options.get(n)
    ]
    for label, after in (("renew", seconds // 2), ("rebind", seconds * 7 // 8), ("expire", seconds)):
        lines.append(f"{label} {time.strftime('%w %Y/%m/%d %H:%M:%S', time.gmtime(now + after))}")
    return "lease {\n" + "".join(f"  {line};\n" for line in lines) + "}"


def last_lease(text: str, name: str) -> str:
    """Return the newest lease of a file, changed to the interface `name`; empty if there is none."""
    leases = LEASE.findall(text)
    return re.sub(r'interface\s+"[^"]+"', f'interface "{name}"', leases[-1]) if leases else ""


def fixed_address(lease: str) -> str:
    found = re.search(r"fixed-address\s+([0-9.]+);", lease)
    return found[1] if found else ""


def remove(name: str) -> None:
    """Remove the macvlan interface of that name, if it exists.

    Interfaces of other kinds stay: the name may be of one that is not ours.
    """
    host.run(["ip", "link", "delete", name, "type", "macvlan"])


def allocate(parent: str, name: str, mac: str, previous: str, folder: Path = FOLDER) -> tuple[str, str]:
    """Lease an address for `mac` on the network of `parent`; return the address, and the lease as text.

    name: of the macvlan interface that exists meanwhile; previous: text of an earlier lease, whose address is requested
    again; folder: where the lease is kept. ValueError if the interface cannot be made or no server grants one.
    """
    remove(name)  # left by a killed run
    created = host.run(
        ["ip", "link", "add", "link", parent, "name", name, "address", mac, "type", "macvlan", "mode", "bridge"]
    )
    if created.exit_code:
        raise ValueError(f"Failed to create interface {name} ({mac}) on {parent}: {created.error.strip()}")
    try:
        # It must not get any address: only its MAC is needed.
        host.run(["ip", "link", "set", "dev", name, "addrgenmode", "none"])
        up = host.run(["ip", "link", "set", "dev", name, "up"])
        if up.exit_code:
            raise ValueError(f"Failed to bring up {name}: {up.error.strip()}")
        exchange = Exchange(name, mac, f"{mac.replace(':', '-')}-{name}", time.monotonic() + SECONDS)
        try:
            answer = exchange.lease(fixed_address(last_lease(previous, name)))
        except OSError as error:
            raise ValueError(f"{name} ({mac}) on {parent}: {error}") from None
        finally:
            exchange.close()
    finally:
        remove(name)
    lease = lease_text(name, answer, time.time())
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".lease-{name}.{os.getpid()}"
    temporary.write_text(lease + "\n")
    temporary.replace(folder / f"lease-{name}")
    return answer.address, lease


def step(args: list[str], context: Context) -> Result:
    request: dict[str, Any] = argument("dhcp-lease-allocate", args[0], "interface", "api_vip_mac", "ingress_vip_mac")
    answer: dict[str, str] = {}
    parent = fields.interface("dhcp-lease-allocate: interface", request["interface"])
    macs = {name: fields.mac(f"dhcp-lease-allocate: {name}_vip_mac", request[f"{name}_vip_mac"]) for name in VIPS}
    leases = {name: request.get(f"{name}_vip_lease") or "" for name in VIPS}
    for name, lease in leases.items():
        if not isinstance(lease, str) or len(lease) > MOST_LEASE:
            raise ValueError(
                f"dhcp-lease-allocate: {name}_vip_lease should be a lease file, got {fields.shown_value(lease)}"
            )
    for name in VIPS:
        address, lease = allocate(parent, name, macs[name], leases[name])
        answer |= {f"{name}_vip_address": address, f"{name}_vip_lease": lease}
    return Result(marshal(answer))


def main(argv: list[str] | None = None) -> int:
    return program("dhcp_lease_allocate", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
