"""Ports on this host's loopback that lead into a sandbox's network: a relay in user space that does not change the host's network.

Listening sockets are created in the caller's network namespace; the process then enters the sandbox, where its connections start
and names are resolved. A socket stays in the namespace in which it was created (network_namespaces(7)).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ..errors import LabError

LOOPBACK = "127.0.0.1"
CHUNK = 256 * 1024
CONNECT_SECONDS = 15.0


class Target(NamedTuple):
    """A port inside: `name` for users, `host` (name or address) and `port` there, `local` port here (0: any free one)."""

    name: str
    host: str
    port: int
    local: int = 0


def listen(targets: Sequence[Target]) -> list[socket.socket]:
    """Return a listening socket of the loopback address for each target; LabError names a port that is in use."""
    made: list[socket.socket] = []
    for target in targets:
        try:
            made.append(socket.create_server((LOOPBACK, target.local)))
        except OSError as error:
            for one in made:
                one.close()
            raise LabError(
                f"port {target.local} for {target.name}: {error.strerror}; omit the number for a free one"
            ) from error
    return made


def enter(pid: int) -> None:
    """Move this process, which must have one thread only, into the network and mount namespaces of process `pid`."""
    libc = ctypes.CDLL(None, use_errno=True)
    handles = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "mnt")]
    for handle in handles:
        if libc.setns(handle, 0):
            number = ctypes.get_errno()
            raise LabError(f"cannot enter the namespaces of process {pid}: {os.strerror(number)}")
        os.close(handle)


async def serve(sockets: Sequence[socket.socket], targets: Sequence[Target]) -> None:
    """Relay each connection to its target until cancelled. A connection that cannot be made is closed."""
    async with contextlib.AsyncExitStack() as stack:
        for listening, target in zip(sockets, targets, strict=True):
            server = await asyncio.start_server(partial(_relay, target), sock=listening)
            await stack.enter_async_context(server)
        await asyncio.Event().wait()


async def _relay(target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer), contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(CONNECT_SECONDS):
            there_reader, there_writer = await asyncio.open_connection(target.host, target.port)
        with contextlib.closing(there_writer):
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the sender ends or either side fails; the end is forwarded, so that the other direction ends as well."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
