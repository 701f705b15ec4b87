"""One member of the replicated store: leads while it holds the lead, otherwise follows the leader's log.

A follower opens a WebSocket to the leader, gets a snapshot, then every event, and acknowledges each when it is in its
own log. The leader answers a write when all connected followers have it, so the next leader has everything
that was acknowledged. A new leader first queries the revision of every reachable member and takes the newest state.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import aiohttp
from aiohttp import web

from ...plugins.module_utils.addresses import in_url
from ...plugins.module_utils.documents import load_json
from .api.access import MASTERS, Access, User
from .api.errors import ApiError
from .leadership import Election, Leadership
from .store import Event, Store

PREFIX = "/agentlab/v1"
TICK_SECONDS = 1.0
PEER_TIMEOUT = aiohttp.ClientTimeout(total=5)
CONNECT_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5)
# A follower that does not acknowledge in time is dropped; it reconnects and gets a snapshot.
ACK_SECONDS = 5.0
# A follower whose leader vanished is complete; its weight stays, so that there is only one failover.
FRESH_SECONDS = 30.0
# How long a write waits for the other of two members, or for its fencing.
ALONE_SECONDS = 30.0
MAX_MESSAGE = 256 * 1024 * 1024
log = logging.getLogger("store")


class _Follower:
    """The leader's view of one follower."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self.acknowledged = 0
        self.changed = asyncio.Event()

    async def reached(self, revision: int) -> None:
        while self.acknowledged < revision and not self.socket.closed:
            self.changed.clear()
            await self.changed.wait()


class Member:
    """One control-plane member.

    `peers` yields the addresses of members that may exist; `tls` is the client side of the members' mutual TLS; `on_lead` runs while this
    member leads and is cancelled when it stops. `alone` returns whether this member may continue without any other.
    """

    def __init__(
        self,
        store: Store,
        leadership: Leadership,
        access: Access,
        tls: ssl.SSLContext | None,
        peers: Callable[[], Iterable[str]],
        port: int,
        on_lead: Callable[[], Awaitable[None]],
        alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self.store, self.leadership, self.access, self.tls = store, leadership, access, tls
        self.peers, self.port, self.on_lead, self.alone = peers, port, on_lead, alone
        self.id = str(uuid.uuid4())
        self.leader = False
        self.in_sync = False
        self.followers: list[_Follower] = []
        self._followed_until = -FRESH_SECONDS
        self._session: aiohttp.ClientSession | None = None

    @property
    def ready(self) -> bool:
        """Return whether this member's state may be read."""
        return self._quorate if self.leader else self.in_sync

    @property
    def writable(self) -> bool:
        """Return whether this member may write now."""
        return self.leader and self._quorate and self.leadership.holds()

    @property
    def _quorate(self) -> bool:
        return bool(self.followers) or self.alone()

    @property
    def weight(self) -> int:
        """Return this member's weight for the virtual address: keepalived adds it to the priority, -254 excludes the member."""
        if self.leader:
            return 30
        if not self.store.uid:
            return -254
        fresh = self.in_sync or time.monotonic() - self._followed_until < FRESH_SECONDS
        return 20 if fresh else 5

    def routes(self) -> list[web.RouteDef]:
        """Return the routes between members."""
        return [
            web.get(f"{PREFIX}/status", self._status),
            web.get(f"{PREFIX}/snapshot", self._snapshot),
            web.get(f"{PREFIX}/replicate", self._replicate),
        ]

    async def run(self) -> None:
        """Lead or follow until cancelled."""
        connector = aiohttp.TCPConnector(ssl=self.tls) if self.tls else None
        async with aiohttp.ClientSession(connector=connector, timeout=CONNECT_TIMEOUT) as session:
            self._session = session
            looks = (
                asyncio.ensure_future(self._look(self.leadership)) if isinstance(self.leadership, Election) else None
            )
            try:
                while True:
                    if self.leadership.holds():
                        await self._lead()
                    else:
                        await self._follow()
                    await asyncio.sleep(TICK_SECONDS)
            finally:
                if looks:
                    looks.cancel()

    async def _look(self, election: Election) -> None:
        while True:
            states = [state async for state in self._peer_states()]
            election.look(self._state(), states)
            await asyncio.sleep(TICK_SECONDS)

    async def replicated(self, revision: int) -> None:
        """Return when all connected followers have everything up to `revision`.

        Raises ApiError when none is left and this member may not continue alone.
        """
        waits = {asyncio.ensure_future(follower.reached(revision)): follower for follower in self.followers}
        __, late = await asyncio.wait(waits, timeout=ACK_SECONDS) if waits else ((), ())
        for task in late:
            task.cancel()
            log.warning("a follower did not acknowledge revision %d within %g s and is dropped", revision, ACK_SECONDS)
            await waits[task].socket.close()
        end = time.monotonic() + ALONE_SECONDS
        while not any(follower.acknowledged >= revision for follower in self.followers) and not self.alone():
            if time.monotonic() > end:
                raise ApiError(504, "Timeout", "etcdserver: request timed out")
            await asyncio.sleep(TICK_SECONDS)

    async def forward(self, request: web.Request, user: User) -> web.StreamResponse:
        """Forward a write to the leader on behalf of the caller."""
        url = self.leadership.leader_url()
        if url is None or self._session is None or self.leadership.holds():
            raise ApiError(503, "ServiceUnavailable", "no control plane member leads at the moment")
        headers = {
            "Impersonate-User": user.name,
            "Content-Type": request.headers.get("Content-Type", "application/json"),
        }
        pairs = [*headers.items(), *(("Impersonate-Group", group) for group in user.groups)]
        if "Accept" in request.headers:
            pairs.append(("Accept", request.headers["Accept"]))
        try:
            async with self._session.request(
                request.method,
                url + str(request.rel_url),
                data=await request.read(),
                headers=pairs,
                timeout=aiohttp.ClientTimeout(total=30),
            ) as answer:
                return web.Response(body=await answer.read(), status=answer.status, content_type=answer.content_type)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise ApiError(503, "ServiceUnavailable", f"the leader at {url} cannot be reached: {error}") from None

    # Leading

    async def _lead(self) -> None:
        if not await self._take_over():
            return
        self.leader, self.in_sync = True, False
        log.info("leading: epoch %d, revision %d", self.store.epoch, self.store.revision)
        duties = asyncio.ensure_future(self.on_lead())
        try:
            while self.leadership.holds():
                if duties.done():
                    duties.result()
                await asyncio.sleep(TICK_SECONDS)
        finally:
            self.leader = False
            duties.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await duties
            for follower in list(self.followers):
                await follower.socket.close()
        log.info("another member took the lead")

    async def _take_over(self) -> bool:
        """Take the newest state among the reachable members and begin an epoch; False if none has a state."""
        states = [state async for state in self._peer_states()]
        if not states and not self.alone():
            return False
        own = (self.store.epoch, self.store.revision) if self.store.uid else (-1, -1)
        candidates = [s for s in states if s["uid"] and self.store.uid in ("", s["uid"])]
        best = max(candidates, key=lambda s: (s["epoch"], s["revision"]), default=None)
        if best and (best["epoch"], best["revision"]) > own:
            try:
                self.store.load(await self._get(best["url"], "snapshot"))
            except (TimeoutError, aiohttp.ClientError, ValueError) as error:
                log.warning("the newest state is at %s but cannot be read: %s", best["url"], error)
                return False
            log.info("took the state of %s: epoch %d, revision %d", best["url"], best["epoch"], best["revision"])
        if not self.store.uid:
            log.warning("this member has no state yet and cannot lead")
            return False
        self.store.begin_epoch(max([self.store.epoch, *(s["epoch"] for s in candidates)]) + 1)
        return True

    async def _peer_states(self) -> AsyncIterator[dict[str, Any]]:
        urls = [f"https://{in_url(address)}:{self.port}" for address in self.peers()] if self.tls else []
        answers = await asyncio.gather(*(self._get(url, "status") for url in urls), return_exceptions=True)
        seen = {self.id}
        for url, answer in zip(urls, answers, strict=True):
            # A member may be reached at several addresses.
            if isinstance(answer, dict) and answer["member"] not in seen:
                seen.add(answer["member"])
                yield {**answer, "url": url}

    async def _get(self, url: str, what: str) -> dict[str, Any]:
        assert self._session is not None
        async with self._session.get(f"{url}{PREFIX}/{what}", timeout=PEER_TIMEOUT) as answer:
            answer.raise_for_status()
            found: dict[str, Any] = load_json(await answer.read(), name=url)
            return found

    # Following

    async def _follow(self) -> None:
        url = self.leadership.leader_url()
        if url is None or self._session is None:
            return
        try:
            async with self._session.ws_connect(
                f"{url}{PREFIX}/replicate", heartbeat=5, max_msg_size=MAX_MESSAGE
            ) as socket:
                await self._receive(socket)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            log.debug("no leader at %s: %s", url, error)
        finally:
            if self.in_sync:
                self._followed_until = time.monotonic()
            self.in_sync = False

    async def _receive(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        watch = asyncio.ensure_future(self._close_when_leading(socket))
        try:
            async for message in socket:
                if message.type != aiohttp.WSMsgType.TEXT:
                    return
                content = load_json(message.data, name="message")
                if "objects" in content:
                    self.store.load(content)
                    self.in_sync = True
                    log.info("following: epoch %d, revision %d", content["epoch"], content["revision"])
                else:
                    self.store.apply(content)
                await socket.send_str(str(self.store.revision))
        finally:
            watch.cancel()

    async def _close_when_leading(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while not self.leadership.holds():
            await asyncio.sleep(TICK_SECONDS)
        await socket.close()

    # Served to other members

    def _check(self, request: web.Request) -> None:
        if MASTERS not in self.access.user(request).groups:
            raise web.HTTPForbidden(text="members of the control plane only")

    async def _status(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.json_response(self._state())

    def _state(self) -> dict[str, Any]:
        return {
            "member": self.id,
            "uid": self.store.uid,
            "epoch": self.store.epoch,
            "revision": self.store.revision,
            "leader": self.leader,
            "electable": self.leadership.electable,
            "ready": self.ready,
            "followers": len(self.followers),
        }

    async def _snapshot(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.json_response(self.store.snapshot())

    async def _replicate(self, request: web.Request) -> web.StreamResponse:
        self._check(request)
        if not self.leader:
            raise web.HTTPServiceUnavailable(text="this member does not lead")
        socket = web.WebSocketResponse(heartbeat=5, max_msg_size=MAX_MESSAGE)
        await socket.prepare(request)
        follower = _Follower(socket)
        self.store.listeners.append(follower.queue.put_nowait)
        snapshot = json.dumps(self.store.snapshot(), separators=(",", ":"))
        follower.acknowledged = self.store.revision
        self.followers.append(follower)
        sender = asyncio.ensure_future(self._send(follower, snapshot))
        try:
            async for message in socket:
                if message.type == aiohttp.WSMsgType.TEXT:
                    follower.acknowledged = int(message.data)
                    follower.changed.set()
        finally:
            self.followers.remove(follower)
            self.store.listeners.remove(follower.queue.put_nowait)
            sender.cancel()
            follower.changed.set()
        return socket

    async def _send(self, follower: _Follower, snapshot: str) -> None:
        with contextlib.suppress(ConnectionError):
            await follower.socket.send_str(snapshot)
            while (event := await follower.queue.get()) is not None:
                await follower.socket.send_str(json.dumps({**event, "old": None}, separators=(",", ":")))
        await follower.socket.close()
