"""The conformance suite against the simulated control plane: its API, store and controllers, over TLS, with nodes that are played."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from aiohttp import web
from ansible_collections.agentlab.ocp.payload.cluster.api.access import Access, User
from ansible_collections.agentlab.ocp.payload.cluster.api.server import Api
from ansible_collections.agentlab.ocp.payload.cluster.controllers import LEASES
from ansible_collections.agentlab.ocp.payload.cluster.pki import Signer
from ansible_collections.agentlab.ocp.payload.cluster.resources import Registry
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import conformance as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.conformance import suite
from ansible_collections.agentlab.ocp.plugins.module_utils.conformance.model import CASES, Lab
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit

from .test_controllers import Lab as FakeLab
from .test_render import HA, VIPS

LEAST = 100


class Server(threading.Thread):
    """The API of a member that leads; its controllers take a step ten times a second."""

    def __init__(self, played: FakeLab, folder: Path) -> None:
        super().__init__(daemon=True)
        self.played, self.folder = played, folder
        self.port, self.started, self.ended = 0, threading.Event(), threading.Event()
        self.admin = Signer.create("admin-kubeconfig-signer")
        self.server = Signer.create("kube-apiserver-lb-signer")
        clients = self.admin.pair.certificate + played.controllers.signer.pair.certificate
        served = self.server.issue("kube-apiserver", names=["127.0.0.1"])
        for name, text in (("clients.pem", clients), ("server.crt", served.certificate), ("server.key", served.key)):
            (folder / name).write_text(text)

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        tls.load_verify_locations(self.folder / "clients.pem")
        tls.verify_mode = ssl.CERT_OPTIONAL
        registry = Registry()
        for items in self.played.store.objects.values():
            for obj in items.values():
                registry.for_object(obj)
        access = Access({"known": User("system:serviceaccount:default:default", ("system:authenticated",))})
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", Api(self.played.store, registry, access, "v1.35.0").handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls, shutdown_timeout=1)
        await site.start()
        self.port = runner.addresses[0][1]
        self.started.set()
        while not self.ended.is_set():
            self.played.controllers.step()
            await asyncio.sleep(0.1)
        await runner.cleanup()

    def kubeconfig(self) -> Path:
        pair = self.admin.issue("system:admin", organizations=["system:masters"], client=True)
        coded = {
            name: base64.b64encode(text.encode()).decode()
            for name, text in (("ca", self.server.pair.certificate), ("crt", pair.certificate), ("key", pair.key))
        }
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "admin",
            "clusters": [
                {"name": "c", "cluster": {"server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": coded["ca"]}}
            ],
            "users": [{"name": "a", "user": {"client-certificate-data": coded["crt"], "client-key-data": coded["key"]}}],
            "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "a"}}],
        }  # fmt: skip
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path


def installed() -> FakeLab:
    """A cluster whose installation is complete."""
    played = FakeLab(HA, **VIPS)
    for name in ("m0", "m1", "m2"):
        played.master(name)
    played.node("w0", "worker")
    for node in played.store.items("nodes"):
        name = node["metadata"]["name"]
        labels = {**node["metadata"]["labels"], "kubernetes.io/hostname": name}
        pool = "master" if name.startswith("m") else "worker"
        wanted = played.store.get("machineconfigpools.machineconfiguration.openshift.io", "", pool)["spec"]
        notes = {"machineconfiguration.openshift.io/currentConfig": wanted["configuration"]["name"]}
        addresses = [{"type": "InternalIP", "address": "192.168.111.20"}, {"type": "Hostname", "address": name}]
        status = {**node["status"], "addresses": addresses, "nodeInfo": {"kubeletVersion": "v1.35.0"}}
        metadata = {**node["metadata"], "labels": labels, "annotations": notes}
        played.store.update("nodes", {**node, "metadata": metadata, "spec": {}, "status": status})
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        spec = {"holderIdentity": name, "leaseDurationSeconds": 4000, "renewTime": stamp}
        played.store.create(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                                     "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec})  # fmt: skip
    played.steps()
    return played


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(installed(), tmp_path_factory.mktemp("api"))
    running.start()
    assert running.started.wait(20)
    yield running
    running.ended.set()
    running.join(20)


@pytest.fixture(scope="module")
def results(server: Server) -> dict[str, suite.Result]:
    with Lab(server.kubeconfig()) as lab:
        found = {result.case.id: result for result in suite.run(lab, suite.selected_cases())}
    left = [
        obj["metadata"]["name"]
        for items in server.played.store.objects.values()
        for obj in items.values()
        if obj["metadata"]["name"].startswith("conformance-")
    ]
    assert not left, "the suite leaves objects behind"
    return found


@pytest.mark.parametrize("name", CASES)
def test_case(results: dict[str, suite.Result], name: str) -> None:
    assert (results[name].failure, results[name].skipped) == ("", "")


def test_each_case_has_a_sentence() -> None:
    assert len(CASES) >= LEAST
    for case in CASES.values():
        assert case.sentence.endswith(".") and len(case.sentence) < 120, case


def test_selection() -> None:
    assert {case.id.partition("/")[0] for case in suite.selected_cases(["watches"])} == {"watches"}
    assert [case.id for case in suite.selected_cases(["*/apply-conflict"])] == ["patches/apply-conflict"]
    with pytest.raises(suite.NoCase, match="no case matches 'none'; the areas are discovery, objects"):
        suite.selected_cases(["none"])


def test_verb(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--kubeconfig", str(server.kubeconfig()), "--junit", str(tmp_path / "junit"), "--only", "leases"]
    assert verb.main(words) == Exit.OK
    assert capsys.readouterr().out.splitlines()[-1].startswith("8 passed, 0 failed, 0 skipped in ")
    [found] = ElementTree.parse(tmp_path / "junit" / verb.JUNIT).getroot()
    assert (found.get("name"), found.get("tests"), found.get("failures")) == ("agentlab conformance", "8", "0")


def test_verb_reports_failures(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lease = server.played.store.get(LEASES, "kube-node-lease", "m0")
    server.played.store.update(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "another"}})
    try:
        words = ["--kubeconfig", str(server.kubeconfig()), "--junit", str(tmp_path), "--only", "leases/of-nodes"]
        assert verb.main(words) == Exit.FAILED
    finally:
        server.played.store.put(LEASES, lease)
    assert "FAIL    1/1  leases/of-nodes" in capsys.readouterr().out
    assert "holder is 'another', not 'm0'" in (tmp_path / verb.JUNIT).read_text()


def test_verb_without_an_api(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kubeconfig").write_text("{}\n")
    assert verb.main(["--kubeconfig", str(tmp_path / "kubeconfig")]) == Exit.FAILED
    assert f"{tmp_path}/kubeconfig: not a usable kubeconfig" in capsys.readouterr().err
    assert verb.main(["--kubeconfig", str(tmp_path / "none")]) == Exit.FAILED
    assert capsys.readouterr().err == f"agentlab: {tmp_path}/none: No such file or directory\n"


def test_the_cases_are_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert verb.main(["--list", "--only", "leases", "-o", form]) == Exit.OK
        rows = read(capsys.readouterr().out)
        assert [row["id"] for row in rows] == [case.id for case in suite.selected_cases(["leases"])]
        assert set(rows[0]) == {"id", "sentence"}
    with pytest.raises(SystemExit):
        verb.main(["-o", "json"])
    assert "--output needs --list" in capsys.readouterr().err
