"""Runs a swarm in this thread, and ends it when its user requests that."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Any

from .driver import Swarm
from .output import write_or_drop
from .settings import Settings, StoppedRun, SwarmError

SHOWN = 20
"""Clusters that a message names."""


def start(
    settings: Settings,
    show: Callable[[dict[str, Any]], None],
    finish: Callable[[dict[str, Any]], None] = lambda report: None,
) -> dict[str, Any]:
    """Run a swarm in this thread and return its report, which `finish` gets before a signal can end the program.

    SIGINT, SIGTERM and SIGHUP stop the run with cleanup, a second SIGINT or SIGTERM at once. A SIGHUP that is ignored
    (nohup) stays so. SwarmError: the service cannot be used. Stopped: it ended without cleanup.
    """

    async def main() -> dict[str, Any]:
        swarm = Swarm(settings, show)
        whole = asyncio.ensure_future(swarm.run())

        def interrupt(number: int) -> None:
            again = swarm.stopped
            swarm.stop()
            if whole.done():
                return
            if not again:
                cleaning = (
                    "" if settings.keep or settings.discover else ", and deleting what was registered (again: leave it)"
                )
                write_or_drop(f"\nagentlab swarm: stopping{cleaning}", sys.stderr)
            elif number != signal.SIGHUP:  # a terminal that is closed sends it more than once
                whole.cancel()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, interrupt, number)
        try:
            report = await whole
        except (SwarmError, asyncio.CancelledError) as error:
            names = swarm.remaining()
            left = f"; left behind: {', '.join(names[:SHOWN])}" if names else ""
            left += f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            if isinstance(error, asyncio.CancelledError):
                raise StoppedRun(f"stopped without cleanup{left}") from None
            raise SwarmError(f"{error}{left}") from None
        finish(report)
        return report

    return asyncio.run(main())
