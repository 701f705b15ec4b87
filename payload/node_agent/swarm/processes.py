"""Programs that the swarm starts: each in a session of its own, and none outlives the swarm."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

END_SECONDS = 5.0
MOST_OUTPUT = 300
"""Characters of a program's last line that a message shows."""
KILLED_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""The kernel ends the program when the swarm is killed."""


async def start(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path
) -> asyncio.subprocess.Process:
    """Start a program in a folder; what it prints goes to a file."""
    with log.open("wb") as output:
        # With its own session, so that its helpers end with it.
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
            env=environment, cwd=folder, start_new_session=True,
        )  # fmt: skip


async def end(process: asyncio.subprocess.Process) -> None:
    """End a program and all that it has started. What does not end by SIGTERM is killed after `END_SECONDS`."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            await asyncio.wait_for(process.wait(), END_SECONDS)
        except TimeoutError:
            continue
    await process.wait()


def last_line(log: Path) -> str:
    """Return the last line that a program printed, for a message."""
    with log.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 4096, 0))
        return file.read().decode(errors="replace").strip().rpartition("\n")[2][-MOST_OUTPUT:]
