"""The storage of a lab's registry, served on 127.0.0.1 of the host while images are copied into it.

The lab's own registry is in a network that may reach nothing else, and the source of a copy is outside of it. Both
registries write content by its digest into one directory, so what one stores the other serves at once.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import LabError
from ..plan import certificates
from ..plan.model import Plan
from .lifecycle import HEALTH_SECONDS
from .services import find_program


@dataclass(frozen=True)
class ServedRegistry:
    """A registry on loopback: `place` is HOST:PORT, `authority` the certificate in PEM that it is trusted by."""

    place: str
    authority: str


@contextlib.contextmanager
def serve_registry(plan: Plan, work: Path) -> Iterator[ServedRegistry]:
    """Serve the storage of `plan`'s registry until the block ends, with its user and password, over TLS.

    work: an empty private directory for configuration and log. Raises `LabError` when the lab has no registry, and when
    the program is missing or does not answer within `HEALTH_SECONDS`.
    """
    settings, users = plan["services"]["registry"], Path(plan["services"]["directory"], "registry/htpasswd")
    if not users.is_file():
        raise LabError(
            f"{users} does not exist: cluster {plan['cluster']['name']} has no registry yet; prepare makes it"
        )
    tls = work / "tls"
    certificates.ensure(tls, plan["cluster"]["name"], ["127.0.0.1"])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": settings["storage"]}},
        "http": {
            "addr": f"127.0.0.1:{port}",
            "secret": work.name,
            "tls": {"certificate": f"{tls}/server.crt", "key": f"{tls}/server.key"},
        },
        "auth": {"htpasswd": {"realm": "agentlab", "path": str(users)}},
    }
    (work / "config.yml").write_text(json.dumps(config))
    program = find_program("docker-registry", "docker-registry", "registry")
    # It ends with this process, whatever ends that.
    argv = ["setpriv", "--pdeathsig", "TERM", program, "serve", str(work / "config.yml")]
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait(process, port, work / "log")
        yield ServedRegistry(f"127.0.0.1:{port}", (tls / "ca.crt").read_text())
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + HEALTH_SECONDS
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            if process.poll() is None:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            text = log.read_text(errors="replace").strip()[-500:]
            raise LabError(f"docker-registry on 127.0.0.1 port {port} does not answer: {text or 'its log is empty'}")
        time.sleep(0.05)
