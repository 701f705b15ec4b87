"""The monitor of nodes that join, against the API on loopback."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.cluster.pki import Signer, request
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import joining
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.client import ClusterClient
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.joining import (
    CLIENT_SIGNER,
    SERVING_SIGNER,
    NodeMonitor,
    kubelet_answers,
    monitor,
    pending,
    watcher_token,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import AssistedError, ClusterError
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import Message

ADDRESS = "192.0.2.30"
NAME = "extraworker-0.ostest.test"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class Rest:
    """The service on the new node, while `live`."""

    def __init__(self) -> None:
        self.live = True
        self.status = "adding-hosts"
        self.event = "Host extraworker-0: is known"

    def infra_envs(self) -> list[dict[str, Any]]:
        if not self.live:
            raise AssistedError("refused")
        return [{"id": "ie"}]

    def clusters(self) -> list[dict[str, Any]]:
        return [{"id": "c"}]

    def cluster(self, cluster_id: str) -> dict[str, Any]:
        checks = '{"hardware": [{"id": "has-min-cpu-cores", "status": "failure", "message": "Require at least 2 CPU cores"}]}'
        host = {"id": "h", "status": "known", "requested_hostname": "extraworker-0", "validations_info": checks}
        return {"id": cluster_id, "status": self.status, "hosts": [host]}

    def events(self, infra_env_id: str) -> list[dict[str, Any]]:
        return [{"severity": "info", "message": self.event}]


class Clock:
    """Time passes by sleeping; `then` happens after each sleep, one after another."""

    def __init__(self, *then: Callable[[], None]) -> None:
        self.now, self.then = 0.0, list(then)

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.then:
            self.then.pop(0)()


def kubeconfig(folder: Path, server: str) -> Path:
    path = folder / "auth" / "kubeconfig"
    path.parent.mkdir()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "admin",
        "clusters": [{"name": "c", "cluster": {"server": server.rstrip("/")}}],
        "users": [{"name": "admin", "user": {"token": "admin"}}],
        "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "admin"}}],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(config))
    return path


def csr(signer: str, host: str) -> dict[str, Any]:
    pem = request(f"system:node:{host}", ["system:nodes"], () if signer == CLIENT_SIGNER else (host,)).certificate
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {"request": base64.b64encode(pem.encode()).decode(), "signerName": signer, "usages": ["client auth"]},
    }


def node(ready: bool, address: str = ADDRESS) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NAME.partition(".")[0]},
        "spec": {},
        "status": {
            "addresses": [{"type": "Hostname", "address": NAME}, {"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


class Cluster:
    """The API, changed from the thread in which the monitor runs."""

    def __init__(self, api: Any, kube: ClusterClient) -> None:
        self.api, self.kube, self.loop = api, kube, asyncio.get_running_loop()

    def call(self, *arguments: Any, **more: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(self.api.call(*arguments, **more), self.loop).result(10)

    def ask(self, signer: str, host: str, token: str) -> str:
        return str(self.call("POST", CSRS, csr(signer, host), 201, token)["metadata"]["name"])

    def approve(self, name: str) -> None:
        conditions = [{"type": "Approved", "status": "True", "reason": "KubectlApprove", "message": "approved"}]
        body = {"status": {"conditions": conditions}}
        self.call("PATCH", f"{CSRS}/{name}/approval", body, Content_Type="application/merge-patch+json")


@pytest.fixture
def cluster(api: Any, tmp_path: Path) -> Callable[[], Cluster]:
    return lambda: Cluster(api, ClusterClient(kubeconfig(tmp_path, str(api.http.make_url("")))))


async def test_from_the_boot_to_ready(cluster: Callable[[], Cluster]) -> None:
    """Each line once, in the order of events, with the request of this node alone."""
    lab, rest, reported = cluster(), Rest(), []
    running: list[bool] = []
    names: dict[str, str] = {}

    def reboot() -> None:
        rest.live = False

    def kubelet() -> None:
        lab.ask(CLIENT_SIGNER, "another", "boot")
        names["mine"] = lab.ask(CLIENT_SIGNER, "extraworker-0", "boot")

    def listens() -> None:
        running.append(True)

    def join() -> None:
        lab.approve(names["mine"])
        lab.call("POST", "/api/v1/nodes", node(False), 201)

    def ready() -> None:
        lab.call("DELETE", "/api/v1/nodes/extraworker-0")
        lab.call("POST", "/api/v1/nodes", node(True), 201)

    one = NodeMonitor(ADDRESS, [NAME], rest, lab.kube, reported.append, lambda __: bool(running))
    clock = Clock(lambda: None, reboot, kubelet, listens, join, ready)
    assert await asyncio.to_thread(monitor, [one], clock)
    lines = [message.text.removeprefix(f"Node {ADDRESS}: ") for message in reported if message.level != "debug"]
    assert all(message.text.startswith(f"Node {ADDRESS}: ") for message in reported)
    assert lines == [
        "Assisted Service API is available",
        "Cluster is adding hosts",
        "Host extraworker-0 validation: Require at least 2 CPU cores",
        "Host extraworker-0: is known",
        "Kubelet is running",
        "First CSR Pending approval",
        f"CSR {names['mine']} with signerName {CLIENT_SIGNER} and username bootstrapper is Pending and awaiting approval",
        "Node joined cluster",
        "Node is Ready",
    ]
    assert clock.now == 30


async def test_ready_before_its_second_request_is_approved(cluster: Callable[[], Cluster]) -> None:
    lab, reported = cluster(), []
    one = NodeMonitor(ADDRESS, [NAME], Rest(), lab.kube, reported.append, lambda __: True)

    def run() -> str:
        # The user's name has the node's, as for a kubelet with its own certificate.
        body = {**csr(SERVING_SIGNER, "extraworker-0"), "status": {}, "metadata": {"name": "csr-2"}}
        body["spec"]["username"] = "system:node:extraworker-0"
        lab.api.store.create("certificatesigningrequests.certificates.k8s.io", body)
        lab.call("POST", "/api/v1/nodes", node(True), 201)
        assert monitor([one], Clock())
        return f"CSR csr-2 with signerName {SERVING_SIGNER} and username system:node:extraworker-0 is Pending and awaiting approval"

    line = await asyncio.to_thread(run)
    lines = [message.text.removeprefix(f"Node {ADDRESS}: ") for message in reported]
    assert lines[-5:] == [
        "Second CSR Pending approval",
        line,
        "Node joined cluster",
        "Node is Ready but has CSRs pending approval. Until all CSRs are approved, the node may not be fully functional.",
        line,
    ]


class Silent:
    """An API that does not answer."""

    def find(self, path: str) -> dict[str, Any] | None:
        raise ClusterError(f"GET {path}: refused")

    def nodes(self) -> list[dict[str, Any]]:
        raise ClusterError("GET nodes: refused")

    def certificate_requests(self) -> list[dict[str, Any]]:
        raise ClusterError("GET certificatesigningrequests: refused")


def test_limit() -> None:
    """Nodes share one limit; each that is not ready is named."""
    reported: list[Message] = []
    rest = Rest()
    rest.live = False
    nodes = [NodeMonitor(f"192.0.2.{n}", [NAME], rest, Silent(), reported.append, lambda __: False) for n in (1, 2)]
    clock = Clock()
    assert not monitor(nodes, clock)
    assert clock.now == 5400
    assert [m for m in reported if m.level == "error"] == [
        Message("error", f"Node 192.0.2.{n}: Node monitoring timed out after 90 minutes") for n in (1, 2)
    ]
    assert (
        Message("info", "Node 192.0.2.1: Cannot retrieve CSRs from Kube API. Skipping checks for pending CSRs")
        in reported
    )


def test_nodes_are_asked_at_the_same_time() -> None:
    """A node that does not answer for seconds held up the others."""
    meeting = threading.Barrier(3)

    def kubelet(__: str) -> bool:
        meeting.wait(10)
        return True

    nodes = [NodeMonitor(f"192.0.2.{n}", [], Rest(), Silent(), lambda __: None, kubelet) for n in (1, 2, 3)]
    assert not monitor(nodes, Clock(), limit=0)


def test_without_a_name_requests_are_not_read() -> None:
    reported: list[Message] = []
    assert not NodeMonitor(ADDRESS, [], Rest(), Silent(), reported.append, lambda __: True).step()
    assert not [m for m in reported if "CSR" in m.text]


def test_pending() -> None:
    """Of the wanted signer, of this node, and not decided."""
    mine, other, broken = csr(CLIENT_SIGNER, "extraworker-0"), csr(CLIENT_SIGNER, "worker-1"), csr(CLIENT_SIGNER, "x")
    broken["spec"]["request"] = "bm90IFBFTQ=="
    denied = {**csr(CLIENT_SIGNER, "extraworker-0"), "status": {"conditions": [{"type": "Denied"}]}}
    serving = csr(SERVING_SIGNER, "extraworker-0")
    serving["spec"]["username"] = "system:node:extraworker-0"
    found = [mine, other, broken, denied, serving]
    assert pending(found, CLIENT_SIGNER, [NAME]) == [mine]
    assert pending(found, SERVING_SIGNER, [NAME]) == [serving]
    assert pending(found, CLIENT_SIGNER, ["worker-1"]) == [other]


def test_token() -> None:
    class Kube(Silent):
        def __init__(self, data: dict[str, str] | None) -> None:
            self.data = data

        def find(self, path: str) -> dict[str, Any] | None:
            assert path == "/api/v1/namespaces/openshift-config/secrets/agent-auth-token"
            return None if self.data is None else {"data": self.data}

    assert watcher_token(Kube(None)) is None
    assert watcher_token(Kube({"watcherAuthToken": base64.b64encode(b"a.b.c").decode()})) == "a.b.c"
    with pytest.raises(ClusterError, match="watcherAuthToken is not base64"):
        watcher_token(Kube({"watcherAuthToken": "?"}))


@pytest.mark.parametrize(
    ("kind", "expected"), [("kubelet", True), ("no certificate", True), ("http", False), ("none", False)]
)
def test_kubelet_answers(kind: str, expected: bool, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if kind == "kubelet":
        pair = Signer.create("kubelet").pair
        (tmp_path / "crt").write_text(pair.certificate)
        (tmp_path / "key").write_text(pair.key)
        context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if kind == "none":
            server.close()

        def serve() -> None:
            connection, __ = server.accept()
            with connection:
                if kind == "http":
                    connection.recv(1024)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    return
                try:
                    context.wrap_socket(connection, server_side=True)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        if kind != "none":
            thread.start()
        assert kubelet_answers("127.0.0.1", port) is expected
        if kind != "none":
            thread.join(10)


async def test_verb(
    api: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ready node ends it at once with 0; the log is in the assets directory."""
    kubeconfig(tmp_path, str(api.http.make_url("")))
    monkeypatch.setattr(joining.socket, "gethostbyaddr", lambda address: (NAME, [], [address]))
    api.store.create("nodes", node(True, "127.0.0.1"))
    command = ["monitor-add-nodes", "--dir", str(tmp_path)]
    assert await asyncio.to_thread(cli.main, [*command, "127.0.0.1"]) == 0
    shown = capfd.readouterr().err
    assert "Node 127.0.0.1: Node is Ready" in shown
    (tmp_path / "nodes-config.yaml").write_text(
        "hosts: [{hostname: a, interfaces: [{name: eth0, macAddress: '52:54:00:aa:bb:01'}], networkConfig: "
        "{interfaces: [{name: eth0, ipv4: {address: [{ip: 127.0.0.1, prefix-length: 8}]}}]}}]"
    )
    assert await asyncio.to_thread(cli.main, command) == 0
    assert "Node 127.0.0.1: Node is Ready" in capfd.readouterr().err
    assert "Node 127.0.0.1: Node is Ready" in (tmp_path / ".openshift_install.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nodes-config.yaml"),
        (["192.0.2.300"], "192.0.2.300 is not valid IP address"),
        (["extraworker-0"], "extraworker-0 is not valid IP address"),
        (["--kubeconfig", "missing", "192.0.2.3"], "missing: not a usable kubeconfig"),
        (["--log-level", "bogus", "192.0.2.3"], "invalid log-level"),
    ],
)
def test_wrong_arguments(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["monitor-add-nodes", *arguments]) == 1
    assert message in capsys.readouterr().err
