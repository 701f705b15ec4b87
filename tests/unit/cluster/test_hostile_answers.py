"""Any program may answer as the OpenShift API: whatever it sends, each observer takes it or names the field."""

from __future__ import annotations

import base64
import contextlib
import copy
import http.server
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.cluster.pki import Signer
from ansible_collections.agentlab.ocp.plugins.module_utils import deadline
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.client import AssistedClient
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import validate
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.client import ClusterClient
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.joining import (
    CLIENT_SIGNER,
    SERVING_SIGNER,
    NodeMonitor,
    watcher_token,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.watcher import InstallFailed, InstallWatcher
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import AssistedError, ClusterError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.report import causes, changes, evidence
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import EventLog

ROOT = Path(__file__).parents[3]
PLAN = build.build(profile.load("compact_ipv4", ROOT / "config_examples"), "ostest")
PLAN["installer"] |= {
    "ssh_key_file": str(ROOT / "ci/profiles/team.pub"), "pull_secret_file": str(ROOT / "ci/profiles/pull-secret.json")
}  # fmt: skip
CONDITIONS = [
    {"type": "Available", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-11-24T01:00:00Z"},
    {"type": "Progressing", "status": "False", "lastTransitionTime": "2026-11-24T01:00:00Z"},
    {"type": "Failing", "status": "False"}, {"type": "Degraded", "status": "False"},
]  # fmt: skip
EXIT = {"terminated": {"exitCode": 2, "reason": "Error", "message": "first\nlast"}}
POD = {
    "metadata": {"name": "assisted-installer-controller-1", "namespace": "assisted-installer", "labels": {"job-name": "x"}},
    "status": {"phase": "Running", "containerStatuses": [
        {"ready": False, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
         "lastState": EXIT}]},
}  # fmt: skip
POOL = {"status": {"configuration": {"name": "rendered-1"}}, "spec": {}}
ANSWERS: dict[str, Any] = {
    "/version": {"gitVersion": "v1.35.0"},
    "/api/v1/namespaces/kube-system/configmaps/bootstrap": {"data": {"status": "complete"}},
    "/api/v1/nodes": {"items": [{
        "metadata": {"name": "master-0", "labels": {"node-role.kubernetes.io/master": ""}},
        "spec": {"taints": [{"key": "a"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
                   "addresses": [{"type": "InternalIP", "address": "192.168.111.20"}]}}]},
    "/apis/certificates.k8s.io/v1/certificatesigningrequests": {"items": [
        {"metadata": {"name": "csr-1"}, "status": {},
         "spec": {"signerName": SERVING_SIGNER, "username": "system:node:master-0", "request": "bm9uZQ=="}},
        {"metadata": {"name": "csr-2"}, "status": {"conditions": [{"type": "Approved"}]},
         "spec": {"signerName": CLIENT_SIGNER, "username": "x", "request": "bm9uZQ=="}}]},
    "/apis/config.openshift.io/v1/clusterversions/version": {
        "status": {"conditions": CONDITIONS, "desired": {"version": "4.22.0"}}},
    "/apis/config.openshift.io/v1/infrastructures/cluster": {
        "spec": {"platformSpec": {"external": {"platformName": "x"}}},
        "status": {"platformStatus": {"type": "BareMetal", "external": {"cloudControllerManager": {"state": "None"}},
                   "baremetal": {"apiServerInternalIPs": ["192.168.111.5"], "ingressIPs": ["192.168.111.4"]}}}},
    "/apis/config.openshift.io/v1/clusteroperators": {
        "items": [{"metadata": {"name": "etcd"}, "status": {"conditions": CONDITIONS}}]},
    "/api/v1/pods": {"items": [POD]},
    "/api/v1/namespaces/assisted-installer/pods": {"items": [POD]},
    "/apis/batch/v1/namespaces/assisted-installer/jobs/assisted-installer-controller": {"status": {"succeeded": 1}},
    "/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert": {
        "data": {"ca-bundle.crt": "-----BEGIN CERTIFICATE-----"}},
    "/apis/route.openshift.io/v1/namespaces/openshift-console/routes/console": {
        "spec": {"tls": {}}, "status": {"ingress": [
            {"host": "console.test", "conditions": [{"type": "Admitted", "status": "True"}]}]}},
    "/api/v1/namespaces/openshift-config/secrets/agent-auth-token": {"data": {"watcherAuthToken": "YS5iLmM="}},
    "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker": POOL,
    "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/master": POOL,
    "/apis/machineconfiguration.openshift.io/v1/machineconfigs/rendered-1": {
        "metadata": {"name": "rendered-1"}, "spec": {
            "fips": True, "config": {"passwd": {"users": [{"sshAuthorizedKeys": ["ssh-ed25519 AAAA"]}]}}}},
    "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1": {"data": {"install-config": (
        "metadata: {name: a}\nbaseDomain: b\nnetworking: {machineNetwork: [{cidr: 192.168.111.0/24}]}")}},
    "/apis/config.openshift.io/v1/imagedigestmirrorsets": {
        "items": [{"spec": {"imageDigestMirrors": [{"source": "a", "mirrors": ["b"]}]}}]},
    "/apis/operator.openshift.io/v1alpha1/imagecontentsourcepolicies": {
        "items": [{"spec": {"repositoryDigestMirrors": [{"source": "a", "mirrors": ["b"]}]}}]},
    "/api/v1/namespaces/openshift-config/secrets/pull-secret": {"data": {".dockerconfigjson": "eyJhdXRocyI6IHt9fQ=="}},
}  # fmt: skip
ODD: list[Any] = [
    None, 5, True, "x", "", "\x1b[2J[/x]", [], [None], ["x"], [[]], [{}], {}, {"x": None}, {"a": 1}, "../../x?y#z", 10**400,
]  # fmt: skip


def replaced(value: Any) -> Iterator[Any]:
    """The value with each part of it replaced by each odd one, or left out."""
    yield from ODD
    if isinstance(value, dict):
        for key in value:
            yield {other: part for other, part in value.items() if other != key}
            for part in replaced(value[key]):
                yield {**value, key: part}
    elif isinstance(value, list):
        for part in replaced(value[0]):
            yield [part]


class Api(http.server.ThreadingHTTPServer):
    """Answers with `answers`, by path; bytes are sent as they are."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Any] = {}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Api

    def do_GET(self) -> None:
        found = self.server.answers.get(self.path)
        if callable(found):
            found(self)
            return
        body = json.dumps(found).encode()
        self.send_response(404 if self.path not in self.server.answers else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *__: object) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds * 100


class Rest:
    def infra_envs(self) -> list[dict[str, Any]]:
        raise AssistedError("refused")


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def kube(api: Api, tmp_path: Path) -> ClusterClient:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig({"server": f"http://127.0.0.1:{api.server_port}"})))
    return ClusterClient(path)


def kubeconfig(cluster: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "admin", "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": "admin"}}],
        "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "admin"}}],
    }  # fmt: skip


def installed(kube: ClusterClient) -> list[str]:
    reported: list[str] = []
    watcher = InstallWatcher(
        kube,
        lambda level, text: reported.append(text),
        Clock(),
        initialize_limit=60,
        fips=True,
        stall=60,
        controller=True,
    )
    try:
        for step in (
            watcher._initialized,
            watcher._trust_router,
            watcher._stable,
            watcher._verify_fips,
            watcher._completed,
        ):
            try:
                step()
            except InstallFailed as error:
                reported.append(str(error))
        watcher._console()
    except ClusterError as error:
        reported.append(str(error))
    return reported


def joined(kube: ClusterClient) -> list[str]:
    reported: list[str] = []
    for address in ("192.168.111.20", "192.168.111.21"):
        node = NodeMonitor(
            address,
            ["master-0.test"],
            Rest(),
            kube,
            lambda message: reported.append(message.text),
            kubelet=lambda address: True,
        )
        node.step()
    try:
        reported.append(str(watcher_token(kube)))
    except ClusterError as error:
        reported.append(str(error))
    return reported


def explained(kube: ClusterClient) -> list[str]:
    facts = evidence.Facts(PLAN)
    try:
        facts.nodes, facts.operators, facts.pods = kube.nodes(), kube.cluster_operators(), kube.pods()
    except ClusterError as error:
        return [str(error)]
    changes.WaitEvents(EventLog(None)).show_operators(facts.operators or [])
    return [one.text for one in causes.causes(facts)]


def bootstrapped(kube: ClusterClient) -> list[str]:
    try:
        return [str(kube.live()), str(kube.bootstrap_status())]
    except ClusterError as error:
        return [str(error)]


def validated(kube: ClusterClient) -> list[str]:
    return validate.table(validate.validate(PLAN, kube.kubeconfig, lambda path: kube)).splitlines()


OBSERVERS: list[Callable[[ClusterClient], list[str]]] = [installed, joined, explained, bootstrapped, validated]


@pytest.fixture(autouse=True)
def _no_access(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "_access", lambda plan: [])


@pytest.mark.parametrize("observer", OBSERVERS, ids=lambda one: one.__name__)
def test_any_answer_is_taken_or_named(
    observer: Callable[[ClusterClient], list[str]], kube: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: dict[str, Any] = {}
    asked: set[str] = set()

    def sent(url: str, **__: object) -> Any:
        path = url.removeprefix(kube.server)
        asked.add(path)
        return Reply(answers.get(path))

    monkeypatch.setattr(kube.session, "get", sent)
    answers.update(copy.deepcopy(ANSWERS))
    observer(kube)
    for path in sorted(asked & set(ANSWERS)):
        for odd in replaced(ANSWERS[path]):
            answers[path] = odd
            assert all(isinstance(text, str) for text in observer(kube)), (path, odd)
        answers[path] = ANSWERS[path]
    assert asked


class Reply:
    """What the session returns: the test sends thousands of answers."""

    reason = "OK"

    def __init__(self, body: object) -> None:
        self.status_code, self.body = 200, json.dumps(body).encode()

    def __enter__(self) -> Reply:
        return self

    def __exit__(self, *__: object) -> None:
        pass

    def raise_for_status(self) -> None:
        pass

    def iter_content(self, size: int) -> Iterator[bytes]:
        yield self.body


@pytest.mark.parametrize(
    ("path", "answer", "message"),
    [
        ("/api/v1/nodes", [], "the answer is a list, not a mapping"),
        ("/api/v1/nodes", {}, "the answer.items is null, not a list"),
        ("/api/v1/nodes", {"items": [{"metadata": {}}]}, "the answer.items[0].metadata.name is null, not a string"),
        ("/api/v1/nodes", {"items": [{"metadata": {"name": "a", "labels": {"x": 1}}}]},
         "the answer.items[0].metadata.labels['x'] is an integer, not a string"),
    ],
)  # fmt: skip
def test_the_field_is_named(path: str, answer: Any, message: str, api: Api, kube: ClusterClient) -> None:
    api.answers = {path: answer}
    with pytest.raises(ClusterError) as caught:
        kube.nodes()
    assert str(caught.value) == f"GET {kube.server}{path}: {message}"


def test_redirections_are_not_followed(api: Api, kube: ClusterClient) -> None:
    def elsewhere(handler: _Handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", f"http://127.0.0.1:{api.server_port}/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    asked: list[str] = []
    api.answers = {"/api/v1/nodes": elsewhere, "/elsewhere": lambda handler: asked.append(handler.path)}
    with pytest.raises(ClusterError, match="HTTP 302 Found, which is not followed"):
        kube.nodes()
    assert not asked


@pytest.mark.parametrize(
    "text",
    ["x", "[]", "metadata: {name: a}", "metadata: 1", "metadata: {name: a}\nbaseDomain: b\nnetworking: 1",
     "metadata: {name: a}\nbaseDomain: b\nnetworking: {machineNetwork: [{cidr: 1}]}", "{", "a: *b"],
)  # fmt: skip
def test_an_install_config_of_another_form_is_a_failed_check(text: str, api: Api, kube: ClusterClient) -> None:
    place = "/api/v1/namespaces/kube-system/configmaps/cluster-config-v1"
    api.answers = {**ANSWERS, place: {"data": {"install-config": text}}}
    [line] = [line for line in validated(kube) if "machine networks" in line]
    assert line.startswith("FAIL") and "cluster-config-v1" in line


@pytest.mark.parametrize("part", ["headers", "body"])
def test_an_answer_that_drips_is_given_up(
    part: str, api: Api, kube: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 0.5)

    def drip(handler: _Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 100\r\n\r\n" if part == "body" else b"X-"))
        with contextlib.suppress(OSError):
            for __ in range(60):
                handler.wfile.write(b"x")
                time.sleep(0.05)

    path = "/api/v1/nodes"
    api.answers = {path: drip, "/api/assisted-install/v2/clusters": drip}
    with pytest.raises(ClusterError, match=r"the answer is not complete within 0\.5 s"):
        kube.nodes()
    with pytest.raises(AssistedError, match=r"the answer is not complete within 0\.5 s"):
        AssistedClient("127.0.0.1", None, port=api.server_port).clusters()


@pytest.mark.parametrize("trusted", ["", "certificate-authority-data", "insecure-skip-tls-verify"])
def test_the_token_is_sent_to_the_cluster_alone(trusted: str, api: Api, tmp_path: Path) -> None:
    """A kubeconfig without an authority trusts those of this host; requests would trust anyone then."""
    signer = Signer.create("test")
    pair = signer.issue("server", names=("127.0.0.1",))
    (tmp_path / "server.pem").write_text(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    api.socket = context.wrap_socket(api.socket, server_side=True)
    sent: list[str] = []
    api.answers = {"/version": lambda handler: sent.append(handler.headers["Authorization"])}
    entry: dict[str, Any] = {"server": f"https://127.0.0.1:{api.server_port}"}
    if trusted:
        authority = base64.b64encode(signer.pair.certificate.encode()).decode()
        entry[trusted] = True if trusted.startswith("insecure") else authority
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(entry)))
    with pytest.raises(ClusterError, match="" if trusted else "CERTIFICATE_VERIFY_FAILED"):
        ClusterClient(path, 2).get("/version")
    assert bool(sent) == bool(trusted)


def test_texts_of_the_api_are_not_commands_of_a_terminal(api: Api, kube: ClusterClient) -> None:
    api.answers = {**ANSWERS, "/version": {"gitVersion": "v1\x1b[2J"}}
    text = "\n".join(validated(kube))
    assert "v1 [2J" in text
    assert "\x1b" not in text
