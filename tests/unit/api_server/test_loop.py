"""A body of the largest accepted size does not hold the event loop, whatever is in it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import limits

from .lab import PULL_SECRET, VERSION, Agent, Lab, inventory

pytestmark = pytest.mark.flaky(reruns=3)  # measurements: the load of the machine only adds to them

#: Seconds on a usual processor.
MOST = 0.05
Watched = Callable[[], AbstractAsyncContextManager[Callable[[], float]]]
#: Space for texts in addition to the other fields of a body.
LARGE, NETWORKS = limits.MAX_BODY - 4096, limits.MAX_INFRA_ENV - 4096


def filled(pattern: str, most: int = LARGE, values: int = 190_000) -> str:
    """A JSON list of a pattern, as long as may be."""
    count = min(
        values // max(1, pattern.count(",") + pattern.count("[") + pattern.count("{") + 1), most // (len(pattern) + 1)
    )
    return "[" + ",".join([pattern] * count) + "]"


def body(**texts: str) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in texts.items()) + "}"


def cluster(**more: str) -> tuple[str, str, str]:
    given = {
        "name": '"ostest"',
        "openshift_version": json.dumps(VERSION),
        "base_dns_domain": '"test.example"',
        "pull_secret": json.dumps(PULL_SECRET),
    }
    return "POST", "/clusters", body(**{**given, **more})


def infra_env(**more: str) -> tuple[str, str, str]:
    return "POST", "/infra-envs", body(**{"name": '"e"', "pull_secret": json.dumps(PULL_SECRET), **more})


PAIRS = filled('{"mac_address":"02:00:00:00:00:01","logical_nic_name":"a"}', NETWORKS)
NIC = "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4: {enabled: true, dhcp: true}\n"
ROUTE = "  - {destination: 10.0.0.0/8, next-hop-address: 192.168.111.1, next-hop-interface: eth0}\n"
ROUTES = f"{NIC}routes:\n  config:\n{ROUTE * 4000}"
FILES = filled('{"path":"/a"}', LARGE // 2)
TANG = filled('{"url":"http://a","thumbprint":"b"}', LARGE // 3)
HOST = '{"network_yaml":%s,"mac_interface_map":[{"mac_address":"02:00:00:00:00:01","logical_nic_name":"eth0"}]}'
BODIES = {
    "numbers": lambda: cluster(tags=filled("1")),
    "no JSON": lambda: ("POST", "/clusters", "\n" * LARGE + "x"),
    "no UTF-8": lambda: ("POST", "/clusters", '{"name":"' + "\udc80" * LARGE),
    "deep": lambda: ("POST", "/clusters", "[" * LARGE),
    "vips": lambda: cluster(api_vips=filled('{"ip":"192.168.111.5"}')),
    "networks": lambda: cluster(machine_networks=filled('{"cidr":"192.168.111.0/24"}')),
    "operators": lambda: cluster(olm_operators=filled('{"name":"lvm","properties":""}')),
    "pull secret": lambda: cluster(pull_secret=json.dumps(json.dumps({"auths": {f"r{n}": {"auth": "dXNlcjpwYXNz"} for n in range(3_500)}}))),
    "large pull secret": lambda: cluster(pull_secret=json.dumps(json.dumps({"auths": {f"r{n}": {"auth": "dXNlcjpwYXNz"} for n in range(20_000)}}))),
    "ssh keys": lambda: cluster(ssh_public_key=json.dumps("ssh-ed25519 AAAA a\n" * 40_000)),
    "no_proxy": lambda: cluster(no_proxy=json.dumps(",".join(f"n{n}.example" for n in range(60_000)))),
    "ntp": lambda: cluster(additional_ntp_source=json.dumps(",".join(f"n{n}.example" for n in range(60_000)))),
    "tang": lambda: cluster(disk_encryption=json.dumps({"mode": "tang", "enable_on": "all", "tang_servers": TANG})),
    "hosts": lambda: infra_env(static_network_config=filled(HOST % json.dumps(NIC), values=6 * 1000)),
    "one large network": lambda: infra_env(static_network_config="[" + HOST % json.dumps(ROUTES) + "]"),
    "aliases": lambda: infra_env(static_network_config="[" + HOST % json.dumps("a: &a {x: y}\nb: {<<: [" + "*a," * 5000 + "]}") + "]"),
    "MAC addresses": lambda: infra_env(static_network_config=f'[{{"network_yaml":{json.dumps(NIC)},"mac_interface_map":{PAIRS}}}]'),
    "ignition": lambda: infra_env(ignition_config_override=json.dumps(f'{{"ignition":{{"version":"3.1.0"}},"storage":{{"files":{FILES}}}}}')),
    "certificates": lambda: infra_env(additional_trust_bundle=json.dumps("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" * 900)),
    "kernel arguments": lambda: infra_env(kernel_arguments=filled('{"operation":"append","value":"a=b"}')),
}  # fmt: skip


@pytest.mark.parametrize("kind", BODIES)
async def test_bodies_of_users(watched: Watched, tmp_path: Path, kind: str) -> None:
    async with Lab(tmp_path) as lab:
        method, path, text = BODIES[kind]()
        raw = text.encode(errors="surrogateescape")
        assert len(raw) < (limits.MAX_INFRA_ENV if "infra" in path else limits.MAX_BODY)
        async with watched() as longest:
            code, answer, __ = await lab.raw(method, path, data=raw, headers={"Content-Type": "application/json"})
            if kind in ("one large network", "ignition"):
                files = f"/infra-envs/{json.loads(answer)['id']}/downloads/"
                for file in (
                    "files?file_name=discovery.ign",
                    "files?file_name=static-network-config",
                    "minimal-initrd",
                ):
                    code, answer, __ = await lab.raw("GET", files + file)
                    assert code in (200, 204)
            assert code in (200, 201, 204, 400)
            assert longest() < MOST


MANIFESTS = {
    "values": "[" + "1," * 400_000 + "1]",
    "base 60": "a: " + "1:10" * 100_000,
    "one text": "x: " + "y" * 900_000,
    "documents": "---\na: b\n" * 90_000,
    "aliases": "a: &a [x, y]\nb: [" + "*a, " * 200_000 + "]",
    "settings": "kind: ConfigMap\nmetadata: {name: agentlab-settings}\ndata:\n" + "".join(f"  K{n}: x\n" for n in range(80_000)),
}  # fmt: skip


@pytest.mark.parametrize("kind", MANIFESTS)
async def test_manifests(watched: Watched, tmp_path: Path, kind: str) -> None:
    async with Lab(tmp_path) as lab:
        path = f"/clusters/{(await lab.cluster())['id']}/manifests"
        content = base64.b64encode(MANIFESTS[kind].encode()).decode()
        raw = json.dumps({"file_name": "x.yaml", "content": content}).encode()
        async with watched() as longest:
            for method in ("POST", "PATCH"):
                code, __, __ = await lab.raw(method, path, data=raw, headers={"Content-Type": "application/json"})
                assert code in (201, 200, 400, 404)
            assert longest() < MOST


def report(peer: dict[str, Any]) -> dict[str, Any]:
    """As many entries of one peer as an agent can report."""
    return {"remote_hosts": [{**peer, "host_id": "$HOST"}]}


def many(entry: dict[str, Any], count: int) -> list[dict[str, Any]]:
    return [entry] * count


L2 = {
    "outgoing_nic": "eth0", "outgoing_ip_address": "192.168.111.20", "remote_ip_address": "192.168.111.21", "remote_mac": "52:54:00:00:00:01",
    "successful": True,
}  # fmt: skip
L3 = {
    "outgoing_nic": "eth0",
    "remote_ip_address": "192.168.111.21",
    "successful": True,
    "average_rtt_ms": 0.3,
    "packet_loss_percentage": 0,
}
REPLIES: dict[str, tuple[str, Callable[[], Any]]] = {
    "connectivity": ("connectivity-check", lambda: report({"l2_connectivity": many(L2, 10_000), "l3_connectivity": many(L3, 10_000)})),
    "peers": ("connectivity-check", lambda: {"remote_hosts": many({"host_id": "$HOST", "l3_connectivity": [L3]}, 15_000)}),
    "disks": ("inventory", lambda: inventory(0, disks=many({"name": "sda", "path": "/dev/sda", "drive_type": "HDD", "size_bytes": 2 * 10**10}, 4_000))),
    "more disks": ("inventory", lambda: inventory(0, disks=many({"name": "sda", "path": "/dev/sda", "drive_type": "HDD", "size_bytes": 2 * 10**10}, 18_000))),
    "NICs": ("inventory", lambda: inventory(0, interfaces=many({"name": "eth0", "mac_address": "52:54:00:00:00:01", "ipv4_addresses": ["10.0.0.1/8"]}, 4_000))),
    "flags": ("inventory", lambda: inventory(0, cpu={"count": 4, "architecture": "x86_64", "flags": ["x"] * 180_000})),
    "free addresses": ("free-network-addresses", lambda: many({"network": "10.0.0.0/8", "free_addresses": ["10.0.0.1"]}, 50_000)),
    "NTP": ("ntp-synchronizer", lambda: {"ntp_sources": many({"source_name": "a", "source_state": "synced"}, 1_200)}),
    "more NTP": ("ntp-synchronizer", lambda: {"ntp_sources": many({"source_name": "a", "source_state": "synced"}, 55_000)}),
    "names": ("domain-resolution", lambda: {"resolutions": many({"domain_name": "a.b", "ipv4_addresses": ["10.0.0.1"]}, 50_000)}),
    "no output": ("inventory", lambda: "x" * (limits.MAX_REPLY - 4096)),
}  # fmt: skip


@pytest.mark.parametrize("kind", REPLIES)
async def test_replies_of_agents(watched: Watched, tmp_path: Path, kind: str) -> None:
    async with Lab(tmp_path) as lab:
        infra = await lab.infra_env((await lab.cluster())["id"])
        agent, peer = Agent(lab, infra["id"], 0), Agent(lab, infra["id"], 1)
        for each in (agent, peer):
            await each.register()
        step, make = REPLIES[kind]
        output = json.dumps(make()).replace("$HOST", peer.id)
        raw = json.dumps({"step_type": step, "step_id": "x", "exit_code": 0, "output": output}).encode()
        assert len(raw) < limits.MAX_REPLY
        async with watched() as longest:
            code, __, __ = await lab.raw(
                "POST", f"{agent.path}/instructions", data=raw, headers={"Content-Type": "application/json"}
            )
            assert code in (204, 400)
            assert longest() < MOST


async def test_day2_host_with_a_large_network(watched: Watched, tmp_path: Path) -> None:
    """Its Ignition config has keyfiles of the infra-env's network config, which may be as long as a body."""
    async with Lab(tmp_path) as lab:
        imported = {
            "name": "ostest",
            "api_vip_dnsname": "api.ostest.test.example",
            "openshift_cluster_id": str(uuid4()),
        }
        cluster = await lab.call("POST", "/clusters/import", imported, 201)
        [nic] = inventory(7)["interfaces"]
        pair = {"mac_address": nic["mac_address"], "logical_nic_name": "eth0"}
        network = {"network_yaml": ROUTES, "mac_interface_map": [pair]}
        infra = await lab.infra_env(cluster["id"], static_network_config=[network])
        agent = Agent(lab, infra["id"], 7)
        ignition = {"is_success": True, "ignition": '{"ignition":{"version":"3.2.0"}}'}
        agent.do_api_vip_connectivity_check = lambda args: ignition  # type: ignore[attr-defined]
        await agent.register()
        task = asyncio.create_task(agent.run())
        await lab.until(agent.path, lambda host: host["status"] == "known")
        agent.done = True
        await task
        async with watched() as longest:
            await lab.call("POST", f"{agent.path}/actions/install", status=202)
            assert longest() < MOST
        config = (await lab.raw("GET", f"/infra-env/{infra['id']}/hosts/{agent.id}/downloads/ignition"))[1]
        assert b"system-connections" in config
