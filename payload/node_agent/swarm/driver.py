"""The swarm's engine: runs the agent's conversations with asyncio and aiohttp."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ....plugins.module_utils._deps import optional
from ....plugins.module_utils.documents import load_json
from .. import protocol
from ..protocol import Conversation, Dispatch, Freeze, Identity, Request, Response, Wait
from . import hub, install, noop
from .bmc import Bmcs
from .download import DownloadError, Downloads
from .hardware import Cluster, Host, populate
from .install import Pace
from .programs import Programs
from .progress import Progress
from .registration import Registration
from .settings import BOOT_SECONDS, STEP_SECONDS, Settings
from .stats import Stats, resident_bytes
from .support import (
    AT_ONCE,
    REQUEST_SECONDS,
    archive,
    bounded,
    cancel,
    protocol_dumps,
    raise_file_limit,
    received,
    self_signed,
    tls,
    why,
)

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = optional("aiohttp")

LOST_SHARE = 0.1
ENDING_POLL = {"vanish": 3, "restart": 1}
USER_OPERATIONS = ("install", "role", "set up", "remove")
LAST_LOOK_SECONDS = 20.0


class PermanentlyRefused(Exception):
    """The service refused a host permanently."""


class Swarm:
    """All hosts of a run. `run` runs it; `stats` has the figures during and after the run."""

    def __init__(self, settings: Settings, show: Callable[[dict[str, Any]], None] = lambda sample: None) -> None:
        self.settings, self._show = settings, show
        self.stats = Stats()
        self.clusters: list[Cluster] = []
        self.hosts: list[Host] = []
        self._pace = Pace(settings)
        self._tasks: set[asyncio.Task[None]] = set()
        self._tasks_of_hosts: dict[str, asyncio.Task[None]] = {}
        self._progress = Progress(self.stats)
        self._archive = archive(settings.logs_kib)
        self._certificate = ""
        self._hub = hub.Hub.from_kubeconfig(settings.kubeconfig) if settings.kubeconfig else None
        self._registration = Registration(self, self._hub)
        self._bmcs = Bmcs(settings, self._power_on, self._power_off) if settings.bmc else None
        self._programs = Programs(settings, self.stats, self._arrived, self._ordered) if settings.agent else None
        self._stop = asyncio.Event()
        self.stopped = False
        self._session: aiohttp.ClientSession
        self._downloads: Downloads

    # Requests

    def _headers(self, me: Identity, request: Request) -> dict[str, str]:
        if self._hub and hub.belongs(request.path):
            return self._hub.headers | (
                {"Content-Type": "application/merge-patch+json"} if request.method == "PATCH" else {}
            )
        headers = me.headers()
        # Operations of users; the others are of agents: the service distinguishes them by the header.
        if request.name in USER_OPERATIONS and self.settings.user_token:
            headers.pop("X-Secret-Key", None)
            headers["Authorization"] = self.settings.user_token
        return headers

    async def send(self, request: Request, me: Identity, host: Host | None = None) -> Response:
        settings = self.settings
        if settings.network_delay or settings.network_jitter:
            await asyncio.sleep(settings.network_delay + random.random() * settings.network_jitter)
        if host is not None and host.failure == "lossy" and random.random() < LOST_SHARE:
            self.stats.lost += 1
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
            async with self._session.request(
                request.method, base + request.path, headers=self._headers(me, request), **body
            ) as answer:
                raw = await received(answer)
                decoded = (
                    load_json(raw, name="the answer")
                    if raw and (elsewhere or answer.content_type == "application/json")
                    else None
                )
                response = Response(answer.status, decoded)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            response = Response(0, None, why(error))
        if host is not None and request.name == "instructions":
            if host.polled:
                self.stats.reached(self.stats.step_times, "poll interval", started - host.polled)
            host.polled = started
        wrong = None if response.ok or response.status in request.answers else response.reason()
        self.stats.record(request.name, loop.time() - started, response.status, wrong)
        return response

    async def talk(self, conversation: Conversation, me: Identity, host: Host | None = None) -> Any:
        """Execute the requests of a conversation; return its result. PermanentlyRefused: it stopped permanently."""
        loop = asyncio.get_running_loop()
        answer: Any = None
        try:
            while True:
                action = conversation.send(answer)
                if isinstance(action, Request):
                    answer = await self.send(action, me, host)
                elif isinstance(action, Wait):
                    limit = self.settings.poll_limit if action.poll else 0.0
                    seconds = min(action.seconds, limit or action.seconds)
                    due = loop.time() + seconds
                    await asyncio.sleep(seconds)
                    if action.poll:
                        self.stats.late(loop.time() - due)
                    answer = host is not None and action.poll and self._ends(host)
                elif isinstance(action, Dispatch) and host is not None:
                    for step in action.steps:
                        self._spawn(self._step(host, step))
                    answer = None
                elif isinstance(action, Freeze):
                    raise PermanentlyRefused(action.reason)
        except StopIteration as end:
            return end.value

    def _ends(self, host: Host) -> bool:
        """Return whether a host's runner ends at this poll: by request, or because its failure is silence or a restart."""
        host.polls += 1
        return host.silent or host.polls == ENDING_POLL.get(host.failure)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Hosts

    async def _step(self, host: Host, step: dict[str, Any]) -> None:
        kind = step["step_type"]
        if kind == "install":
            if host.installing:
                return
            host.installing = True
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.sleep(self._pace.seconds(STEP_SECONDS.get(kind, 0.0)))
        if host.silent:
            return
        result = noop.answer(host, step)
        if await self.talk(protocol.reply(host.me, host.cache, step, result), host.me, host):
            self.stats.reached(self.stats.step_times, kind, loop.time() - begun)
        if protocol.wants_restart(kind, result):
            host.me.agent_version = load_json(result.output, name="output")["agent_image"]
            host.silent = True
        if kind == "logs-gather":
            await self.talk(install.send_logs(host, self._archive, self.settings), host.me, host)
        if kind == "install" and result.exit_code == 0:
            await self._install(host, step)

    async def _install(self, host: Host, step: dict[str, Any]) -> None:
        """Carry out the installer's part of the step `install`; at its end the host reboots into the installed system."""
        wanted = load_json(step["args"][0], name="args")
        host.cluster.id = host.cluster.id or wanted["cluster_id"]  # a hub does not set it
        if await self.talk(install.installer(host, wanted["role"], self._pace, self._archive), host.me, host):
            if self._programs and host.program:
                self._programs.reboot(host)
            else:
                self._end(host)
            if self._bmcs:
                self._bmcs.installed(host)

    def _ordered(self, host: Host, step: dict[str, Any]) -> None:
        """Answer a step that the program of a host does not get."""
        self._spawn(self._step(host, step))

    async def _arrived(self, host: Host) -> None:
        """Note a host's first registration."""
        if self._progress.started(host.me.host_id):
            await self._give_role(host)

    async def _live(self, host: Host, after: float) -> None:
        await asyncio.sleep(after)
        stats = self.stats
        stats.active += 1
        stats.peak_active = max(stats.peak_active, stats.active)
        try:
            for kind in self.settings.download:
                await self._downloads.fetch(kind, host.cluster.infra_env_id)
            if self._programs and host.program:
                await self._programs.run(host)
                return
            while True:
                command = await self.talk(protocol.register(host.me), host.me, host)
                protocol.runner_request(command)
                await self._arrived(host)
                host.cache.clear()
                host.silent = False
                await self.talk(protocol.poll(host.me, host.cache), host.me, host)
                if host.failure == "vanish":
                    host.silent = True
                    return
        except (PermanentlyRefused, DownloadError, ValueError) as error:  # of an invalid reply to register
            host.gone = True
            stats.gave_up[str(error)[:200]] += 1
        finally:
            stats.active -= 1

    def _begin(self, host: Host, after: float) -> None:
        self._tasks_of_hosts[host.me.host_id] = asyncio.get_running_loop().create_task(self._live(host, after))

    def _end(self, host: Host) -> None:
        if task := self._tasks_of_hosts.get(host.me.host_id):
            task.cancel()

    def _power_on(self, host: Host) -> None:
        """Boot the discovery image, as a host that was never there."""
        self._end(host)
        host.installing = host.gone = False
        self._begin(host, self._pace.seconds(BOOT_SECONDS))

    def _power_off(self, host: Host) -> None:
        host.silent = True
        self._end(host)

    async def _give_role(self, host: Host) -> None:
        """Assign arbiters as users do, on a hub when they approve a host; the service assigns all other roles."""
        cluster = host.cluster
        if not self._hub and cluster.masters <= host.number < cluster.masters + cluster.arbiters:
            request = Request("role", "PATCH", host.me.host_path, {"host_role": "arbiter"})
            await self.talk(protocol.exchange(request), host.me, host)

    # Clusters

    async def _lead(self, cluster: Cluster, hosts: list[Host], after: float) -> None:
        await asyncio.sleep(after)
        me = install.as_controller(cluster, self.settings)
        clock = asyncio.get_running_loop().time
        numbers = {host.me.host_id: host.number for host in hosts}

        def look() -> Conversation:
            return hub.look(cluster, numbers.get) if self._hub else install.by_rest(cluster, self.settings)

        end, last = await self.talk(
            install.conduct(cluster, hosts, self._pace, clock, self._progress.observe, self._certificate, look), me
        )
        self.stats.end(cluster.name, end, len(hosts))
        if end != "installed":
            self.stats.fail(cluster.name, end, last, {host.me.host_id: host.failure for host in hosts})
        self._progress.ended(cluster, end)
        for host in hosts:
            self._end(host)

    # The run

    async def run(self) -> dict[str, Any]:
        """Set up, run to the end (or until `stop`), clean up. Returns the report. SwarmError: the service cannot be used."""
        raise_file_limit()
        settings = self.settings
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        connector = aiohttp.TCPConnector(limit=settings.connections, ssl=tls(settings), ttl_dns_cache=3600)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, json_serialize=protocol_dumps
        ) as self._session:
            self._downloads = Downloads(self._session, settings, self.stats)
            self._certificate = self_signed() if settings.install else ""
            self.stats.baseline_bytes = resident_bytes()
            samples = asyncio.get_running_loop().create_task(self._sample())
            try:
                if self._bmcs:
                    await self._bmcs.listen()
                await self._registration.set_up()
                self.stats.clusters = len(self.clusters)
                if not self.stopped and self._programs:
                    async with self._programs.running(self._session):
                        await self._all()
                        await cancel(list(self._tasks_of_hosts.values()))
                elif not self.stopped:
                    await self._all()
            finally:
                if self._bmcs:
                    await self._bmcs.close()
                await cancel([*self._tasks, *self._tasks_of_hosts.values(), samples])
                self.stats.sample()
                if not settings.keep:
                    await self._registration.remove()
        return {"settings": settings.public(), "stopped": self.stopped, "left": self.left(), **self.stats.report()}

    def stop(self) -> None:
        """End the run early, with the same cleanup as at its end."""
        self.stopped = True
        self._stop.set()

    def left(self) -> list[str]:
        """Return name and id of the clusters that are still to be removed."""
        return (
            []
            if self.settings.keep
            else [f"{cluster.name} {cluster.id or cluster.namespace}" for cluster in self.clusters if cluster.created]
        )

    async def _all(self) -> None:
        settings = self.settings
        self.hosts = populate(settings, self.clusters)
        of: dict[int, list[Host]] = {}
        apart = settings.ramp_up / max(len(self.hosts), 1)
        first: dict[int, float] = {}
        for at, host in enumerate(self.hosts):
            of.setdefault(host.cluster.number, []).append(host)
            first.setdefault(host.cluster.number, at * apart)
            self.stats.kinds["program" if host.program else "simulated"] += 1
            if not self._bmcs:
                self._begin(host, at * apart)
        if self._bmcs:
            self._bmcs.add(self.hosts)
        gc.collect()
        gc.freeze()
        leaders = [
            self._spawn(
                self._lead(cluster, of[cluster.number], first[cluster.number] + random.random() * settings.watch)
            )
            for cluster in self.clusters
        ]
        over = asyncio.get_running_loop().create_task(self._over(leaders))
        try:
            await asyncio.wait_for(self._stop.wait(), settings.duration or None)
        except TimeoutError:
            pass
        finally:
            late = [cluster for cluster, leader in zip(self.clusters, leaders, strict=True) if not leader.done()]
            await cancel([over, *leaders])
        await bounded([self._unfinished(cluster, of[cluster.number]) for cluster in late], AT_ONCE)

    async def _unfinished(self, cluster: Cluster, hosts: list[Host]) -> None:
        """Store the service's view of a cluster that is not installed when the duration is over."""
        body: dict[str, Any] = {"status": cluster.status}
        if not self.stopped:
            me = install.as_controller(cluster, self.settings)
            numbers = {host.me.host_id: host.number for host in hosts}
            look = hub.look(cluster, numbers.get) if self._hub else install.by_rest(cluster, self.settings)
            try:
                body = await asyncio.wait_for(self.talk(look, me), LAST_LOOK_SECONDS) or body
            except (TimeoutError, PermanentlyRefused):
                body["status_info"] = "the service does not answer"
        end = "installed" if body.get("status") == "installed" else "unfinished"
        self.stats.end(cluster.name, end, len(hosts))
        if end != "installed":
            self.stats.fail(cluster.name, end, body, {host.me.host_id: host.failure for host in hosts})

    async def _over(self, leaders: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*leaders)
        self._stop.set()

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(self.settings.progress)
            self._show(self.stats.sample())
