"""`agentlab serve --replay DIR`: a recording for `wait-for`, the pages and any client."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
from pathlib import Path

from ..ci.records import duration
from ..errors import LabError
from ..report import replay
from ..report.page.server import Server as PageServer
from ..report.replay.server import SPEEDS, Events, ReplayClock, ReplayServer, assets
from ..reproduce import EvidenceError
from ..terminal import write_line
from ..vocabulary import Exit, Port, RunFile
from .output import message


def speed(text: str) -> float:
    """Return a speed; raise `ArgumentTypeError` for anything else."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not SPEEDS[0] <= found <= SPEEDS[1]:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number from {SPEEDS[0]:g} to {SPEEDS[1]:g}")
    return found


def play(path: Path, factor: float, listen: tuple[str, int]) -> int:
    """Play the recording of a run until Ctrl-C; return the exit code.

    path: a run directory, artifacts or an archive; factor: how many times as fast; listen: IP address and port.
    """
    from ....payload.api_server.app import PAGE

    try:
        found = replay.find(path)
        playing = ReplayClock(found, factor)
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(_listen(playing, listen, PAGE.read_bytes()))
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentlab-replay-")))
            assets(directory, found, listen[0], server.url)
            events = Events(playing, directory)
            events.write()
            page = stack.enter_context(PageServer(directory, clock=playing.wall))
            for one in (server, page):
                threading.Thread(target=one.serve_forever, daemon=True).start()
            _introduce(playing, server, page, directory)
            with contextlib.suppress(KeyboardInterrupt):
                events.run()
        return Exit.OK
    except (EvidenceError, LabError, ValueError, OSError) as error:
        write_line(f"agentlab serve: {message(error)}", sys.stderr)
        return Exit.FAILED


def _listen(playing: ReplayClock, listen: tuple[str, int], page: bytes) -> ReplayServer:
    host, port = listen
    try:
        return ReplayServer(playing, host, port, page)
    except OSError as error:
        raise LabError(
            f"--listen {host}:{port}: {error.strerror}; choose another address, like 127.0.0.2:{port}"
        ) from None


def _introduce(playing: ReplayClock, server: ReplayServer, page: PageServer, directory: Path) -> None:
    for note in playing.replay.notes:
        write_line(f"missing: {note}", sys.stderr)
    write_line(
        f"{playing.replay.name}: {duration(playing.replay.recording.length)}, {playing.speed:g} times as fast, until Ctrl-C"
    )
    write_line(f"  service     {server.url}  # its live page, /api/assisted-install/v2")
    write_line(f"  cluster     {directory / RunFile.KUBECONFIG}  # the OpenShift API, at the same address")
    if server.server_port == Port.ASSISTED_SERVICE:
        write_line(f"  wait-for    agentlab wait-for install-complete --dir {directory}")
    write_line(f"  run page    {page.url}")
