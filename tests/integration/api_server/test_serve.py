"""`agentlab serve assisted-service` as a process: page, tokens, a kill that loses nothing, and the end at a reboot."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .served import CLUSTER, PULL_SECRET, START, V2, Served

#: How often the service is killed amid its work; more find more.
KILLS = int(os.environ.get("AGENTLAB_KILLS") or 4)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path / "data")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end(signal.SIGKILL)


def test_kill_loses_nothing(served: Served) -> None:
    served.start()
    assert b"<title>assisted-service</title>" in served.call("GET", "/")
    cluster = served.call("POST", f"{V2}/clusters", CLUSTER)
    infra_env = served.call(
        "POST", f"{V2}/infra-envs", {"name": "e", "pull_secret": PULL_SECRET, "cluster_id": cluster["id"]}
    )
    hosts = []
    for __ in range(20):
        hosts.append(str(uuid.uuid4()))
        served.call("POST", f"{V2}/infra-envs/{infra_env['id']}/hosts", {"host_id": hosts[-1]})
    served.call("POST", f"{V2}/clusters/{cluster['id']}/manifests", {"file_name": "a.yaml", "content": "YTogMQ=="})
    assert served.end(signal.SIGKILL) == -signal.SIGKILL
    served.start()
    found = served.call("GET", f"{V2}/clusters/{cluster['id']}")
    assert [host["id"] for host in found["hosts"]] == hosts
    assert served.call("GET", f"{V2}/clusters/{cluster['id']}/manifests/files?file_name=a.yaml") == b"a: 1"
    events = served.call("GET", f"{V2}/events?infra_env_id={infra_env['id']}")
    assert [event["name"] for event in events].count("host_registration_succeeded") == 20
    assert served.end(signal.SIGTERM) == 0
    assert [path.name for path in served.data.iterdir() if path.name.endswith(("-wal", "-shm"))] == []


class Worker(threading.Thread):
    """Does things that the service acknowledges, and remembers those; a request that fails was not acknowledged."""

    def __init__(self, served: Served, cluster: str, infra_env: str, name: str) -> None:
        super().__init__(daemon=True)
        self.served, self.cluster, self.infra_env, self.label = served, cluster, infra_env, name
        self.hosts: list[str] = []
        self.manifests: list[str] = []
        self.events: list[str] = []
        self.count = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        hosts = f"{V2}/infra-envs/{self.infra_env}/hosts"
        while not self.stopped.is_set():
            self.count += 1
            name, host = f"{self.label}-{self.count}", str(uuid.uuid4())
            event = {
                "severity": "info",
                "message": name,
                "event_time": "2026-01-01T00:00:00Z",
                "cluster_id": self.cluster,
            }
            manifest = {"file_name": f"{name}.yaml", "content": "YTogMQ=="}
            reply = {"step_type": "inventory", "step_id": "x", "exit_code": 0, "output": json.dumps({"hostname": name})}
            for known, fact, path, body in (
                (self.events, name, f"{V2}/events", event),
                (self.manifests, f"{name}.yaml", f"{V2}/clusters/{self.cluster}/manifests", manifest),
                (None, "", hosts, {"host_id": host}),
                (self.hosts, host, f"{hosts}/{host}/instructions", reply),
            ):
                try:
                    self.served.call("POST", path, body)
                except OSError:
                    time.sleep(0.05)
                    break
                if known is not None:
                    known.append(fact)


def refusal(data: Path, *options: str) -> str:
    """What the service reports when it does not start."""
    command = [sys.executable, "-c", START, "assisted-service", "--data", str(data), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    return done.stderr.strip()


@pytest.mark.slow
def test_one_line_has_the_reason_why_it_does_not_start(served: Served, tmp_path: Path) -> None:
    served.start()
    address = served.url.removeprefix("http://")
    assert refusal(tmp_path / "other", "--listen", address).endswith(
        f"cannot listen on http://{address}: Address already in use"
    )
    assert refusal(served.data, "--listen", "127.0.0.1:0").endswith(
        "assisted-service.sqlite: another service has it open"
    )
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "assisted-service.sqlite").write_text("no database" * 1000)
    assert "is corrupt (file is not a database): move it aside" in refusal(damaged, "--listen", "127.0.0.1:0")
    (damaged / "tokens.json").write_text("{}")
    assert "tokens.json is corrupt: remove it" in refusal(damaged, "--listen", "127.0.0.1:0", "--auth", "local")


def test_stops_in_spite_of_callers(served: Served) -> None:
    served.start()
    host, __, port = served.url.removeprefix("http://").rpartition(":")
    callers = [socket.create_connection((host, int(port))) for __ in range(20)]
    head = f"POST {V2}/clusters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
    callers[0].sendall(head.encode())
    served.call("GET", "/health")
    assert served.end(signal.SIGTERM) == 0  # within 20 seconds, which a body may take three times
    for caller in callers:
        caller.close()


@pytest.mark.slow
def test_killed_while_agents_work(served: Served) -> None:
    served.start()
    served.options = (*served.options, "--listen", served.url.removeprefix("http://"))
    cluster = served.call("POST", f"{V2}/clusters", CLUSTER)["id"]
    body = {"name": "e", "pull_secret": PULL_SECRET, "cluster_id": cluster}
    infra_env = served.call("POST", f"{V2}/infra-envs", body)["id"]
    workers = [Worker(served, cluster, infra_env, f"w{number}") for number in range(3)]
    for worker in workers:
        worker.start()
    try:
        for kills in range(1, KILLS + 1):
            wanted = sum(worker.count for worker in workers) + 8 + 3 * kills
            end = time.monotonic() + 120
            while sum(worker.count for worker in workers) < wanted:
                assert time.monotonic() < end, "the workers stand still"
                time.sleep(0.001 * kills)
            assert served.end(signal.SIGKILL) == -signal.SIGKILL
            known = [(list(w.hosts), list(w.manifests), list(w.events)) for w in workers]
            served.start()
            hosts = {host["id"]: host for host in served.call("GET", f"{V2}/infra-envs/{infra_env}/hosts")}
            files = {entry["file_name"] for entry in served.call("GET", f"{V2}/clusters/{cluster}/manifests")}
            told = {event["message"] for event in served.call("GET", f"{V2}/events?cluster_id={cluster}")}
            for its_hosts, its_manifests, its_events in known:
                assert set(its_hosts) <= set(hosts)
                assert all("inventory" in hosts[ident] for ident in its_hosts)
                assert set(its_manifests) <= files
                assert set(its_events) <= told
    finally:
        for worker in workers:
            worker.stopped.set()
        for worker in workers:
            worker.join(60)
    assert all(worker.events and worker.manifests and worker.hosts for worker in workers)


def test_local_tokens(served: Served) -> None:
    served.options = ("--auth", "local")
    served.start()
    tokens = json.loads((served.data / "tokens.json").read_text())
    assert (served.data / "tokens.json").stat().st_mode & 0o777 == 0o600
    with pytest.raises(urllib.error.HTTPError, match="401"):
        served.call("GET", f"{V2}/clusters")
    assert served.call("GET", f"{V2}/clusters", Watcher_Authorization=tokens["watcherAuth"]) == []


def test_it_exits_when_the_rendezvous_host_reboots(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"HOST_MONITOR_INTERVAL": "50ms", "CLUSTER_MONITOR_INTERVAL": "50ms"}.items():
        monkeypatch.setenv(name, value)
    served.options = ("--exit-on-reboot",)
    served.start()
    cluster = served.call("POST", f"{V2}/clusters", CLUSTER)
    infra_env = served.call(
        "POST", f"{V2}/infra-envs", {"name": "e", "pull_secret": PULL_SECRET, "cluster_id": cluster["id"]}
    )
    ident = str(uuid.uuid4())
    path = f"{V2}/infra-envs/{infra_env['id']}/hosts/{ident}"
    served.call("POST", f"{V2}/infra-envs/{infra_env['id']}/hosts", {"host_id": ident})
    nic = {
        "name": "eth0",
        "mac_address": "52:54:00:00:00:01",
        "ipv4_addresses": ["192.168.111.20/24"],
        "type": "physical",
    }
    inventory = {
        "hostname": "node-0",
        "interfaces": [nic],
        "cpu": {"count": 8},
        "memory": {"physical_bytes": 2**35},
        "disks": [{"name": "sda", "path": "/dev/sda", "drive_type": "SSD", "size_bytes": 200 * 10**9}],
        "routes": [{"destination": "0.0.0.0", "gateway": "192.168.111.1"}],
        "system_vendor": {"manufacturer": "QEMU", "product_name": "Standard PC"},
    }
    answers: dict[str, Any] = {
        "inventory": inventory,
        "ntp-synchronizer": {"ntp_sources": []},
        "domain-resolution": {
            "resolutions": [
                *({"domain_name": f"validateNoWildcardDNS.ostest.test.example{dot}"} for dot in ("", ".")),
                *(
                    {"domain_name": f"{name}.ostest.test.example", "ipv4_addresses": ["192.168.111.20"]}
                    for name in ("api", "api-int", "console-openshift-console.apps")
                ),
            ]
        },
        "installation-disk-speed-check": {"path": "/dev/sda", "io_sync_duration": 1},
    }
    asked = False
    for __ in range(200):
        status = served.call("GET", path)["status"]
        if status == "installing":
            break
        if served.call("GET", f"{V2}/clusters/{cluster['id']}")["status"] == "ready" and not asked:
            served.call("POST", f"{V2}/clusters/{cluster['id']}/actions/install")
            asked = True
        for step in served.call("GET", f"{path}/instructions?timestamp={int(time.time())}")["instructions"]:
            if step["step_type"] == "container-image-availability":
                wanted = json.loads(step["args"][-1])["images"]
                answers[step["step_type"]] = {"images": [{"name": name, "result": "success"} for name in wanted]}
            reply = {
                "step_type": step["step_type"],
                "step_id": step["step_id"],
                "exit_code": 0,
                "output": json.dumps(answers.get(step["step_type"], {})),
            }
            if step["step_type"] in answers:
                served.call("POST", f"{path}/instructions", reply)
        time.sleep(0.05)
    else:
        raise AssertionError(f"the host stayed {status}: {served.call('GET', path)['validations_info']}")
    assert served.process is not None
    assert served.process.poll() is None
    served.call("PUT", f"{path}/progress", {"current_stage": "Rebooting"})
    assert served.process.wait(20) == 0


def test_address_taken(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    served.start()
    port = served.url.rpartition(":")[2]
    command = [
        sys.executable,
        "-c",
        START,
        "assisted-service",
        "--listen",
        f"127.0.0.1:{port}",
        "--data",
        str(served.data / "other"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "agentlab serve assisted-service:" in done.stderr
    assert "Traceback" not in done.stderr
