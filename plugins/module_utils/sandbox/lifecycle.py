"""A service of a lab, from its start to its health check: started, restarted when its files change, asked for an answer."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import ssl
import struct
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..addresses import socket_family
from ..errors import LabError
from ..state import write_atomic
from . import processes

HEALTH_SECONDS = 20.0


@dataclass(frozen=True)
class Service:
    """One server: its program, its files, where it listens, and its health check.

    leftovers: files that remain after a kill and would prevent a start. written: files that the program appends to as a
    user of its own, with that user.
    """

    program: processes.Program
    files: Mapping[Path, tuple[str, int]]
    port: int
    transport: str
    healthy: Callable[[], None]
    directories: Sequence[Path] = field(default_factory=tuple)
    leftovers: Sequence[Path] = field(default_factory=tuple)
    written: Mapping[Path, str] = field(default_factory=dict)


def ensure(services: Mapping[str, Service], directory: Path, *, check: bool = False) -> list[dict[str, str]]:
    """Start stopped services, restart changed ones, wait until all answer; return the changes (`name`, `before`, `after`).

    directory: where the process files are. Raises `LabError` for a port that another process uses, and for a service
    that does not answer within `HEALTH_SECONDS`, with the end of its log.
    """
    done = []
    for name, service in services.items():
        running = processes.find(directory, name)
        pending = [path for path, (content, mode) in service.files.items() if not _is_same(path, content, mode)]
        current = running is not None and not pending and running.digest == service.program.digest()
        if current:
            continue
        done.append(
            {
                "name": name,
                "before": "running with different settings\n" if running else "stopped\n",
                "after": f"running on port {service.port}/{service.transport}\n",
            }
        )
        if check:
            continue
        if running:
            processes.stop(directory, name)
        for path in service.leftovers:
            path.unlink(missing_ok=True)
        for path in service.directories:
            path.mkdir(parents=True, exist_ok=True)
        for path, (content, mode) in service.files.items():
            write_atomic(path, content, mode)
        for path, user in service.written.items():
            path.touch()
            shutil.chown(path, user)
        if owner := port_owner(service.port, service.transport):
            raise LabError(
                f"{name}: port {service.port}/{service.transport} is used by {owner}: stop it, or choose another port"
            )
        processes.launch(directory, service.program)
    if not check:
        for name, service in services.items():
            _wait(name, service, directory)
    return done


def port_owner(port: int, transport: str) -> str | None:
    """Return who listens on `port` in this network namespace (`pid 123 (nginx)`), or None.

    transport: `tcp` or `udp`. Without root, a process of another user is known to be there, but not which one.
    """
    inodes = set()
    for table in (transport, f"{transport}6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                listening = fields[3] == "0A" if transport == "tcp" else True
                if listening and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    if not inodes:
        return None
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{entry}/fd"):
                if os.readlink(f"/proc/{entry}/fd/{descriptor}") in inodes:
                    command = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    return f"pid {entry} ({command.strip()})"
    return "a process that this user cannot see"


def _is_same(path: Path, content: str, mode: int) -> bool:
    return path.exists() and path.read_text() == content and path.stat().st_mode & 0o777 == mode


def _wait(name: str, service: Service, directory: Path) -> None:
    deadline = time.monotonic() + HEALTH_SECONDS
    while True:
        try:
            service.healthy()
            return
        except (OSError, ValueError) as error:
            ended = processes.find(directory, name) is None
            if ended or time.monotonic() > deadline:
                what = "exited" if ended else f"does not answer after {HEALTH_SECONDS:.0f} s ({error})"
                raise LabError(
                    f"{name}: {what}: {processes.log_tail(service.program.log) or 'its log is empty'}"
                ) from error
        time.sleep(0.05)


def get(url: str, authority: str | None = None, user: str = "", password: str = "") -> None:
    """Get `url` and read its body within 5 s, without a proxy; raise `OSError` when that does not succeed.

    authority: the certificate in PEM that the server is trusted by. user, password: for basic authentication.
    """
    context = ssl.create_default_context(cadata=authority) if authority else None
    request = urllib.request.Request(url)
    if user:
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), *([urllib.request.HTTPSHandler(context=context)] if context else [])
    )
    with opener.open(request, timeout=5) as answer:
        answer.read()


def ask_time(address: str, port: int) -> None:
    """Send an NTP client's packet (RFC 5905) and expect a reply of a synchronized server within half a second.

    Raises `OSError` when nothing answers, and `ValueError` for a server whose clock is not synchronized.
    """
    family = socket_family(address)
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(0.5)
        client.connect((address, port))
        client.send(b"\x23" + 47 * b"\0")
        reply = client.recv(48)
    leap, mode, stratum = reply[0] >> 6, reply[0] & 7, struct.unpack("!B", reply[1:2])[0]
    if mode != 4 or leap == 3 or not 1 <= stratum <= 15:
        raise ValueError(f"not synchronised: leap {leap}, mode {mode}, stratum {stratum}")
