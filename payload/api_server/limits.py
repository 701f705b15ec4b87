"""Limits of what one client may use of the service, as data, and the management of its connections.

Sizes are in bytes, times in seconds. Most clients are untrusted machines: one that is silent, or never stops sending,
must not use up memory, disk or connections.
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
#: Maximum size of a step reply: a connectivity report of a thousand hosts has about a megabyte.
MAX_REPLY = 4 * 2**20
#: Most characters of the output of steps whose size does not grow with the cluster or its networks. A machine with a hundred disks
#: and 256 virtual functions has an inventory of 150 KiB.
MAX_OUTPUT = {"inventory": 384 * 2**10, "ntp-synchronizer": 64 * 2**10}
#: Most characters of a pull secret: a real one has less than 10 KiB.
MAX_PULL_SECRET = 128 * 2**10
#: Operations whose bodies may be larger.
LARGER = {
    "post_reply": MAX_REPLY,
    "register_infra_env": MAX_INFRA_ENV,
    "update_infra_env": MAX_INFRA_ENV,
    "create_manifest": MAX_MANIFEST_BODY,
    "update_manifest": MAX_MANIFEST_BODY,
}
#: Maximum size of all other requests of agents and controllers; each change of a progress text is stored as an event.
MAX_NOTICE = 256 * 2**10
#: Largest log archive: the description's `maxLength` of upfile.
MAX_LOGS = 262_144_000
#: Bytes of the file system that logs leave free: the service's state is kept there, too.
LEAST_FREE = 64 * 2**20
#: Maximum total of incomplete bodies; beyond it the largest is dropped.
MAX_HELD = 256 * 2**20
#: Largest manifest: a ConfigMap may not be larger.
MAX_MANIFEST = 2**20
#: Most characters of a list of names and addresses (no_proxy, NTP sources): half of what Linux takes as an environment variable.
MAX_NAMES = 64 * 2**10
#: Most hosts of an infra-env with static network config: five times as many as the largest cluster that is tested.
MAX_STATIC_HOSTS = 5000
#: Most entries of a list in a request of a user (VIPs, networks, operators, ...); static networks have a limit of their own.
MAX_ENTRIES = 1000
#: Most characters of the list of Tang servers, which is JSON in a string: some hundred servers.
MAX_TANG = 64 * 2**10

#: Timeout until the first complete request of a connection.
HEAD_SECONDS = 30.0
#: Timeout of a JSON body, and of the next piece of a log archive.
BODY_SECONDS = 60.0
PIECE_SECONDS = 60.0
#: How long an idle connection is kept; Go's client gives up its own after 90.
KEEPALIVE_SECONDS = 75.0
#: Maximum number of connections; beyond it, the one idle for longest is closed.
MAX_CONNECTIONS = 10_000
#: Timeout of requests in progress when the service stops.
STOP_SECONDS = 3.0
#: Descriptors reserved for everything except connections.
SPARE_FILES = 100


def most_connections() -> int:
    """Raise the limit of descriptors; return MAX_CONNECTIONS, or fewer if the system allows fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(MAX_CONNECTIONS, soft - SPARE_FILES))


class Connections:
    """Create the protocols of a server's connections, and close idle ones.

    `enter` and `leave` mark a connection with a request in progress.
    """

    def __init__(self) -> None:
        self.most = MAX_CONNECTIONS
        #: Idle connections -> deadline of the first request, 0 after it; the one idle for longest is first.
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

    def enter(self, protocol: Any) -> None:
        self._waiting.pop(protocol, None)
        self._busy.add(protocol)

    def leave(self, protocol: Any) -> None:
        self._busy.discard(protocol)
        self._waiting[protocol] = 0.0

    async def watch(self) -> None:
        """Close connections that never send a request, and drop closed ones; run until cancelled."""
        while True:
            await asyncio.sleep(min(5.0, HEAD_SECONDS / 3))
            now = asyncio.get_running_loop().time()
            for protocol, deadline in list(self._waiting.items()):
                if protocol.transport is None or 0 < deadline < now:
                    self._close(protocol)


class RequestBodies:
    """Reads bodies in pieces, and bounds the total of incomplete ones."""

    def __init__(self) -> None:
        self._held: dict[Any, int] = {}
        self._total = 0

    async def read(self, request: web.Request, most: int) -> bytes:
        """Return the body; Invalid if it is larger than `most`, too slow, malformed, or dropped in favour of others."""
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
                        largest.set_exception(Invalid("the service is reading too many bodies, try again"))
        except TimeoutError:
            raise Invalid(f"the body did not arrive within {BODY_SECONDS:.0f} seconds") from None
        except web.RequestPayloadError as err:
            raise Invalid(f"the body cannot be read: {str(err)[:200]}") from None
        finally:
            self._total -= self._held.pop(content)
        return b"".join(parts)
