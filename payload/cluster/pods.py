"""Pods of a node that the API has, and how they run: containers of podman, and the router in this process."""

from __future__ import annotations

import base64
import logging
import os
import re
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .facts import ClusterFacts
from .kube import KubeClient, KubeError, Object
from .pod_inputs import InputError, PodInputs
from .pod_status import pod_status, running_state, terminated_state, waiting_state
from .router import Router
from .store import timestamp

RETRY_SECONDS = 3.0
# As the kubelet's: the first restart is immediate, the next after 10 s, then doubling each time; reset after 10 minutes of running.
BACKOFF_SECONDS, BACKOFF_LIMIT, BACKOFF_RESET = 10.0, 300.0, 600.0
LOG_LINES = 10
"""Number of a container's last log lines in its termination message (`terminationMessagePolicy: FallbackToLogsOnError`)."""
PODMAN_FAILED = 125
"""Exit code of `podman run` when the container could not be created."""


_PULL = re.compile(
    r"unable to pull|initializing source|pinging container registry|reading manifest|unauthorized", re.IGNORECASE
)
log = logging.getLogger("kubelet")
T = TypeVar("T")


def retry(what: str, action: Callable[[], T]) -> T:
    """Call `action` until the API accepts it, and return its result: a kubelet never gives up.

    what: for the log, which has each new message once. Only KubeError is caught.
    """
    message = ""
    while True:
        try:
            return action()
        except KubeError as error:
            if str(error) != message:
                log.info("%s: %s", what, error)
            message = str(error)
            time.sleep(RETRY_SECONDS)


@dataclass(frozen=True)
class NodeContext:
    """What a pod needs of its node.

    `enter` is the command prefix to run on the host, which has `run_dir` at the same path and is mounted at `host`; `etc` is its
    `/etc/kubernetes`.
    """

    client: KubeClient
    facts: ClusterFacts
    address: str
    enter: str
    data_dir: Path
    run_dir: Path
    router_ports: tuple[int, int]
    etc: Path = Path("/etc/kubernetes")
    host: Path = Path("/")


class Pod:
    """A pod of this node, run in a thread of its own.

    node: what all pods of it share; pod: the object, whose first container counts. The client is its own: one
    connection is of one thread.
    """

    def __init__(self, node: NodeContext, pod: Object) -> None:
        self.node, self.pod = node, pod
        self.client = node.client.another_client()
        self.name: str = pod["metadata"]["name"]
        self.path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{self.name}"
        self.container: Object = pod["spec"]["containers"][0]
        self.stopped = threading.Event()
        self.restarts = 0
        self.last: Object = {}

    def run(self) -> None:
        """Run until it ends."""
        raise NotImplementedError

    def stop(self) -> None:
        """End it."""
        self.stopped.set()

    def update(self, pod: Object) -> None:
        """Take a changed pod. Of its spec, only the image of the container may change."""

    def post(self, phase: str, state: Object, *, ready: bool = False) -> None:
        """Write the pod's status, unless it was deleted.

        phase: as `Running`; state: of the container, with one of `waiting`, `running`, `terminated`. It retries until
        the API accepts it.
        """
        status = pod_status(
            phase, self.container, self.node.address, state, ready=ready, restarts=self.restarts, last=self.last
        )

        def patch() -> None:
            try:
                self.client.patch(f"{self.path}/status", {"status": status})
            except KubeError as error:
                if error.code != 404:
                    raise

        retry(f"status of {self.path}", patch)


class ContainerPod(Pod):
    """A pod whose single container podman runs on the host.

    It is restarted when it fails, as the pod of a Job, and with another image when that of its spec changes.
    """

    def __init__(self, node: NodeContext, pod: Object) -> None:
        super().__init__(node, pod)
        self.woken = threading.Event()

    def run(self) -> None:
        failures = 0
        while not self.stopped.is_set():
            self.post("Running" if self.restarts else "Pending", waiting_state("ContainerCreating"))
            try:
                inputs = self._inputs()
            except (InputError, OSError) as error:
                # The objects that it refers to may come later.
                self.post("Pending", waiting_state("CreateContainerConfigError", str(error)))
                self._pause(BACKOFF_SECONDS)
                continue
            begin, image = time.monotonic(), self.container["image"]
            made, state = self._run_once(inputs, image)
            if self.stopped.is_set():
                return
            if self.container["image"] != image:
                failures, self.last = 0, state
                self.restarts += 1
                continue
            code = state["terminated"]["exitCode"]
            if made and code == 0:
                self.post("Succeeded", state)
                return
            failures = 0 if time.monotonic() - begin > BACKOFF_RESET else failures
            pause = min(BACKOFF_SECONDS * 2 ** (failures - 1), BACKOFF_LIMIT) if failures else 0.0
            failures += 1
            message = state["terminated"].get("message", "")
            if made:
                self.last = state
                text = f"back-off {pause:g}s restarting failed container={self.container['name']} pod={self.name}"
                self.post("Running", waiting_state("CrashLoopBackOff", text) if pause else state)
                self.restarts += 1
            else:
                again = "ImagePullBackOff" if failures > 1 else "ErrImagePull"
                self.post("Pending", waiting_state(again if _PULL.search(message) else "CreateContainerError", message))
            self._pause(pause or RETRY_SECONDS * (not made))

    def _pause(self, seconds: float) -> None:
        """Wait, unless the pod ends or changes."""
        self.woken.wait(seconds)
        if not self.stopped.is_set():
            self.woken.clear()

    def _inputs(self) -> list[str]:
        inputs = PodInputs(
            self.pod,
            self.node.facts,
            lambda path: retry(f"reading {path}", lambda: self.client.find(path)),
            folder=self.node.run_dir / "pods" / self.name,
            etc=self.node.etc,
            host=self.node.host,
        )
        return inputs.arguments(self.container)

    def _run_once(self, inputs: list[str], image: str) -> tuple[bool, Object]:
        """Run the container until it ends; return whether podman could create it, and its final state."""
        # podman's monitor writes it when the container is created.
        pid_file = self.node.run_dir / f"{self._name()}.pid"
        pid_file.unlink(missing_ok=True)
        command = [
            *shlex.split(self.node.enter),
            "podman",
            "run",
            "--rm",
            "--replace",
            "--name",
            self._name(),
            "--pidfile",
            str(pid_file),
            "--net=host",
            "--uts=host",
            "--authfile",
            "/var/lib/kubelet/config.json",
            "-v",
            "/etc/kubernetes:/etc/kubernetes:ro",
            "-v",
            "/etc/agentlab:/etc/agentlab:ro",
            *inputs,
            image,
            *self.container.get("command", ()),
            *self.container.get("args", ()),
        ]
        log.info("pod %s starts", self.name)
        started, lines = timestamp(), deque[str](maxlen=LOG_LINES)
        try:
            # Line by line into this log: the journal attributes direct output of the host's podman to another unit.
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            )
        except OSError as error:
            return False, terminated_state(PODMAN_FAILED, started, f"podman: {error.strerror}")
        reader = threading.Thread(target=self._read, args=(process, lines), daemon=True)
        reader.start()
        while not (made := pid_file.exists()) and process.poll() is None:
            time.sleep(0.2)
        if made and process.poll() is None:
            started = timestamp()
            self.post("Running", running_state(started), ready=True)
        code = process.wait()
        reader.join()
        log.info("pod %s ended with %d", self.name, code)
        return made or code != PODMAN_FAILED, terminated_state(code, started, "\n".join(lines) if code else "")

    def _read(self, process: subprocess.Popen[str], lines: deque[str]) -> None:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            log.info("%s: %s", self.name, line.rstrip())

    def update(self, pod: Object) -> None:
        container = pod["spec"]["containers"][0]
        if container["image"] != self.container["image"]:
            log.info("pod %s gets the image %s", self.name, container["image"])
            self.pod, self.container = pod, container
            self.woken.set()
            self._remove()

    def stop(self) -> None:
        super().stop()
        self.woken.set()
        self._remove()

    def _remove(self) -> None:
        subprocess.run(
            [*shlex.split(self.node.enter), "podman", "rm", "--force", "--ignore", self._name()], check=False
        )

    def _name(self) -> str:
        return f"k8s_{self.name}"


class RouterPod(Pod):
    """The router, within this process."""

    router: Router | None = None

    def run(self) -> None:
        self.post("Pending", waiting_state("ContainerCreating"))
        folder = self.node.data_dir / "router"
        secret = retry(
            "reading the router's certificate",
            lambda: self.client.get("/api/v1/namespaces/openshift-ingress/secrets/router-certs-default"),
        )
        for name in ("tls.crt", "tls.key"):
            write(folder / name, base64.b64decode(secret["data"][name]).decode())
        routes = self.client.another_client()
        router = Router(
            lambda: routes.get("/apis/route.openshift.io/v1/routes")["items"],
            self.node.facts["version"],
            self.node.router_ports,
        )
        while not self.stopped.is_set():
            try:
                router.start(folder / "tls.crt", folder / "tls.key")
            except OSError as error:
                # The ports are in use, or the certificate is invalid.
                router.stop()
                self.last = terminated_state(1, timestamp(), str(error))
                self.post("Running", waiting_state("CrashLoopBackOff", str(error)))
                self.restarts += 1
                self.stopped.wait(BACKOFF_SECONDS)
                continue
            self.router = router
            write(self.node.run_dir / "ingress", "10\n")
            log.info("the router serves")
            self.post("Running", running_state(timestamp()), ready=True)
            return

    def stop(self) -> None:
        super().stop()
        write(self.node.run_dir / "ingress", "-254\n")
        if self.router:
            self.router.stop()


def write(path: Path, text: str) -> None:
    """Write a file atomically, readable by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.touch(0o600)
    temporary.write_text(text)
    os.replace(temporary, path)
