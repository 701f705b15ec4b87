"""`/assisted-service` of the lab's image: the service with its settings from the environment, as the unit gives them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...plugins.module_utils.addresses import in_url
from ...plugins.module_utils.vocabulary import Port
from .objects import Cluster

if TYPE_CHECKING:
    from .config import Config

LOG = logging.getLogger("assisted-service")


async def serve(config: Config, listen: list[tuple[str, int]], ready: Callable[[list[str]], None] | None = None) -> int:
    """Serve until a signal, or with `exit_on_reboot` until the rendezvous host reboots. The exit code is 0.

    `ready` is called with the URLs when all addresses are listened on.
    """
    from aiohttp import web

    from . import limits
    from .app import Service
    from .engine import Engine
    from .store import Store

    engine = Engine(config, Store(config.state_file))
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)
    if config.exit_on_reboot:

        def ended(cluster: Cluster) -> None:
            delay = (
                0.0
                if cluster.get("control_plane_count") == 1
                else engine.seconds("REBOOT_DELAY_SECONDS", str(cluster["id"]))
            )
            LOG.info("the rendezvous host reboots; the service stops in %.0f s", delay)
            loop.call_later(delay, done.set)

        engine.on_bootstrap_reboot = ended
    collect_rarely()
    logging.getLogger("aiohttp.server").addFilter(_brief)
    service = Service(engine)
    service.connections.most = limits.most_connections()
    runner = web.AppRunner(service.app(), access_log=None, keepalive_timeout=limits.KEEPALIVE_SECONDS)
    await runner.setup()
    assert runner.server is not None
    opened = functools.partial(service.connections.open, runner.server)
    servers: list[asyncio.Server] = []
    try:
        for host, port in listen:
            try:
                servers.append(await loop.create_server(opened, host, port, reuse_address=True, backlog=1024))
            except OSError as err:
                why = os.strerror(err.errno) if err.errno and err.errno > 0 else err.strerror
                raise OSError(f"cannot listen on {_url((host, port))}: {why}") from None
        notify("READY=1")
        if ready is not None:
            ready([_url(socket.getsockname()) for server in servers for socket in server.sockets])
        await done.wait()
        LOG.info("stopping the service")
    finally:
        for server in servers:
            server.close()
        await runner.server.shutdown(limits.STOP_SECONDS)
        await runner.cleanup()
    return 0


def collect_rarely() -> None:
    """Keep what exists now out of Python's garbage collection, and collect the rest less often.

    Documents are long-lived: going through them would delay requests by tens of milliseconds each time.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


#: aiohttp's messages when a client does not use HTTP or stops within a body; the service's own errors have their own logger.
_CALLERS_FAULT = ("Error handling request from %s", "Unhandled exception")


def _brief(record: logging.LogRecord) -> bool:
    """Input that is not HTTP gets one line in the log, however often it is sent."""
    if record.exc_info and record.exc_info[1] is not None and record.msg in _CALLERS_FAULT:
        what = " ".join(str(record.exc_info[1]).split())[:200]
        record.msg, record.args, record.exc_info = f"{record.getMessage()}: {what}", (), None
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


def _url(address: Any) -> str:
    host, port = address[:2]
    return f"http://{in_url(host)}:{port}"


def notify(message: str) -> None:
    """Notify systemd if it requests notifications."""
    import socket

    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect("\0" + path[1:] if path.startswith("@") else path)
            channel.send(message.encode())


def listeners(port: int) -> list[tuple[str, int]]:
    """Every IPv4 and, where the kernel has it, IPv6 address."""
    return [("0.0.0.0", port), ("::", port)] if Path("/proc/net/if_inet6").exists() else [("0.0.0.0", port)]


def main() -> int:
    from .config import Config

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # The unit replaces the container when it restarts, and `agentlab reload` its image. Only the TLS folder of its mounts
    # is writable, so state and logs go there (upstream's state is in the database's container).
    tls = os.environ.get("EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR") or ""
    folder = Path(tls if tls and os.access(tls, os.W_OK) else os.environ.get("WORK_DIR") or "/data")
    state = Path(os.environ.get("STATE_FILE") or folder / "assisted-service.sqlite")
    try:
        config = Config(dict(os.environ), folder, state).check()
        return asyncio.run(serve(config, listeners(int(os.environ.get("SERVICE_PORT") or Port.ASSISTED_SERVICE))))
    except (ValueError, OSError) as err:
        print(f"assisted-service: {err}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
