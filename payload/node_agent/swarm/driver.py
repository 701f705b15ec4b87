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
from .sender import Sender
from .settings import BOOT_SECONDS, STEP_SECONDS, Settings
from .stats import CONTROLLER, INSTALLER, Stats, resident_bytes
from .support import (
    AT_ONCE,
    REQUEST_SECONDS,
    archive,
    cancel,
    protocol_dumps,
    raise_file_limit,
    run_bounded,
    self_signed,
    tls,
)

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = optional("aiohttp")

ENDING_POLL = {"vanish": 3, "restart": 1}
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
        self._sender = Sender(settings, self.stats, self._hub)
        self._registration = Registration(self, self._hub)
        self._bmcs = Bmcs(settings, self._power_on, self._power_off) if settings.bmc else None
        self._programs = (
            Programs(settings, self.stats, self._arrived, self._ordered, self._send_logs) if settings.agent else None
        )
        self._stop = asyncio.Event()
        self.stopped = False
        self._downloads: Downloads

    # Conversations

    async def send(self, request: Request, me: Identity) -> Response:
        """Send one request outside of a conversation."""
        return await self._sender.send(request, me)

    async def talk(
        self, conversation: Conversation, me: Identity, host: Host | None = None, cluster: Cluster | None = None
    ) -> Any:
        """Execute the requests of a conversation; return its result. PermanentlyRefused: it stopped permanently.

        `host`: whose it is; `cluster`: whose controller's.
        """
        loop = asyncio.get_running_loop()
        answer: Any = None
        try:
            while True:
                action = conversation.send(answer)
                if isinstance(action, Request):
                    answer = await self._sender.send(action, me, host, cluster)
                elif isinstance(action, Wait):
                    limit = self.settings.poll_limit if action.poll else 0.0
                    seconds = min(action.seconds, limit or action.seconds)
                    due = loop.time() + seconds
                    await asyncio.sleep(seconds)
                    if action.poll:
                        self.stats.add_delay(loop.time() - due)
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
            await self._send_logs(host)
        if kind == "install" and result.exit_code == 0:
            await self._install(host, step)

    async def _install(self, host: Host, step: dict[str, Any]) -> None:
        """Perform the installer's part of the step `install`; at its end the host reboots into the installed system."""
        wanted = load_json(step["args"][0], name="args")
        host.cluster.id = host.cluster.id or wanted["cluster_id"]  # a hub does not set it
        cluster, clock = host.cluster, asyncio.get_running_loop().time
        begun, times = clock(), self.stats.step_times
        if self._programs and self._programs.installers.installs(host, wanted["role"]):
            cluster.roles[host.number], times = wanted["role"], self.stats.program_times
            done = await self._programs.installers.install(host, wanted)
        else:
            done = await self.talk(install.installer(host, wanted["role"], self._pace, self._archive), host.me, host)
        if done:
            self.stats.reached(times, INSTALLER, clock() - begun)
            if cluster.masters == 1 or wanted["role"] != "bootstrap":
                cluster.pivoted = cluster.pivoted or clock()
            if self._programs:
                self._programs.installers.rebooted(host, self.hosts, wanted)
            if self._programs and host.program:
                self._programs.reboot(host)
            else:
                self._end(host)
            if self._bmcs:
                self._bmcs.installed(host)

    async def _send_logs(self, host: Host) -> None:
        await self.talk(install.send_logs(host, self._archive, self.settings), host.me, host)

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
            install.conduct(cluster, hosts, self._pace, clock, self._progress.observe, self._certificate, look),
            me,
            cluster=cluster,
        )
        self.stats.end(cluster.name, end, len(hosts))
        if end != "installed":
            self._failed(cluster, hosts, end, last)
        elif cluster.pivoted:
            times = self.stats.program_times if cluster.controlled else self.stats.step_times
            self.stats.reached(times, CONTROLLER, clock() - cluster.pivoted)
        self._progress.ended(cluster, end)
        for host in hosts:
            self._end(host)
        if self._programs:
            await self._programs.installers.release(cluster, end == "installed")

    def _failed(self, cluster: Cluster, hosts: list[Host], end: str, view: dict[str, Any]) -> None:
        injected = {host.me.host_id: host.failure for host in hosts}
        self.stats.fail(cluster.name, end, view, injected, cluster.broken)

    # The run

    async def run(self) -> dict[str, Any]:
        """Set up, run to the end (or until `stop`), clean up. Returns the report. SwarmError: the service cannot be used."""
        raise_file_limit()
        settings = self.settings
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        connector = aiohttp.TCPConnector(limit=settings.connections, ssl=tls(settings), ttl_dns_cache=3600)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, json_serialize=protocol_dumps
        ) as session:
            self._sender.session = session
            self._downloads = Downloads(session, settings, self.stats)
            self._certificate = self_signed() if settings.install else ""
            self.stats.baseline_bytes = resident_bytes()
            samples = asyncio.get_running_loop().create_task(self._sample())
            try:
                if self._bmcs:
                    await self._bmcs.listen()
                await self._registration.set_up()
                self.stats.clusters = len(self.clusters)
                if not self.stopped and self._programs:
                    async with self._programs.running(session):
                        await self._run_all()
                        await cancel(list(self._tasks_of_hosts.values()))
                elif not self.stopped:
                    await self._run_all()
            finally:
                if self._bmcs:
                    await self._bmcs.close()
                await cancel([*self._tasks, *self._tasks_of_hosts.values(), samples])
                self.stats.sample()
                if not settings.keep:
                    await self._registration.remove()
        return {"settings": settings.public(), "stopped": self.stopped, "left": self.remaining(), **self.stats.report()}

    def stop(self) -> None:
        """End the run early, with the same cleanup as at its end."""
        self.stopped = True
        self._stop.set()

    def remaining(self) -> list[str]:
        """Return name and id of the clusters that are still to be removed."""
        return (
            []
            if self.settings.keep
            else [f"{cluster.name} {cluster.id or cluster.namespace}" for cluster in self.clusters if cluster.created]
        )

    async def _run_all(self) -> None:
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
        over = asyncio.get_running_loop().create_task(self._end_leaders(leaders))
        try:
            await asyncio.wait_for(self._stop.wait(), settings.duration or None)
        except TimeoutError:
            pass
        finally:
            late = [cluster for cluster, leader in zip(self.clusters, leaders, strict=True) if not leader.done()]
            await cancel([over, *leaders])
        await run_bounded([self._unfinished(cluster, of[cluster.number]) for cluster in late], AT_ONCE)

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
            self._failed(cluster, hosts, end, body)

    async def _end_leaders(self, leaders: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*leaders)
        self._stop.set()

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(self.settings.progress)
            self._show(self.stats.sample())
