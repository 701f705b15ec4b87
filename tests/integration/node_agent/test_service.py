"""Three real agents in their network namespaces and the lab's own service: discovery up to what a namespace can give.

Their disks are this machine's, which are in use, so that nothing can be installed and nothing is written to.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.tests.integration.node_agent.conftest import Lab

BASE = "http://192.0.2.1:8090"
API = "/api/assisted-install/v2"
IMAGE = "registry.example/agent@sha256:" + "a" * 64
VERSION = "4.22.0"
ENVIRONMENT = {
    "AUTH_TYPE": "none", "DUMMY_IGNITION": "true", "AGENT_NEXT_INSTRUCTION_SECONDS": "1", "HOST_MONITOR_INTERVAL": "500ms",
    "CLUSTER_MONITOR_INTERVAL": "500ms", "AGENT_DOCKER_IMAGE": IMAGE, "INSTALL_INVOKER": "agent-installer",
    "ENABLE_VIRTUAL_INTERFACES": "true",  # a namespace's only link is a virtual pair
    "RELEASE_IMAGES": json.dumps([{"openshift_version": VERSION, "version": VERSION, "cpu_architecture": "x86_64",
                                   "cpu_architectures": ["x86_64"], "url": "registry.example/release"}]),
}  # fmt: skip


@pytest.fixture
def api(lab: Lab, tmp_path: Path) -> Iterator[Any]:
    environment = {**os.environ, **ENVIRONMENT, "WORK_DIR": str(tmp_path), "STATE_FILE": str(tmp_path / "state.sqlite")}
    module = "ansible_collections.agentlab.ocp.payload.api_server"
    log = (tmp_path / "service.log").open("wb")
    process = subprocess.Popen(lab.command("gw", sys.executable, "-m", module), env=environment, stdout=log, stderr=log)

    def call(method: str, path: str, body: Any = None) -> Any:
        script = "import sys,urllib.request as u;r=u.Request(*sys.argv[1:2],method=sys.argv[2],data=sys.stdin.buffer.read() or None," \
                 "headers={'Content-Type':'application/json'});print(u.urlopen(r,timeout=20).read().decode())"  # fmt: skip
        data = json.dumps(body) if body is not None else ""
        done = subprocess.run(
            lab.command("gw", sys.executable, "-c", script, BASE + API + path, method),
            input=data,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-500:] + (tmp_path / "service.log").read_text()[-2000:]
        return json.loads(done.stdout)

    for __ in range(100):
        if lab.exec("gw", "bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/8090", check=False).returncode == 0:
            break
        time.sleep(0.1)
    yield call
    process.terminate()
    process.wait(10)


def test_discovery(lab: Lab, api: Any, tmp_path: Path) -> None:
    secret = '{"auths":{"registry.example":{"auth":"dXNlcjpwYXNz"}}}'
    common = {"openshift_version": VERSION, "pull_secret": secret, "cpu_architecture": "x86_64"}
    vips = {"api_vips": [{"ip": "192.0.2.5"}], "ingress_vips": [{"ip": "192.0.2.6"}]}
    cluster = api(
        "POST", "/clusters", {**common, **vips, "name": "ostest", "base_dns_domain": "test", "control_plane_count": 3}
    )
    infra_env = api("POST", "/infra-envs", {**common, "name": "ie", "cluster_id": cluster["id"]})
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 192.0.2.1\noptions timeout:1 attempts:1\n")
    ids = {name: f"11111111-2222-3333-4444-00000000000{name}" for name in "abc"}
    agents = [
        subprocess.Popen(
            lab.command(name, lab.programs / "agent", "--url", BASE, "--infra-env-id", infra_env["id"], "--agent-version", IMAGE,
                        "--host-id", ident, "--with-text-logging=false", "--with-journal-logging=false",
                        binds={resolv: "/etc/resolv.conf"}),
            stderr=(tmp_path / f"{name}.log").open("wb"),
        )
        for name, ident in ids.items()
    ]  # fmt: skip
    wanted = {"belongs-to-majority-group", "has-inventory", "connected", "sufficient-packet-loss-requirement-for-role"}
    try:
        deadline = time.monotonic() + 90
        while True:
            hosts = {host["id"]: host for host in api("GET", f"/infra-envs/{infra_env['id']}/hosts")}
            good = {ident: succeeded(host) & wanted for ident, host in hosts.items()}
            if len(hosts) == 3 and all(found == wanted for found in good.values()):
                break
            assert time.monotonic() < deadline, json.dumps(
                {i: host.get("validations_info") for i, host in hosts.items()}
            )[:6000]
            time.sleep(1)
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()
    for name, ident in ids.items():
        host = hosts[ident]
        assert lab.macs[name] in host["inventory"]
        report = json.loads(host["connectivity"])
        others = {one["host_id"]: one for one in report["remote_hosts"]}
        assert set(others) == set(ids.values()) - {ident}
        for one in others.values():
            assert one["l2_connectivity"] and all(
                link["successful"] for link in one["l2_connectivity"] + one["l3_connectivity"]
            )
    assert socket.gethostname() == json.loads(host["inventory"])["hostname"]


def succeeded(host: dict[str, Any]) -> set[str]:
    groups = json.loads(host.get("validations_info") or "{}")
    return {entry["id"] for group in groups.values() for entry in group if entry["status"] == "success"}
