"""`two-node-fencing`: runs Corosync and Pacemaker on a node, and writes what they know of the other node.

Both are the distribution's. Their configuration comes from the machine config; Pacemaker's own state is kept on the node.
If one of them ends, the program ends, and its unit starts it again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from . import fencing

STATE = Path("/var/lib/pacemaker")
RUN = Path("/run/agentlab")
CONFIG = Path("/etc/kubernetes")
USER = "hacluster"
GROUP = "haclient"
# Seconds until Pacemaker is asked again; each time costs an emulated machine seconds of its processor. Only a control plane that waits
# for the other node to be fenced is in a hurry.
POLL_SECONDS = {fencing.ONLINE: 10.0, fencing.OFFLINE: 5.0, fencing.UNKNOWN: 1.0}
UNFORMED_SECONDS = 10.0
START_SECONDS = 120.0
DAEMONS = (("corosync", "-f"), ("pacemakerd",))


class DaemonEnded(Exception):
    """A daemon has ended; the text names it."""


def prepare() -> None:
    """Create the daemons' directories. Pacemaker starts with the configuration given, later with its own."""
    for name in ("cib", "pengine", "blackbox", "cores"):
        folder = STATE / name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.chown(folder, USER, GROUP)
        folder.chmod(0o750)
    shutil.chown(STATE, USER, GROUP)
    for folder in (Path("/var/log/pacemaker"), Path("/var/lib/corosync"), Path("/run/crm"), RUN):
        folder.mkdir(parents=True, exist_ok=True)
    for folder in (Path("/var/log/pacemaker"), Path("/run/crm")):
        shutil.chown(folder, USER, GROUP)
    current = STATE / "cib/cib.xml"
    if not current.exists():
        fresh = current.with_suffix(".new")
        fresh.write_text(Path(fencing.CIB).read_text())
        fresh.chmod(0o600)
        shutil.chown(fresh, USER, GROUP)
        fresh.replace(current)


def report() -> str:
    """Return what `crm_mon` prints, "" while it cannot reach Pacemaker."""
    done = subprocess.run(
        ["crm_mon", "--one-shot", "--output-as=xml"], capture_output=True, text=True, check=False, timeout=30
    )
    return done.stdout if done.returncode == 0 else ""


def start() -> list[subprocess.Popen[bytes]]:
    """Start the daemons, Pacemaker once Corosync answers. Raises Ended."""
    started: list[subprocess.Popen[bytes]] = []
    for command in DAEMONS:
        started.append(subprocess.Popen(command))
        end = time.monotonic() + START_SECONDS
        while (
            command[0] == "corosync"
            and subprocess.run(
                ["corosync-cfgtool", "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
            ).returncode
        ):
            if started[-1].poll() is not None or time.monotonic() > end:
                raise DaemonEnded(f"{command[0]} does not start")
            time.sleep(1)
    return started


def watch(daemons: list[subprocess.Popen[bytes]], own: str) -> None:
    """Write the other node's state repeatedly. Raises Ended."""
    reported, formed = "", CONFIG / fencing.FORMED
    while True:
        for command, daemon in zip(DAEMONS, daemons, strict=True):
            if daemon.poll() is not None:
                raise DaemonEnded(f"{command[0]} has ended with status {daemon.returncode}")
        state = fencing.UNKNOWN
        with contextlib.suppress(subprocess.TimeoutExpired):
            state = fencing.peer_state(report(), own)
        if state == fencing.ONLINE:
            formed.touch()
        fencing.write_state(RUN, state)
        if state != reported:
            print(f"the other node is {state}", flush=True)
            reported = state
        time.sleep(POLL_SECONDS[state] if formed.exists() else UNFORMED_SECONDS)


def main() -> int:
    """Run until SIGTERM, which lets this node leave in order; 1 when a daemon has ended."""
    signal.signal(signal.SIGTERM, lambda *__: sys.exit(0))
    prepare()
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        daemons = start()
        watch(daemons, socket.gethostname())
    except DaemonEnded as error:
        print(f"two-node-fencing: {error}", file=sys.stderr)
        return 1
    finally:
        fencing.write_state(RUN, fencing.UNKNOWN)
        for daemon in reversed(daemons):
            if daemon.poll() is None:
                daemon.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    daemon.wait(8)
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
