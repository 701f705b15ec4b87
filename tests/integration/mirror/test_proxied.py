"""A lab whose only way out is the proxy: namespaces for a node, its sandbox, the host and a registry outside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, certificates, names, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import processes

from .registries import Store

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
GATEWAY, NODE, HOST, OUTSIDE = "192.168.111.1", "192.168.111.20", "10.199.0.1", "10.199.0.2"
PREFIX = "ansible_collections.agentlab.ocp.plugins.module_utils.sandbox"
CONNECT = f"""
import json, sys
from {PREFIX} import namespaces, uplink
uplink.ensure(namespaces.RunningSandbox(**json.loads(sys.argv[2])), json.loads(sys.argv[1]))
"""
SERVE = f"""
import json, pathlib, sys
from {PREFIX} import lifecycle, services
wanted = services.render(json.loads(sys.argv[1]), {{}}, private=True, http_secret="", wanted=["proxy"])
lifecycle.ensure(wanted, pathlib.Path(sys.argv[2]))
"""
STOP = f"""
import pathlib, sys
from {PREFIX} import processes
processes.stop(pathlib.Path(sys.argv[1]), "proxy")
"""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("squid", "nft", "skopeo", "docker-registry"))),
    reason="needs root, squid, nftables, skopeo and docker-registry",
)


class Spaces:
    """Network namespaces, each with a process that keeps it."""

    def __init__(self, *wanted: str) -> None:
        self.ids = {name: f"px-{os.getpid()}-{name}" for name in wanted}
        self.running = list[subprocess.Popen[bytes]]()
        self.keepers = dict[str, int]()
        for name, identifier in self.ids.items():
            subprocess.run(["ip", "netns", "add", identifier], check=True)
            self.keepers[name] = self.start(name, "sleep", "300").pid
            self(name, "ip", "link", "set", "lo", "up")

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        self.running.append(subprocess.Popen(["ip", "netns", "exec", self.ids[name], *command]))
        return self.running[-1]

    def run(self, name: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, "http_proxy": "", "https_proxy": "", "HTTPS_PROXY": "", **environment}
        return subprocess.run(
            ["ip", "netns", "exec", self.ids[name], *command], capture_output=True, text=True, check=False, env=given
        )

    def __call__(self, name: str, *command: str) -> str:
        done = self.run(name, *command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def link(self, one: str, device: str, address: str, other: str, peer: str, peer_address: str = "") -> None:
        ends = ((one, device, address), (other, peer, peer_address))
        subprocess.run(
            ["ip", "link", "add", device, "netns", self.ids[one], "type", "veth", "peer", "name", peer, "netns", self.ids[other]],
            check=True,
        )  # fmt: skip
        for name, end, given in ends:
            if given:
                self(name, "ip", "address", "add", f"{given}/24", "dev", end)
            self(name, "ip", "link", "set", end, "up")

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        for identifier in self.ids.values():
            subprocess.run(["ip", "netns", "delete", identifier], check=False)


@pytest.fixture
def work() -> Iterator[Path]:
    """A directory that squid's user reaches."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="agentlab-proxied-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def spaces() -> Iterator[Spaces]:
    made = Spaces("node", "sandbox", "host", "outside")
    made.link("host", "lan", HOST, "outside", "lan", OUTSIDE)
    made("host", "ip", "route", "add", "default", "via", OUTSIDE)
    made("outside", "ip", "route", "add", "default", "via", HOST)
    made("host", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    made("sandbox", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    made("sandbox", "ip", "link", "add", "pxbm", "type", "bridge")
    made("sandbox", "ip", "address", "add", f"{GATEWAY}/24", "dev", "pxbm")
    made("sandbox", "ip", "link", "set", "pxbm", "up")
    made.link("node", "eth0", NODE, "sandbox", "port")
    made("sandbox", "ip", "link", "set", "port", "master", "pxbm")
    made("node", "ip", "route", "add", "default", "via", GATEWAY)
    yield made
    made.close()


def outside_registry(spaces: Spaces, work: Path) -> str:
    """Start a registry with one image outside; returns the image's pullspec."""
    certificates.ensure(work / "tls", "px", ["127.0.0.1", OUTSIDE, "registry.agentlab.test"])
    (work / "registry").mkdir()
    store = Store(work / "registry", work / "tls")
    store.image("lab/image", "one", {"file": os.urandom(30_000)})
    store.close()
    serve(spaces, work, "outside", OUTSIDE)
    return f"{OUTSIDE}:5000/lab/image:one"


def serve(spaces: Spaces, work: Path, name: str, address: str) -> None:
    """Start a registry on the images of that outside, and wait for it."""
    config = json.loads((work / "registry/config.json").read_text())
    config["http"]["addr"] = f"{address}:5000"
    path = work / f"registry/{name}.json"
    path.write_text(json.dumps(config))
    spaces.start(name, "docker-registry", "serve", str(path))
    connect = f"import socket; socket.create_connection(('{address}', 5000), 1).close()"
    for __ in range(100):
        if spaces.run(name, sys.executable, "-c", connect).returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError("the registry does not answer")


def lab(spaces: Spaces, work: Path, connection: str) -> dict[str, Any]:
    """Make the uplink of a lab, and its proxy if it has one; returns its plan."""
    chosen = profile.load("compact_ipv4", PROFILES)
    chosen["network"] |= {"connection": connection}
    chosen["hypervisor"]["state_dir"] = str(work / "state")
    plan: dict[str, Any] = dict(build.build(chosen, "px"))
    state = Path(plan["hypervisor"]["state_dir"])
    state.mkdir(parents=True)
    pid = spaces.keepers["sandbox"]
    running = {
        "cluster": "px",
        "netns": spaces.ids["sandbox"],
        "pid": pid,
        "start": processes.start_time(pid),
        "work": str(state / "work"),
    }
    spaces("host", sys.executable, "-c", CONNECT, json.dumps(plan), json.dumps(running))
    return plan


def pull(
    spaces: Spaces, work: Path, pullspec: str, *, proxy: str = "", seconds: int = 20
) -> subprocess.CompletedProcess[str]:
    """Copy the image as the node, within seconds."""
    certs, target = work / "certs", work / "pulled"
    certs.mkdir(exist_ok=True)
    shutil.copy(work / "tls/ca.crt", certs / "ca.crt")
    shutil.rmtree(target, ignore_errors=True)
    return spaces.run(
        "node", "timeout", str(seconds), "skopeo", "--insecure-policy", "copy", "--quiet", "--src-creds=u:p",
        f"--src-cert-dir={certs}", f"docker://{pullspec}", f"dir:{target}", HTTPS_PROXY=proxy,
    )  # fmt: skip


def test_every_pull_is_in_the_log_of_the_proxy_and_nothing_else_leaves(spaces: Spaces, work: Path) -> None:
    image = outside_registry(spaces, work)
    plan = lab(spaces, work, "proxied")
    log, directory = Path(plan["services"]["directory"]) / "proxy/log", work / "processes"
    try:
        spaces("sandbox", sys.executable, "-c", SERVE, json.dumps(plan), str(directory))
        assert pull(spaces, work, image, seconds=3).returncode != 0
        assert "CONNECT" not in log.read_text()
        done = pull(spaces, work, image, proxy=plan["services"]["proxy"]["url"])
        assert done.returncode == 0, done.stderr
        lines = [line for line in log.read_text().splitlines() if "method=CONNECT" in line]
        assert lines and all(f"client={NODE} method=CONNECT url={OUTSIDE}:5000 status=200" in line for line in lines)
        received = sum(path.stat().st_size for path in (work / "pulled").iterdir())
        assert sum(int(line.rpartition("bytes=")[2].split()[0]) for line in lines) > received > 30_000
        # Not with a route of the outside back to the lab either: the sandbox forwards nothing.
        spaces("outside", "ip", "route", "add", "192.168.111.0/24", "via", HOST)
        spaces("host", "ip", "route", "add", "192.168.111.0/24", "via", names.uplink("px")["address"])
        assert pull(spaces, work, image, seconds=3).returncode != 0
        # The sandbox's own loopback stays closed.
        script = (
            "import sys, urllib.request as u\n"
            "u.build_opener(u.ProxyHandler({'http': sys.argv[1]})).open('http://127.0.0.1:1/', timeout=5)"
        )
        refused = spaces.run("node", sys.executable, "-c", script, plan["services"]["proxy"]["url"])
        assert "HTTP Error 403" in refused.stderr
        # The lab's own registry has its name in the proxy alone, and there at one port.
        serve(spaces, work, "sandbox", "127.0.0.1")
        image = "registry.agentlab.test/lab/image:one"
        assert pull(spaces, work, image, seconds=3).returncode != 0
        done = pull(spaces, work, image, proxy=plan["services"]["proxy"]["url"])
        assert done.returncode == 0, done.stderr
        assert f"client={NODE} method=CONNECT url=registry.agentlab.test:443 status=200" in log.read_text()
        image = "registry.agentlab.test:5000/lab/image:one"
        assert pull(spaces, work, image, proxy=plan["services"]["proxy"]["url"]).returncode != 0
        assert f"client={NODE} method=CONNECT url=registry.agentlab.test:5000 status=403" in log.read_text()
    finally:
        spaces("sandbox", sys.executable, "-c", STOP, str(directory))


def test_a_proxy_that_cannot_start_names_the_cause(spaces: Spaces, work: Path) -> None:
    plan = lab(spaces, work, "proxied")
    state, directory = Path(plan["hypervisor"]["state_dir"]), work / "processes"
    state.chmod(0o700)  # closed to squid's user
    done = spaces.run("sandbox", sys.executable, "-c", SERVE, json.dumps(plan), str(directory))
    assert done.returncode != 0
    assert f"Cannot open '{plan['services']['directory']}/proxy/log' for writing." in done.stderr


def test_a_connected_lab_pulls_without_a_proxy(spaces: Spaces, work: Path) -> None:
    image = outside_registry(spaces, work)
    plan = lab(spaces, work, "connected")
    assert "proxy" not in plan["services"]
    done = pull(spaces, work, image)
    assert done.returncode == 0, done.stderr


def test_a_disconnected_lab_has_no_uplink(spaces: Spaces, work: Path) -> None:
    image = outside_registry(spaces, work)
    lab(spaces, work, "disconnected")
    assert names.uplink("px")["link"] not in spaces("host", "ip", "link")
    assert pull(spaces, work, image, seconds=3).returncode != 0
