"""Bad input harms nothing: no 5xx, nothing the description refuses is accepted, files stay where they belong."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import gzip
import io
import json
import tarfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from ansible_collections.agentlab.ocp.payload.api_server import app, limits
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.api_server.models import MODELS, Invalid
from ansible_collections.agentlab.ocp.payload.api_server.steps import PROBED
from ansible_collections.agentlab.ocp.payload.api_server.store import Store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .lab import DESCRIPTION, ENV, OWN, PULL_SECRET, V2, VERSION, Agent, Lab

JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    "x",
    "\x00",
    "é" * 300,
    [],
    [1],
    {},
    {"a": 1},
    "../../etc/passwd",
    "10.0.0.0/33",
    "::1",
]
CLUSTER = {
    "name": "ostest",
    "openshift_version": VERSION,
    "pull_secret": PULL_SECRET,
    "base_dns_domain": "a.b",
    "high_availability_mode": "Full",
    "api_vips": [{"ip": "192.168.111.5"}],
    "machine_networks": [{"cidr": "192.168.111.0/24"}],
    "control_plane_count": 3,
    "cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
    "platform": {"type": "baremetal"},
    "hyperthreading": "all",
    "network_type": "OVNKubernetes",
    "disk_encryption": {"enable_on": "none"},
    "vip_dhcp_allocation": False,
    "cpu_architecture": "x86_64",
}
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/clusters", CLUSTER),
    (
        "PATCH",
        "/clusters/{c}",
        {
            k: v
            for k, v in CLUSTER.items()
            if k not in ("openshift_version", "high_availability_mode", "cpu_architecture")
        },
    ),
    (
        "POST",
        "/infra-envs",
        {
            "name": "e",
            "pull_secret": PULL_SECRET,
            "image_type": "full-iso",
            "cpu_architecture": "x86_64",
            "rendezvous_ip": "192.168.111.20",
            "static_network_config": [
                {
                    "network_yaml": "interfaces: []",
                    "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
                }
            ],
        },
    ),
    ("POST", "/infra-envs/{i}/hosts", {"host_id": str(uuid.uuid4()), "discovery_agent_version": "v"}),
    (
        "PATCH",
        "/infra-envs/{i}/hosts/{h}",
        {
            "host_role": "master",
            "host_name": "a",
            "disks_selected_config": [{"id": "x", "role": "none"}],
            "node_labels": [{"key": "a", "value": "b"}],
            "fencing_credentials": {"address": "a", "username": "b", "password": "c"},
        },
    ),
    (
        "POST",
        "/infra-envs/{i}/hosts/{h}/instructions",
        {"step_type": "ntp-synchronizer", "step_id": "x", "exit_code": 0, "output": "{}", "error": ""},
    ),
    ("PUT", "/infra-envs/{i}/hosts/{h}/progress", {"current_stage": "Installing", "progress_info": "x"}),
    ("PUT", "/infra-envs/{i}/hosts/{h}/logs-progress", {"logs_state": "requested"}),
    ("POST", "/clusters/{c}/manifests", {"folder": "openshift", "file_name": "a.yaml", "content": "YTogMQ=="}),
    (
        "PUT",
        "/clusters/{c}/monitored-operators",
        {"name": "console", "status": "available", "status_info": "x", "version": "1"},
    ),
    ("POST", "/clusters/{c}/actions/complete-installation", {"is_success": True, "error_info": "", "data": {}}),
    (
        "POST",
        "/events",
        {"severity": "info", "message": "m", "event_time": "2026-01-01T00:00:00Z", "name": "n", "category": "user"},
    ),
    ("PUT", "/clusters/{c}/ignored-validations", {"cluster-validation-ids": "[]", "host-validation-ids": '["all"]'}),
]


def mutations(value: Any) -> list[Any]:
    """The value with one thing wrong: each field replaced by each piece of junk, or left out, at every depth."""
    found: list[Any] = []
    if isinstance(value, dict):
        for key, entry in value.items():
            found.append({k: v for k, v in value.items() if k != key})
            found += [{**value, key: junk} for junk in JUNK]
            found += [{**value, key: inner} for inner in mutations(entry)]
    elif isinstance(value, list) and value:
        found += [[inner] for inner in [*JUNK, *mutations(value[0])]]
    return found


async def test_every_field_mutated(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        count = 0
        for method, template, good in BODIES:
            for body in mutations(good):
                path = template.format(c=cluster["id"], i=infra_env["id"], h=agent.id)
                code, raw, __ = await lab.raw(method, path, json=body)
                count += 1
                assert code < 500, f"{method} {path} {body}: {raw!r}"
                if code < 400:
                    for description in (OWN, DESCRIPTION):
                        assert description is None or description.allows(method, V2 + path, body), (
                            f"{method} {path} accepted {body}"
                        )
                else:
                    OWN.refused(method, V2 + path, code, json.loads(raw))
                    if DESCRIPTION:
                        DESCRIPTION.exchange(method, V2 + path, body, code, json.loads(raw))
        assert count > 1500
        assert (await lab.call("GET", f"/clusters/{cluster['id']}"))["id"] == cluster["id"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[" * 100000,
        b'{"a": NaN}',
        b'{"name": "\\ud800"}',
        b"\xff\xfe",
        b"1" * 5000,
        b'"x"',
        b"null",
        b'{"host_id": 1e999}',
    ],
)
async def test_broken_json(tmp_path: Path, raw: bytes) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        for method, path in (
            ("POST", "/clusters"),
            ("POST", f"/infra-envs/{infra_env['id']}/hosts"),
            ("PATCH", f"/clusters/{cluster['id']}/install-config"),
        ):
            code, answer, __ = await lab.raw(method, path, data=raw, headers={"Content-Type": "application/json"})
            assert code == 400, answer
            assert "message" in json.loads(answer) or json.loads(answer)["kind"] == "Error"


async def test_bodies_that_are_not_json_by_their_headers(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        good = json.dumps(CLUSTER).encode()
        for kind in ("text/plain", "application/xml", "multipart/form-data", "x" * 300):
            code, answer, __ = await lab.raw("POST", "/clusters", data=good, headers={"Content-Type": kind})
            assert code == 400, answer
            assert json.loads(answer)["message"].startswith(f'unsupported media type "{kind[:80]}"')
        packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        code, answer, __ = await lab.raw("POST", "/clusters", data=b"no gzip", headers=packed)
        assert code == 400, answer
        assert "the body cannot be read" in json.loads(answer)["message"]


async def test_paths_and_queries(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        c = f"/clusters/{cluster['id']}"
        for path, status in (
            ("/clusters/nothing", 400),
            (f"/clusters/{uuid.uuid4()}", 404),
            ("/nowhere", 404),
            (f"{c}/downloads/files", 400),
            (f"{c}/downloads/files?file_name=../../state.sqlite", 400),
            (f"{c}/downloads/files?file_name=bootstrap.ign", 409),
            (f"{c}/manifests/files?file_name=../../../etc/passwd", 422),
            (f"{c}/logs?logs_type=host&host_id=../../x", 400),
            (f"{c}/logs?logs_type=controller", 409),
            ("/events?limit=abc", 400),
            ("/events?limit=-1", 200),
            ("/events?order=up", 400),
            ("/events?limit=99999999999999999999", 400),
            ("/clusters?with_hosts=maybe", 200),
            (f"/events?host_ids={'a,' * 900}", 400),
            (f"/events?host_ids={','.join([str(uuid.uuid4())] * 180)}", 200),
            ("/events?severities=loud", 400),
            ("/clusters?with_hosts=", 200),
        ):
            code, raw, __ = await lab.raw("GET", path)
            assert code == status, f"{path}: {code} {raw!r}"
        code, raw, __ = await lab.raw("PUT", "/clusters")
        assert (code, json.loads(raw)["message"]) == (405, "method PUT is not allowed, but [GET,POST] are")


async def test_logs_go_to_their_place(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0, hostname="../../../tmp/evil\r\nX: y")
        await agent.register()
        for __ in range(2):
            await agent.poll()
        path = f"/clusters/{cluster['id']}/logs"
        query = {"logs_type": "host", "host_id": agent.id, "infra_env_id": infra_env["id"]}
        form = aiohttp.FormData()
        form.add_field("upfile", b"logs", filename="../../../../tmp/evil.tar.gz")
        code, raw, __ = await lab.raw("POST", path, params=query, data=form)
        assert code == 204, raw
        files = [
            str(found.relative_to(tmp_path))
            for found in tmp_path.rglob("*")
            if found.is_file() and "state" not in found.name
        ]
        assert files == [f"logs/{cluster['id']}/{agent.id}.tar.gz"]
        code, raw, headers = await lab.raw("GET", path, params={"logs_type": "host", "host_id": agent.id})
        assert (code, raw) == (200, b"logs")
        assert headers["Content-Length"] == "4"
        for name, value in {
            "Range": "bytes=0-1",
            "If-None-Match": "*",
            "If-Match": '"x"',
            "If-Modified-Since": "Wed, 21 Oct 2037 07:28:00 GMT",
        }.items():
            part = await lab.raw("GET", path, params={"logs_type": "host", "host_id": agent.id}, headers={name: value})
            assert part[:2] == (200, b"logs"), name
        assert "evil" in headers["Content-Disposition"]
        assert "X" not in headers
        for bad in ({**query, "host_id": str(uuid.uuid4())}, {**query, "infra_env_id": str(uuid.uuid4())}):
            code, raw, __ = await lab.raw("POST", path, params=bad, data=b"x")
            assert code == 404, raw
        for data, kind in (
            (b"x", "text/plain"),
            (b"x", "multipart/form-data"),
            (b"--b\r\n", "multipart/form-data; boundary=b"),
        ):
            code, raw, __ = await lab.raw("POST", path, params=query, data=data, headers={"Content-Type": kind})
            assert code == 400, raw


async def uploaded(lab: Lab, cluster_id: str, agent: Agent, logs: bytes, status: int = 204) -> None:
    form = aiohttp.FormData()
    form.add_field("upfile", logs, filename="logs.tar.gz")
    query = {"logs_type": "host", "host_id": agent.id, "infra_env_id": agent.infra_env_id}
    code, raw, __ = await lab.raw("POST", f"/clusters/{cluster_id}/logs", params=query, data=form)
    assert code == status, raw


async def test_logs_of_upstream(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        for index, name in enumerate(("same", "same", "a" * 5000, "a" * 5000)):
            agent = Agent(lab, infra_env["id"], index, hostname=name)
            await agent.register()
            await agent.poll()
            await uploaded(lab, cluster["id"], agent, b"logs of %d" % index)
        code, raw, headers = await lab.raw("GET", f"/clusters/{cluster['id']}/logs")
        assert (code, headers["Content-Type"]) == (200, "application/octet-stream")
        code, __, headers = await lab.raw(
            "GET", f"/clusters/{cluster['id']}/logs", params={"logs_type": "host", "host_id": agent.id}
        )
        assert code == 200 and len(headers["Content-Disposition"]) < 300
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        found = {member.name: archive.extractfile(member).read() for member in archive}
    assert "cluster_registration_succeeded" in str(json.loads(found.pop("cluster_events.json")))
    assert sorted(found.values()) == [b"logs of %d" % index for index in range(4)]
    assert all(len(name) < 256 and "/" not in name for name in found)


async def test_logs_leave_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        await uploaded(lab, cluster["id"], agent, b"first")
        monkeypatch.setattr(limits, "MAX_LOGS", 100_000)
        await uploaded(lab, cluster["id"], agent, b"x" * 200_000, 400)
        monkeypatch.setattr(app.shutil, "disk_usage", lambda path: SimpleNamespace(free=limits.LEAST_FREE))
        await uploaded(lab, cluster["id"], agent, b"second", 503)
        folder = tmp_path / "logs" / cluster["id"]
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {f"{agent.id}.tar.gz": b"first"}


async def test_huge_bodies(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        large = json.dumps({"current_stage": "Installing", "progress_info": "x" * limits.MAX_NOTICE}).encode()
        reply = json.dumps(
            {"step_type": "inventory", "step_id": "x", "exit_code": 0, "output": " " * limits.MAX_REPLY}
        ).encode()
        kind = {"Content-Type": "application/json"}
        for method, path, raw in (("PUT", "progress", large), ("POST", "instructions", reply)):
            packed = {**kind, "Content-Encoding": "gzip"}
            for headers, data in (
                (kind, raw),
                (packed, gzip.compress(raw)),
                (packed, gzip.compress(bytes(2 * limits.MAX_REPLY))),
            ):
                code, answer, __ = await lab.raw(method, f"{agent.path}/{path}", data=data, headers=headers)
                assert code == 400 and b"larger than" in answer, answer[:300]
        assert "inventory" not in await lab.call("GET", agent.path)


async def test_a_huge_inventory_does_not_slow_other_hosts(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        hostile, other = (Agent(lab, infra_env["id"], index) for index in range(2))
        nics = [
            {
                "name": f"eth{i}",
                "mac_address": "52:54:00:00:00:01",
                "ipv4_addresses": [f"10.{i >> 8}.{i & 255}.{j}/8" for j in range(4)],
            }
            for i in range(2_500)
        ]
        hostile.inventory |= {"interfaces": nics}
        for agent in (hostile, other):
            await agent.register()
            await agent.poll()
        await lab.until(hostile.path, lambda host: host["status"] == "insufficient")
        while not (
            asked := [
                step for step in (await other.poll())["instructions"] if step["step_type"] == "connectivity-check"
            ]
        ):
            await asyncio.sleep(0.02)
        [peer] = json.loads(asked[0]["args"][0])
        assert peer["host_id"] == hostile.id
        assert sum(len(nic["ip_addresses"]) for nic in peer["nics"]) == PROBED


async def test_reports_about_unknown_hosts(tmp_path: Path) -> None:
    report = {"remote_hosts": [{"host_id": str(uuid.uuid4()), "l3_connectivity": []} for __ in range(1000)]}
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        await agent.reply({"step_type": "connectivity-check", "step_id": "x"}, report)
        other = {"machine_networks": [{"cidr": "192.168.112.0/24"}], "load_balancer": {"type": "user-managed"}}
        await lab.call("PATCH", f"/clusters/{cluster['id']}", other)
        assert lab.engine.reach_of(cluster["id"]).ids == [agent.id]
    async with Lab(tmp_path) as lab:
        assert lab.engine.reach_of(cluster["id"]).ids == [agent.id]


async def test_replies_that_do_not_decode(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        for kind, output in (
            ("inventory", {"interfaces": "x"}),
            ("inventory", []),
            ("inventory", {"cpu": {"count": "2"}}),
            ("connectivity-check", {"remote_hosts": {}}),
            ("ntp-synchronizer", "x"),
            ("domain-resolution", {}),
            ("verify-vips", {}),
            ("container-image-availability", {}),
            ("inventory", {"memory": {"physical_bytes": 2**80}}),
            ("free-network-addresses", [[]]),
        ):
            await agent.reply({"step_type": kind, "step_id": "x"}, output, status=400)
        for kind, output in (
            ("execute", "anything"),
            ("stop-installation", None),
            ("inventory", {"disks": None, "unknown": 1, "interfaces": [None]}),
        ):
            await agent.reply({"step_type": kind, "step_id": "x"}, output)
        await agent.reply(
            {"step_type": "inventory", "step_id": "x"},
            {
                "hostname": "h",
                "interfaces": [
                    {
                        "name": f"eth{i}",
                        "ipv4_addresses": ["-oProxyCommand=x", "10.0.0.1/99", "10.0.0.1/24"],
                        "mac_address": "$(reboot)",
                    }
                    for i in range(5)
                ]
                + [{"name": "-evil"}],
                "disks": [{"name": f"sd{i}", "size_bytes": -1} for i in range(9000)],
            },
        )
        host = await lab.call("GET", agent.path)
        found = json.loads(host["inventory"])
        assert [nic["ipv4_addresses"] for nic in found["interfaces"]] == [["10.0.0.1/24"]] * 5
        assert all("mac_address" not in nic for nic in found["interfaces"])


async def test_someone_elses_host(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        mine, other = await lab.infra_env(cluster["id"]), await lab.infra_env(cluster["id"])
        agent = Agent(lab, mine["id"], 0)
        await agent.register()
        thief = Agent(lab, other["id"], 1)
        thief.id, thief.path = agent.id, f"/infra-envs/{other['id']}/hosts/{agent.id}"
        await thief.register(409)
        await lab.call("GET", f"{thief.path}/instructions", status=404)
        await lab.call("PUT", f"{thief.path}/progress", {"current_stage": "Done"}, 404)
        await lab.call("PUT", f"{thief.path}/logs-progress", {"logs_state": "completed"}, 404)
        await thief.reply({"step_type": "inventory", "step_id": "x"}, thief.inventory, status=404)
        await lab.call("GET", thief.path.replace("envs", "env") + "/downloads/ignition", status=404)
        await lab.call("DELETE", thief.path, status=404)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["interfaces", "disks", "name", "remote_hosts", "host_id", "cpu", "count", "successful"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_models_refuse_or_give(value: Any) -> None:
    for model in ("inventory", "connectivity-report", "cluster-create-params"):
        for lenient in (True, False):
            with contextlib.suppress(Invalid):
                read = MODELS.output if lenient else MODELS.strict
                json.dumps(read(model, value), allow_nan=False)


@contextlib.asynccontextmanager
async def doors_of(service: app.Service) -> AsyncIterator[int]:
    """The service behind its connections, as `serve` starts it; the port."""
    runner = web.AppRunner(service.app(), access_log=None)
    await runner.setup()
    assert runner.server is not None
    server = await asyncio.get_running_loop().create_server(
        functools.partial(service.connections.open, runner.server), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await runner.server.shutdown(1)
        await runner.cleanup()


POST = b"POST /api/assisted-install/v2/clusters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


async def test_callers_that_never_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "PIECE_SECONDS"):
        monkeypatch.setattr(limits, name, 0.6)
    config = Config(ENV, tmp_path, tmp_path / "state.sqlite").check()
    service = app.Service(Engine(config, Store(config.state_file)))
    async with doors_of(service) as port, asyncio.timeout(30):
        hung = []
        for sent in (
            b"",
            b"GET / HTTP/1.1\r\nX-A: ",
            POST + b"Content-Length: 9\r\n\r\n{",
            POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            hung.append((reader, writer, sent))
        for reader, writer, sent in hung:
            answer = await reader.read(4096)
            if sent.startswith(b"POST"):
                assert answer.startswith(b"HTTP/1.1 400"), answer
                assert b"did not arrive within" in answer
            else:
                assert answer == b""
            writer.close()


async def test_idle_connections_give_way(tmp_path: Path) -> None:
    config = Config(ENV, tmp_path, tmp_path / "state.sqlite").check()
    service = app.Service(Engine(config, Store(config.state_file)))
    service.connections.most = 20
    async with doors_of(service) as port, asyncio.timeout(30):
        idle = [await asyncio.open_connection("127.0.0.1", port) for __ in range(60)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        assert await idle[0][0].read(1) == b""
        for __, other in idle:
            other.close()


async def test_unfinished_bodies_stay_small_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_HELD", 100_000)
    async with Lab(tmp_path) as lab:
        head = POST + b"Content-Length: 300000\r\n\r\n"
        large = await asyncio.open_connection("127.0.0.1", lab.server.port)
        large[1].write(head + b"x" * 80_000)
        await asyncio.sleep(0.1)
        small = await asyncio.open_connection("127.0.0.1", lab.server.port)
        small[1].write(head + b"x" * 50_000)
        async with asyncio.timeout(20):
            assert b"too many bodies" in await large[0].read(4096)
            await lab.cluster()
        for __, writer in (large, small):
            writer.close()


async def test_one_upload_of_a_host_at_a_time(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        path = f"{V2}/clusters/{cluster['id']}/logs?logs_type=host&host_id={agent.id}"
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000\r\n\r\n"
        part = b'--b\r\nContent-Disposition: form-data; name="upfile"; filename="x"\r\n\r\nhalf'
        reader, writer = await asyncio.open_connection("127.0.0.1", lab.server.port)
        writer.write(head.encode() + part)
        folder = tmp_path / "logs" / cluster["id"]
        async with asyncio.timeout(20):
            while not list(folder.glob(f"{app.UNFINISHED}*")):
                await asyncio.sleep(0.02)
            await uploaded(lab, cluster["id"], agent, b"whole")
            assert b"another upload" in await reader.read(4096)
        writer.close()
        assert [file.name for file in folder.iterdir()] == [f"{agent.id}.tar.gz"]
        (folder / f"{app.UNFINISHED}left").write_bytes(b"x")
    async with Lab(tmp_path) as lab:
        assert [file.name for file in folder.iterdir()] == [f"{agent.id}.tar.gz"]
        await lab.call("DELETE", f"/clusters/{cluster['id']}", status=204)
        assert not folder.exists()


async def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """What would change it is refused; reading continues, as does writing once there is space."""
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        pages = lab.engine.store.db.execute("PRAGMA page_count").fetchone()[0]
        lab.engine.store.db.execute(f"PRAGMA max_page_count = {pages}")
        manifest = {"file_name": "a.yaml", "content": base64.b64encode(b"a: " + b"x" * 1_000_000).decode()}
        code, raw, __ = await lab.raw("POST", f"/clusters/{cluster['id']}/manifests", json=manifest)
        assert code == 503, raw
        assert json.loads(raw)["reason"] == "the state cannot be written: database or disk is full"
        for path in ("/clusters", f"/infra-envs/{infra_env['id']}/hosts", f"/events?cluster_id={cluster['id']}"):
            assert (await lab.raw("GET", path))[0] == 200
        lab.engine.store.db.execute("PRAGMA max_page_count = 100000")
        await Agent(lab, infra_env["id"], 0).register()
    async with Lab(tmp_path) as lab:
        assert len(await lab.call("GET", f"/infra-envs/{infra_env['id']}/hosts")) == 1


async def test_events_are_asked_for_by_any_text(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        for text in ("%ff", "%00", "%ed%a0%80"):
            for name in ("message", "categories"):
                assert await lab.call("GET", f"/events?{name}={text}") == []
