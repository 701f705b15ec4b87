"""A worse line between a machine and its bridge: delay, loss and rate of packets, in both directions. A separate program.

`python3 relay.py set DIRECTORY DEVICE FIELD VALUE`, `... unset DIRECTORY DEVICE FIELD`. DEVICE is a port of a bridge, such as a
machine's tap; FIELD is `delay` (milliseconds), `loss` (percent) or `rate` (kilobits per second), each for one direction. Where the
kernel has netem, it does the work. Elsewhere the device leaves its bridge, a tap takes its place, and this program (`serve`) copies
frames between the two, as late, as few and as slowly as it was asked to. Frames keep their `struct virtio_net_hdr`
(linux/virtio_net.h), so segmentation and checksums stay offloaded. `DIRECTORY/line-DEVICE.json` has what is set, and by what.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FIELDS = ("delay", "loss", "rate")
# linux/if_tun.h, linux/if_packet.h, linux/if_ether.h
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x2, 0x1000, 0x4000
_ALL_OFFLOADS = 0x01 | 0x02 | 0x04 | 0x08  # TUN_F_CSUM, TSO4, TSO6, TSO_ECN
_SOL_PACKET, _PACKET_AUXDATA, _PACKET_VNET_HDR, _PACKET_IGNORE_OUTGOING = 263, 8, 15, 23
_ETH_P_ALL, _ETH_P_8021Q = 0x0003, 0x8100
_VLAN_VALID, _VLAN_TPID_VALID = 0x10, 0x40  # tp_status of struct tpacket_auxdata
_HEADER = 10  # bytes of struct virtio_net_hdr
_MACS = 12  # bytes of an Ethernet header in front of a VLAN tag
_MOST = 1 << 17  # bytes of a frame with segmentation offload, and more than any
_QUEUE = 1 << 20  # bytes that wait for the line; what comes then is dropped, as by a switch
_READY = 60.0
_LIMIT = 60


class LineError(Exception):
    """The line cannot be changed; the message has the reason."""


def main(argv: list[str]) -> None:
    """Run a command line; on a `LineError` exit with its text. argv: as above, without the program."""
    try:
        action, directory, device, *rest = argv
        line = Line(Path(directory), device)
        if action == "serve":
            line.serve()
        elif action == "set":
            line.set(rest[0], float(rest[1]))
        else:
            line.unset(rest[0])
    except (LineError, OSError) as error:
        raise SystemExit(f"{argv[2] if len(argv) > 2 else 'relay'}: {error}") from None


class Line:
    """The line of one device: its settings in a file, and what makes them true."""

    def __init__(self, directory: Path, device: str) -> None:
        self.device, self.path = device, directory / f"line-{device}.json"
        number = device.removeprefix("vnet")
        self.tap, self.ifb = f"line{number}"[:15], f"ifb{number}"[:15]

    def set(self, field: str, value: float) -> None:
        """Give the line a field, in addition to those that it has. Raises `LineError` with the output of what failed."""
        state = self._state()
        bridge = state.get("bridge") or self._bridge()
        self._apply({**state, "bridge": bridge, field: value})

    def unset(self, field: str) -> None:
        """Take a field away from the line; without any, all is as before. A device that is gone has no line any more."""
        state = self._state()
        state.pop(field, None)
        if not self._exists():
            self._end(state)
            self.path.unlink(missing_ok=True)
        elif state:
            self._apply(state)

    def _apply(self, state: dict[str, Any]) -> None:
        settings = {field: state[field] for field in FIELDS if field in state}
        if not settings:
            self._end(state)
            if state.get("by") == "netem":
                self._no_netem()
            else:
                run("ip", "link", "set", "dev", self.device, "master", state["bridge"])
            self.path.unlink(missing_ok=True)
            return
        if state.get("by") != "relay" and self._netem(settings):
            self._save({**state, "by": "netem"})
            return
        self._save({**state, "by": "relay"})
        if start_time(state.get("pid")) is not None and start_time(state["pid"]) == state["start"]:
            os.kill(state["pid"], signal.SIGHUP)  # reads its file again
            return
        self._launch({**state, "by": "relay"})

    def _launch(self, state: dict[str, Any]) -> None:
        """Start `serve`, and wait until it carries frames."""
        argv = [sys.executable, "-I", __file__, "serve", str(self.path.parent), self.device]
        with self.path.with_suffix(".log").open("ab") as log:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        self._save({**state, "pid": process.pid, "start": start_time(process.pid)})
        end = time.monotonic() + _READY
        while not self._master(self.tap):
            if process.poll() is not None or time.monotonic() > end:
                self._end(self._state())
                self.path.unlink(missing_ok=True)
                lines = self.path.with_suffix(".log").read_text(errors="replace").splitlines()
                raise LineError(lines[-1] if lines else "the relay does not start")
            time.sleep(0.05)

    def _end(self, state: dict[str, Any]) -> None:
        pid: int = state.get("pid", 0)
        start: int | None = state.get("start")
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + _READY
            while start is not None and start_time(pid) == start and time.monotonic() < end:
                os.kill(pid, number)
                time.sleep(0.05)

    def _netem(self, settings: dict[str, float]) -> bool:
        """Let the kernel do it: netem on the device for packets to the machine, and on an ifb for those that it sends.

        Return whether it can. A kernel that lacks a part of it keeps none.
        """
        words = netem(settings)
        try:
            run("tc", "qdisc", "replace", "dev", self.device, "root", "netem", *words)
            if not Path(f"/sys/class/net/{self.ifb}").exists():
                run("ip", "link", "add", "name", self.ifb, "type", "ifb")
            run("ip", "link", "set", "dev", self.ifb, "up")
            run("tc", "qdisc", "replace", "dev", self.device, "handle", "ffff:", "ingress")
            redirect = ["matchall", "action", "mirred", "egress", "redirect", "dev", self.ifb]
            run("tc", "filter", "replace", "dev", self.device, "parent", "ffff:", "pref", "1", "handle", "1", *redirect)
            run("tc", "qdisc", "replace", "dev", self.ifb, "root", "netem", *words)
        except LineError:
            self._no_netem()
            return False
        return True

    def _no_netem(self) -> None:
        for command in (
            ["tc", "qdisc", "del", "dev", self.device, "root"],
            ["tc", "qdisc", "del", "dev", self.device, "ingress"],
            ["ip", "link", "del", "dev", self.ifb],
        ):
            subprocess.run(command, capture_output=True, timeout=_LIMIT, check=False)

    def serve(self) -> None:
        """Copy frames between the device and a tap in its place until SIGTERM, or until the device is gone."""
        signal.signal(signal.SIGHUP, lambda *__: None)
        signal.signal(signal.SIGTERM, lambda *__: None)
        state = self._state()
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as wire:
            for option in (_PACKET_VNET_HDR, _PACKET_AUXDATA, _PACKET_IGNORE_OUTGOING):
                wire.setsockopt(_SOL_PACKET, option, 1)
            wire.setblocking(False)
            wire.bind((self.device, _ETH_P_ALL))
            tap = self._tap()
            try:
                deaf(self.device)
                run("ip", "link", "set", "dev", self.device, "nomaster", "arp", "off")
                run("ip", "link", "set", "dev", self.tap, "master", state["bridge"], "up")
                Copier(wire, tap, self._state).run()
            finally:
                os.close(tap)
        if self._exists():
            run("ip", "link", "set", "dev", self.device, "master", state["bridge"])

    def _tap(self) -> int:
        """Create the tap that takes the device's place, with its MTU; it ends with this process."""
        handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        request = struct.pack("16sH22x", self.tap.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR)
        fcntl.ioctl(handle, _TUNSETIFF, request)
        fcntl.ioctl(handle, _TUNSETOFFLOAD, _ALL_OFFLOADS)
        deaf(self.tap)
        mtu = Path(f"/sys/class/net/{self.device}/mtu").read_text().strip()
        run("ip", "link", "set", "dev", self.tap, "mtu", mtu, "arp", "off")
        return handle

    def _bridge(self) -> str:
        bridge = self._master(self.device)
        if not bridge:
            raise LineError("is not a port of a bridge")
        return bridge

    def _master(self, link: str) -> str:
        path = Path(f"/sys/class/net/{link}/master")
        return path.resolve().name if path.exists() else ""

    def _exists(self) -> bool:
        return Path(f"/sys/class/net/{self.device}").exists()

    def _state(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.path.read_text()))
        except FileNotFoundError:
            return {}

    def _save(self, state: dict[str, Any]) -> None:
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(state))
        part.replace(self.path)


class Copier:
    """Copies frames between a packet socket and a tap; `settings()` has the fields, and is asked again after SIGHUP.

    Each direction is a line of its own: a frame is lost, or waits for those before it at the line's rate, and arrives after
    the delay. Frames that find more than `_QUEUE` bytes waiting are dropped.
    """

    def __init__(self, wire: socket.socket, tap: int, settings: Callable[[], dict[str, Any]]) -> None:
        self.wire, self.tap, self.settings = wire, tap, settings
        self.due: list[tuple[float, int, int, bytes]] = []
        self.free = [0.0, 0.0]
        self.waiting = [0, 0]
        self.count = 0

    def run(self) -> None:
        """Copy until SIGTERM (which `serve` only notes), or until one of the two is gone."""
        wakes, wake = socket.socketpair()
        with wakes, wake, select.epoll() as poll:
            for end in (wakes, wake):
                end.setblocking(False)
            signal.set_wakeup_fd(wake.fileno())
            try:
                for handle in (self.wire.fileno(), self.tap, wakes.fileno()):
                    poll.register(handle, select.EPOLLIN)
                self._copy(poll, wakes)
            except OSError:
                return
            finally:
                signal.set_wakeup_fd(-1)

    def _copy(self, poll: select.epoll, wakes: socket.socket) -> None:
        state = self.settings()
        while True:
            timeout = max(0.0, self.due[0][0] - time.monotonic()) if self.due else -1
            for handle, __ in poll.poll(timeout):
                if handle == wakes.fileno():
                    if signal.SIGTERM in wakes.recv(64):
                        return
                    state = self.settings()
                    continue
                direction = int(handle == self.tap)
                for frame in self.frames(direction):
                    self.enter(direction, frame, state)
            self.deliver(time.monotonic())

    def frames(self, direction: int) -> Iterator[bytes]:
        """Yield what one side sent: 0, the machine; 1, the bridge. Raises `OSError` when that side is gone."""
        for __ in range(256):
            try:
                if direction:
                    yield os.read(self.tap, _MOST)
                else:
                    data, extra, __flags, __from = self.wire.recvmsg(_MOST, 256)
                    yield with_vlan_tag(data, extra)
            except BlockingIOError:
                return

    def enter(self, direction: int, frame: bytes, state: dict[str, Any]) -> None:
        """Put a frame on the line, or lose it."""
        if random.random() * 100 < state.get("loss", 0):
            return
        now, size = time.monotonic(), len(frame) - _HEADER
        if self.waiting[direction] and self.waiting[direction] + size > _QUEUE:
            return
        rate = state.get("rate")
        if rate:
            self.free[direction] = max(now, self.free[direction]) + size * 8 / (rate * 1000)
        at = (self.free[direction] if rate else now) + state.get("delay", 0) / 1000
        self.count += 1
        self.waiting[direction] += size
        heapq.heappush(self.due, (at, self.count, direction, frame))

    def deliver(self, now: float) -> None:
        """Send the frames that are due. A frame that the other side refuses is lost."""
        while self.due and self.due[0][0] <= now:
            __, __count, direction, frame = heapq.heappop(self.due)
            self.waiting[direction] -= len(frame) - _HEADER
            try:
                if direction:
                    self.wire.send(frame)
                else:
                    os.write(self.tap, frame)
            except OSError:
                continue


def with_vlan_tag(data: bytes, extra: list[tuple[int, int, bytes]]) -> bytes:
    """Return a frame of a packet socket with its VLAN tag, which the kernel has put aside (packet(7), PACKET_AUXDATA).

    data: with the header of virtio; extra: the control messages.
    """
    for level, kind, value in extra:
        if (level, kind) == (_SOL_PACKET, _PACKET_AUXDATA) and len(value) >= 20:
            status, __, __, __, __, tag, protocol = struct.unpack("=IIIHHHH", value[:20])
            if status & _VLAN_VALID:
                ether = protocol if status & _VLAN_TPID_VALID else _ETH_P_8021Q
                at = _HEADER + _MACS
                return _moved(data[:_HEADER]) + data[_HEADER:at] + struct.pack("!HH", ether, tag) + data[at:]
    return data


def _moved(header: bytes) -> bytes:
    """Return a header of virtio whose offsets count four bytes more, for the tag."""
    flags, kind, size, gso, start, offset = struct.unpack("=BBHHHH", header)
    return struct.pack("=BBHHHH", flags, kind, size + 4 if size else 0, gso, start + 4 if flags & 1 else start, offset)


def netem(settings: dict[str, float]) -> list[str]:
    """Return the arguments of tc-netem(8) for settings of a line."""
    units = {"delay": "ms", "loss": "%", "rate": "kbit"}
    return [word for field in FIELDS if field in settings for word in (field, f"{settings[field]:g}{units[field]}")]


def start_time(pid: object) -> int | None:
    """Start time of a process, in clock ticks since boot (proc(5)); None when it is gone, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def run(*command: str) -> None:
    """Run a command for at most 60 s. Raises `LineError` with its error output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LineError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise LineError(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()}")


def deaf(link: str) -> None:
    """Let the kernel itself not answer on a link: its frames are those of the machine."""
    setting = Path(f"/proc/sys/net/ipv6/conf/{link}/disable_ipv6")
    if setting.exists():
        setting.write_text("1")


if __name__ == "__main__":
    main(sys.argv[1:])
