"""`wait-for`, whole, against a scripted service and API on loopback; time is a clock of the test."""

from __future__ import annotations

import base64
import functools
import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import waitfor
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.client import AssistedClient
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import wait_for as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.report import replay
from ansible_collections.agentlab.ocp.plugins.module_utils.report.replay import server
from ansible_collections.agentlab.ocp.plugins.module_utils.state.recording import Recorder

START = 1_000_000.0
ROUTER_CA = "-----BEGIN CERTIFICATE-----\nrouter\n-----END CERTIFICATE-----\n"
SERVICE = "/api/assisted-install/v2"
_UNTIL = re.compile(r" \(until [^)]*\)")


class Clock:
    def __init__(self) -> None:
        self.now = START

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def condition(kind: str, status: str, message: str = "") -> dict[str, str]:
    since = datetime.fromtimestamp(START - 600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": kind, "status": status, "reason": "AsExpected", "message": message, "lastTransitionTime": since}


def operator(name: str, *conditions: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"conditions": list(conditions)}}


SETTLED = operator(
    "etcd", condition("Available", "True"), condition("Progressing", "False"), condition("Degraded", "False")
)
MACHINE_CONFIG = "/apis/machineconfiguration.openshift.io/v1"


class World:
    """What the service and the API answer: a value, a function of the seconds since the start, or nothing (404)."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.service_until = 1e9
        self.answers: dict[str, Any] = {
            f"{SERVICE}/infra-envs": [{"id": "i"}],
            f"{SERVICE}/clusters": [{"id": "c"}],
            f"{SERVICE}/clusters/c": self.cluster("installing"),
            f"{SERVICE}/events": [],
        }

    @staticmethod
    def cluster(status: str) -> dict[str, Any]:
        return {"id": "c", "status": status, "status_info": "", "validations_info": "", "hosts": []}

    def installed(self) -> World:
        """Bootstrap done, cluster done."""
        done = [condition("Available", "True"), condition("Failing", "False"), condition("Progressing", "False")]
        route = {
            "spec": {"host": "wanted.test", "tls": {}},
            "status": {"ingress": [{"host": "console.test", "conditions": [condition("Admitted", "True")]}]},
        }
        self.answers |= {
            "/version": {"gitVersion": "v1"},
            "/api/v1/namespaces/kube-system/configmaps/bootstrap": {"data": {"status": "complete"}},
            "/apis/config.openshift.io/v1/clusterversions/version": {"status": {"conditions": done}},
            "/apis/config.openshift.io/v1/clusteroperators": {"items": [SETTLED]},
            "/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert": {
                "data": {"ca-bundle.crt": ROUTER_CA}
            },
            "/apis/route.openshift.io/v1/namespaces/openshift-console/routes/console": route,
        }
        for pool, fips in (("master", True), ("worker", True)):
            self.answers[f"{MACHINE_CONFIG}/machineconfigpools/{pool}"] = {
                "status": {"configuration": {"name": f"rendered-{pool}"}}
            }
            self.answers[f"{MACHINE_CONFIG}/machineconfigs/rendered-{pool}"] = {
                "metadata": {"name": f"rendered-{pool}"}, "spec": {"fips": fips}
            }  # fmt: skip
        return self

    def answer(self, path: str) -> Any:
        found = self.answers.get(path)
        return found(self.clock.now - START) if callable(found) else found


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def port(world: World) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = world.answer(self.path.partition("?")[0])
            body = json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *__: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def directory(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The assets of a plain `openshift-install agent`: its state file has nothing of ours."""
    monkeypatch.setattr(waitfor, "AssistedClient", functools.partial(AssistedClient, port=port))
    (tmp_path / "auth").mkdir()
    (tmp_path / "auth/kubeadmin-password").write_text("word\n")
    ca = base64.b64encode(b"-----CA-----\n").decode()
    (tmp_path / "auth/kubeconfig").write_text(
        yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "admin", "users": [{"name": "admin", "user": {"token": "t"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}", "certificate-authority-data": ca}}],
            "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "admin"}}],
        })
    )  # fmt: skip
    state(tmp_path)
    return tmp_path


def state(directory: Path, version: str = "4.22.0", fips: bool = False, platform: str = "None") -> None:
    overrides = {"agent-install.openshift.io/install-config-overrides": json.dumps({"fips": True})} if fips else {}
    spec = {"platformType": platform, "imageSetRef": {"name": f"openshift-{version}"}}
    (directory / ".openshift_install_state.json").write_text(
        json.dumps({
            "*image.Ignition": {"RendezvousIP": "127.0.0.1"}, "*gencrypto.AuthConfig": {"WatcherAuthToken": "token"},
            "*manifests.AgentClusterInstall": {"Config": {"metadata": {"annotations": overrides}, "spec": spec}},
        })
    )  # fmt: skip


def wait(directory: Path, world: World, event: str = "install-complete") -> tuple[int, list[tuple[str, str]]]:
    reported: list[tuple[str, str]] = []
    outcome = waitfor.wait_for(event, directory, lambda *message: reported.append(message), clock=world.clock)
    return outcome.exit_code, reported


def shown(reported: list[tuple[str, str]]) -> list[str]:
    return [f"{level}: {_UNTIL.sub('', text)}" for level, text in reported if level != "debug"]


def test_to_the_end(directory: Path, world: World, port: int) -> None:
    world.installed()
    code, reported = wait(directory, world)
    assert code == 0
    assert shown(reported) == [
        "info: Bootstrap Kube API Initialized",
        "info: Bootstrap configMap status is complete",
        "info: Cluster installation in progress",
        "info: Bootstrap is complete",
        "info: cluster bootstrap is complete",
        f"info: Waiting up to 40m0s for the cluster at http://127.0.0.1:{port} to initialize...",
        "info: Waiting up to 30m0s to ensure each cluster operator has finished progressing...",
        "info: All cluster operators have completed progressing",
        "info: Checking to see if there is a route at openshift-console/console...",
        "info: Install complete!",
        f"info: To access the cluster as the system:admin user when using 'oc', run\n    export KUBECONFIG={directory}/auth/kubeconfig",
        "info: Access the OpenShift web-console here: https://console.test",
        'info: Login to the console with user: "kubeadmin", and password: "word"',
    ]
    (directory / "auth/kubeadmin-password").unlink()
    code, reported = wait(directory, world)
    assert code == 0 and reported[-1][0] == "warning"


def test_a_recording_of_an_installation_plays_it_again(
    directory: Path, world: World, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded by the wait, served as a replay, and followed by another wait: it ends in the same way."""
    world.installed()
    path = tmp_path / "record" / "recording.jsonl"
    first: list[tuple[str, str]] = []
    tape = Recorder(path)
    outcome = waitfor.wait_for(
        "install-complete", directory, lambda *message: first.append(message), clock=world.clock, tape=tape
    )
    assert outcome.exit_code == 0
    found = replay.find(tmp_path / "record")
    assets = tmp_path / "assets"
    assets.mkdir()
    with server.ReplayServer(server.ReplayClock(found, 1000), "127.0.0.1", 0, b"") as played:
        monkeypatch.setattr(waitfor, "AssistedClient", functools.partial(AssistedClient, port=played.server_port))
        server.assets(assets, found, "127.0.0.1", played.url)
        thread = threading.Thread(target=played.serve_forever, args=(0.05,))
        thread.start()
        while played.playing.position() < found.recording.length:
            time.sleep(0.01)
        code, reported = wait(assets, world)
        played.shutdown()
        thread.join()
    assert code == 0
    here = {f"http://127.0.0.1:{port}": played.url, str(directory): str(assets), '"word"': '"replay"'}
    wanted = "\n".join(shown(first))
    for there, now in here.items():
        wanted = wanted.replace(there, now)
    assert "\n".join(shown(reported)) == wanted


def test_cancelled_is_reported_with_its_operators(directory: Path, world: World) -> None:
    bad = [
        condition("Degraded", "True", "bad"),
        condition("Progressing", "True", "moving"),
        condition("Upgradeable", "False", "no"),
    ]
    world.answers |= {
        f"{SERVICE}/clusters/c": lambda seconds: World.cluster("installing" if seconds < 10 else "cancelled"),
        "/apis/config.openshift.io/v1/clusteroperators": {"items": [operator("dns", *bad)]},
    }
    code, reported = wait(directory, world)
    assert code == 5
    assert shown(reported) == [
        "info: Cluster installation in progress",
        "info: Cluster installation cancelled",
        "error: Cluster operator dns Degraded is True with AsExpected: bad",
        "info: Cluster operator dns Progressing is True with AsExpected: moving",
        "info: Use the following commands to gather logs from the cluster",
        "info: agentlab gather --help",
        "error: Bootstrap failed to complete: : bootstrap process returned error: cluster installation was cancelled",
    ]


def test_stuck_in_ready_reports_that_operators_cannot_be_listed(directory: Path, world: World, port: int) -> None:
    world.answers[f"{SERVICE}/clusters/c"] = World.cluster("ready")
    code, reported = wait(directory, world, "bootstrap-complete")
    assert code == 5 and 60 < world.clock.now - START < 70
    [(level, text)] = [message for message in reported if "ClusterOperator" in message[1]]
    assert level == "error"
    assert text == (
        "Attempted to gather ClusterOperator status after wait failure: listing ClusterOperator objects: "
        f"GET http://127.0.0.1:{port}/apis/config.openshift.io/v1/clusteroperators: not found"
    )


def test_no_router_ca_fails_with_help(directory: Path, world: World) -> None:
    del world.installed().answers["/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert"]
    code, reported = wait(directory, world)
    assert code == 6
    text = 'fetching default-ingress-cert configmap from openshift-config-managed namespace: configmaps "default-ingress-cert" not found'
    assert shown(reported)[-3:] == [f"error: {text}", f"error: {waitfor.TROUBLESHOOTING}", f"error: {text}"]
    assert waitfor.TROUBLESHOOTING.splitlines()[3] == (
        "The 'wait-for install-complete' subcommand can then be used to continue the installation"
    )


def test_unstable_operators(directory: Path, world: World) -> None:
    moving = operator("dns", condition("Progressing", "True", "moving"))
    world.installed().answers["/apis/config.openshift.io/v1/clusteroperators"] = {"items": [SETTLED, moving]}
    code, reported = wait(directory, world)
    assert code == 7
    assert shown(reported)[-2:] == [
        'error: Error checking cluster operator Progressing status: "context deadline exceeded"',
        "error: These cluster operators were not stable: [dns]",
    ]


@pytest.mark.parametrize(("version", "verified"), [("4.22.0", True), ("4.21.5", False)])
def test_fips(directory: Path, world: World, version: str, verified: bool) -> None:
    world.installed()
    state(directory, version, fips=True)
    code, reported = wait(directory, world)
    assert code == 0 and (("info", "Verified FIPS mode is enabled on cluster") in reported) is verified
    world.answers[f"{MACHINE_CONFIG}/machineconfigs/rendered-master"]["spec"]["fips"] = False
    assert wait(directory, world)[0] == (6 if verified else 0)
    del world.answers[f"{MACHINE_CONFIG}/machineconfigpools/worker"]
    code, reported = wait(directory, world)
    assert not verified or (code == 6 and reported[-1][1].startswith("failed to verify FIPS mode: GET "))


def test_limit_of_the_release_of_a_plain_directory(directory: Path, world: World, port: int) -> None:
    world.installed()
    state(directory, "4.21.5", platform="BareMetal")
    assert f"info: Waiting up to 1h0m0s for the cluster at http://127.0.0.1:{port} to initialize..." in shown(
        wait(directory, world)[1]
    )


def test_missing_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"
    assert verb.main(["install-complete", "--dir", str(missing)]) == 1
    assert (
        capsys.readouterr().err
        == f"level=fatal msg=both AgentConfig and NMStateConfig are empty: {missing}: no such directory\n"
    )
    assert not missing.exists()
    missing.mkdir()
    assert verb.main(["bootstrap-complete", "--dir", str(missing)]) == 1
    assert "both AgentConfig and NMStateConfig are empty: " in capsys.readouterr().err


def test_records_and_log_that_cannot_be_written_do_not_end_the_wait(
    directory: Path, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.installed()
    record = waitfor.Recorder(tmp_path / "record")
    (tmp_path / "record").rmdir()
    (tmp_path / "record").write_text("in the way")
    (directory / ".openshift_install.log").mkdir()
    log = Log(directory, copy=tmp_path / "none/wait-for.log")
    assert waitfor.wait_for("bootstrap-complete", directory, log, record, clock=world.clock).exit_code == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("level=warning")]
    assert warnings == [
        f"level=warning msg={directory}/.openshift_install.log: the log cannot be written: Is a directory",
        f"level=warning msg={tmp_path}/none/wait-for.log: the log cannot be written: No such file or directory",
    ]


def test_the_copy_has_time_stamps_and_what_is_shown(tmp_path: Path) -> None:
    log = Log(None, emit=lambda __: None, copy=tmp_path / "wait-for.log")
    log("debug", "noise")
    log("info", "Install complete!")
    [line] = (tmp_path / "wait-for.log").read_text().splitlines()
    assert re.fullmatch(r'time="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ" level=info msg="Install complete!"', line)


def test_a_closed_stderr_does_not_end_the_run(tmp_path: Path) -> None:
    def broken(_line: str) -> None:
        raise BrokenPipeError

    Log(tmp_path, emit=broken)("info", "unheard")
    assert "unheard" in (tmp_path / ".openshift_install.log").read_text()
