"""An HTTP proxy into a cluster's network: CONNECT alone, to the cluster's own names and networks, on the ports that clients use.

The process stays in the sandbox (`forward.enter`), where names are resolved and connections start; only its listening
socket is outside. `proxy-url` of a kubeconfig names it (client-go: an `http` proxy is asked with CONNECT).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
from typing import NamedTuple

from ..plan.model import Plan
from ..vocabulary import Port
from .forward import CONNECT_SECONDS, splice

_HEAD_BYTES = 8192
_REQUEST = re.compile(
    rb"CONNECT (?:\[(?P<v6>[0-9a-fA-F:.]{2,45})\]|(?P<host>[A-Za-z0-9._-]{1,253})):(?P<port>\d{1,5}) HTTP/1\.[01]\r\n"
)


class Reachable(NamedTuple):
    """What clients may reach: names in `domain`, addresses of `networks`, on `ports`."""

    domain: str
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    ports: frozenset[int]

    def allows(self, host: str, port: int) -> bool:
        """Return whether this host and port may be connected to.

        host: a name or an address without brackets. A name is not resolved for this: what is in the domain is
        reachable.
        """
        if port not in self.ports:
            return False
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return host.lower().rstrip(".").endswith(f".{self.domain}")
        return any(address in network for network in self.networks)


def of_plan(plan: Plan) -> Reachable:
    """The cluster's domain and networks; the ports of its API, its ingress and the lab's registry."""
    networks = tuple(ipaddress.ip_network(cidr) for cidr in plan["installer"]["machine_network"])
    ports = {Port.HTTPS, Port.API, plan["endpoints"]["console"]["port"], plan["services"]["registry"]["port"]}
    return Reachable(plan["cluster"]["domain"], networks, frozenset(ports))


async def relay(reachable: Reachable, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one client; what is refused gets a status and one line of text.

    The client has `CONNECT_SECONDS` for its request: 405 for another method, 403 for what is not reachable, 502 for
    what does not answer.
    """
    with contextlib.closing(writer), contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(CONNECT_SECONDS):
            head = await _head(reader)
        if not (request := _REQUEST.match(head)):
            return await _refuse(writer, 405, "Method Not Allowed", "this proxy knows CONNECT host:port")
        host, port = (request["v6"] or request["host"]).decode(), int(request["port"])
        if not reachable.allows(host, port):
            ports = ", ".join(map(str, sorted(reachable.ports)))
            return await _refuse(
                writer,
                403,
                "Forbidden",
                f"{host}:{port} is not a name or address of {reachable.domain} with port {ports}",
            )
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                there = await asyncio.open_connection(host, port)
        except (OSError, TimeoutError) as error:
            return await _refuse(writer, 502, "Bad Gateway", f"{host}:{port}: {error or 'no answer'}")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await splice((reader, writer), there)
    return None


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The request with its header fields; what was sent of it, when it is longer than `_HEAD_BYTES` or cut."""
    head = b""
    while len(head) < _HEAD_BYTES and not head.endswith(b"\r\n\r\n"):
        try:
            line = await reader.readline()
        except ValueError:  # a line beyond the reader's limit
            return b""
        if not line:
            return b""
        head += line
    return head if head.endswith(b"\r\n\r\n") else b""


async def _refuse(writer: asyncio.StreamWriter, status: int, reason: str, text: str) -> None:
    body = f"{text}\n".encode(errors="replace")
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
