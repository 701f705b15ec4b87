"""The HTTP proxy into a cluster's network."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import subprocess
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import forward, proxy

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
async def ports() -> AsyncIterator[tuple[int, int, int]]:
    """Ports of a proxy, of an echo server behind it, and one without a listener behind it."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()

    behind = await asyncio.start_server(echo, forward.LOOPBACK)
    [closed] = forward.listen([forward.Target("closed", "", 0)])
    inside, unused = behind.sockets[0].getsockname()[1], closed.getsockname()[1]
    closed.close()
    networks = (ipaddress.ip_network("127.0.0.0/8"),)
    reachable = proxy.Reachable("ostest.test.metalkube.org", networks, frozenset({inside, unused}))
    server = await asyncio.start_server(partial(proxy.relay, reachable), forward.LOOPBACK)
    async with server, behind:
        yield server.sockets[0].getsockname()[1], inside, unused


async def ask(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(forward.LOOPBACK, port)
    writer.write(data)
    writer.write_eof()
    return await asyncio.wait_for(reader.read(), 10)


def connect(host: str, port: int) -> bytes:
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: Go\r\n\r\n".encode()


async def test_what_may_be_reached_is_relayed(ports: tuple[int, int, int]) -> None:
    own, inside, __ = ports
    answer = await ask(own, connect("127.0.0.1", inside) + b"\x16\x03hello")
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n\x16\x03hello"


async def test_everything_else_is_refused_with_the_reason(ports: tuple[int, int, int]) -> None:
    own, inside, unused = ports
    for request, status, reported in (
        (
            connect("127.0.0.1", 22),
            b" 403 ",
            b"127.0.0.1:22 is not a name or address of ostest.test.metalkube.org with port",
        ),
        (connect("192.0.2.1", inside), b" 403 ", b"192.0.2.1"),
        (connect("evil.example", inside), b" 403 ", b"evil.example"),
        (connect("[2001:db8::1]", inside), b" 403 ", b"2001:db8::1"),
        (connect("127.0.0.1", unused), b" 502 ", b"127.0.0.1"),
        (connect("api.ostest.test.metalkube.org", unused), b" 502 ", b"api.ostest"),
        (b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n", b" 405 ", b"CONNECT"),
        (b"CONNECT 127.0.0.1:99999999 HTTP/1.1\r\n\r\n", b" 405 ", b""),
        (b"CONNECT \xff\xfe:1 HTTP/1.1\r\n\r\n", b" 405 ", b""),
        (b"A" * 100_000, b" 405 ", b""),
        (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n" + b"a: b\r\n" * 10_000, b" 405 ", b""),
        (b"", b" 405 ", b""),
    ):
        answer = await ask(own, request)
        assert answer.startswith(b"HTTP/1.1" + status) and reported in answer, (request[:80], answer)


def test_a_plan_lists_what_may_be_reached() -> None:
    plan = build.build(profile.load("sno_dualstack", ROOT / "config_examples"), "ostest")
    reachable = proxy.of_plan(plan)
    for host, port in (
        ("api.ostest.test.metalkube.org", 6443),
        ("console-openshift-console.apps.ostest.test.metalkube.org", 443),
        ("192.168.111.20", 443),
        (plan["services"]["address"], 5000),
    ):
        assert reachable.allows(host, port), host
    for host, port in (
        ("127.0.0.1", 443),
        ("192.168.111.20", 22),
        ("ostest.test.metalkube.org.evil", 443),
        ("xostest.test.metalkube.org", 443),
    ):
        assert not reachable.allows(host, port), host


async def test_a_relay_ends_with_the_process_of_its_sandbox() -> None:
    with subprocess.Popen(["sleep", "60"]) as keeper:
        handle = os.pidfd_open(keeper.pid)
        targets = [forward.Target("a", "", 0)]
        task = asyncio.create_task(forward.serve(forward.listen(targets), targets, sandbox=handle))
        await asyncio.sleep(0.1)
        assert not task.done()
        keeper.kill()
        await asyncio.wait_for(task, 10)
        os.close(handle)
