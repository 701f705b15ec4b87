"""What replaces an image on a node, with fake programs of systemd and podman that keep the state of units in files."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.reload import on_node

OLD, NEW, BAD = (f"registry.agentlab.test/lab/payload@sha256:{digit * 64}" for digit in "123")
API_SERVER, NODE_AGENT, ORCHESTRATOR, CONTROLLER = (
    "agent-installer-api-server",
    "agent-installer-node-agent",
    "agent-installer-orchestrator",
    "agent-installer-csr-approver",
)
# A restart with the image BAD fails, as that of a program that ends at once.
SYSTEMCTL = f"""#!/bin/sh
echo "systemctl $*" >> "$NODE/calls"
for unit; do :; done
case "$*" in
    *ActiveState*) cat "$NODE/units/$unit" 2>/dev/null || echo inactive ;;
    *MainPID*) cat "$NODE/pid" 2>/dev/null || echo 0 ;;
    *NRestarts*) cat "$NODE/restarts" 2>/dev/null || echo 0 ;;
    *restart*)
        state=active
        cat "$NODE/runtime/$unit.d"/* >> "$NODE/settings" 2>/dev/null
        grep -rqs {BAD} "$NODE/share" "$NODE/systemd" && state=failed
        echo $state > "$NODE/units/$unit"
        [ "$unit" != agent.service ] || cp "$NODE/share/wanted" "$NODE/share/agent-image" 2>/dev/null || : ;;
esac
"""
PODMAN = """#!/bin/sh
echo "podman $*" >> "$NODE/calls"
case "$1" in
    ps) case "$*" in *Pid*) cat "$NODE/controller" ;; esac; cat "$NODE/installer" 2>/dev/null || : ;;
    pull) [ ! -e "$NODE/registry-down" ] || { echo "Error: pinging container registry: refused" >&2; exit 125; } ;;
esac
"""
JOURNALCTL = "#!/bin/sh\necho 'NameError: name x'\n"


class Node:
    """A node in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "units").mkdir()
        (folder / "share").mkdir()
        (folder / "systemd").mkdir()
        (folder / "bin").mkdir()
        for name, text in (("systemctl", SYSTEMCTL), ("podman", PODMAN), ("journalctl", JOURNALCTL)):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        self.images = folder / "share/images.env"
        self.images.write_text(f"SERVICE_IMAGE={OLD}\nAGENT_DOCKER_IMAGE={OLD}\nINSTALLER_IMAGE={OLD}\n")
        self.references = folder / "references"
        tags = [{"name": name, "from": {"name": OLD}} for name in (API_SERVER, NODE_AGENT, ORCHESTRATOR, "cli")]
        self.references.write_text(json.dumps({"spec": {"tags": tags}}))

    def runs(self, *units: str) -> None:
        for unit in units:
            (self.folder / "units" / unit).write_text("active\n")

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def referred(self, name: str) -> str:
        tags = json.loads(self.references.read_text())["spec"]["tags"]
        return str(next(tag["from"]["name"] for tag in tags if tag["name"] == name))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    made = Node(tmp_path)
    monkeypatch.setenv("NODE", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(on_node, "IMAGES", made.images)
    monkeypatch.setattr(on_node, "REFERENCES", made.references)
    monkeypatch.setattr(on_node, "AGENT_IMAGE", tmp_path / "share/agent-image")
    monkeypatch.setattr(on_node, "UNITS", tmp_path / "systemd")
    monkeypatch.setattr(on_node, "RUNTIME", tmp_path / "runtime")
    monkeypatch.setattr(on_node, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(on_node, "PAUSE", 0.01)
    monkeypatch.setattr(on_node, "STEADY_SECONDS", 0.1)
    monkeypatch.setattr(on_node, "PROXY", tmp_path / "default-env.conf")
    monkeypatch.setattr(on_node, "NODE_PROXY", tmp_path / "proxy.env")
    monkeypatch.setattr(on_node, "ANSWER_SECONDS", 5.0)
    monkeypatch.setattr(on_node, "PROC", tmp_path / "proc")
    monkeypatch.setattr(on_node, "KEPT", tmp_path / "containers/kept")

    class Health(BaseHTTPRequestHandler):
        """The service, which answers unless its unit failed."""

        def do_GET(self) -> None:
            works = (tmp_path / "units/assisted-service.service").read_text() == "active\n"
            self.send_response(200 if works and self.path == "/health" else 503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setattr(on_node, "SERVICE_PORT", server.server_port)
        yield made
        server.shutdown()


def test_an_image_is_pulled_with_the_proxy_of_units(node: Node) -> None:
    node.runs(on_node.SERVICE)
    (node.folder / "default-env.conf").write_text("[Manager]\n")
    (node.folder / "bin/systemd-run").write_text('#!/bin/sh\necho "systemd-run $*" >> "$NODE/calls"\n')
    (node.folder / "bin/systemd-run").chmod(0o755)
    assert on_node.main(["service", API_SERVER, NEW]) == 0
    (pull,) = [call for call in node.calls if "podman pull" in call]
    assert pull.startswith("systemd-run ") and f"EnvironmentFile=-{on_node.NODE_PROXY}" in pull


def test_the_service_gets_another_image_and_its_pod_stays(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.runs(on_node.SERVICE)
    assert on_node.main(["service", API_SERVER, NEW]) == 0
    assert node.images.read_text() == f"SERVICE_IMAGE={NEW}\nAGENT_DOCKER_IMAGE={OLD}\nINSTALLER_IMAGE={OLD}\n"
    # The pod's script would write the former image at the next restart of the pod.
    assert node.referred(API_SERVER) == NEW and node.referred("cli") == OLD
    assert f"podman pull --quiet --authfile {on_node.LIVE_SECRET} {NEW}" in node.calls
    restarts = [call for call in node.calls if "restart" in call]
    assert restarts == [f"systemctl --job-mode=ignore-dependencies restart {on_node.SERVICE}"]
    notes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert notes[0] == {"before": OLD}
    for note, word in zip(notes[1:], ("pulled in", "restarted in", "works"), strict=True):
        assert word in note["step"]


@pytest.mark.parametrize(("image", "code"), [(NEW, 0), (BAD, 1)])
def test_the_files_of_the_service_stay(node: Node, monkeypatch: pytest.MonkeyPatch, image: str, code: int) -> None:
    """A real service has the manifests of a cluster in its container, and the installed cluster lacked them after a reload."""
    node.runs(on_node.SERVICE)
    (node.folder / "pid").write_text("71\n")
    manifest = "one/manifests/openshift/mine.yaml"
    started = iter("23")

    def container(number: str) -> Path:
        children = node.folder / "proc/71/task/71/children"
        children.parent.mkdir(parents=True, exist_ok=True)
        children.write_text(f"8{number} ")
        data = node.folder / f"proc/8{number}/root/data"
        data.mkdir(parents=True)
        return data

    def restart(*units: str) -> None:
        restarted(*units)
        container(next(started))

    restarted = on_node.restart
    monkeypatch.setattr(on_node, "restart", restart)
    data = container("1")
    (data / manifest).parent.mkdir(parents=True)
    (data / manifest).write_text("kind: ConfigMap\n")
    (data / "openshift-install").touch()
    os.truncate(data / "openshift-install", on_node.LARGEST + 1)
    os.setxattr(data / manifest, "user.manifestsource", b"user")
    assert on_node.main(["service", API_SERVER, image]) == code
    kept = node.folder / f"proc/8{2 + code}/root/data"
    assert (kept / manifest).read_text() == "kind: ConfigMap\n"
    assert os.getxattr(kept / manifest, "user.manifestsource") == b"user"
    assert not (kept / "openshift-install").exists(), "the service extracts it again"
    assert not on_node.KEPT.exists()


def test_two_reloads_of_one_unit_are_one_after_the_other(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    """The second one's end removed what the first needed, and one of two variables was lost."""
    node.runs(on_node.SERVICE)
    statuses: list[int] = []
    with on_node.exclusive():
        second = threading.Thread(target=lambda: statuses.append(on_node.main(["service", NODE_AGENT, NEW])))
        second.start()
        end = time.monotonic() + 5
        while "waiting for another reload" not in (out := capsys.readouterr().out) and time.monotonic() < end:
            time.sleep(0.01)
        assert "waiting for another reload" in out and not statuses
        assert f"AGENT_DOCKER_IMAGE={OLD}" in node.images.read_text()
    second.join(20)
    assert statuses == [0] and f"AGENT_DOCKER_IMAGE={NEW}" in node.images.read_text()


def test_a_reload_waits_a_bounded_time(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node.runs(on_node.SERVICE)
    monkeypatch.setattr(on_node, "ANSWER_SECONDS", 0.1)
    with on_node.exclusive():
        assert on_node.main(["service", API_SERVER, NEW]) == 1
    assert "another reload has run on this node" in capsys.readouterr().err


def test_an_image_that_runs_already(node: Node) -> None:
    node.runs(on_node.SERVICE)
    assert on_node.main(["service", API_SERVER, OLD]) == on_node.UNCHANGED
    assert not [call for call in node.calls if "restart" in call or "pull" in call]


def test_a_component_that_does_not_run_here(node: Node) -> None:
    for place in on_node.PLACES:
        assert on_node.main([place, NODE_AGENT, NEW]) == on_node.ABSENT


def test_a_build_that_does_not_work_is_undone(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.runs(on_node.SERVICE)
    before = node.images.read_text()
    assert on_node.main(["service", API_SERVER, BAD]) == 1
    assert node.images.read_text() == before and node.referred(API_SERVER) == OLD
    assert (node.folder / "units" / on_node.SERVICE).read_text() == "active\n"
    assert capsys.readouterr().err == f"{on_node.SERVICE} does not work with it: NameError: name x\n"
    # A restart by systemd itself would have ended the pod, with the database in it.
    assert (node.folder / "settings").read_text() == "[Service]\nRestart=no\n" * 2
    assert not list((node.folder / "runtime").rglob("*.conf"))


@pytest.mark.parametrize("image", [NEW, BAD])
def test_a_caller_that_goes_away_leaves_the_former_image(
    node: Node, monkeypatch: pytest.MonkeyPatch, image: str
) -> None:
    """Such as a connection that ends: the caller takes the node for one that was left out."""
    node.runs(on_node.SERVICE)
    before, refer = node.images.read_text(), on_node.refer
    reader, writer = os.pipe()
    monkeypatch.setattr(sys, "stdout", os.fdopen(writer, "w"))

    def leave(component: str, image: str) -> None:
        if image != OLD:
            os.close(reader)
        refer(component, image)

    monkeypatch.setattr(on_node, "refer", leave)
    assert on_node.main(["service", API_SERVER, image]) == 1
    assert node.images.read_text() == before and node.referred(API_SERVER) == OLD
    assert (node.folder / "units" / on_node.SERVICE).read_text() == "active\n"
    assert len([call for call in node.calls if "restart" in call]) == 2


def test_a_file_that_cannot_be_written_leaves_the_former_image(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first of two files has the new image by then."""
    node.runs(on_node.SERVICE)
    write = on_node.write

    def full(path: Path, text: str) -> None:
        if path == node.images and NEW in text:
            raise OSError(28, "No space left on device", str(path))
        write(path, text)

    monkeypatch.setattr(on_node, "write", full)
    assert on_node.main(["service", API_SERVER, NEW]) == 1
    assert node.referred(API_SERVER) == OLD
    assert "No space left on device" in capsys.readouterr().err


def test_a_unit_that_restarts_itself_is_not_waited_for(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that ends at once is known to fail long before a slow machine has started a good one."""
    monkeypatch.setattr(on_node, "ANSWER_SECONDS", 1000.0)
    (node.folder / "restarts").write_text(f"{on_node.CRASHES}\n")
    with pytest.raises(on_node.ReloadFailed, match=r"kubelet\.service does not work with it: NameError: name x"):
        on_node.wait(on_node.KUBELET, lambda: False)


def test_an_image_that_cannot_be_pulled(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.runs(on_node.SERVICE)
    (node.folder / "registry-down").touch()
    assert on_node.main(["service", API_SERVER, NEW]) == 1
    assert capsys.readouterr().err == "podman pull: Error: pinging container registry: refused\n"
    assert not [call for call in node.calls if "restart" in call]


def test_during_an_installation_its_images_stay(node: Node) -> None:
    node.runs(on_node.SERVICE, on_node.AGENT)
    (node.folder / "share/agent-image").write_text(f"{OLD}\n")
    (node.folder / "installer").write_text("4f1d\n")
    assert on_node.main(["service", ORCHESTRATOR, NEW]) == on_node.BUSY
    assert on_node.main(["agent", NODE_AGENT, NEW]) == on_node.BUSY
    assert on_node.main(["service", API_SERVER, NEW]) == 0


def test_the_agent_is_extracted_from_the_new_image(node: Node) -> None:
    node.runs(on_node.AGENT)
    (node.folder / "share/agent-image").write_text(f"{OLD}\n")
    # A process with the name of the agent's program.
    program = node.folder / "agent"
    program.symlink_to(sys.executable)
    with subprocess.Popen([program, "-c", "import time; time.sleep(60)"]) as process:
        (node.folder / "pid").write_text(f"{process.pid}\n")
        assert on_node.main(["agent", NODE_AGENT, NEW]) == 0
        process.kill()
    assert node.referred(NODE_AGENT) == NEW


def test_the_units_of_an_installed_node(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(on_node, "answers", lambda *given, **__: asked.append(given) or True)
    text = "[Service]\nExecStart=/usr/bin/podman run --name kubelet {} hyperkube kubelet\nRestart=always\n"
    for unit in (on_node.API, on_node.KUBELET):
        (node.folder / "systemd" / unit).write_text(text.format(OLD))
    node.runs(on_node.API, on_node.KUBELET)
    assert on_node.main(["cluster", "hyperkube", NEW]) == 0
    assert (node.folder / "systemd" / on_node.KUBELET).read_text() == text.format(NEW)
    restarts = [call.split()[-2:] for call in node.calls if "restart" in call]
    assert restarts == [[on_node.API, on_node.KUBELET]]
    assert asked == [(6443, "/readyz"), (10250, "/healthz")]
    assert on_node.main(["cluster", "hyperkube", NEW]) == on_node.UNCHANGED


def test_the_controller_gets_another_image_by_its_pod(
    node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kubelet replaces the container of the pod that still runs; podman shows it, with its process."""
    patches = []

    def pod(name: str, phase: str, where: str) -> dict[str, object]:
        containers = [{"name": "controller", "image": OLD}]
        return {
            "metadata": {"name": name, "labels": {"job-name": "assisted-installer-controller"}},
            "spec": {"nodeName": where, "containers": containers},
            "status": {"phase": phase},
        }

    here = socket.gethostname()
    pods = [pod("first", "Failed", here), pod("other", "Running", "elsewhere"), pod("second", "Running", here)]

    def kube(method: str, path: str, patch: object = None) -> object:
        if method == "PATCH":
            patches.append((path, patch))
            (tmp_path / "controller").write_text(f"{NEW} 4711\n")
        return {"items": pods}

    monkeypatch.setattr(on_node, "kube", kube)
    monkeypatch.setattr(on_node, "TOKEN", tmp_path / "units" / on_node.KUBELET)
    assert on_node.main(["controller", CONTROLLER, NEW]) == on_node.ABSENT
    node.runs(on_node.KUBELET)
    assert on_node.main(["controller", CONTROLLER, NEW]) == 0
    assert patches == [
        (f"{on_node.PODS}/second", {"spec": {"containers": [{"name": "controller", "image": NEW}]}}),
    ]
    pods[2]["status"]["phase"] = "Succeeded"
    assert on_node.main(["controller", CONTROLLER, NEW]) == on_node.ABSENT


def test_a_port_that_uses_tls(tmp_path: Path) -> None:
    """The API and the kubelet have certificates for other names than localhost."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-days", "1"]
    subprocess.run([*request, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Ready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/readyz" else 503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Ready) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        assert on_node.answers(server.server_port, "/readyz", tls=True)
        assert not on_node.answers(server.server_port, "/other", tls=True)
        assert not on_node.answers(server.server_port, "/readyz")
        server.shutdown()
    assert not on_node.answers(server.server_port, "/readyz", tls=True)
