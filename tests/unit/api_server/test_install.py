"""Whole installations by REST, with fake agents, every exchange checked against the API description."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from .lab import Agent, Lab

VIPS: dict[str, Any] = {"api_vips": [{"ip": "192.168.111.5"}], "ingress_vips": [{"ip": "192.168.111.4"}]}


async def drive(
    lab: Lab, count: int, final: str, roles: dict[int, str] | None = None, **fields: Any
) -> tuple[dict[str, Any], list[Agent]]:
    cluster = await lab.cluster(**fields)
    infra_env = await lab.infra_env(cluster["id"])
    agents = [Agent(lab, infra_env["id"], index, final) for index in range(count)]
    tasks = [asyncio.create_task(agent.run()) for agent in agents]
    path = f"/clusters/{cluster['id']}"
    for index, role in (roles or {}).items():
        await lab.until(path, lambda c: any(h["id"] == agents[index].id for h in c["hosts"]))  # noqa: B023
        await lab.call("PATCH", agents[index].path, {"host_role": role}, 201)
    await lab.until(path, lambda c: c["status"] == "ready" and len(c["hosts"]) == count)
    await lab.call("POST", f"{path}/actions/install", status=202)
    await lab.until(path, lambda c: all(h.get("progress", {}).get("current_stage") == final for h in c["hosts"]))
    await asyncio.gather(*tasks)
    return await lab.call("GET", path), agents


@pytest.mark.asyncio
async def test_single_node(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster, [agent] = await drive(lab, 1, "Rebooting", high_availability_mode="None")
        assert cluster["status"] == "installing"
        __, raw, __ = await lab.raw("GET", f"/clusters/{cluster['id']}/downloads/files?file_name=metadata.json")
        assert cluster["schedulable_masters_forced_true"] is True
        assert cluster["openshift_cluster_id"] == json.loads(raw)["clusterID"]
        [host] = cluster["hosts"]
        assert (host["status"], host["role"], host["bootstrap"]) == ("installing-in-progress", "master", True)
        assert agent.install["role"] == "bootstrap"
        assert cluster["progress"]["total_percentage"] == 10 + int(0.7 * (6 * 100 // 8))


@pytest.mark.asyncio
async def test_three_masters_and_two_workers(tmp_path: Path) -> None:
    async with Lab(tmp_path, {"BOOTSTRAP_HOST_MAC": "52:54:00:00:00:03"}) as lab:
        cluster, agents = await drive(lab, 5, "Rebooting", **VIPS)
        roles = sorted(host["role"] for host in cluster["hosts"])
        assert roles == ["master"] * 3 + ["worker"] * 2
        assert cluster["schedulable_masters_forced_true"] is False
        assert [host["id"] for host in cluster["hosts"] if host.get("bootstrap")] == [agents[3].id]
        assert cluster["status"] == "installing"


@pytest.mark.asyncio
async def test_checks_are_repeated_at_their_own_pace(tmp_path: Path) -> None:
    async with Lab(tmp_path, {"STEP_REPEAT_SECONDS": "20"}) as lab:
        now = lab.engine.clock()
        lab.engine.clock = lambda: now
        cluster = await lab.cluster(high_availability_mode="None")
        agent = Agent(lab, (await lab.infra_env(cluster["id"]))["id"], 0)
        await agent.register()

        async def asked() -> list[dict[str, Any]]:
            answer = await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": int(now)})
            return list(answer["instructions"])

        [step] = await asked()
        assert step["step_type"] == "inventory"
        now += 5
        assert await asked() == []
        await agent.reply(step, "", code=1)
        assert len(await asked()) == 1, "what failed is asked for again"
        await agent.register()
        assert len(await asked()) == 1, "a new agent was asked for nothing"
        now += 21
        assert len(await asked()) == 1
        now -= 3600
        assert len(await asked()) == 1, "a clock that was set back asks for nothing"
