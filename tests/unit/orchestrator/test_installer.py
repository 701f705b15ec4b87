"""The installer against a service that is played, on a host that is a directory; whole installations are in tests/integration/cluster."""

from __future__ import annotations

import argparse
import base64
import json
import logging
import os
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from ansible_collections.agentlab.ocp.payload.orchestrator import bootstrap as bootstrap_module
from ansible_collections.agentlab.ocp.payload.orchestrator import control_plane, installer
from ansible_collections.agentlab.ocp.payload.orchestrator import hosts as hosts_module
from ansible_collections.agentlab.ocp.payload.orchestrator.host import HostError
from ansible_collections.agentlab.ocp.payload.orchestrator.service import Service, ServiceError
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import processes

from .conftest import FakeService

PERCENTS = (0, 3, 6, 40, 52, 99, 100)


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
        **dict.fromkeys(
            ("wipefs", "dd", "journalctl", "dmesg", "systemctl", "systemd-run", "shutdown", "hostnamectl", "realpath"),
            "exit 0\n",
        ),
    }
    for name, body in bodies.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {root}/commands\n{body}')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("AGENTLAB_HOST_ROOT", str(root))
    monkeypatch.setenv("AGENTLAB_HOST_COMMAND", "")
    monkeypatch.setenv("REBOOT_DELAY_SECONDS", "7")
    return root


def install(played: FakeService, role: str, *more: str) -> int:
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


REQUIRED = {"infra-env-id": "i", "cluster-id": "c", "host-id": "h", "boot-device": "/dev/sda"}


def options(played: FakeService) -> argparse.Namespace:
    required = {**REQUIRED, "role": "bootstrap", "url": played.url}
    return installer.parser().parse_args([f"--{name}={value}" for name, value in required.items()])


def control_plane_of(played: FakeService, host: Path) -> control_plane.ControlPlane:
    made = installer.Installation(options(played), Service(played.url, ""), installer.Host("", host))
    return installer.Installer(made).control_plane


WRITING = [
    ("Writing image to disk", ""),
    *(("Writing image to disk", f"{percent}%") for percent in (6, 40, 52, 99, 100)),
]


@pytest.mark.parametrize("role", ["master", "arbiter"])
def test_master_and_arbiter(played: FakeService, host: Path, role: str) -> None:
    played.answers["GET /v2/infra-env/i/hosts/h/downloads/ignition"] = (200, {"ignition": {"version": "3.2.0"}})
    assert install(played, role) == 0
    assert played.stages() == [("Starting installation", role), ("Installing", role), *WRITING, ("Rebooting", "")]
    commands = (host / "commands").read_text().splitlines()
    assert commands[:2] == ["realpath -e /dev/sda", "wipefs --all --force /dev/sda"]
    assert (
        commands[2] == f"coreos-installer install --insecure -i /opt/install-dir/{role}-h.ign --copy-network /dev/sda"
    )
    assert commands[-1] == (
        "systemd-run --on-active=7s --timer-property=AccuracySec=1s shutdown -r now 'Installation completed, server is going to reboot.'"
    )
    ignition = host / f"opt/install-dir/{role}-h.ign"
    assert (
        json.loads(ignition.read_text()) == {"ignition": {"version": "3.2.0"}} and ignition.stat().st_mode & 0o77 == 0
    )
    states = [json.loads(body)["logs_state"] for __, path, body in played.calls if path.endswith("/logs-progress")]
    assert states == ["requested", "requested", "collecting", "completed"], "by the installer, and by what sends them"
    [upload] = [path for method, path, __ in played.calls if method == "POST"]
    assert upload == "/v2/clusters/c/logs?logs_type=host&host_id=h&infra_env_id=i"


def test_a_disk_that_cannot_be_cleaned_is_reported(played: FakeService, host: Path, tmp_path: Path) -> None:
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


def test_worker_waits_for_two_masters(played: FakeService, host: Path) -> None:
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


def test_worker_of_a_cluster_that_stands_does_not_wait(played: FakeService, host: Path) -> None:
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = 200, {"kind": "AddHostsCluster"}
    assert install(played, "worker", "--control-plane-count", "0") == 0
    assert played.stages()[-2:] == [("Waiting for control plane", ""), ("Rebooting", "")]
    assert (host / "commands").read_text().splitlines()[-1].startswith("systemd-run --on-active=7s")


BOOTSTRAP = {
    "ignition": {"version": "3.2.0"},
    "storage": {"files": [{"path": "/opt/openshift/new", "contents": {"source": "data:,1"}}]},
    "systemd": {"units": [{"name": "bootkube.service", "enabled": True, "contents": "[Service]"}]},
}
MCO = "machineconfiguration.openshift.io"
MCS_LOG = 'Pool {} requested by address:"{}:1" User-Agent:"Ignition/2.20.0" Accept-Header: "x"\n'


def machine(name: str, address: str, role: str, stage: str = "Rebooting") -> dict[str, Any]:
    inventory = {"interfaces": [{"ipv4_addresses": [f"{address}/24"]}]}
    return {
        "id": name, "requested_hostname": name, "role": role, "inventory": json.dumps(inventory), "progress": {"current_stage": stage},
    }  # fmt: skip


class Member:
    """The first member of a cluster, in place of the installer's clients: two masters join, the controller is ready."""

    def __init__(self, invoker: str) -> None:
        notes = {f"{MCO}/currentConfig": "rendered-1", f"{MCO}/desiredConfig": "rendered-1", f"{MCO}/state": "Done"}
        self.nodes = [
            {
                "metadata": {
                    "name": name,
                    "labels": {"node-role.kubernetes.io/master": ""},
                    "annotations": dict(notes),
                },
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            for name in ("m1", "m2")
        ]
        self.objects: dict[str, dict[str, Any]] = {
            "/api/v1/nodes": {"items": self.nodes},
            "/api/v1/namespaces/assisted-installer/events": {
                "items": [{"metadata": {"name": "AssistedControllerIsReady"}}]
            },
            control_plane.INVOKER: {"data": {"invoker": invoker}},
            f"{control_plane.MACHINE_CONFIGS}/rendered-1": {"kind": "MachineConfig"},
        }

    def get(self, path: str) -> dict[str, Any]:
        return self.objects.get(path, {})


@pytest.fixture
def bootstrap(played: FakeService, host: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Member]:
    """A cluster that comes up as soon as bootkube is started; `hosts` are what the service knows."""
    member = Member("agent-installer")
    monkeypatch.setattr(control_plane.ControlPlane, "kube_get", lambda self, path: member.get(path))
    played.answers["GET /v2/clusters/c/downloads/files?file_name=bootstrap.ign"] = 200, BOOTSTRAP
    hosts = [
        machine("h", "10.0.0.1", "master"),
        machine("m1", "10.0.0.2", "master"),
        machine("m2", "10.0.0.3", "master"),
    ]
    played.answers["GET /v2/clusters/c?exclude-hosts=false"] = 200, {"hosts": hosts}
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = 200, {"platform": {"type": "none"}}
    systemctl = host.parent / "bin/systemctl"
    systemctl.write_text(
        f"{systemctl.read_text().removesuffix('exit 0' + chr(10))}"
        f'case "$*" in start*bootkube*) touch {host}/opt/openshift/.bootkube.done;; esac\n'
    )
    yield member


def test_bootstrap(played: FakeService, host: Path, bootstrap: Member) -> None:
    """What an earlier, failed installation left is removed before this one begins."""
    old = host / "opt/openshift/old"
    old.parent.mkdir(parents=True)
    old.touch()
    (host.parent / "bin/rm").write_text(f"#!/bin/sh\nexec /bin/rm -rf {host}/opt/openshift\n")
    (host.parent / "bin/rm").chmod(0o755)
    assert install(played, "bootstrap") == 0
    own = [json.loads(body) for __, path, body in played.calls if path.endswith("hosts/h/progress")]
    assert [(entry["current_stage"], entry["progress_info"]) for entry in own] == [
        ("Starting installation", "bootstrap"),
        ("Installing", "master"),
        *WRITING,
        ("Waiting for control plane", "Waiting for bootstrap node preparation"),
        ("Waiting for control plane", "Waiting for masters to join bootstrap control plane"),
        ("Waiting for bootkube", ""),
        ("Waiting for bootkube", "waiting for ETCD bootstrap to be complete"),
        ("Waiting for controller", "waiting for controller pod ready event"),
        ("Rebooting", ""),
    ]
    joined = [path for __, path, body in played.calls if b'"Joined"' in body]
    assert joined == [f"/v2/infra-envs/i/hosts/{name}/progress" for name in ("m1", "m2")]
    assert not old.exists() and (host / "opt/openshift/new").read_text() == "1"
    commands = (host / "commands").read_text().splitlines()
    started = commands.index("systemctl start --no-block bootkube.service")
    assert commands.index("systemctl stop bootkube.service") < started
    assert started < next(index for index, command in enumerate(commands) if command.startswith("coreos-installer"))


def test_bootstrap_reports_who_fetched_a_config(played: FakeService, host: Path, bootstrap: Member) -> None:
    played.answers["GET /v2/clusters/c?exclude-hosts=false"][1]["hosts"].append(machine("w0", "10.0.0.9", "worker"))
    log = host / "opt/openshift/machine-config-server.log"
    lines = MCS_LOG.format("master", "10.0.0.2") + MCS_LOG.format("worker", "10.0.0.9")
    data = base64.b64encode(lines.encode()).decode()
    files = [{"path": "/opt/openshift/machine-config-server.log", "contents": {"source": f"data:;base64,{data}"}}]
    played.answers["GET /v2/clusters/c/downloads/files?file_name=bootstrap.ign"] = (
        200,
        {**BOOTSTRAP, "storage": {"files": files}},
    )
    assert install(played, "bootstrap") == 0 and log.exists()
    told = {
        path.split("/")[5]: json.loads(body)["current_stage"]
        for __, path, body in played.calls
        if b"onfiguring" in body or b"ignition" in body
    }
    assert told == {"m1": "Configuring", "w0": "Waiting for ignition"}


@pytest.mark.parametrize(("invoker", "asked"), [("agent-installer", True), ("assisted-installer", False)])
def test_bootstrap_waits_for_workers_only_if_the_service_ends_with_it(
    played: FakeService, host: Path, bootstrap: Member, monkeypatch: pytest.MonkeyPatch, invoker: str, asked: bool
) -> None:
    bootstrap.objects[control_plane.INVOKER]["data"]["invoker"] = invoker
    waiting = [["w0", "w1"], ["w1"], []]
    monkeypatch.setattr(control_plane.ControlPlane, "workers_that_need_service", lambda self: waiting.pop(0))
    assert install(played, "bootstrap") == 0
    assert played.stages()[-1] == ("Rebooting", "")
    assert (not waiting) is asked


def test_workers_need_the_service_until_they_reboot(played: FakeService, host: Path) -> None:
    made = control_plane_of(played, host)
    stages = (
        "Starting installation",
        "Installing",
        "Waiting for control plane",
        "Writing image to disk",
        "Rebooting",
        "Failed",
    )
    hosts = [machine(stage, "10.0.0.9", "worker", stage) for stage in stages]
    played.answers["GET /v2/clusters/c/hosts?role=worker"] = 200, hosts
    assert made.workers_that_need_service() == list(stages[:3])


def test_masters_are_consistent_when_their_configs_exist(played: FakeService, host: Path, bootstrap: Member) -> None:
    made = control_plane_of(played, host)
    assert made.masters_consistent()
    notes = bootstrap.nodes[0]["metadata"]["annotations"]
    for changes in ({"currentConfig": "rendered-0"}, {"desiredConfig": "rendered-0"}, {"desiredConfig": ""}):
        before = dict(notes)
        notes.update({f"{MCO}/{name}": value for name, value in changes.items()})
        assert not made.masters_consistent(), changes
        notes.clear()
        notes.update(before)
    bootstrap.objects[f"{control_plane.MACHINE_CONFIGS}/rendered-0"] = {"kind": "MachineConfig"}
    notes[f"{MCO}/currentConfig"] = "rendered-0"
    assert made.masters_consistent(), "a node may be on its way, if where it goes is known"
    bootstrap.nodes.clear()
    assert not made.masters_consistent(), "no response"


def test_single_node(played: FakeService, host: Path, bootstrap: Member) -> None:
    """It has the cluster before it writes its disk: files of its own, and those that bootkube made."""
    own = {"path": "/etc/hostname", "contents": {"source": "data:,sno"}}
    played.answers["GET /v2/infra-env/i/hosts/h/downloads/ignition"] = (
        200,
        {"ignition": {"version": "3.2.0"}, "storage": {"files": [own]}},
    )
    made = {
        "ignition": {"version": "3.2.0"},
        "storage": {"files": [{"path": "/var/lib/etcd/x", "contents": {"source": "data:,x"}}]},
    }
    files = [
        {"path": "/opt/openshift/master.ign", "contents": {"source": "data:," + urllib.parse.quote(json.dumps(made))}}
    ]
    played.answers["GET /v2/clusters/c/downloads/files?file_name=bootstrap.ign"] = (
        200,
        {**BOOTSTRAP, "storage": {"files": files}},
    )
    assert install(played, "bootstrap", "--control-plane-count", "1") == 0
    assert played.stages() == [
        ("Starting installation", "bootstrap"), ("Installing", "bootstrap"), ("Waiting for bootkube", ""), *WRITING, ("Rebooting", ""),
    ]  # fmt: skip
    written = json.loads((host / "opt/install-dir/master-h.ign").read_text())
    assert {entry["path"] for entry in written["storage"]["files"]} == {"/etc/hostname", "/var/lib/etcd/x"}
    assert (host / "commands").read_text().splitlines()[
        -1
    ] == "shutdown -r now 'Installation completed, server is going to reboot.'"


def test_a_bootstrap_that_cannot_start_fails_before_the_disk_is_written(played: FakeService, host: Path) -> None:
    played.answers["GET /v2/clusters/c/downloads/files?file_name=bootstrap.ign"] = 400, {"reason": "no such file"}
    assert install(played, "bootstrap") == 1
    assert played.stages() == [("Starting installation", "bootstrap"), ("Failed", "400 no such file")]
    assert "coreos-installer" not in (host / "commands").read_text()


def test_failure_is_reported_after_three_tries(played: FakeService, host: Path) -> None:
    (host / "broken").touch()
    assert install(played, "master") == 1
    writer = host.parent / "bin/coreos-installer"
    command = f"{writer} [install --insecure -i /opt/install-dir/master-h.ign --copy-network /dev/sda]"
    assert played.stages()[2:] == [
        *WRITING,  # once: a new attempt is not progress until it is further than the one before
        (
            "Failed",
            f'failed after 3 attempts, last error: failed executing {command}, Error exit status 1, LastOutput "Error: no space left"',
        ),
    ]
    assert (host / "commands").read_text().count("coreos-installer") == 3


@pytest.mark.parametrize(
    ("code", "output", "text"),
    [
        (1, "", 'Error exit status 1, LastOutput ""'),
        (-15, "x", 'Error signal: terminated, LastOutput "x"'),
        (2, "a" * 300, f'Error exit status 2, LastOutput "... {"a" * 200}"'),
        (2, "begin\nError: why\n", 'Error exit status 2, LastOutput "Error: why"'),
    ],
)
def test_what_is_reported_of_a_command_that_failed(code: int, output: str, text: str) -> None:
    assert (
        str(HostError(["nsenter-none", "--target", "1"], code, output))
        == f"failed executing nsenter-none [--target 1], {text}"
    )


def test_a_percentage_that_the_service_did_not_take_is_reported_again(played: FakeService, host: Path) -> None:
    refused = iter([409] * 3)

    def answer(body: bytes) -> tuple[int, Any]:
        return (next(refused, 200) if b"%" in body else 200), {}

    played.answers["PUT /v2/infra-envs/i/hosts/h/progress"] = answer
    assert install(played, "master") == 0
    assert played.stages()[2:] == [*WRITING, ("Rebooting", "")]
    assert [percent for __, percent in WRITING] == ["", "6%", "40%", "52%", "99%", "100%"]


def test_the_disk_is_named_as_the_kernel_does(played: FakeService, host: Path) -> None:
    realpath = host.parent / "bin/realpath"
    realpath.write_text("#!/bin/sh\necho /dev/vda\n")
    (host.parent / "bin/wipefs").write_text("#!/bin/sh\nexit 1\n")
    assert install(played, "master") == 0
    text = "Could not clean install device /dev/vda. The installation will continue. If the installation fails, clean the disk and try again"
    assert played.stages()[:2] == [("Starting installation", "master"), ("Starting installation", text)]
    assert "--copy-network /dev/vda\n" in (host / "commands").read_text()


@pytest.mark.parametrize(
    ("name", "made"),
    [("master-0", False), ("m0.example.org", False), ("localhost", True), ("Master-0", True), ("m", True)],
)
def test_a_bootstrap_host_gets_some_name_if_it_has_none(
    played: FakeService, host: Path, bootstrap: Member, monkeypatch: pytest.MonkeyPatch, name: str, made: bool
) -> None:
    monkeypatch.setattr(bootstrap_module.socket, "gethostname", lambda: name)
    assert install(played, "bootstrap") == 0
    commands = (host / "commands").read_text().splitlines()
    given = [command for command in commands if command.startswith("hostnamectl set-hostname random-hostname-")]
    assert len(given) == made
    if made:
        assert commands.index(given[0]) < commands.index("systemctl start --no-block bootkube.service")


@pytest.mark.parametrize("goes", [True, False])
def test_the_bootstrap_host_initializes_nodes_without_a_cloud_provider(
    played: FakeService, host: Path, bootstrap: Member, monkeypatch: pytest.MonkeyPatch, goes: bool
) -> None:
    """A node that waits for its cloud provider does not become ready; it does when the taint is gone."""
    node = bootstrap.nodes[0]
    node["spec"] = {"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized"}]}
    node["status"]["conditions"][0]["status"] = "False" if goes else "True"
    if goes:
        played.answers["GET /v2/clusters/c?exclude-hosts=true"] = 200, {"platform": {"type": "vsphere"}}
    paths: list[str] = []

    class Client:
        def patch(self, path: str, patch: Any, kind: str) -> None:
            paths.append(path)
            node["status"]["conditions"][0]["status"] = "True"

        def close(self) -> None:
            pass

    monkeypatch.setattr(control_plane.ControlPlane, "kube", lambda self: [Client()])
    assert install(played, "bootstrap", "--openshift-version", "4.22.0") == 0
    assert paths == (["/api/v1/nodes/m1"] if goes else [])


def test_hosts_that_are_known_to_have_their_config_are_not_reported_again(played: FakeService, host: Path) -> None:
    log = host / "opt/openshift/machine-config-server.log"
    log.parent.mkdir(parents=True)
    stages = ("Rebooting", "Waiting for ignition", "Configuring", "Joined", "Done")
    hosts = [machine(stage, f"10.0.0.{number}", "worker", stage) for number, stage in enumerate(stages)]
    log.write_text("".join(MCS_LOG.format("worker", f"10.0.0.{number}") for number in range(len(stages))))
    made = control_plane_of(played, host)
    for __ in range(2):
        made.report_requests(hosts)
    assert played.stages() == [("Waiting for ignition", "")] and played.calls[0][1].endswith(
        "/hosts/Rebooting/progress"
    )


def test_an_installation_that_is_cancelled_leaves_the_disk_alone_and_may_be_tried_again(
    played: FakeService, host: Path
) -> None:
    """The agent stops the container; the service knows why, so nothing is reported."""
    writer = host.parent / "bin/coreos-installer"
    good = writer.read_text()
    writer.write_text(f"#!/bin/sh\necho $$ > {host}/writing\nexec sleep 60\n")
    command = [
        sys.executable,
        "-m",
        installer.__name__,
        *(f"--{name}={value}" for name, value in REQUIRED.items()),
        f"--url={played.url}",
    ]
    process = subprocess.Popen([*command, "--role=master"], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not (host / "writing").exists() or not (host / "writing").read_text():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait(30) == 1
    while processes.start_time(int((host / "writing").read_text())) is not None:
        assert time.monotonic() < end, "the writer runs on"
        time.sleep(0.05)
    assert played.stages()[-1] == ("Writing image to disk", "")
    writer.write_text(good)
    played.calls.clear()
    assert install(played, "master") == 0
    assert played.stages()[-1] == ("Rebooting", "")


def test_the_installers_log_is_found_by_who_sends_logs(played: FakeService, host: Path) -> None:
    """In a file, and in the journal with the tag by which `logs_sender` asks for it."""
    path = host / "run/systemd/journal/socket"
    path.parent.mkdir(parents=True)
    journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    journal.bind(str(path))
    messages: list[str] = []
    threading.Thread(
        target=lambda: messages.extend(iter(lambda: journal.recv(65536).decode(errors="replace"), "")), daemon=True
    ).start()
    assert install(played, "master") == 0
    assert "\nTAG=installer\n" in messages[0] and 'level=info msg="Assisted installer started.' in messages[0]
    lines = (host / "var/log/assisted-installer.log").read_text()
    assert 'level=info msg="Updating node installation stage: Starting installation - master"\n' in lines
    logging.getLogger().handlers.clear()


def test_options_for_disks(played: FakeService, host: Path) -> None:
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
    assert commands.startswith("dd "), "before the installation is reported as started, as upstream does"
    assert "wipefs" not in commands and "of=/dev/sdb" in commands and "of=/dev/sdc" in commands


def test_a_report_that_is_refused_does_not_stop_the_installation(played: FakeService, host: Path) -> None:
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


@pytest.mark.parametrize(("code", "tries"), [(404, 11), (503, 5), (507, 5), (409, 1), (400, 1)])
def test_retry_rules(played: FakeService, code: int, tries: int) -> None:
    played.answers["GET /v2/x"] = (code, {"reason": "because"})
    service = Service(played.url, "token", retries=4, wait=(0, 0))
    with pytest.raises(ServiceError, match="because") as caught:
        service.get("/v2/x")
    assert (caught.value.code, len(played.calls)) == (code, tries)


def test_retry_succeeds_and_refused_connections_are_reported(played: FakeService) -> None:
    played.answers["GET /v2/x"] = [(503, {}), (404, {}), (200, {"a": 1})]
    assert Service(played.url, "token", wait=(0, 0)).get("/v2/x") == {"a": 1}
    with pytest.raises(ServiceError, match="does not answer"):
        Service("http://127.0.0.1:9", "token", retries=2, wait=(0, 0)).get("/v2/x")


def test_requests_in_the_machine_config_servers_log() -> None:
    text = (
        'Pool master requested by address:"192.168.111.21:1234" User-Agent:"Ignition/2.20.0" Accept-Header: "x"\n'
        'Pool worker requested by address:"[fd00::23]:1234" User-Agent:"Ignition/2.20.0" Accept-Header: "x"\n'
        'Pool worker requested by address:"10.0.0.9:1" User-Agent:"curl/8" Accept-Header: "x"\n'
    )
    assert hosts_module.machine_config_requests(text) == [("master", "192.168.111.21"), ("worker", "fd00::23")]


def test_hosts_are_found_by_name_or_address() -> None:
    def host(name: str, *addresses: str) -> dict[str, Any]:
        return {
            "requested_hostname": name,
            "inventory": json.dumps({"interfaces": [{"ipv6_addresses": list(addresses)}]}),
        }

    hosts = [host("m0", "fd00:0::20/64"), host("m1", "fd00::21/64")]
    node = {"metadata": {"name": "M1"}, "status": {"addresses": [{"type": "InternalIP", "address": "fd00::20"}]}}
    assert hosts_module.find_host(hosts, node) is hosts[1]
    node["metadata"] = {"name": "other"}
    assert hosts_module.find_host(hosts, node) is hosts[0]


def test_a_config_that_is_pointed_to_is_written_to_the_disk(played: FakeService, host: Path) -> None:
    """The lab's initrd has no network: what a real one would fetch is fetched by the installer, once it is served."""
    served = {
        "ignition": {"version": "3.2.0"},
        "storage": {
            "files": [{"path": path, "contents": {"source": "data:,served"}} for path in ("/etc/hostname", "/a")]
        },
        "systemd": {"units": [{"name": "kubelet.service", "enabled": True, "contents": "[Service]"}]},
    }
    inline = {"storage": {"files": [{"path": "/b", "contents": {"source": "data:,inline"}}]}}
    merged = [{"source": f"{played.url}/config/worker"}, {"source": f"data:,{quote(json.dumps(inline))}"}]
    pointer = {
        "ignition": {"version": "3.2.0", "config": {"merge": merged}},
        "storage": {"files": [{"path": "/etc/hostname", "contents": {"source": "data:,own"}}]},
    }
    played.answers["GET /config/worker"] = [(503, {}), (200, served)]
    played.answers["GET /v2/infra-env/i/hosts/h/downloads/ignition"] = 200, pointer
    played.answers["GET /v2/clusters/c?exclude-hosts=true"] = 200, {"kind": "AddHostsCluster"}
    assert install(played, "worker") == 0
    written = json.loads((host / "opt/install-dir/worker-h.ign").read_text())
    assert written["ignition"] == {"version": "3.2.0"}
    assert {entry["path"]: entry["contents"]["source"] for entry in written["storage"]["files"]} == {
        "/a": "data:,served", "/b": "data:,inline", "/etc/hostname": "data:,own"
    }  # fmt: skip
    assert [unit["name"] for unit in written["systemd"]["units"]] == ["kubelet.service"]
