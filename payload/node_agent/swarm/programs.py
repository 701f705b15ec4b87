"""Hosts of a swarm that an agent program runs in its dry-run mode: upstream's, or the node agent simulator.

A relay on 127.0.0.1 stands between the programs and the service. It measures what they request, as the swarm measures its
simulated hosts, and it keeps from them the steps that would touch this machine's network or send its logs: the swarm
answers these. It starts the installer itself (`installer_programs`): an agent would look for the disk first.

An agent starts its helpers with nsenter and podman (`src/util/execute.go` and `src/commands/actions` of
openshift/assisted-installer-agent). Two scripts in front of its PATH run the helper itself in their place, so that neither
root nor a container store is needed, and nothing of this machine is changed. Flags and variables of the dry run are those
of `src/config/dry_run_config.go`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....plugins.module_utils._deps import optional
from ....plugins.module_utils.documents import load_json
from ..program import dumps
from ..protocol import API, is_step
from . import installer_programs, processes
from .hardware import Host
from .installer_programs import BY_CONTROLLER, Installers
from .settings import Settings, SwarmError
from .stats import Stats
from .support import failure_reason

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import web
else:
    aiohttp = optional("aiohttp")
    web = optional("aiohttp.web")

PROGRAMS = ("agent", "next_step_runner", "inventory", "disk_speed_check", "free_addresses", "logs_sender")
"""Names by which upstream's one binary is called, each of which makes it another program."""
PASSED_ON = frozenset(
    {
        "inventory",
        "connectivity-check",
        "installation-disk-speed-check",
        "container-image-availability",
        "verify-vips",
        "upgrade-agent",
    }
)
"""Steps that programs get. The swarm answers the others: upstream's agent would send packets from this machine, write its
files, send its logs, restart it, or look for the disk to install to."""
MOST_BODY = 64 << 20
ANSWERS = {"finalizing stage": (400,)}
"""Statuses besides 2xx that are not an error: the service has called the cluster installed already."""
HEADERS = ("Accept", "Content-Type", "User-Agent", "X-Request-ID", "X-Secret-Key", "discovery_agent_version")
"""Headers that the service gets as the program sent them."""

# The flags of nsenter end with `--`. A step of the agent copies /etc/mtab to root's home; here it goes to the run's directory.
NSENTER = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
if [ "$1 $2" = "sh -c" ]; then
    exec sh -c "$(printf %s "$3" | sed "s#/root/mtab-#$SWARM_DIR/mtab-#g")"
fi
exec "$@"
"""

# `podman run OPTIONS IMAGE PROGRAM ARGUMENTS`.
PODMAN = """#!/bin/sh
case "$1" in
images) echo 0123456789ab; exit 0 ;;
run) shift ;;
*) exit 0 ;;
esac
while :; do
    case "$1" in
    -v|--volume|--env|-e|--name|--security-opt) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
shift
case "$1" in
sh|bash|timeout) exec "$@" ;;
esac
program=$SWARM_DIR/programs/${1##*/}
[ -x "$program" ] || { echo "agentlab swarm: the agent has no program $1" >&2; exit 127; }
shift
exec "$program" "$@"
"""


class Programs:
    """Runs the programs of the settings for some hosts, inside of `running`; `installers`: those after the agent.

    `registered(host)`: awaited after the service has accepted a registration. `ordered(host, step)`: called for each step
    that the swarm answers itself; it must not wait. `send_logs(host)`: awaited when an installer sends its host's logs.
    """

    def __init__(
        self,
        settings: Settings,
        stats: Stats,
        registered: Callable[[Host], Awaitable[None]],
        ordered: Callable[[Host, dict[str, Any]], None],
        send_logs: Callable[[Host], Awaitable[None]],
    ) -> None:
        self._settings, self._stats = settings, stats
        self._registered, self._ordered, self._send_logs = registered, ordered, send_logs
        self.installers = Installers(settings, stats)
        self._hosts: dict[str, Host] = {}
        self._orders: dict[tuple[str, str], tuple[str, float]] = {}
        self._polled: dict[str, float] = {}
        self._url = ""
        self._folder: Path
        self._session: aiohttp.ClientSession

    @asynccontextmanager
    async def running(self, session: aiohttp.ClientSession) -> AsyncIterator[None]:
        """Make the programs' directory and listen on a free port of 127.0.0.1; remove both at the end.

        `session`: the swarm's, which forwards requests to the service.
        """
        self._session = session
        agent = self._settings.agent
        assert agent is not None
        with tempfile.TemporaryDirectory(prefix="agentlab-swarm-", ignore_cleanup_errors=True) as folder:
            self._folder = Path(folder)
            for name, text in (("nsenter", NSENTER), ("podman", PODMAN)):
                script = self._folder / name
                script.write_text(text)
                script.chmod(0o755)
            (self._folder / "programs").mkdir()
            for name in PROGRAMS:
                (self._folder / "programs" / name).symlink_to(agent.absolute())
            app = web.Application(client_max_size=MOST_BODY)
            app.router.add_route("*", "/{path:.*}", self._relay)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                self._url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                self.installers.prepare(self._folder, self._url)
                yield
            finally:
                await self.installers.close()
                await runner.cleanup()

    async def run(self, host: Host) -> None:
        """Run a host's agent until it has rebooted; end it and its helpers when cancelled. SwarmError: it ended before."""
        self._hosts[host.me.host_id] = host
        log = self._folder / f"{host.me.host_id}.log"
        command = [*processes.KILLED_WITH_PARENT, *self._command(host)]
        process = await processes.start(command, self._environment(host), self._folder, log)
        try:
            code = await process.wait()
            rebooted = self._marker(host).exists()
        finally:
            self.reboot(host)
            await processes.end(process)
        if not rebooted:
            raise SwarmError(f"the agent program ended with exit code {code}: {processes.last_line(log)}")

    def reboot(self, host: Host) -> None:
        """Let a host's agent see that it has rebooted, upon which it ends."""
        self._marker(host).touch()

    def _marker(self, host: Host) -> Path:
        return self._folder / f"{host.me.host_id}.rebooted"

    def _command(self, host: Host) -> list[str]:
        me = host.me
        return [
            str(self._folder / "programs" / "agent"),
            "--url", self._url, "--infra-env-id", me.infra_env_id, "--agent-version", me.agent_version,
            "--interval", str(max(round(me.interval), 1)),
            "--with-text-logging=false", "--with-journal-logging=false", "--with-stdout-logging=true",
        ]  # fmt: skip

    def _environment(self, host: Host) -> dict[str, str]:
        """Return the environment of an agent; its helpers, which get no flags of the dry run, inherit that."""
        path = os.environ.get("PATH", os.defpath)
        kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "PYTHONPATH")}
        return kept | {
            "PATH": f"{self._folder}:{path}", "SWARM_DIR": str(self._folder),
            "PULL_SECRET_TOKEN": host.me.token,
            "DRY_ENABLE": "true", "DRY_HOST_ID": host.me.host_id, "DRY_FORCED_HOSTNAME": host.name,
            "DRY_FORCED_MAC_ADDRESS": host.mac(), "DRY_FORCED_HOST_IPV4": f"{host.ip}/{host.cluster.network.prefixlen}",
            "DRY_FAKE_REBOOT_MARKER_PATH": str(self._marker(host)),
        }  # fmt: skip

    # The relay

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on to the service, and its response back."""
        body = await request.read()
        of_controller = request.path.startswith(f"{BY_CONTROLLER}/")
        path = request.path_qs.removeprefix(BY_CONTROLLER) if of_controller else request.path_qs
        ident, operation = installer_programs.call(request.method, path.partition("?")[0], dict(request.query))
        owner = self.installers.owners.get(ident)
        host = owner if isinstance(owner, Host) else None
        if owner is None:
            host, operation = self._place(request.method, request.path, body)
        if host is None and owner is None:
            return web.json_response({"code": 404, "reason": "not a request of a host of this swarm"}, status=404)
        if host is not None and operation == "reply inventory":
            body = _with_hardware(host, body)
        headers = {name: request.headers[name] for name in HEADERS if name in request.headers}
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with self._session.request(
                request.method, self._settings.url + path, headers=headers, data=body or None
            ) as answer:
                raw, status, kind = await answer.read(), answer.status, answer.content_type
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._stats.record(operation, loop.time() - started, 0, failure_reason(error), True, of_controller)
            return web.json_response({"code": 502, "reason": failure_reason(error)}, status=502)
        good = 200 <= status < 300
        wrong = None if good or status in ANSWERS.get(operation, ()) else f"HTTP status {status}"
        self._stats.record(operation, loop.time() - started, status, wrong, True, of_controller)
        if good and host is not None:
            raw = await self._noted(host, operation, body, raw)
        return web.Response(status=status, body=raw, content_type=kind)

    async def _noted(self, host: Host, operation: str, body: bytes, raw: bytes) -> bytes:
        """Do what follows from a request that the service has accepted; return the response for the program."""
        if operation == "register":
            await self._registered(host)
        elif operation == "instructions":
            return self._steps(host, raw, asyncio.get_running_loop().time())
        elif operation == "progress":  # of any host of the cluster, when the controller sends it
            host.cluster.stages[host.number] = _field(body, "current_stage")
        elif operation == "logs progress" and _field(body, "logs_state") == "requested":
            await self._send_logs(host)
        return raw

    def _place(self, method: str, path: str, body: bytes) -> tuple[Host | None, str]:
        """Return the host of a request and the operation's name, as simulated hosts have it; None for any other request."""
        words = path.removeprefix(f"{API}/infra-envs/").split("/")
        document: dict[str, Any] = {}
        if method == "POST" and body:
            try:
                found = load_json(body, name="the request")
                document = found if isinstance(found, dict) else {}
            except ValueError:
                pass
        ident = words[2] if len(words) > 2 else str(document.get("host_id", ""))
        rest = "/".join(words[3:])
        if rest == "instructions" and method == "POST":
            kind = str(document.get("step_type", ""))
            self._replied(ident, kind, str(document.get("step_id", "")))
            operation = f"reply {kind}"
        else:
            operation = rest or "register"
        return self._hosts.get(ident), operation

    def _steps(self, host: Host, raw: bytes, now: float) -> bytes:
        """Record what the service orders, and return it without the steps that the swarm answers."""
        before = self._polled.get(host.me.host_id)
        self._polled[host.me.host_id] = now
        if before is not None:
            self._stats.reached(self._stats.program_times, "poll interval", now - before)
        try:
            order = load_json(raw, name="the instructions")
        except ValueError:
            return raw
        steps = order.get("instructions") if isinstance(order, dict) else None
        if not isinstance(steps, list):
            return raw
        passed = []
        for step in steps:
            kind = step["step_type"] if is_step(step) else ""
            if kind in PASSED_ON:
                passed.append(step)
                self._orders[host.me.host_id, step.get("step_id", "")] = (kind, now)
            elif kind:
                self._ordered(host, step)
        return dumps({**order, "instructions": passed}).encode()

    def _replied(self, ident: str, kind: str, step: str) -> None:
        ordered = self._orders.pop((ident, step), None)
        if ordered and ordered[0] == kind:
            seconds = asyncio.get_running_loop().time() - ordered[1]
            self._stats.reached(self._stats.program_times, kind, seconds)


def _with_hardware(host: Host, body: bytes) -> bytes:
    """Return the reply of an inventory with the hardware of the swarm's host: a dry run reports this machine's."""
    reply = load_json(body, name="the reply")
    return body if reply.get("exit_code") else dumps({**reply, "output": dumps(host.inventory())}).encode()


def _field(body: bytes, name: str) -> str:
    """Return a text of a request's document, which the service has accepted; empty without it."""
    try:
        document = load_json(body, name="the request")
    except ValueError:
        return ""
    return str(document.get(name, "")) if isinstance(document, dict) else ""


def validate(flag: str, program: Path) -> None:
    """Raise SwarmError if a file cannot be run as the program of an option."""
    if not program.is_file():
        raise SwarmError(f"{flag} {program}: no such file")
    if not os.access(program, os.X_OK):
        raise SwarmError(f"{flag} {program}: is not executable")
    if not shutil.which("setpriv"):
        raise SwarmError(f"{flag}: requires setpriv, of the package util-linux")
    if flag != "--agent":
        try:
            installer_programs.namespace()
        except SwarmError as error:
            raise SwarmError(f"{flag}: {error}") from None
