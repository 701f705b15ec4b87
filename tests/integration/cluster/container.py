"""Plays `podman run` for the controller: environment and volumes of the container, in a mount namespace of its own."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

# Those in PATH are stubs of the host.
MOUNT = "/usr/bin/mount"
CONTROLLER = "ansible_collections.agentlab.ocp.payload.orchestrator.controller"


def main(argv: list[str]) -> None:
    """Become the program of `AGENTLAB_REAL_CONTROLLER`, or ours; the API's name is replaced by its address, `AGENTLAB_API`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pidfile", type=Path)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--volume", action="append", default=[])
    options, __ = parser.parse_known_args(argv)
    real = os.environ.get("AGENTLAB_REAL_CONTROLLER")
    kept = ("PATH",) if real else ("PATH", "PYTHONPATH", "AGENTLAB_SETTINGS_FILE")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= dict(pair.split("=", 1) for pair in options.env)
    environment["KUBERNETES_SERVICE_HOST"] = os.environ["AGENTLAB_API"]
    layers = options.pidfile.with_suffix(".layers")
    layers.mkdir(exist_ok=True)
    script = [f"{MOUNT} -t tmpfs tmpfs {layers}"]
    for name in ("etc", "run"):
        script.append(f"mkdir {layers}/{name} {layers}/{name}-work")
        script.append(
            f"{MOUNT} -t overlay overlay -o lowerdir=/{name},upperdir={layers}/{name},workdir={layers}/{name}-work /{name}"
        )
    for volume in options.volume:
        source, target = volume.split(":")[:2]
        if Path(source).is_dir():
            script.append(f"mkdir -p {shlex.quote(target)}; {MOUNT} --bind {shlex.quote(source)} {shlex.quote(target)}")
    if real:  # writes its log there
        script += [f"{MOUNT} -t tmpfs tmpfs /tmp", f"exec {shlex.quote(real)}"]
    else:
        script.append(f"exec {sys.executable} -m {CONTROLLER}")
    options.pidfile.write_text(f"{os.getpid()}\n")
    command = ["/usr/bin/unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(script)]
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    main(sys.argv[1:])
