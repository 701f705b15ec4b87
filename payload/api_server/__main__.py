"""`/assisted-service` of the lab's image: the service with its settings from the environment, as the unit gives them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import Config


async def serve(config: Config, listen: list[tuple[str, int]], ready: Callable[[list[str]], None] | None = None) -> int:
    """Serves until a signal, or, with the ending `abi`, until the rendezvous host reboots. Exit code 0.

    `ready` is called with the URLs when all addresses are listened on.
    """
    from aiohttp import web

    from .app import Service
    from .engine import Engine
    from .store import Store

    engine = Engine(config, Store(config.state_file))
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)
    if config.ending == "abi":

        def ended(cluster: dict[str, object]) -> None:
            delay = (
                0.0
                if cluster.get("control_plane_count") == 1
                else engine.seconds("REBOOT_DELAY_SECONDS", str(cluster["id"]))
            )
            logging.getLogger("assisted-service").info(
                "the rendezvous host reboots, the service goes with it in %.0f s", delay
            )
            loop.call_later(delay, done.set)

        engine.on_bootstrap_reboot = ended  # type: ignore[assignment]
    # Documents live long: walking them again and again would hold requests up for tens of milliseconds.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    runner = web.AppRunner(Service(engine).app(), access_log=None)
    await runner.setup()
    for host, port in listen:
        await web.TCPSite(runner, host, port, shutdown_timeout=1.0).start()
    notify("READY=1")
    if ready is not None:
        ready([_url(address) for address in runner.addresses])
    await done.wait()
    await runner.cleanup()
    return 0


def _url(address: Any) -> str:
    host, port = address[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def notify(message: str) -> None:
    """Tells systemd, when it wants to be told."""
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
    data = Path(os.environ.get("WORK_DIR") or "/data")
    # The unit replaces the container when it restarts. Of what it mounts only the TLS folder can be written, so the
    # state goes there (upstream's is in the database's container).
    tls = os.environ.get("EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR") or ""
    folder = Path(tls) if tls and os.access(tls, os.W_OK) else data
    state = Path(os.environ.get("STATE_FILE") or folder / "assisted-service.sqlite")
    try:
        config = Config(dict(os.environ), data, state).check()
        return asyncio.run(serve(config, listeners(int(os.environ.get("SERVICE_PORT") or 8090))))
    except (ValueError, OSError) as err:
        print(f"assisted-service: {err}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
