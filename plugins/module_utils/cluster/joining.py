"""Nodes that join an installed cluster: what `node-joiner monitor-add-nodes` reports, in its words.

`oc adm node-image monitor` runs that program. Texts, intervals and limits are those of openshift/installer
`pkg/agent/monitoraddnodes.go`.
"""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .._deps import optional
from ..assisted.monitor import Monitor
from ..assisted.watcher import Rest
from ..errors import AssistedError, ClusterError
from ..shapes import ShapeError, check
from ..vocabulary import Port
from ..watch import Clock, Message
from . import shapes
from .client import is_true

if TYPE_CHECKING:
    from cryptography import x509
else:
    x509 = optional("cryptography.x509", "cryptography")

INTERVAL = 5.0
LIMIT = 90 * 60.0
"""Seconds after which the monitor gives up; all nodes share them."""
SERVING_SECONDS = 60.0
"""How long a monitor that approves waits for the second request of a node that is ready."""
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
TOKENS = "/api/v1/namespaces/openshift-config/secrets/agent-auth-token"
"""The Secret with the tokens of the services that run on the new nodes; the node image has the same."""

_KUBELET = "Kubelet is running"
_NODE, _COMMON_NAME, _ORGANIZATION = "system:node:", "2.5.4.3", "2.5.4.10"

Object = dict[str, Any]


class Kube(Protocol):
    """What a monitor needs of the cluster's API. All methods raise `ClusterError`. See `ClusterClient`, which is one."""

    def find(self, path: str) -> Object | None: ...
    def nodes(self) -> list[Object]: ...
    def certificate_requests(self) -> list[Object]: ...


def kubelet_answers(address: str, port: int = Port.KUBELET, timeout: float = 10) -> bool:
    """Return whether a kubelet answers in TLS at an address.

    A refusal within TLS counts: a kubelet whose serving certificate is not approved yet has none to show, and one that
    has it is of an authority that this host does not know.
    """
    context = ssl.create_default_context()
    try:
        with (
            socket.create_connection((address, port), timeout) as raw,
            context.wrap_socket(raw, server_hostname=address),
        ):
            return True
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        return False
    except ssl.SSLError as error:
        return error.reason != "WRONG_VERSION_NUMBER"  # another protocol than TLS
    except OSError:
        return False


@dataclass
class NodeMonitor:
    """Follows one node from its boot of the node image until it is ready.

    address: the node's, in canonical form; names: what it resolves to, empty if it does not: certificate requests are
    then not checked; report: gets every message; kubelet: whether the kubelet at an address answers; clock: for the
    times of the service's messages; approve: approves a certificate request by its name. Without it the requests wait for a
    user. With it a node is ready only when its kubelet has a serving certificate, for which it is waited `SERVING_SECONDS`.
    """

    address: str
    names: Sequence[str]
    rest: Rest
    kube: Kube
    report: Callable[[Message], None]
    kubelet: Callable[[str], bool] = kubelet_answers
    clock: Clock = time
    approve: Callable[[str], None] | None = None
    _ready_since: float | None = field(default=None, init=False)
    _reported: set[str] = field(default_factory=set, init=False)
    _serving: list[Object] = field(default_factory=list, init=False)
    _service: Monitor = field(default_factory=Monitor, init=False)

    def step(self) -> bool:
        """Report what has changed since the last call. Return whether the node is ready, after which there is no change."""
        infra_envs = self._infra_envs()
        if infra_envs is not None:
            self._report_once("Assisted Service API is available")
        if _KUBELET not in self._reported and self.kubelet(self.address):
            self._report_once(_KUBELET)
        serving = self._certificate_requests()
        node = self._node()
        if node:
            self._report_once("Node joined cluster")
        if node and is_true(node, "Ready"):
            if self._unserved():
                return False
            if serving:
                self._info(
                    "Node is Ready but has CSRs pending approval. Until all CSRs are approved, the node may not be fully "
                    "functional."
                )
                self._requests(serving)
            else:
                self._info("Node is Ready")
            return True
        if infra_envs is not None:
            self._report_service(infra_envs)
        return False

    def _info(self, text: str) -> None:
        self._report(Message("info", text))

    def _report(self, message: Message) -> None:
        self.report(Message(message.level, f"Node {self.address}: {message.text}"))

    def _report_once(self, text: str) -> bool:
        """Report what is reported once. Return whether it was not yet."""
        if text in self._reported:
            return False
        self._reported.add(text)
        self._info(text)
        return True

    def _infra_envs(self) -> list[Object] | None:
        try:
            return self.rest.infra_envs()
        except AssistedError as error:
            self._report(Message("debug", str(error)))
            return None

    def _certificate_requests(self) -> list[Object]:
        """Report the node's pending requests once its kubelet runs. Return those for the serving certificate."""
        if not self.names:
            return []
        try:
            found = self.kube.certificate_requests()
        except ClusterError as error:
            self._report(Message("debug", f"Error calling listCSRs(): {error}"))
            self._info("Cannot retrieve CSRs from Kube API. Skipping checks for pending CSRs")
            return []
        waiting = [pending(found, signer, self.names) for signer in (CLIENT_SIGNER, SERVING_SIGNER)]
        self._serving = [one for one in found if approvable(one, SERVING_SIGNER, self.names)]
        if _KUBELET in self._reported:
            for which, requests in zip(("First", "Second"), waiting, strict=True):
                if requests and self._report_once(f"{which} CSR Pending approval"):
                    self._requests(requests)
        if self.approve is None:
            return waiting[1]
        return [
            *self._approve(CLIENT_SIGNER, waiting[0], self.approve),
            *self._approve(SERVING_SIGNER, waiting[1], self.approve),
        ]

    def _approve(self, signer: str, waiting: Sequence[Object], approve: Callable[[str], None]) -> list[Object]:
        """Approve those requests that are this node's beyond doubt. Return the ones that still wait."""
        left = []
        for one in waiting:
            name = one["metadata"]["name"]
            if not approvable(one, signer, self.names):
                left.append(one)
                continue
            try:
                approve(name)
            except ClusterError as error:
                self._report(Message("warning", f"CSR {name} cannot be approved: {error}"))
                left.append(one)
            else:
                self._info(f"CSR {name} with signerName {signer} approved")
        return left

    def _unserved(self) -> bool:
        """Whether the serving certificate of a node that is ready is still to come; only a monitor that approves waits for it."""
        if self.approve is None or not self.names or any(is_approved(one) for one in self._serving):
            return False
        self._ready_since = self.clock.time() if self._ready_since is None else self._ready_since
        return self.clock.time() - self._ready_since < SERVING_SECONDS

    def _requests(self, requests: Sequence[Object]) -> None:
        for one in requests:
            self._info(
                f"CSR {one['metadata']['name']} with signerName {one['spec']['signerName']} and username "
                f"{one['spec'].get('username', '')} is Pending and awaiting approval"
            )

    def _node(self) -> Object | None:
        """The node of the address, None while it has not joined or the API does not answer."""
        try:
            nodes = self.kube.nodes()
        except ClusterError as error:
            self._report(Message("debug", f"Error getting node list {error}"))
            return None
        wanted = {"type": "InternalIP", "address": self.address}
        return next((n for n in nodes if wanted in ((n.get("status") or {}).get("addresses") or [])), None)

    def _report_service(self, infra_envs: Sequence[Object]) -> None:
        try:
            clusters = self.rest.clusters()
            cluster = self.rest.cluster(clusters[0]["id"]) if len(clusters) == 1 else None
            events = self.rest.events(infra_envs[0]["id"]) if len(infra_envs) == 1 else []
        except AssistedError as error:
            text = f"Error fetching status from assisted-service for node {self.address}: {error}"
            self._report(Message("warning", text))
            return
        if cluster:
            for message in self._service.update(cluster, events, self.clock.time()):
                self._report(message)


def monitor(nodes: Sequence[NodeMonitor], clock: Clock = time, limit: float = LIMIT) -> bool:
    """Follow nodes until all are ready, for at most `limit` seconds. Return whether all are.

    They are asked at the same time, since those that do not answer take many seconds: `report` of the nodes is called from
    several threads.
    """
    end, left = clock.time() + limit, list(nodes)
    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        while True:
            ready = list(pool.map(NodeMonitor.step, left))
            left = [node for node, is_ready in zip(left, ready, strict=True) if not is_ready]
            if not left:
                return True
            if clock.time() >= end:
                break
            clock.sleep(INTERVAL)
    for node in left:
        node.report(Message("error", f"Node {node.address}: Node monitoring timed out after {limit / 60:g} minutes"))
    return False


def pending(requests: Sequence[Object], signer: str, names: Sequence[str]) -> list[Object]:
    """The certificate requests of a node that are neither approved nor denied.

    requests: CertificateSigningRequests; signer: that of the wanted ones; names: of the node, of which the part before
    the first dot must be in the subject of the client's certificate, or in the user's name of the serving one.
    """
    short = [name.partition(".")[0] for name in names]
    waiting = [
        one
        for one in requests
        if one["spec"].get("signerName") == signer and not (one.get("status") or {}).get("conditions")
    ]
    return [one for one in waiting if any(name in _owner(one, signer) for name in short)]


def approvable(request: Object, signer: str, names: Sequence[str]) -> bool:
    """Return whether a request is the one of a node with one of `names`, and of no other: what an approval must know.

    Its subject has the node's name and group, and the requester is the bootstrapper, or for the serving certificate the node.
    """
    spec = request["spec"]
    if spec.get("signerName") != signer:
        return False
    try:
        subject = x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or "")).subject
    except ValueError:
        return False
    parts = {part.oid.dotted_string: part.value for part in subject}
    own = {f"{_NODE}{name.partition('.')[0]}" for name in names}
    user, name = str(spec.get("username") or ""), str(parts.get(_COMMON_NAME, ""))
    return (
        name.partition(".")[0] in own
        and parts.get(_ORGANIZATION) == "system:nodes"
        and (user == name if signer == SERVING_SIGNER else "bootstrapper" in user or user == name)
    )


def is_approved(request: Object) -> bool:
    """Return whether a certificate request is approved."""
    return any(one.get("type") == "Approved" for one in (request.get("status") or {}).get("conditions") or [])


def _owner(request: Object, signer: str) -> str:
    """What names the node in a request: until it has its first certificate, its user is the bootstrapper."""
    if signer != CLIENT_SIGNER:
        return str(request["spec"].get("username") or "")
    try:
        decoded = x509.load_pem_x509_csr(base64.b64decode(request["spec"].get("request") or ""))
        return decoded.subject.rfc4514_string()
    except ValueError:
        return ""


def names_of(address: str) -> list[str]:
    """The names that an address resolves to; none if it does not."""
    try:
        name, aliases, __ = socket.gethostbyaddr(address)
    except OSError:
        return []
    return [name, *aliases]


def watcher_token(kube: Kube) -> str | None:
    """The token with which services of new nodes are read; None before a node image was made.

    Raises `ClusterError`.
    """
    found = kube.find(TOKENS) or {}
    try:
        check(found, shapes.SECRET, "Secret openshift-config/agent-auth-token")
    except ShapeError as error:
        raise ClusterError(str(error)) from error
    encoded = (found.get("data") or {}).get("watcherAuthToken")
    try:
        return base64.b64decode(encoded, validate=True).decode("ascii") if encoded else None
    except ValueError as error:
        raise ClusterError(
            f"Secret openshift-config/agent-auth-token: watcherAuthToken is not base64: {error}"
        ) from error
