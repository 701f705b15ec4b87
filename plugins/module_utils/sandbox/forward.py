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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from ..addresses import socket_family
from ..errors import LabError

LOOPBACK = "127.0.0.1"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CHUNK = 256 * 1024
CONNECT_SECONDS = 15.0


class Target(NamedTuple):
    """A port inside: `name` for users, `host` (name or address) and `port` there, `local` port here (0: any free one)."""

    name: str
    host: str
    port: int
    local: int = 0


def listen(targets: Sequence[Target], address: str = LOOPBACK) -> list[socket.socket]:
    """Return a listening socket of `address` for each target; LabError names a port that is in use.

    address: of this host, IPv4 or IPv6; a local port 0 is a free one. Call it before `enter`: the sockets stay in this
    namespace.
    """
    made: list[socket.socket] = []
    for target in targets:
        try:
            made.append(socket.create_server((address, target.local), family=socket_family(address)))
        except OSError as error:
            for one in made:
                one.close()
            raise LabError(
                f"port {target.local} for {target.name}: {error.strerror}; omit the number for a free one"
            ) from error
    return made


def enter(pid: int) -> None:
    """Move this process, which must have one thread only, into the network and mount namespaces of process `pid`.

    Call it before threads are started: setns(2) moves one thread. Raises `LabError`, and `OSError` when the process is
    gone.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handles = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "mnt")]
    for handle in handles:
        if libc.setns(handle, 0):
            number = ctypes.get_errno()
            raise LabError(f"cannot enter the namespaces of process {pid}: {os.strerror(number)}")
        os.close(handle)


async def serve(
    sockets: Sequence[socket.socket],
    targets: Sequence[Target],
    handlers: Mapping[str, Handler] = MappingProxyType({}),
    sandbox: int | None = None,
) -> None:
    """Relay each connection to its target until cancelled. A connection that cannot be made is closed.

    handlers: by name of a target, what answers its connections instead; sandbox: handle of a process (pidfd_open(2)), with whose
    end this ends.
    """
    ended = asyncio.Event()
    if sandbox is not None:
        asyncio.get_running_loop().add_reader(sandbox, ended.set)
    async with contextlib.AsyncExitStack() as stack:
        for listening, target in zip(sockets, targets, strict=True):
            handler = handlers.get(target.name) or partial(_relay, target)
            server = await asyncio.start_server(handler, sock=listening)
            await stack.enter_async_context(server)
        await ended.wait()
        if sandbox is not None:
            asyncio.get_running_loop().remove_reader(sandbox)


async def _relay(target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer), contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(CONNECT_SECONDS):
            there = await asyncio.open_connection(target.host, target.port)
        await splice((reader, writer), there)


async def splice(here: Streams, there: Streams) -> None:
    """Copy in both directions until both have ended, and close `there`.

    Each is a reader and a writer. The end of one direction is passed on while the other one continues.
    """
    with contextlib.closing(there[1]):
        await asyncio.gather(_copy(here[0], there[1]), _copy(there[0], here[1]))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the sender ends or either side fails; the end is forwarded, so that the other direction ends as well."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
