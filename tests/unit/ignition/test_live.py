"""The scripts and units of the live system: they parse, and the one that matches hosts does its work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import Config, files_of
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.live import add_files, add_units
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.live_env import CONFIG_IMAGE_PATHS
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import LATEST

LIVE = Path(__file__).resolve().parents[3] / "roles" / "agent_image" / "files" / "live"
DATA = {
    "cluster": "ostest.test", "proxy": {"httpProxy": "http://u:p%40@x"}, "pull_secret": "{}", "release_image": "r.test/release:1",
    "hw_requirements": "[]", "hw_requirements_internal": "[1]", "image_type": "full-iso", "CaBundleMount": "-v a:b:z",
    "HaveMirrorConfig": True, "tokens": {"AgentAuthToken": "a", "UserAuthToken": "u"}, "config_image_paths": CONFIG_IMAGE_PATHS,
    "profile": LATEST,
}  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files and units as they are on a host."""
    config = Config()
    add_files(config, LIVE, DATA)
    add_units(config, LIVE, DATA, [])
    document = config.to_dict()
    root = tmp_path_factory.mktemp("root")
    texts = files_of(document) | {
        f"/etc/systemd/system/{unit['name']}": unit["contents"].encode() for unit in document["systemd"]["units"]
    }
    for name, text in texts.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        path.chmod(0o755 if "/bin/" in name else 0o644)
    return root


def test_templates_are_filled_in(tree: Path) -> None:
    proxy = (tree / "etc/systemd/system.conf.d/10-default-env.conf").read_text()
    assert proxy == '[Manager]\nDefaultEnvironment=HTTP_PROXY="http://u:p%%40@x"\n'
    assert (tree / "etc/assisted/agent-installer.env").read_text() == "RELEASE_IMAGE=r.test/release:1\n"
    assert "NODE_ZERO_IP={{.RendezvousIP}}\nSERVICE" in (tree / "etc/assisted/rendezvous-host.env.template").read_text()
    for path in (tree / "etc/systemd/system").iterdir():
        assert "{{" not in path.read_text() and "{%" not in path.read_text(), path


@pytest.mark.parametrize(("ip", "host"), [("192.168.111.20", "192.168.111.20"), ("fd00::20", "[fd00::20]")])
@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl, which has Go's templates")
def test_rendezvous_template_brackets_ipv6(tree: Path, ip: str, host: str) -> None:
    """agent-tui fills the template in with Go's text/template and the address that the user types."""
    done = subprocess.run(
        ["kubectl", "patch", "--local", "--type=merge", "-f", "-", "-p", "{}", "-o",
         f"go-template-file={tree / 'etc/assisted/rendezvous-host.env.template'}"],
        input=json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "RendezvousIP": ip}),
        capture_output=True, text=True, check=True, env={**os.environ, "KUBECONFIG": "/dev/null"},
    )  # fmt: skip
    values = dict(line.split("=", 1) for line in done.stdout.splitlines() if not line.startswith("#"))
    assert values == {
        "NODE_ZERO_IP": ip, "SERVICE_BASE_URL": f"http://{host}:8090/", "IMAGE_SERVICE_BASE_URL": f"http://{host}:8888/",
        "PULL_SECRET_TOKEN": "a", "USER_AUTH_TOKEN": "u", "WORKFLOW_TYPE": "install",
        "AIUI_APP_API_URL": f"http://{host}:8090/", "AIUI_URL": f"http://{host}:3001/",
    }  # fmt: skip


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="no shellcheck")
def test_scripts_pass_shellcheck(tree: Path) -> None:
    scripts = [str(path) for path in (tree / "usr/local/bin").iterdir()] + [str(LIVE / "pre-network-manager-config.sh")]
    done = subprocess.run(["shellcheck", "-S", "style", *scripts], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_units_pass_systemd(tree: Path) -> None:
    units = sorted(str(path) for path in (tree / "etc/systemd/system").glob("*.service"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )  # fmt: skip
    # Programs and units of the live system are not here.
    known = re.compile(r"is not executable|not found|Failed to create|No such file|not-found|Failed to open")
    found = [line for line in done.stderr.splitlines() if any(u in line for u in units) and not known.search(line)]
    assert found == []


def test_units_name_scripts_that_exist(tree: Path) -> None:
    scripts = {path.name for path in (tree / "usr/local/bin").iterdir()} | {
        "pre-network-manager-config.sh",
        "agent-tui",
    }
    for unit in (tree / "etc/systemd/system").iterdir():
        for name in re.findall(r"/usr/local/bin/([\w.-]+\.sh)", unit.read_text()):
            assert name in scripts, f"{unit.name}: {name}"


def _run(script: Path, root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with its absolute paths below `root`."""
    text = re.sub(r"(?<![\w$}])/(etc|sys|run|var|usr/local)/", rf"{root}/\1/", script.read_text())
    copy = root / "script.sh"
    copy.write_text(text)
    return subprocess.run(
        ["bash", str(copy)], capture_output=True, text=True, check=True, timeout=300,
        env={"PATH": f"{root}/bin:{os.environ['PATH']}", **environment},
    )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root with two NICs, ens3 and ens4."""
    for name, mac in (("ens3", "52:54:00:aa:bb:00"), ("ens4", "52:54:00:aa:bb:01"), ("lo", "00:00:00:00:00:00")):
        path = tmp_path / "sys/class/net" / name / "address"
        path.parent.mkdir(parents=True)
        path.write_text(mac + "\n")
    (tmp_path / "etc/NetworkManager/system-connections").mkdir(parents=True)
    (tmp_path / "etc/NetworkManager/system-connections/old.nmconnection").write_text("")
    return tmp_path


def _host(root: Path, number: int, ini: str, keyfiles: dict[str, str]) -> None:
    folder = root / f"etc/assisted/network/host{number}"
    folder.mkdir(parents=True)
    (folder / "mac_interface.ini").write_text(ini)
    for name, text in keyfiles.items():
        (folder / name).write_text(text)


def test_network_of_this_host_is_chosen_and_renamed(machine: Path) -> None:
    _host(machine, 0, "52:54:00:ff:ff:ff=eth0", {"eth0.nmconnection": "[connection]\nid=eth0\n"})
    _host(
        machine,
        1,
        "52:54:00:AA:BB:00=eth0\n52:54:00:AA:BB:01=eth1",
        {
            "eth0.nmconnection": "[connection]\nid=eth0\ninterface-name=eth0\n",
            "eth1.nmconnection": "[connection]\nid=eth1\nmaster=bond0\n",
            "eth0.100.nmconnection": "[connection]\nid=eth0.100\n[vlan]\nparent=eth0\n",
            "bond0.nmconnection": "[connection]\nid=bond0\n",
        },
    )
    out = _run(LIVE / "pre-network-manager-config.sh", machine).stdout
    assert "host1 is for this host" in out
    folder = machine / "etc/NetworkManager/system-connections"
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert found == {
        "ens3.nmconnection": "[connection]\nid=ens3\ninterface-name=ens3\n",
        "ens4.nmconnection": "[connection]\nid=ens4\nmaster=bond0\n",
        "ens3.100.nmconnection": "[connection]\nid=ens3.100\n[vlan]\nparent=ens3\n",
        "bond0.nmconnection": "[connection]\nid=bond0\n",
    }
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_names_that_are_swapped(machine: Path) -> None:
    _host(
        machine, 0, "52:54:00:AA:BB:00=ens4\n52:54:00:AA:BB:01=ens3",
        {"ens3.nmconnection": "id=ens3\n", "ens4.nmconnection": "id=ens4\n"},
    )  # fmt: skip
    _run(LIVE / "pre-network-manager-config.sh", machine)
    folder = machine / "etc/NetworkManager/system-connections"
    assert (folder / "ens3.nmconnection").read_text() == "id=ens3\n"
    assert (folder / "ens4.nmconnection").read_text() == "id=ens4\n"


def test_long_vlan_names_are_cut(machine: Path) -> None:
    path = machine / "sys/class/net/enp130s0f1np1/address"
    path.parent.mkdir()
    path.write_text("52:54:00:aa:bb:05\n")
    _host(
        machine, 0, "52:54:00:aa:bb:05=eth0",
        {"eth0.1234.nmconnection": "[connection]\nid=eth0.1234\ninterface-name=eth0.1234\n[vlan]\nparent=eth0\n"},
    )  # fmt: skip
    _run(LIVE / "pre-network-manager-config.sh", machine)
    folder = machine / "etc/NetworkManager/system-connections"
    assert [path.name for path in folder.iterdir()] == ["enp130s0f1.1234.nmconnection"]
    text = (folder / "enp130s0f1.1234.nmconnection").read_text()
    assert "interface-name=enp130s0f1.1234\n" in text
    assert "parent=enp130s0f1np1\n" in text


LINKS = """[{"ifname": "lo", "address": "00:00:00:00:00:00"}, {"ifname": "tun0"},
 {"ifname": "ens3", "address": "52:54:00:AA:BB:01", "permaddr": "52:54:00:aa:bb:00"},
 {"ifname": "ens4", "address": "52:54:00:aa:bb:01"}]"""
HOSTNAMED = """#!/bin/sh
# It fails until it was called FROM times.
echo "$@" >>$ASKED
[ $(wc -l <$ASKED) -ge $FROM ]
"""


@pytest.mark.parametrize("mac", ["52:54:00:aa:bb:00", "52:54:00:aa:bb:01"])
def test_host_name_by_the_permanent_mac_of_a_nic_in_a_bond(tmp_path: Path, mac: str) -> None:
    """A bond gives its NICs one address; the name is set though the first attempts fail."""
    for name, text in (
        ("ip", f"#!/bin/sh\ncat <<E\n{LINKS}\nE\n"),
        ("hostnamectl", HOSTNAMED),
        ("sleep", "#!/bin/sh\n"),
    ):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "etc/assisted/hostnames").mkdir(parents=True)
    (tmp_path / "etc/assisted/hostnames/52:54:00:aa:bb:99").write_text("other\n")
    (tmp_path / "etc/assisted/hostnames" / mac).write_text("master-2\n")
    asked, script = tmp_path / "asked", LIVE / "files/usr/local/bin/set-hostname.sh"
    assert "The name of this host is master-2" in _run(script, tmp_path, ASKED=str(asked), FROM="3").stdout
    assert asked.read_text().splitlines() == ["set-hostname master-2"] * 3
    asked.unlink()
    with pytest.raises(subprocess.CalledProcessError):
        _run(script, tmp_path, ASKED=str(asked), FROM="99")


def test_host_without_configuration_is_left_alone(machine: Path) -> None:
    _host(machine, 0, "52:54:00:ff:ff:ff=eth0", {"eth0.nmconnection": ""})
    assert "No matching host directories found" in _run(LIVE / "pre-network-manager-config.sh", machine).stdout
    assert [path.name for path in (machine / "etc/NetworkManager/system-connections").iterdir()] == ["old.nmconnection"]


class Service:
    """A service with one cluster that gets ready, and `hosts`; counts requests to install."""

    def __init__(self) -> None:
        self.installs = self.refusals = 0
        self.asked: list[str] = []
        self.hosts = [["discovering"], ["known"], ["known", "known"]]
        self.statuses = ["insufficient", "ready", "installing", "ready", "installing", "installed"]
        service = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_args: Any) -> None:
                return

            def do_GET(self) -> None:
                path = self.path.removeprefix("/api/assisted-install/v2")
                service.asked.append(self.headers["Authorization"])
                if service.refusals:
                    service.refusals -= 1
                    self._send(401, {"code": 401, "message": "not valid"})
                    return
                if path == "/infra-envs":
                    body: Any = [{"id": "ie"}] if len(service.asked) > 2 else []
                elif path == "/infra-envs/ie/hosts":
                    states = service.hosts.pop(0) if len(service.hosts) > 1 else service.hosts[0]
                    body = [{"status": state} for state in states]
                else:
                    known = len(service.hosts) == 1
                    status = service.statuses.pop(0) if known and len(service.statuses) > 1 else service.statuses[0]
                    body = [{"id": "c", "status": status}]
                self._send(200, body)

            def do_POST(self) -> None:
                service.installs += self.path.endswith("/v2/clusters/c/actions/install")
                self._send(202, {})

            def _send(self, code: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def live(machine: Path, tree: Path) -> Path:
    """A root with the scripts, whose waits are short."""
    shutil.copytree(tree / "usr", machine / "usr")
    (machine / "run").mkdir()
    (machine / "bin").mkdir()
    for name in ("agetty", "sleep"):
        (machine / "bin" / name).write_text("#!/bin/sh\nexit 0\n")
        (machine / "bin" / name).chmod(0o755)
    script = machine / "usr/local/bin/issue_status.sh"
    script.write_text(script.read_text().replace("/etc/issue.d", f"{machine}/etc/issue.d"))
    return machine


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_installation_starts_when_all_hosts_are_known_and_again(live: Path, service: Service) -> None:
    folder = live / "usr/local/share/start-cluster"
    folder.mkdir(parents=True)
    (folder / "start-cluster.env").write_text(
        "REQUIRED_MASTER_NODES=1\nREQUIRED_ARBITER_NODES=0\nREQUIRED_WORKER_NODES=1\n"
    )
    script = live / "usr/local/bin/start-cluster-installation.sh"
    out = _run(script, live, SERVICE_BASE_URL=service.url, USER_AUTH_TOKEN="token", INFRA_ENV_ID="ie").stdout
    assert service.installs == 2
    assert set(service.asked) == {"token"}
    assert "2 of 2 hosts are ready" in out
    assert out.rstrip().endswith("The cluster is installed")
    assert not (live / "etc/issue.d/90_start-install.issue").exists()


def test_agent_starts_with_the_infra_env(live: Path, service: Service) -> None:
    (live / "run/agent-image").write_text("r.test/agent\n")
    agent = live / "usr/local/bin/agent"
    agent.write_text('#!/bin/sh\necho "$@"\n')
    agent.chmod(0o755)
    service.refusals = 2
    out = _run(live / "usr/local/bin/start-agent.sh", live, SERVICE_BASE_URL=service.url, USER_AUTH_TOKEN="t").stdout
    assert out.count(f"{service.url} refuses the token of this host: HTTP 401 not valid\n") == 1
    assert out.splitlines()[-1] == f"--url {service.url} --infra-env-id ie --agent-version r.test/agent --insecure=true"


def test_hardware_requirements_are_filled_in(live: Path) -> None:
    folder = live / "usr/local/share/assisted-service"
    env_file = folder / "assisted-service.env"
    env_file.write_text("A=1\nHW_VALIDATOR_REQUIREMENTS=TO_BE_REPLACED_BY_SYSTEMD\nB=2\n")
    script = live / "usr/local/bin/configure-assisted-hw-requirements.sh"
    _run(script, live)
    assert env_file.read_text() == "A=1\nHW_VALIDATOR_REQUIREMENTS=[]\nB=2\n"
    extra = live / "etc/assisted/extra-manifests/x-0.yaml"
    extra.parent.mkdir(parents=True)
    extra.write_text("kind: InternalReleaseImage\n")
    _run(script, live)
    assert "HW_VALIDATOR_REQUIREMENTS=[1]\n" in env_file.read_text()


def test_images_are_read_out_of_the_release(live: Path) -> None:
    release = live / "mounted"
    (release / "release-manifests").mkdir(parents=True)
    names = (
        "agent-installer-api-server",
        "agent-installer-csr-approver",
        "agent-installer-orchestrator",
        "agent-installer-node-agent",
    )
    tags = [{"name": name, "from": {"name": f"r.test/{name}@sha256:1"}} for name in names]
    (release / "release-manifests/image-references").write_text(json.dumps({"spec": {"tags": tags}}))
    (release / "usr/bin").mkdir(parents=True)
    (release / "usr/bin/agent").write_text("the agent")
    podman = live / "bin/podman"
    podman.write_text(
        f'#!/bin/sh\necho "$@" >> {live}/podman.log\n'
        f'case "$1 $2" in "image mount") echo {release} ;; "image inspect") echo amd64 ;; esac\n'
    )
    podman.chmod(0o755)
    for name in ("release-image.sh", "release-image-download.sh", "bootstrap-service-record.sh"):
        script = live / "usr/local/bin" / name
        script.write_text(re.sub(r"(?<![\w$}])/(run|var|usr/local)/", rf"{live}/\1/", script.read_text()))
    _run(live / "usr/local/bin/get-container-images.sh", live)
    images = (live / "usr/local/share/assisted-service/agent-images.env").read_text()
    assert "SERVICE_IMAGE=r.test/agent-installer-api-server@sha256:1\n" in images
    assert "AGENT_DOCKER_IMAGE=r.test/agent-installer-node-agent@sha256:1\n" in images
    assert "INSTALLER_UI_IMAGE=\n" in images
    _run(live / "usr/local/bin/extract-agent.sh", live)
    assert (live / "usr/local/bin/agent").read_text() == "the agent"
    assert (live / "run/agent-image").read_text() == "r.test/agent-installer-node-agent@sha256:1\n"
    assert " run " not in (live / "podman.log").read_text()


def test_node_zero(live: Path) -> None:
    machine = live
    (machine / "etc/assisted").mkdir()
    (machine / "etc/assisted/rendezvous-host.env").write_text("NODE_ZERO_IP=192.168.111.20\n")
    (machine / "bin/ip").write_text(
        '#!/bin/sh\necho \'[{"address":"52:54:00:aa:bb:00","addr_info":[{"local":"192.168.111.20"}]}]\'\n'
    )
    (machine / "bin/ip").chmod(0o755)
    _run(machine / "usr/local/bin/set-node-zero.sh", machine)
    assert (machine / "etc/assisted/node0").read_text() == "BOOTSTRAP_HOST_MAC=52:54:00:aa:bb:00\n"
    issue = machine / "etc/issue.d/60-rendezvous-host.issue"
    assert issue.read_text() == "This host (192.168.111.20) is the rendezvous host.\n"

    (machine / "etc/assisted/node0").unlink()
    (machine / "etc/assisted/rendezvous-host.env").write_text("NODE_ZERO_IP=192.168.111.21\n")
    _run(machine / "usr/local/bin/set-node-zero.sh", machine)
    assert not (machine / "etc/assisted/node0").exists()
    assert issue.read_text().startswith(
        "This host is not the rendezvous host. The rendezvous host is at 192.168.111.21."
    )
