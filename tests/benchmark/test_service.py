"""Cost of a poll: what the service does for one host's request for instructions, from 100 to 5,000 hosts; and latencies of 1,000.

CPU time of this process is the measure that does not depend on who else uses the machine; latency is of the wall. Figures go to
standard output (`pytest -s`), and to the file that AGENTLAB_BENCHMARK names, as JSON lines.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from ansible_collections.agentlab.ocp.payload.api_server.__main__ import serve
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.payload.api_server.store import Store

# A process that is spawned imports this module by its name.
sys.path.append(str(Path(__file__).parents[1]))

V2 = "/api/assisted-install/v2"
PULL_SECRET = json.dumps({"auths": {"registry.example.test": {"auth": "dXNlcjpwYXNz"}}})
IN_A_CLUSTER = 5


def inventory(index: int) -> dict[str, Any]:
    return {
        "hostname": f"node-{index}",
        "interfaces": [
            {
                "name": "eth0",
                "mac_address": f"52:54:00:{index >> 16 & 255:02x}:{index >> 8 & 255:02x}:{index & 255:02x}",
                "ipv4_addresses": [f"192.168.111.{20 + index % IN_A_CLUSTER}/24"],
                "type": "physical",
                "mtu": 1500,
            }
        ],
        "cpu": {"count": 8, "architecture": "x86_64", "flags": ["vmx"] * 100},
        "memory": {"physical_bytes": 2**35, "usable_bytes": 2**35, "physical_bytes_method": "dmidecode"},
        "disks": [{"name": "sda", "path": "/dev/sda", "drive_type": "SSD", "size_bytes": 200 * 10**9}],
        "routes": [{"destination": "0.0.0.0", "gateway": "192.168.111.1"}],
        "system_vendor": {"manufacturer": "QEMU", "product_name": "KVM", "virtual": True},
    }


def _service(folder: str, pipe: Any, durable: bool) -> None:
    if not durable:

        async def committed(store: Store) -> None:
            store.commit()

        Store.durable = committed
    environment = {"AUTH_TYPE": "none", "DUMMY_IGNITION": "true"}
    config = Config(environment, Path(folder), Path(folder) / "state.sqlite").check()

    def ready(urls: list[str]) -> None:
        pipe.send(urls[0])

    asyncio.run(serve(config, [("127.0.0.1", 0)], ready))


class Served:
    """The service in a process of its own; durable: whether it waits for the disk before it answers."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        here, there = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=_service, args=(str(folder), there, durable))
        self.process.start()
        assert here.poll(120), "the service did not start"
        self.url = here.recv() + V2

    def cpu(self) -> float:
        """CPU seconds that the service has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Resident memory in KiB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def stop(self) -> None:
        self.process.terminate()
        self.process.join(60)


async def _call(session: aiohttp.ClientSession, method: str, url: str, body: Any = None) -> Any:
    async with session.request(method, url, json=body) as answer:
        raw = await answer.read()
        assert answer.status < 400, f"{method} {url}: {answer.status} {raw[:300]!r}"
        return json.loads(raw) if raw else None


async def _populate(session: aiohttp.ClientSession, base: str, count: int) -> list[str]:
    """Registers hosts in clusters of five, with inventory; URLs of the hosts."""
    hosts = []
    for first in range(0, count, IN_A_CLUSTER):
        cluster = await _call(
            session,
            "POST",
            f"{base}/clusters",
            {
                "name": f"c{first}",
                "openshift_version": "4.22.0",
                "base_dns_domain": "test.example",
                "pull_secret": PULL_SECRET,
                "machine_networks": [{"cidr": "192.168.111.0/24"}],
            },
        )
        body = {"name": "e", "pull_secret": PULL_SECRET, "cluster_id": cluster["id"]}
        infra_env = await _call(session, "POST", f"{base}/infra-envs", body)
        for index in range(first, min(first + IN_A_CLUSTER, count)):
            ident = str(uuid.uuid4())
            url = f"{base}/infra-envs/{infra_env['id']}/hosts"
            await _call(session, "POST", url, {"host_id": ident})
            reply = {"step_type": "inventory", "step_id": "x", "exit_code": 0, "output": json.dumps(inventory(index))}
            await _call(session, "POST", f"{url}/{ident}/instructions", reply)
            hosts.append(f"{url}/{ident}/instructions")
    return hosts


async def _poll(session: aiohttp.ClientSession, hosts: list[str], over: float, rounds: int) -> list[float]:
    """Latencies in seconds of polls that are spread evenly over `over` seconds a round."""
    loop, found = asyncio.get_running_loop(), []

    async def one(url: str, at: float) -> None:
        await asyncio.sleep(max(0.0, at - loop.time()))
        started = time.perf_counter()
        await _call(session, "GET", f"{url}?timestamp={int(time.time())}")
        found.append(time.perf_counter() - started)

    for __ in range(rounds):
        start = loop.time()
        await asyncio.gather(*(one(url, start + over * number / len(hosts)) for number, url in enumerate(hosts)))
    return found


def record(**figures: Any) -> None:
    line = json.dumps(figures)
    print(line)
    path = os.environ.get("AGENTLAB_BENCHMARK")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


async def _measure(folder: Path, count: int, over: float, rounds: int, *, durable: bool = True) -> dict[str, float]:
    served = Served(folder, durable=durable)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100)) as session:
            hosts = await _populate(session, served.url, count)
            await _poll(session, hosts, over, 1)
            before = served.cpu()
            found = sorted(await _poll(session, hosts, over, rounds))
            used = served.cpu() - before
        figures = {
            "hosts": count,
            "durable": durable,
            "polls": len(found),
            "cpu_ms_per_poll": round(1000 * used / len(found), 3),
            "p50_ms": round(1000 * statistics.median(found), 2),
            "p99_ms": round(1000 * found[int(len(found) * 0.99)], 2),
            "rss_mib": round(served.memory() / 1024, 1),
        }
        record(**figures)
        return figures
    finally:
        served.stop()


@pytest.mark.parametrize("count", [1000])
def test_latency_of_instructions(tmp_path: Path, count: int) -> None:
    """1,000 hosts that poll once a minute, on one core."""
    figures = asyncio.run(_measure(tmp_path, count, 60, 1))
    assert figures["cpu_ms_per_poll"] * count / 60_000 < 0.5, "half a core must do for 1,000 hosts a minute"
    assert figures["p99_ms"] < 50


def test_cost_stays_flat(tmp_path: Path) -> None:
    found = {}
    for count in (100, 1000, 5000):
        folder = tmp_path / str(count)
        folder.mkdir()
        found[count] = asyncio.run(_measure(folder, count, count / 100, max(1, 2000 // count)))
    assert found[5000]["cpu_ms_per_poll"] < 2 * found[100]["cpu_ms_per_poll"]


def test_cost_of_durability(tmp_path: Path) -> None:
    """Answers that wait for the disk take at most 10 % more CPU: median of five alternating pairs."""
    ratios = []
    for number in range(5):
        cost = {}
        for durable in (True, False):
            folder = tmp_path / f"{number}-{durable}"
            folder.mkdir()
            cost[durable] = asyncio.run(_measure(folder, 500, 10, 4, durable=durable))["cpu_ms_per_poll"]
        ratios.append(cost[True] / cost[False])
    record(durability=round(statistics.median(ratios), 3), all=[round(ratio, 3) for ratio in ratios])
    assert statistics.median(ratios) <= 1.10
