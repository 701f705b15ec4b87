"""What one caller may take of the service, as data, and the keeper of its connections.

Sizes are in bytes, times in seconds. Most callers are strangers' machines: one that says nothing, or says it forever,
must cost the others neither memory nor disk nor a connection.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from aiohttp import web

from .models import Invalid

#: Largest JSON body of most operations.
MAX_BODY = 2**20
#: Largest one with a manifest, which is base64 there.
MAX_MANIFEST_BODY = 2 * 2**20
#: Largest one of an infra-env: static networks of a thousand hosts have a megabyte.
MAX_INFRA_ENV = 4 * 2**20
#: Largest reply of an agent to a step: a connectivity report of a thousand hosts has about a megabyte.
MAX_REPLY = 4 * 2**20
#: Most characters of an inventory.
MAX_INVENTORY = 2 * 2**20
#: Operations whose bodies may be larger.
LARGER = {
    "post_reply": MAX_REPLY,
    "register_infra_env": MAX_INFRA_ENV,
    "update_infra_env": MAX_INFRA_ENV,
    "create_manifest": MAX_MANIFEST_BODY,
    "update_manifest": MAX_MANIFEST_BODY,
}
#: Largest of all else that only agents and controllers say; each change of a progress text is kept as an event.
MAX_NOTICE = 256 * 2**10
#: Largest log archive: the description's `maxLength` of upfile.
MAX_LOGS = 262_144_000
#: Bytes of the file system that logs leave free: the service's state is kept there, too.
LEAST_FREE = 64 * 2**20
#: All bodies together that are held while the rest of them is awaited; the largest gives way.
MAX_HELD = 256 * 2**20
#: Largest manifest: a ConfigMap may not be larger.
MAX_MANIFEST = 2**20
#: Most characters of a list of names and addresses (no_proxy, NTP sources): half of what Linux takes as an environment variable.
MAX_NAMES = 64 * 2**10
#: Most hosts of an infra-env with static network config: five times as many as the largest cluster that is tested.
MAX_STATIC_HOSTS = 5000
#: Most kernel arguments of an infra-env: Linux takes 2,048 characters.
MAX_KERNEL_ARGUMENTS = 1000

#: How long a connection may take to its first whole request.
HEAD_SECONDS = 30.0
#: How long a JSON body may take, and how long the next piece of a log archive.
BODY_SECONDS = 60.0
PIECE_SECONDS = 60.0
#: How long a connection without a request is kept; those of Go's client are given up after 90.
KEEPALIVE_SECONDS = 75.0
#: Connections at a time; when there are more, the one that has said nothing for longest is closed.
MAX_CONNECTIONS = 10_000
#: How long requests that are worked on may take to end when the service stops.
STOP_SECONDS = 3.0
#: Descriptors for all that is no connection.
SPARE_FILES = 100


def most_connections() -> int:
    """MAX_CONNECTIONS, or fewer where the system allows fewer descriptors; takes as many as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(MAX_CONNECTIONS, soft - SPARE_FILES))


class Doors:
    """Makes the protocols of a server's connections, and closes those that wait for nothing.

    `entered` and `left` tell when a connection has a request that is worked on.
    """

    def __init__(self) -> None:
        self.most = MAX_CONNECTIONS
        #: Connections without a request -> when they must have one, 0 after the first; the longest silent is first.
        self._waiting: dict[Any, float] = {}
        self._busy: set[Any] = set()

    def open(self, server: web.Server) -> Any:
        """The protocol of a new connection."""
        while len(self._waiting) + len(self._busy) >= self.most and self._waiting:
            self._close(next(iter(self._waiting)))
        made = server()
        self._waiting[made] = asyncio.get_running_loop().time() + HEAD_SECONDS
        return made

    def _close(self, protocol: Any) -> None:
        self._waiting.pop(protocol, None)
        if protocol.transport is not None:
            protocol.force_close()

    def entered(self, protocol: Any) -> None:
        self._waiting.pop(protocol, None)
        self._busy.add(protocol)

    def left(self, protocol: Any) -> None:
        self._busy.discard(protocol)
        self._waiting[protocol] = 0.0

    async def watch(self) -> None:
        """Closes connections that never ask, and forgets those that are gone; runs until it is cancelled."""
        while True:
            await asyncio.sleep(min(5.0, HEAD_SECONDS / 3))
            now = asyncio.get_running_loop().time()
            for protocol, deadline in list(self._waiting.items()):
                if protocol.transport is None or 0 < deadline < now:
                    self._close(protocol)


class Bodies:
    """Reads bodies in pieces, and sees to it that those which are not whole yet stay small together."""

    def __init__(self) -> None:
        self._held: dict[Any, int] = {}
        self._total = 0

    async def read(self, request: web.Request, most: int) -> bytes:
        """The body; Invalid says that it is larger than `most`, too slow, broken, or gave way to others."""
        too_large = Invalid(f"the body is larger than {most} bytes")
        if (request.content_length or 0) > most:
            raise too_large
        parts: list[bytes] = []
        content = request.content
        try:
            self._held[content] = 0
            async with asyncio.timeout(BODY_SECONDS):
                async for piece in content.iter_any():
                    parts.append(piece)
                    self._held[content] += len(piece)
                    self._total += len(piece)
                    if self._held[content] > most:
                        raise too_large
                    if self._total > MAX_HELD and len(self._held) > 1:
                        largest = max(self._held, key=self._held.__getitem__)
                        self._total -= self._held[largest]
                        self._held[largest] = 0
                        largest.set_exception(Invalid("the service has too many bodies to read, try again"))
        except TimeoutError:
            raise Invalid(f"the body did not come within {BODY_SECONDS:.0f} seconds") from None
        except web.RequestPayloadError as err:
            raise Invalid(f"the body cannot be read: {str(err)[:200]}") from None
        finally:
            self._total -= self._held.pop(content)
        return b"".join(parts)
