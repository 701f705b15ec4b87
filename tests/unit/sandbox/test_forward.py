"""A relay from this host's loopback into a network namespace that has nothing but its own loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import forward

# Answers each connection with what it was sent, when the sender is done.
ECHO = """
import socket, subprocess
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = socket.create_server(("127.0.0.1", 7000))
print("ready", flush=True)
while True:
    connection = server.accept()[0]
    data = b""
    while part := connection.recv(65536):
        data += part
    connection.sendall(data[::-1])
    connection.close()
"""
FORWARD = """
import asyncio, sys
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import forward
targets = [forward.Target("echo", "127.0.0.1", 7000), forward.Target("closed", "127.0.0.1", 7001)]
sockets = forward.listen(targets)
print(*(one.getsockname()[1] for one in sockets), flush=True)
forward.enter(int(sys.argv[1]))
asyncio.run(forward.serve(sockets, targets))
"""


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """The ports of a forward to an echo server in a namespace of its own, and to a port there that is closed."""
    with subprocess.Popen(
        ["unshare", "--net", "--mount", sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True
    ) as inside:
        assert inside.stdout is not None and inside.stdout.readline() == "ready\n"
        with subprocess.Popen(
            [sys.executable, "-c", FORWARD, str(inside.pid)], stdout=subprocess.PIPE, text=True
        ) as relay:
            assert relay.stdout is not None
            yield [int(port) for port in relay.stdout.readline().split()]
            relay.kill()
        inside.kill()


def exchange(port: int, data: bytes) -> bytes:
    """What comes back; nothing from a connection that is closed, also by a reset when it had data that was not read."""
    with socket.create_connection((forward.LOOPBACK, port), 30) as connection:

        def send() -> None:
            with contextlib.suppress(OSError):  # a target that is closed closes the connection
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while more := connection.recv(65536):
                answer += more
        sender.join()
    return answer


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces")
def test_connections_are_relayed_both_ways(ports: list[int]) -> None:
    large = os.urandom(3_000_000)
    assert exchange(ports[0], large) == large[::-1]
    assert exchange(ports[0], b"") == b""
    assert exchange(ports[1], b"hello") == b"", "a port that is closed there closes here"
    assert exchange(ports[0], b"again") == b"niaga"


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server((forward.LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LabError, match=f"port {port} for api: Address already in use"):
            forward.listen([forward.Target("service", "x", 1), forward.Target("api", "x", 1, port)])


def test_a_process_that_is_gone_cannot_be_entered() -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    with pytest.raises(OSError, match="No such file"):
        forward.enter(gone.pid)


def test_a_server_that_ends_is_not_an_error() -> None:
    async def run() -> None:
        sockets = forward.listen([forward.Target("a", "127.0.0.1", 1)])
        task = asyncio.create_task(forward.serve(sockets, [forward.Target("a", "127.0.0.1", 1)]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
