"""Whether the lab's load balancer serves API and ingress by every node behind it."""

from __future__ import annotations

import csv
import io
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..plan.balancer import Balancer, Frontend
from ..plan.balancers import STATS_PORT
from ..vocabulary import Port
from .links import Finding

CONNECT_SECONDS = 10.0
STATS_SECONDS = 5.0
_ROUTERS = 2
"""Replicas of the default ingress controller, where there are as many nodes for it."""
_ROUNDS = 2
"""Connections for each node: others share the turns, such as the nodes' own clients."""


class Server(NamedTuple):
    """What the load balancer reports of a node behind one of its ports. state: such as `UP`, or `DOWN`; sessions: so far."""

    frontend: str
    node: str
    state: str
    sessions: int

    @property
    def up(self) -> bool:
        """Whether it gets connections."""
        return self.state.startswith("UP")


def findings(balancer: Balancer) -> Iterator[Finding]:
    """Connect to each port as a client does, often enough for every node to have its turn; yield which nodes served.

    A node that is down, or got no connection, did not serve. A connection counts when its TLS handshake is complete, or its HTTP
    request answered.
    """
    stats = (balancer["addresses"][0], STATS_PORT) if balancer.get("machine") else Path(balancer["stats"])
    for front in balancer["frontends"]:
        subject = f"load balancer port {front['port']}"
        every = [node["name"] for node in front["backends"]]
        chosen = front["health"] is None and len(every) > _ROUTERS  # the ingress operator places its routers
        expected = f"{_ROUTERS} or more of {', '.join(every)}" if chosen else ", ".join(every)
        try:
            before = _servers_of(servers(stats), front)
            errors = [error for __ in range(_ROUNDS * len(every)) if (error := _failure(balancer, front))]
            after = _servers_of(servers(stats), front)
        except OSError as error:
            yield Finding(subject, expected, f"does not serve: {error}")
            continue
        messages = {name: _described(name, before.get(name), after.get(name)) for name in every}
        served = [name for name in every if messages[name] == name]
        idle = [name for name in every if name not in served and name in after and after[name].up]
        enough = chosen and len(served) >= _ROUTERS and not idle
        found = expected if enough else ", ".join(messages.values())
        lost = f"; {len(errors)} of {_ROUNDS * len(every)} connections failed: {errors[0]}" if errors else ""
        yield Finding(subject, expected, found + lost)


def _servers_of(listed: list[Server], front: Frontend) -> dict[str, Server]:
    return {one.node: one for one in listed if one.frontend == front["name"]}


def _described(name: str, before: Server | None, after: Server | None) -> str:
    """Return the name of a node that served; otherwise with the reason."""
    if before is None or after is None:
        return f"{name} is unknown to it"
    if not after.up:
        return f"{name} is {after.state}"
    return name if after.sessions > before.sessions else f"{name} had no connection"


def _failure(balancer: Balancer, front: Frontend) -> str:
    """Return why a connection failed; "" if a node answered."""
    try:
        _ask(balancer["addresses"][0], front["port"])
    except OSError as error:
        return str(error)
    return ""


def _ask(address: str, port: int) -> None:
    """Connect, and wait for the node's first words. Raises `OSError` (`ssl.SSLError` is one)."""
    with socket.create_connection((address, port), CONNECT_SECONDS) as plain:
        if port == Port.HTTP:
            plain.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            if not plain.recv(1):
                raise ConnectionResetError("the connection was closed without an answer")
            return
        # Who answers is of interest here, not whether a client trusts it: another check connects with the kubeconfig.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.wrap_socket(plain).close()


def _connected(stats: Path | tuple[str, int]) -> socket.socket:
    if isinstance(stats, tuple):
        return socket.create_connection(stats, STATS_SECONDS)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(STATS_SECONDS)
        client.connect(str(stats))
    except OSError:
        client.close()
        raise
    return client


def servers(stats: Path | tuple[str, int]) -> list[Server]:
    """Return what a running load balancer reports of its nodes. stats: its socket, or the address and the port of a machine.

    Raises `OSError` when it does not answer within `STATS_SECONDS`.
    """
    with _connected(stats) as client:
        client.sendall(b"show stat\n")
        text = b"".join(iter(lambda: client.recv(65536), b"")).decode(errors="replace")
    rows = csv.DictReader(io.StringIO(text.removeprefix("# ")))
    return [
        Server(row["pxname"], row["svname"], row["status"], int(row["stot"] or 0))
        for row in rows
        if row.get("svname") not in (None, "FRONTEND", "BACKEND")
    ]
