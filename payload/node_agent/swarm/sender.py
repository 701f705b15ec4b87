"""Sends the requests of a swarm's conversations, and records how long they took."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from ....plugins.module_utils._deps import optional
from ....plugins.module_utils.documents import load_json
from ..protocol import Identity, Request, Response
from . import hub
from .hardware import Cluster, Host
from .settings import Settings
from .stats import Stats
from .support import failure_reason, read_body

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = optional("aiohttp")

LOST_SHARE = 0.1
USER_OPERATIONS = ("install", "role", "set up", "remove")


class Sender:
    """Sends to the service, or to the hub what belongs there. `session` is to be set before the first request."""

    session: aiohttp.ClientSession

    def __init__(self, settings: Settings, stats: Stats, resources: hub.Hub | None) -> None:
        self._settings, self._stats, self._hub = settings, stats, resources

    def _headers(self, me: Identity, request: Request) -> dict[str, str]:
        if self._hub and hub.belongs(request.path):
            return self._hub.headers | (
                {"Content-Type": "application/merge-patch+json"} if request.method == "PATCH" else {}
            )
        headers = me.headers()
        # Operations of users; the others are of agents: the service distinguishes them by the header.
        if request.name in USER_OPERATIONS and self._settings.user_token:
            headers.pop("X-Secret-Key", None)
            headers["Authorization"] = self._settings.user_token
        return headers

    async def send(
        self, request: Request, me: Identity, host: Host | None = None, cluster: Cluster | None = None
    ) -> Response:
        """Send a request. `host`: whose it is, `cluster`: whose controller's; the statistics keep them apart."""
        settings = self._settings
        if settings.network_delay or settings.network_jitter:
            await asyncio.sleep(settings.network_delay + random.random() * settings.network_jitter)
        if host is not None and host.failure == "lossy" and random.random() < LOST_SHARE:
            self._stats.lost += 1
            return Response(0, None, "lost on purpose")
        body: Any = {}
        if isinstance(request.body, bytes):
            form = aiohttp.FormData()
            form.add_field("upfile", request.body, filename="logs.tar.gz", content_type="application/octet-stream")
            body = {"data": form}
        elif request.body is not None:
            body = {"json": request.body}
        elsewhere = request.path.startswith(("http://", "https://"))
        base = "" if elsewhere else settings.url
        if self._hub and hub.belongs(request.path):
            base, body["ssl"] = self._hub.server, self._hub.tls
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with self.session.request(
                request.method, base + request.path, headers=self._headers(me, request), **body
            ) as answer:
                raw = await read_body(answer)
                decoded = (
                    load_json(raw, name="the answer")
                    if raw and (elsewhere or answer.content_type == "application/json")
                    else None
                )
                response = Response(answer.status, decoded)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            response = Response(0, None, failure_reason(error))
        if host is not None and request.name == "instructions":
            if host.polled:
                self._stats.reached(self._stats.step_times, "poll interval", started - host.polled)
            host.polled = started
        wrong = None if response.ok or response.status in request.answers else response.reason()
        # Before that, a look at the cluster is the swarm's own.
        controls = cluster is not None and bool(cluster.rebooted)
        self._stats.record(request.name, loop.time() - started, response.status, wrong, controller=controls)
        return response
