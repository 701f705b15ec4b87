"""A swarm drives our service to installed as it drove the real one, and the service reports the same as the real one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from ansible_collections.agentlab.ocp.payload.api_server.auth import make_tokens
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings
from ansible_collections.agentlab.ocp.tests.recorded import replay
from ansible_collections.agentlab.ocp.tests.recorded.proxy import Proxy
from ansible_collections.agentlab.ocp.tests.unit.api_server.description import Description
from ansible_collections.agentlab.ocp.tests.unit.api_server.lab import DESCRIPTIONS, Lab

AGENT = "registry.example/agent:1"
RELEASE = {
    "openshift_version": "4.22.0",
    "version": "4.22.0",
    "cpu_architecture": "x86_64",
    "cpu_architectures": ["x86_64"],
    "url": "registry.example/release",
}
ENVIRONMENT = {
    "RELEASE_IMAGES": json.dumps([RELEASE]),
    "AGENT_DOCKER_IMAGE": AGENT,
    "INSTALL_INVOKER": "assisted-installer",
}
PACE: dict[str, Any] = {
    "think_time": 0.0, "watch": 0.3, "controller_poll": 0.3, "installer_poll": 0.2, "poll_limit": 0.3, "stall": 60.0, "logs_kib": 1,
    "register_interval": 0.2, "agent_version": AGENT, "openshift_version": "4.22.0", "keep": True,
}  # fmt: skip
Row = tuple[str, str, str, str]
"""Severity, name, host or nothing, message."""


def recorded() -> dict[str, list[Row]]:
    found = json.loads((replay.HERE / "events.json").read_text())
    return {cluster: [tuple(row) for row in rows] for cluster, rows in found.items()}


async def told(lab: Lab, cluster_id: str) -> list[Row]:
    cluster = await lab.call("GET", f"/clusters/{cluster_id}")
    names = {host["id"]: host["requested_hostname"] for host in cluster["hosts"]}
    rows = []
    for event in await lab.call("GET", "/events", query={"cluster_id": cluster_id}):
        message = event["message"]
        for ident, name in {cluster_id: cluster["name"], **names}.items():
            message = message.replace(ident, name)
        rows.append((event["severity"], event["name"], names.get(event.get("host_id", ""), ""), message))
    return rows


def reports(rows: list[Row], host: str) -> list[Row]:
    """Reports on a host, or on the cluster, after it is ready: before that much depends on the order of arrival."""
    own = [row for row in rows if row[2] == host]
    start = next(
        at for at, row in enumerate(own) if row[3].endswith(("to ready", "to known (Host is ready to be installed)"))
    )
    return own[start:]


def images(rows: list[Row]) -> tuple[str, ...]:
    """The images that were looked for, in their order."""
    names = (
        row[3].partition("New image status ")[2].partition(". result")[0]
        for row in rows
        if row[1] == "image_status_updated"
    )
    return tuple(dict.fromkeys(names))


@pytest.mark.slow
async def test_events_are_those_of_the_real_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = recorded()
    monkeypatch.setattr(Engine, "needed_images", lambda self, cluster: images(real["swarm-0"]))
    async with Lab(
        tmp_path, {**ENVIRONMENT, "HOST_MONITOR_INTERVAL": "200ms", "CLUSTER_MONITOR_INTERVAL": "2s"}
    ) as lab:
        settings = Settings(
            str(lab.server.make_url("")).rstrip("/"), clusters=2, topology={"sno": 1, "compact": 1}, **PACE
        )
        result = await asyncio.wait_for(Swarm(settings).run(), 90)
        assert result["ends"] == {"installed": 2} and not result["errors"]
        ours = {cluster["name"]: await told(lab, cluster["id"]) for cluster in await lab.call("GET", "/clusters")}
    assert ours.keys() == real.keys()
    for cluster, rows in real.items():
        mine = ours[cluster]
        lacking = {row[:2] for row in rows} - {row[:2] for row in mine}
        assert {name for __, name in lacking if not name.endswith(("validation_failed", "validation_fixed"))} == set()
        hosts = {row[2] for row in rows if row[2]}
        assert {row[2] for row in mine if row[2]} == hosts
        bootstrap = {row[2] for side in (rows, mine) for row in side if "Starting installation: bootstrap" in row[3]}
        for host in hosts | {""}:
            if host in bootstrap and len(bootstrap) > 1:
                continue  # which master it is hangs on the order of registration
            assert reports(mine, host) == reports(rows, host), f"{cluster} {host}"


async def test_operators_as_the_real_service_reports_them(tmp_path: Path) -> None:
    async with Lab(
        tmp_path, {**ENVIRONMENT, "HOST_MONITOR_INTERVAL": "200ms", "CLUSTER_MONITOR_INTERVAL": "2s"}
    ) as lab:
        url = str(lab.server.make_url("")).rstrip("/")
        settings = Settings(url, clusters=1, operators=("lso", "metallb"), hardware={"baremetal": 1}, **PACE)
        result = await asyncio.wait_for(Swarm(settings).run(), 90)
        assert result["ends"] == {"installed": 1} and not result["errors"]
        [cluster] = await lab.call("GET", "/clusters")
        rows = await told(lab, cluster["id"])
    # Recorded with a real service and the same settings.
    names = ("cluster_finalizing_stage_updated", "cluster_operator_status", "cluster_installation_completed")
    stage, state = "Updated finalizing stage of the cluster to '{}'", "Operator {} status: {} message: {} is {}"
    assert [row[3] for row in rows if row[1] in names] == [
        stage.format("Waiting for cluster operators"),
        *(state.format("console", status, "console", status) for status in ("progressing", "available")),
        stage.format("Adding router ca"),
        stage.format("Waiting for olm operators csv initialization"),
        stage.format("Applying olm manifests"),
        stage.format("Waiting for olm operators csv"),
        *(
            state.format(name, status, name, status)
            for status in ("progressing", "available")
            for name in ("lso", "metallb")
        ),
        stage.format("Done"),
        "Successfully completed installing cluster",
    ]


#: Requests that an installation requires.
NEEDED = (
    ("POST", "/v2/infra-envs/x/hosts"),
    ("GET", "/v2/infra-envs/x/hosts/x/instructions"),
    ("PUT", "/v2/infra-envs/x/hosts/x/progress"),
    ("POST", "/v2/clusters/x/logs"),
    ("POST", "/v2/clusters/x/actions/complete-installation"),
)


@pytest.mark.parametrize("description", DESCRIPTIONS)
async def test_every_answer_is_as_described(tmp_path: Path, description: Description) -> None:
    key, tokens = make_tokens()
    auth = {"AUTH_TYPE": "agent-installer-local", "EC_PUBLIC_KEY_PEM": key}
    async with Lab(
        tmp_path, {**ENVIRONMENT, **auth, "HOST_MONITOR_INTERVAL": "200ms", "CLUSTER_MONITOR_INTERVAL": "1s"}
    ) as lab:
        proxy = Proxy(str(lab.server.make_url("")), None, description)
        async with TestServer(proxy.app()) as server:
            settings = Settings(
                str(server.make_url("")).rstrip("/"), clusters=3, topology={"sno": 1, "compact": 1, "ha": 1},
                agent_token=tokens["agentAuth"], user_token=tokens["userAuth"], **{**PACE, "keep": False},
            )  # fmt: skip
            result = await asyncio.wait_for(Swarm(settings).run(), 90)
    assert result["ends"] == {"installed": 3} and not result["errors"]
    assert not proxy.wrong
    seen = {text.partition(" ")[0] for text in proxy.exchanges}
    assert {description.operation(*request)["operationId"] for request in NEEDED} <= seen, seen
