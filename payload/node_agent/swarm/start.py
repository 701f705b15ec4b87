"""Runs a swarm in this thread, and ends it when its user asks for that."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Any

from .driver import Swarm
from .settings import Settings, Stopped, SwarmError

SHOWN = 20
"""Clusters that a message names."""


def start(settings: Settings, show: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run a swarm in this thread; SIGINT and SIGTERM stop it with cleanup, the second one at once. Return the report.

    SwarmError: the service cannot be used. Stopped: it ended without cleanup.
    """

    async def main() -> dict[str, Any]:
        swarm = Swarm(settings, show)
        whole = asyncio.ensure_future(swarm.run())

        def interrupt() -> None:
            if swarm.stopped:
                whole.cancel()
            else:
                cleaning = (
                    "" if settings.keep or settings.discover else ", and deleting what was registered (again: leave it)"
                )
                print(f"\nagentlab swarm: stopping{cleaning}", file=sys.stderr)
            swarm.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, interrupt)
        try:
            return await whole
        except (SwarmError, asyncio.CancelledError) as error:
            names = swarm.left()
            left = f"; left behind: {', '.join(names[:SHOWN])}" if names else ""
            left += f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            if isinstance(error, asyncio.CancelledError):
                raise Stopped(f"stopped without cleanup{left}") from None
            raise SwarmError(f"{error}{left}") from None

    return asyncio.run(main())
