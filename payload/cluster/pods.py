"""Pods of a node: how they run, and their status, which is that of the container."""

from __future__ import annotations

import base64
import logging
import os
import re
import shlex
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from ...plugins.module_utils.addresses import in_url
from ...plugins.module_utils.vocabulary import Component, Port
from .conditions import condition, merged
from .facts import ClusterFacts
from .kube import KubeClient, KubeError, Object
from .pod_inputs import InputError, PodInputs
from .router import Router
from .store import now

RETRY_SECONDS = 3.0
# As the kubelet's: the first restart is immediate, the next after 10 s, then doubling each time; reset after 10 minutes of running.
BACKOFF_SECONDS, BACKOFF_LIMIT, BACKOFF_RESET = 10.0, 300.0, 600.0
LOG_LINES = 10
"""Number of a container's last log lines in its termination message (`terminationMessagePolicy: FallbackToLogsOnError`)."""
PODMAN_FAILED = 125
"""Exit code of `podman run` when the container could not be created."""
MIRROR = "kubernetes.io/config.mirror"


class Mirror(NamedTuple):
    """A pod of the control plane: `label` is its key, `port` and `path` answer over HTTPS when it works."""

    namespace: str
    name: str
    label: str
    port: int
    path: str


MIRRORS = (
    Mirror("openshift-etcd", "etcd", "app", Port.API, "/readyz"),
    Mirror("openshift-kube-apiserver", "kube-apiserver", "app", Port.API, "/readyz"),
    Mirror("openshift-machine-config-operator", "machine-config-server", "k8s-app", Port.MACHINE_CONFIG, "/healthz"),
)
_PULL = re.compile(
    r"unable to pull|initializing source|pinging container registry|reading manifest|unauthorized", re.IGNORECASE
)
log = logging.getLogger("kubelet")
T = TypeVar("T")


def retry(what: str, action: Callable[[], T]) -> T:
    """Retry `action` until the API accepts it, and return its result: a kubelet never gives up."""
    said = ""
    while True:
        try:
            return action()
        except KubeError as error:
            if str(error) != said:
                log.info("%s: %s", what, error)
            said = str(error)
            time.sleep(RETRY_SECONDS)


# Status


def waiting(reason: str, message: str = "") -> Object:
    """Return the state of a container that is waiting to start."""
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def running(started: str) -> Object:
    """Return the state of a container that has run since `started`."""
    return {"running": {"startedAt": started}}


def terminated(code: int, started: str, message: str = "") -> Object:
    """Return the state of a container that has just ended with an exit code."""
    reason = "Completed" if code == 0 else "Error"
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": started,
            "finishedAt": now(),
            **({"message": message} if message else {}),
        }
    }


def pod_status(
    phase: str,
    container: Object,
    address: str,
    state: Object,
    *,
    ready: bool = False,
    restarts: int = 0,
    last: Object | None = None,
) -> Object:
    """Return the status of a pod with one container; `last` is the state in which the container ended before it was restarted."""
    unready = [] if ready else [container["name"]]
    reason, message = ("", "") if ready else ("ContainersNotReady", f"containers with unready status: {unready}")
    if phase == "Succeeded":
        reason, message = "PodCompleted", ""
    return {
        "phase": phase,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": address,
        "startTime": now(),
        "conditions": merged([], [condition(kind, ready, reason, message) for kind in ("ContainersReady", "Ready")]),
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "ready": ready,
                "started": "running" in state,
                "restartCount": restarts,
                "state": state,
                "lastState": last or {},
            }
        ],
    }


# Pods that the API has


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
    """A pod of this node, run in a thread of its own."""

    def __init__(self, node: NodeContext, pod: Object) -> None:
        self.node, self.pod = node, pod
        self.client = node.client.again()
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

    def post(self, phase: str, state: Object, *, ready: bool = False) -> None:
        """Write the pod's status, unless it was deleted."""
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
    """A pod whose single container podman runs on the host; restarted on failure, as the pod of a Job."""

    def run(self) -> None:
        failures = 0
        while not self.stopped.is_set():
            self.post("Running" if self.restarts else "Pending", waiting("ContainerCreating"))
            try:
                inputs = self._inputs()
            except (InputError, OSError) as error:
                # The objects that it refers to may come later.
                self.post("Pending", waiting("CreateContainerConfigError", str(error)))
                self.stopped.wait(BACKOFF_SECONDS)
                continue
            begin = time.monotonic()
            made, state = self._once(inputs)
            if self.stopped.is_set():
                return
            code = state["terminated"]["exitCode"]
            if made and code == 0:
                self.post("Succeeded", state)
                return
            failures = 0 if time.monotonic() - begin > BACKOFF_RESET else failures
            pause = min(BACKOFF_SECONDS * 2 ** (failures - 1), BACKOFF_LIMIT) if failures else 0.0
            failures += 1
            said = state["terminated"].get("message", "")
            if made:
                self.last = state
                text = f"back-off {pause:g}s restarting failed container={self.container['name']} pod={self.name}"
                self.post("Running", waiting("CrashLoopBackOff", text) if pause else state)
                self.restarts += 1
            else:
                again = "ImagePullBackOff" if failures > 1 else "ErrImagePull"
                self.post("Pending", waiting(again if _PULL.search(said) else "CreateContainerError", said))
            self.stopped.wait(pause or RETRY_SECONDS * (not made))

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

    def _once(self, inputs: list[str]) -> tuple[bool, Object]:
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
            self.container["image"],
            *self.container.get("command", ()),
            *self.container.get("args", ()),
        ]
        log.info("pod %s starts", self.name)
        started, lines = now(), deque[str](maxlen=LOG_LINES)
        try:
            # Line by line into this log: the journal attributes direct output of the host's podman to another unit.
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            )
        except OSError as error:
            return False, terminated(PODMAN_FAILED, started, f"podman: {error.strerror}")
        reader = threading.Thread(target=self._read, args=(process, lines), daemon=True)
        reader.start()
        while not (made := pid_file.exists()) and process.poll() is None:
            time.sleep(0.2)
        if made and process.poll() is None:
            started = now()
            self.post("Running", running(started), ready=True)
        code = process.wait()
        reader.join()
        log.info("pod %s ended with %d", self.name, code)
        return made or code != PODMAN_FAILED, terminated(code, started, "\n".join(lines) if code else "")

    def _read(self, process: subprocess.Popen[str], lines: deque[str]) -> None:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            log.info("%s: %s", self.name, line.rstrip())

    def stop(self) -> None:
        super().stop()
        subprocess.run(
            [*shlex.split(self.node.enter), "podman", "rm", "--force", "--ignore", self._name()], check=False
        )

    def _name(self) -> str:
        return f"k8s_{self.name}"


class RouterPod(Pod):
    """The router, within this process."""

    router: Router | None = None

    def run(self) -> None:
        self.post("Pending", waiting("ContainerCreating"))
        folder = self.node.data_dir / "router"
        secret = retry(
            "reading the router's certificate",
            lambda: self.client.get("/api/v1/namespaces/openshift-ingress/secrets/router-certs-default"),
        )
        for name in ("tls.crt", "tls.key"):
            write(folder / name, base64.b64decode(secret["data"][name]).decode())
        routes = self.client.again()
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
                self.last = terminated(1, now(), str(error))
                self.post("Running", waiting("CrashLoopBackOff", str(error)))
                self.restarts += 1
                self.stopped.wait(BACKOFF_SECONDS)
                continue
            self.router = router
            write(self.node.run_dir / "ingress", "10\n")
            log.info("the router serves")
            self.post("Running", running(now()), ready=True)
            return

    def stop(self) -> None:
        super().stop()
        write(self.node.run_dir / "ingress", "-254\n")
        if self.router:
            self.router.stop()


# Mirror pods of systemd units


class MirrorPods:
    """The control plane's pods of this node: one systemd unit runs them all.

    They run while it runs, are Ready while they answer here, and have its restart count.
    """

    UNIT = "kube-apiserver.service"

    def __init__(self, node: NodeContext, name: str) -> None:
        self.node, self.name = node, name
        self._posted: dict[str, _Seen] = {}
        self._since = now()

    def keep(self, *, look: bool = False) -> None:
        """Post each pod whose state has changed, creating it if it is missing; KubeError if the API refuses.

        systemd is queried when a pod starts or stops answering, and with `look`.
        """
        answers = {place: _answers(self.node.address, *place) for place in {(pod.port, pod.path) for pod in MIRRORS}}
        ready = {pod.name: answers[pod.port, pod.path] for pod in MIRRORS}
        if (
            not look
            and self._posted.keys() == ready.keys()
            and all(seen.ready == ready[name] for name, seen in self._posted.items())
        ):
            return
        active, restarts = self._unit()
        for pod in MIRRORS:
            seen = _Seen(ready[pod.name], ready[pod.name] or active, restarts)
            if self._posted.get(pod.name) != seen:
                self._post(pod, seen)
                self._posted[pod.name] = seen

    def _post(self, pod: Mirror, seen: _Seen) -> None:
        before = self._posted.get(pod.name)
        if before and seen.restarts > before.restarts:
            self._since = now()
        container = {"name": pod.name, "image": self.node.facts["images"][Component.HYPERKUBE]}
        state = running(self._since) if seen.runs else waiting("CrashLoopBackOff" if before else "ContainerCreating")
        status = pod_status(
            "Running" if seen.runs or before else "Pending",
            container,
            self.node.address,
            state,
            ready=seen.ready,
            restarts=seen.restarts,
        )
        path = f"/api/v1/namespaces/{pod.namespace}/pods"
        metadata = {
            "name": f"{pod.name}-{self.name}",
            "namespace": pod.namespace,
            "labels": {pod.label: pod.name},
            "annotations": {MIRROR: ""},
        }
        try:
            self.node.client.patch(f"{path}/{metadata['name']}/status", {"status": status})
        except KubeError as error:
            if error.code != 404:
                raise
            spec = {"nodeName": self.name, "hostNetwork": True, "containers": [container]}
            self.node.client.create(
                path, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
            )

    def _unit(self) -> tuple[bool, int]:
        """Return whether the unit is active, and its number of restarts; (False, 0) without systemd."""
        command = [
            *shlex.split(self.node.enter),
            "systemctl",
            "show",
            "-p",
            "ActiveState",
            "-p",
            "NRestarts",
            self.UNIT,
        ]
        try:
            text = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        except (OSError, subprocess.SubprocessError):
            return False, 0
        shown = dict(line.partition("=")[::2] for line in text.splitlines())
        return shown.get("ActiveState") == "active", int(shown.get("NRestarts") or 0)


class _Seen(NamedTuple):
    ready: bool
    runs: bool
    restarts: int


def _answers(address: str, port: int, path: str) -> bool:
    """Return whether the local endpoint reports that it is healthy, without verifying its certificate."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls))
    try:
        with opener.open(f"https://{in_url(address)}:{port}{path}", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def write(path: Path, text: str) -> None:
    """Write a file atomically, readable by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.touch(0o600)
    temporary.write_text(text)
    os.replace(temporary, path)
