"""The installer against a service that is played, on a host that is a directory; whole installations are in tests/integration/cluster."""

from __future__ import annotations

import base64
import json
import os
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.orchestrator import installer
from ansible_collections.agentlab.ocp.payload.orchestrator.controller import Controller, operator_state
from ansible_collections.agentlab.ocp.payload.orchestrator.service import PREFIX, Service, ServiceError

PERCENTS = (0, 3, 6, 40, 52, 99, 100)


class Played:
    """A service that records what it is told. `answers` maps method and path to a status and body, or a list of them to give in turn."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bytes]] = []
        self.answers: dict[str, Any] = {}
        played = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path = self.path.removeprefix(PREFIX)
                played.calls.append((self.command, path, body))
                found = played.answers.get(f"{self.command} {path}", (200, {}))
                if isinstance(found, list):
                    found = found.pop(0) if len(found) > 1 else found[0]
                code, content = found
                data = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = _answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stages(self) -> list[tuple[str, str]]:
        told = [json.loads(body) for method, path, body in self.calls if method == "PUT" and path.endswith("/progress")]
        return [(entry["current_stage"], entry["progress_info"]) for entry in told]


@pytest.fixture
def played() -> Iterator[Played]:
    made = Played()
    yield made
    made.server.shutdown()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host's root, and programs that note how they were called."""
    root, programs = tmp_path / "root", tmp_path / "bin"
    programs.mkdir()
    (root / "var/log").mkdir(parents=True)
    bodies = {
        "coreos-installer": "for p in "
        + " ".join(map(str, PERCENTS))
        + "; do printf '> Read disk 1.2 GiB/2.3 GiB (%s%%)   \\r' $p >&2; done\n"
        f'[ -e {root}/broken ] && {{ echo "Error: no space left" >&2; exit 1; }}\nexit 0\n',
        **dict.fromkeys(("wipefs", "dd", "journalctl", "dmesg", "systemctl", "systemd-run"), "exit 0\n"),
    }
    for name, body in bodies.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {root}/commands\n{body}')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("AGENTLAB_HOST_ROOT", str(root))
    monkeypatch.setenv("AGENTLAB_HOST_COMMAND", "")
    monkeypatch.setenv("INSTALLER_POLL_SECONDS", "0.01")
    monkeypatch.setenv("REBOOT_DELAY_SECONDS", "7")
    return root


def install(played: Played, role: str, *more: str) -> int:
    return installer.main(
        [
            "--role",
            role,
            "--infra-env-id",
            "i",
            "--cluster-id",
            "c",
            "--host-id",
            "h",
            "--boot-device",
            "/dev/sda",
            "--url",
            played.url,
            "--control-plane-count",
            "3",
            "--installer-args",
            '["--copy-network"]',
            "--unknown-flag",
            "x",
            *more,
        ]
    )


WRITING = [
    ("Writing image to disk", ""),
    *(("Writing image to disk", f"{percent}%") for percent in (6, 40, 52, 99, 100)),
]


@pytest.mark.parametrize("role", ["master", "arbiter"])
def test_master_and_arbiter(played: Played, host: Path, role: str) -> None:
    played.answers["GET /v2/infra-env/i/hosts/h/downloads/ignition"] = (200, {"ignition": {"version": "3.2.0"}})
    assert install(played, role) == 0
    assert played.stages() == [("Starting installation", role), ("Installing", role), *WRITING, ("Rebooting", "")]
    commands = (host / "commands").read_text().splitlines()
    assert commands[0] == "wipefs --all --force /dev/sda"
    assert (
        commands[1] == f"coreos-installer install --insecure -i /opt/install-dir/{role}-h.ign --copy-network /dev/sda"
    )
    assert commands[-1] == "systemd-run --on-active=7s --timer-property=AccuracySec=1s systemctl reboot"
    ignition = host / f"opt/install-dir/{role}-h.ign"
    assert (
        json.loads(ignition.read_text()) == {"ignition": {"version": "3.2.0"}} and ignition.stat().st_mode & 0o77 == 0
    )
    states = [json.loads(body)["logs_state"] for __, path, body in played.calls if path.endswith("/logs-progress")]
    assert states == ["requested", "collecting", "completed"]
    [upload] = [path for method, path, __ in played.calls if method == "POST"]
    assert upload == "/v2/clusters/c/logs?logs_type=host&host_id=h&infra_env_id=i"


def test_a_disk_that_cannot_be_cleaned_is_told(played: Played, host: Path, tmp_path: Path) -> None:
    (tmp_path / "bin/wipefs").write_text("#!/bin/sh\nexit 1\n")
    assert install(played, "master") == 0
    assert played.stages()[:3] == [
        ("Starting installation", "master"),
        (
            "Starting installation",
            "Could not clean install device /dev/sda. The installation will continue. If the installation fails, clean the disk and try again",
        ),
        ("Installing", "master"),
    ]


def test_worker_waits_for_two_masters(played: Played, host: Path) -> None:
    done, joined = {"progress": {"current_stage": "Done"}}, {"progress": {"current_stage": "Joined"}}
    played.answers["GET /v2/clusters/c/hosts?role=master"] = [(200, [joined, done]), (200, [done, done])]
    played.answers["GET /v2/clusters/c/hosts?role=arbiter"] = (200, [])
    assert install(played, "worker") == 0
    assert played.stages() == [
        ("Starting installation", "worker"),
        ("Installing", "worker"),
        *WRITING,
        ("Waiting for control plane", ""),
        ("Rebooting", ""),
    ]
    assert sum(1 for __, path, __ in played.calls if path.endswith("role=master")) == 2


def test_failure_is_told_after_three_tries(played: Played, host: Path) -> None:
    (host / "broken").touch()
    assert install(played, "master") == 1
    stage, info = played.stages()[-1]
    assert (
        stage == "Failed"
        and info.startswith("failed after 3 attempts, last error: failed executing coreos-installer install")
        and "no space left" in info
    )
    assert (host / "commands").read_text().count("coreos-installer") == 3


def test_options_for_disks(played: Played, host: Path) -> None:
    assert (
        install(
            played,
            "master",
            "--skip-installation-disk-cleanup",
            "--format-disk",
            "/dev/sdb",
            "--format-disk",
            "/dev/sdc",
        )
        == 0
    )
    commands = (host / "commands").read_text()
    assert "wipefs" not in commands and "of=/dev/sdb" in commands and "of=/dev/sdc" in commands


def test_a_report_that_is_refused_does_not_stop_the_installation(played: Played, host: Path) -> None:
    played.answers["PUT /v2/infra-envs/i/hosts/h/progress"] = (409, {"reason": "no"})
    assert install(played, "master") == 0


def test_settings_of_a_live_host(host: Path) -> None:
    folder = host / "etc/assisted/extra-manifests"
    folder.mkdir(parents=True)
    (folder / "settings-0.yaml").write_text(
        "kind: ConfigMap\nmetadata: {name: agentlab-settings}\ndata: {REBOOT_DELAY_SECONDS: '5'}\n"
    )
    found = installer.live_settings(installer.Host("", host))
    assert json.loads(found.read_text()) == {"REBOOT_DELAY_SECONDS": "5"}


@pytest.mark.parametrize(("code", "tries"), [(404, 10), (503, 4), (409, 1), (400, 1)])
def test_retry_rules(played: Played, code: int, tries: int) -> None:
    played.answers["GET /v2/x"] = (code, {"reason": "because"})
    service = Service(played.url, "token", busy_tries=4, wait=(0, 0))
    with pytest.raises(ServiceError, match="because") as caught:
        service.get("/v2/x")
    assert (caught.value.code, len(played.calls)) == (code, tries)


def test_retry_succeeds_and_refused_connections_are_told(played: Played) -> None:
    played.answers["GET /v2/x"] = [(503, {}), (404, {}), (200, {"a": 1})]
    assert Service(played.url, "token", wait=(0, 0)).get("/v2/x") == {"a": 1}
    with pytest.raises(ServiceError, match="does not answer"):
        Service("http://127.0.0.1:9", "token", busy_tries=2, wait=(0, 0)).get("/v2/x")


def test_requests_in_the_machine_config_servers_log() -> None:
    text = (
        'Pool master requested by address:"192.168.111.21:1234" User-Agent:"Ignition/2.20.0" Accept-Header: "x"\n'
        'Pool worker requested by address:"[fd00::23]:1234" User-Agent:"Ignition/2.20.0" Accept-Header: "x"\n'
        'Pool worker requested by address:"10.0.0.9:1" User-Agent:"curl/8" Accept-Header: "x"\n'
    )
    assert installer.machine_config_requests(text) == [("master", "192.168.111.21"), ("worker", "fd00::23")]


def test_hosts_are_found_by_name_or_address() -> None:
    def host(name: str, *addresses: str) -> dict[str, Any]:
        return {
            "requested_hostname": name,
            "inventory": json.dumps({"interfaces": [{"ipv6_addresses": list(addresses)}]}),
        }

    hosts = [host("m0", "fd00:0::20/64"), host("m1", "fd00::21/64")]
    node = {"metadata": {"name": "M1"}, "status": {"addresses": [{"type": "InternalIP", "address": "fd00::20"}]}}
    assert installer.find_host(hosts, node) is hosts[1]
    node["metadata"] = {"name": "other"}
    assert installer.find_host(hosts, node) is hosts[0]


def test_operator_states() -> None:
    def conditions(**states: str) -> dict[str, Any]:
        return {
            "status": {
                "conditions": [{"type": name, "status": state, "message": name} for name, state in states.items()],
                "versions": [{"name": "operator", "version": "4"}],
            }
        }

    assert operator_state(None) == ("progressing", "", "")
    assert operator_state(conditions(Available="True", Progressing="True")) == ("available", "Available", "4")
    assert operator_state(conditions(Available="False", Progressing="True")) == ("progressing", "Progressing", "4")
    assert operator_state(conditions(Available="False", Degraded="True")) == ("failed", "Degraded", "4")
    assert operator_state(conditions(Available="False", Degraded="False")) == ("failed", "Available", "4")


class Api:
    """A cluster's API in which every operator is available, and OLM's are in a phase."""

    phase = "Succeeded"

    def again(self) -> Api:
        return self

    def get(self, path: str) -> Any:
        return {"items": []}

    def find(self, path: str) -> Any:
        if "/subscriptions/" in path:
            return {"status": {"currentCSV": "s.v4"}}
        if "/clusterserviceversions/" in path:
            return {"spec": {"version": "4"}, "status": {"phase": self.phase, "message": "of the phase"}}
        conditions = [{"type": "Available", "status": "True", "message": "all is well"}]
        return {"status": {"conditions": conditions, "versions": []}, "data": {"ca-bundle.crt": "PEM"}}


@pytest.mark.parametrize(
    ("kinds", "between"), [(["builtin"], []), (["builtin", "olm"], ["Applying olm manifests", "Waiting for olm operators csv"])]
)
def test_finalizing_stages(played: Played, kinds: list[str], between: list[str]) -> None:
    """Those of the Operator Lifecycle Manager come only with an operator of its: the cluster may be installed by then."""
    played.answers["GET /v2/clusters/c"] = 200, {"status": "finalizing", "hosts": []}
    operators = [
        {"name": name, "operator_type": name, "namespace": "ns", "subscription_name": "s", "status": "available"} for name in kinds
    ]
    played.answers["GET /v2/clusters/c/monitored-operators"] = 200, operators
    played.answers["GET /v2/clusters/c/downloads/files?file_name=custom_manifests.json"] = 200, []
    config = {"cluster_id": "c", "invoker": "assisted-installer", "control_plane_count": 3}
    Controller(Api(), Service(played.url, ""), config).post_install()  # type: ignore[arg-type]
    told = [json.loads(body) for method, path, body in played.calls if (method, path) == ("PUT", "/v2/clusters/c/progress")]
    assert [entry["finalizing_stage"] for entry in told] == [
        "Waiting for cluster operators", "Adding router ca", "Waiting for olm operators csv initialization", *between, "Done",
    ]  # fmt: skip
    assert ("POST", "/v2/clusters/c/actions/complete-installation") in [call[:2] for call in played.calls]


OLM = {
    "name": "lvm", "operator_type": "olm", "namespace": "openshift-storage", "subscription_name": "lvms", "status": "progressing", "status_info": "",
}  # fmt: skip
CR = b"apiVersion: lvm.topolvm.io/v1alpha1\nkind: LVMCluster\nmetadata: {name: x, namespace: openshift-storage}\n"
TOO_LONG = {"progress": {"finalizing_stage": "Waiting for olm operators csv", "finalizing_stage_timed_out": True}}


class Applied(Api):
    def __init__(self, phase: str) -> None:
        self.phase, self.paths = phase, list[str]()

    def patch(self, path: str, body: Any, kind: str) -> None:
        self.paths.append(path.partition("?")[0])


def olm(played: Played, api: Api, operators: list[dict[str, Any]], clusters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the controller tells of operators, to a service that shows them, and the cluster, one after the other."""
    played.answers["GET /v2/clusters/c/monitored-operators"] = [(200, [operator]) for operator in operators]
    played.answers["GET /v2/clusters/c"] = [(200, cluster) for cluster in clusters]
    manifests = [{"name": name, "content": base64.b64encode(CR).decode()} for name in ("lvm", "other")]
    played.answers["GET /v2/clusters/c/downloads/files?file_name=custom_manifests.json"] = 200, manifests
    config = {"cluster_id": "c", "invoker": "assisted-installer", "control_plane_count": 3}
    controller = Controller(api, Service(played.url, ""), config)  # type: ignore[arg-type]
    controller.poll = 0.01
    controller.olm()
    return [json.loads(body) for method, path, body in played.calls if (method, path) == ("PUT", "/v2/clusters/c/monitored-operators")]


def test_olm_operators_are_told_and_get_their_manifests(played: Played) -> None:
    api = Applied("Succeeded")
    told = olm(played, api, [OLM], [{"status": "finalizing"}])
    assert told == [{"name": "lvm", "status": "available", "status_info": "of the phase", "version": "4"}]
    assert api.paths == ["/apis/lvm.topolvm.io/v1alpha1/namespaces/openshift-storage/lvmclusters/x"]


def test_an_olm_operator_that_takes_too_long_has_failed(played: Played) -> None:
    told = olm(played, Applied("Installing"), [OLM], [TOO_LONG])
    assert told[-1] == {"name": "lvm", "status": "failed", "status_info": "Waiting for operator timed out", "version": ""}


def test_a_failed_olm_operator_may_recover_for_a_while(played: Played) -> None:
    told = olm(played, Applied("Failed"), [OLM], [*[{"status": "finalizing"}] * 12, TOO_LONG])
    assert told[0] == {"name": "lvm", "status": "failed", "status_info": "of the phase", "version": "4"}
    calls = [call[:2] for call in played.calls]
    told_at = calls.index(("PUT", "/v2/clusters/c/monitored-operators"))
    assert calls[:told_at].count(("GET", "/v2/clusters/c")) == 10


def test_manifests_of_operators_without_a_service() -> None:
    """In an agent-based installation they come from a ConfigMap, once the operators are there."""

    class Cluster(Applied):
        def find(self, path: str) -> Any:
            if path.endswith("/configmaps/olm-operator-manifests"):
                about = "manifests: [lvm-01.yaml]\nnamespace: openshift-storage\nsubscriptionName: lvms\n"
                return {"data": {"lvm.metadata.yaml": about, "lvm-01.yaml": base64.b64encode(CR).decode()}}
            if "/subscriptions/" in path:
                self.looks += 1
                return {"status": {"currentCSV": "s.v4"}} if self.looks > 2 else {}
            return super().find(path)

        looks = 0

    api = Cluster("Succeeded")
    config = {"cluster_id": "c", "invoker": "agent-installer", "control_plane_count": 1}
    controller = Controller(api, Service("http://127.0.0.1:9", ""), config)  # type: ignore[arg-type]
    controller.poll = 0.01
    controller._apply_without_service(api)  # type: ignore[arg-type]
    assert api.looks == 3 and api.paths == ["/apis/lvm.topolvm.io/v1alpha1/namespaces/openshift-storage/lvmclusters/x"]
