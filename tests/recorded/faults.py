"""Records fault jobs of `ci/jobs.yml` whose fault the assisted service sees, from its simulator and simulated hosts.

    .venv/bin/python tests/recorded/faults.py OUT [JOB...]

The hosts have the names, MACs and addresses of the job's plan. What a machine would do differently is in `HOSTS`. The lab itself
is recorded as healthy. Recordings of other fault jobs are from machines: `ci/run-job` leaves them in its artifacts.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.agentlab.ocp.payload.images.release import HARDWARE
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import noop
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.hardware import Host
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.client import AssistedClient
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import AssistedError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.faults import EXTRA
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.report import facts
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import causes
from ansible_collections.agentlab.ocp.plugins.module_utils.report.evidence import Facts
from ansible_collections.agentlab.ocp.plugins.module_utils.state.recording import FILE, Recorder

ROOT = Path(__file__).resolve().parents[2]
SECRET = json.dumps({"auths": {"registry.example.test": {"auth": "dXNlcjpwYXNz"}}})
LIMIT, SETTLED = 240.0, 12.0
"""Seconds until the job's cause must be there, and for which it must stay first."""
_DAY = 86400


class Planned(Host):
    """A host of the plan. answers: what it does differently, by step; others are those of the swarm."""

    __slots__ = ()
    plan: ClassVar[Plan]
    job: ClassVar[str]

    @property
    def node(self) -> Any:
        return self.plan["nodes"][self.number] if self.number < len(self.plan["nodes"]) else None

    @property
    def name(self) -> str:
        if self.number >= _expected(self.plan):
            return self.mac().replace(":", "-")
        return "master-1" if self.job == "fault-hosts" and self.number == 2 else str(self.node["name"])

    @property
    def ip(self) -> str:
        return str(self.node["nics"][0]["addresses"][0]["ip"]) if self.node else "192.168.111.99"

    def mac(self, nic: int = 0) -> str:
        return str(self.node["nics"][0]["mac"]) if self.node and not nic else f"02:00:00:00:0{nic}:99"

    def inventory(self) -> dict[str, Any]:
        made = Host.inventory(self)
        made["interfaces"] = made["interfaces"][:1]
        if self.job == "fault-disk-size":
            made["disks"] = [made["disks"][0] | {"size_bytes": 5 << 30}]
        return made


def connectivity(host: Host, args: list[str]) -> noop.Result:
    """Connections to and from master-2 lose packets, or jumbo frames."""
    result = noop.connectivity(host, args)
    found = json.loads(result.output)
    peers = {other["host_id"]: other["nics"][0]["ip_addresses"][0] for other in json.loads(args[0])}
    far = Planned.plan["nodes"][2]["nics"][0]["addresses"][0]["ip"]
    for remote in found["remote_hosts"]:
        broken = far in (host.ip, peers[remote["host_id"]])
        if Planned.job == "fault-packet-loss" and broken:
            remote["l3_connectivity"] = [one | {"packet_loss_percentage": 70} for one in remote["l3_connectivity"]]
        if Planned.job == "fault-mtu":
            remote["mtu_report"] = [
                {"outgoing_nic": "ens3", "remote_ip_address": peers[remote["host_id"]], "mtu_successful": not broken}
            ]
    return noop.Result(json.dumps(found))


def wildcard(host: Host, args: list[str]) -> noop.Result:
    """Every name of the cluster's domain resolves."""
    found = json.loads(noop.domains(host, args).output)
    for one in found["resolutions"]:
        one["ipv4_addresses"] = one["ipv4_addresses"] or [host.cluster.gateway]
    return noop.Result(json.dumps(found))


# Job -> failure of the swarm's hosts, and steps that they answer differently.
HOSTS: dict[str, tuple[str, dict[str, Callable[[Host, list[str]], noop.Result]]]] = {
    "fault-unregistered": ("", {}),
    "fault-disk-size": ("", {}),
    "fault-extra-host": ("", {}),
    "fault-hosts": ("", {}),
    "fault-image-missing": ("image", {}),
    "fault-dns-wildcard": ("", {"domain-resolution": wildcard}),
    "fault-mtu": ("", {"connectivity-check": connectivity}),
    "fault-packet-loss": ("", {"connectivity-check": connectivity}),
}


class Hosts(Swarm):
    """The hosts of the plan; master-2 is absent from `fault-unregistered`, and `fault-extra-host` has another one."""

    def _begin(self, host: Host, after: float) -> None:
        host.__class__ = Planned
        host.failure = HOSTS[Planned.job][0]
        if Planned.job == "fault-unregistered" and host.number == 2:
            return
        super()._begin(host, after)
        if Planned.job == "fault-extra-host" and host.number == 0:
            me = dataclasses.replace(host.me, host_id=str(uuid.uuid5(uuid.NAMESPACE_DNS, "extra")))
            other = dataclasses.replace(host, number=1, me=me)
            other.__class__ = Planned
            super()._begin(other, after + 2)


def _expected(plan: Plan) -> int:
    return sum(node["role"] != EXTRA for node in plan["nodes"])


def _plan(job: jobs.Job) -> Plan:
    given = job["profile"]
    source = profile.Source(given, "job", {}, []) if isinstance(given, dict) else profile.read(given)
    return build.build(profile.validated_profile(source, "ostest"), "ostest")


def _register(url: str, plan: Plan) -> str:
    """Register the cluster of a plan and its infra-env; return the cluster's id."""

    def post(path: str, body: dict[str, Any]) -> str:
        request = urllib.request.Request(
            f"{url}/api/assisted-install/v2{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(json.load(answer)["id"])

    single = _expected(plan) == 1
    vips = {f"{kind}_vips": [{"ip": ip} for ip in plan["vips"][kind]] for kind in ("api", "ingress")}
    common = {"openshift_version": "4.20", "pull_secret": SECRET, "cpu_architecture": "x86_64"}
    body = {
        **common,
        **({} if single else vips),
        "name": "ostest",
        "base_dns_domain": "test.metalkube.org",
        "control_plane_count": 1 if single else 3,
        "high_availability_mode": "None" if single else "Full",
        "user_managed_networking": single,
        "network_type": "OVNKubernetes",
        "cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
        "service_networks": [{"cidr": "172.30.0.0/16"}],
        "machine_networks": [{"cidr": plan["networks"][0]["subnets"][0]["cidr"]}],
    }
    cluster = post("/clusters", body)
    post("/infra-envs", {**common, "name": "ostest_infra-env", "cluster_id": cluster})
    return cluster


def _follow(url: str, plan: Plan, wanted: re.Pattern[str], tape: Recorder) -> str:
    """Record what the service answers until the cause is there; return the first cause."""
    port = int(url.rpartition(":")[2])
    client, begun, since, first = AssistedClient("127.0.0.1", None, port=port, tape=tape), time.monotonic(), 0.0, ""
    running = {node["domain"]: "running" for node in plan["nodes"]}
    while time.monotonic() - begun < LIMIT:
        tape("openshift", "/version", 0, "no answer")
        try:
            env = client.infra_envs()[0]["id"]
            cluster = client.cluster(client.clusters()[0]["id"])
            seen = Facts(
                plan, running, cluster=cluster, events=client.events(env), rendezvous_ip=plan["rendezvous"]["ip"]
            )
        except (AssistedError, IndexError):
            time.sleep(1)
            continue
        found = causes(seen)
        facts.record(tape, seen, found, plan)
        first = found[0].text if found else ""
        if not wanted.match(first):
            since = 0.0
        elif not since:
            since = time.monotonic()
        elif time.monotonic() - since > SETTLED:
            break
        time.sleep(1)
    return first


async def record(name: str, out: Path) -> str:
    """Record a job as `out/NAME.jsonl.gz`; return the first cause, which is not the job's if it cannot be reached."""
    job = jobs.load(name, ROOT / "ci/jobs.yml")
    assert job["expect"]
    Planned.plan, Planned.job = plan, __ = _plan(job), name
    noop.ANSWERS.update(HOSTS[name][1])
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "HW_VALIDATOR_REQUIREMENTS": json.dumps(HARDWARE),
            "INSTALL_INVOKER": "agent-installer",
        }
        command = [str(ROOT / "bin/agentlab"), "serve", "assisted-service", "--listen", "127.0.0.1:0", "--data", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as service:
            assert service.stdout
            url = next(line.split()[-1] for line in service.stdout if "listens on" in line)
            try:
                _register(url, plan)
                settings = Settings(
                    url=url, discover=True, topology={"sno" if _expected(plan) == 1 else "compact": 1.0}, poll_limit=1.0,
                    think_time=0.1, watch=2.0, controller_poll=2.0, register_interval=1.0, keep=True, ramp_up=1.0,
                )  # fmt: skip
                swarm = Hosts(settings)
                running = asyncio.create_task(swarm.run())
                tape = Recorder(Path(folder) / FILE)
                first = await asyncio.to_thread(_follow, url, plan, re.compile(job["expect"]["cause"]), tape)
                swarm.stop()
                await running
            finally:
                service.terminate()
        out.mkdir(exist_ok=True)
        data = (Path(folder) / FILE).read_bytes()
        (out / f"{name}.jsonl.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    return first


if __name__ == "__main__":
    for one in sys.argv[2:] or HOSTS:
        # In a process of its own each: what hosts answer is set for all of them.
        if len(sys.argv) == 3:
            print(one, asyncio.run(record(one, Path(sys.argv[1]))))
        else:
            subprocess.run([sys.executable, __file__, sys.argv[1], one], check=True)
