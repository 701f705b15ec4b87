"""Mirror pods: the control plane's pods of a node, which one systemd unit runs."""

from __future__ import annotations

import shlex
import ssl
import subprocess
import urllib.error
import urllib.request
from typing import NamedTuple

from ...plugins.module_utils.addresses import in_url
from ...plugins.module_utils.vocabulary import Component, Port
from .kube import KubeError
from .pod_status import pod_status, running_state, waiting_state
from .pods import NodeContext
from .store import timestamp

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


class MirrorPods:
    """The control plane's pods of this node: one systemd unit runs them all.

    They run while it runs, are Ready while they answer here, and have its restart count.
    """

    UNIT = "kube-apiserver.service"

    def __init__(self, node: NodeContext, name: str) -> None:
        self.node, self.name = node, name
        self._posted: dict[str, _PodStatus] = {}
        self._since = timestamp()

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
            seen = _PodStatus(ready[pod.name], ready[pod.name] or active, restarts)
            if self._posted.get(pod.name) != seen:
                self._post(pod, seen)
                self._posted[pod.name] = seen

    def _post(self, pod: Mirror, seen: _PodStatus) -> None:
        before = self._posted.get(pod.name)
        if before and seen.restarts > before.restarts:
            self._since = timestamp()
        container = {"name": pod.name, "image": self.node.facts["images"][Component.HYPERKUBE]}
        state = (
            running_state(self._since)
            if seen.runs
            else waiting_state("CrashLoopBackOff" if before else "ContainerCreating")
        )
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


class _PodStatus(NamedTuple):
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
