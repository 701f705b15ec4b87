"""What the real agent sent to our service when it was recorded is accepted by our service now, and makes its hosts known."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.node_agent.steps import STEPS
from ansible_collections.agentlab.ocp.tests.recorded.replay import Exchange, Replay, load
from ansible_collections.agentlab.ocp.tests.unit.api_server.lab import V2, Lab

# Requests to the recorded service.
RELEASE = {
    "openshift_version": "4.22.0",
    "version": "4.22.0",
    "cpu_architecture": "x86_64",
    "cpu_architectures": ["x86_64"],
    "url": "registry.example/release",
}
ENVIRONMENT = {
    "RELEASE_IMAGES": json.dumps([RELEASE]),
    "INSTALLER_IMAGE": "registry.example/installer:1",
    "CONTROLLER_IMAGE": "registry.example/controller:1",
}


def speaker(lab: Lab) -> Replay:
    """Repeats exchanges to the service of `lab`."""

    async def call(method: str, path: str, body: Any, scheme: str) -> tuple[int, Any]:
        kwargs: dict[str, Any] = {}
        if path.endswith("/instructions"):
            # Steps to which it replies were sent at polls; the recording has no polls.
            await lab.raw("GET", path, params={"timestamp": int(time.time())})
        if body is not None and set(body) == {"bytes"}:
            kwargs["data"] = {"upfile": b"x" * min(body["bytes"], 1000)}
        elif body is not None:
            kwargs["json"] = body
        status, raw, headers = await lab.raw(method, path, **kwargs)
        json_type = headers.get("Content-Type", "").startswith("application/json")
        return status, json.loads(raw) if raw and json_type else raw or None

    return Replay(call)


def step_type(exchange: Exchange) -> str:
    replied = exchange.method == "POST" and exchange.path.endswith("/instructions")
    return str(exchange.request["step_type"]) if replied else ""


def test_real_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = load("agent")
    pulled = next(
        json.loads(exchange.request["output"])
        for exchange in exchanges
        if step_type(exchange) == "container-image-availability"
    )
    monkeypatch.setattr(
        Engine, "needed_images", lambda self, cluster: tuple(image["name"] for image in pulled["images"])
    )
    install = next(at for at, exchange in enumerate(exchanges) if exchange.path.endswith("/actions/install"))
    before, after = exchanges[:install], exchanges[install:]
    assert {"inventory", "connectivity-check", "ntp-synchronizer", "domain-resolution", "verify-vips", "free-network-addresses"} <= {
        step_type(exchange) for exchange in before
    }  # fmt: skip
    assert {"installation-disk-speed-check", "install"} <= {step_type(exchange) for exchange in after}
    assert {step_type(exchange) for exchange in exchanges} - {""} <= set(STEPS)

    image = next(
        exchange.request["discovery_agent_version"] for exchange in exchanges if exchange.path.endswith("/hosts")
    )

    async def main() -> None:
        async with Lab(tmp_path, {**ENVIRONMENT, "AGENT_DOCKER_IMAGE": image}) as lab:
            replay = speaker(lab)
            for exchange in before:
                await replay.send(exchange)
            cluster = next(
                replay.ids[exchange.answer["id"]] for exchange in exchanges if exchange.path == f"{V2}/clusters"
            )
            ready = await lab.until(f"/clusters/{cluster}", lambda found: found["status"] == "ready", 60)
            assert [host["status"] for host in ready["hosts"]] == ["known"] * 3
            assert {host["requested_hostname"] for host in ready["hosts"]} == {"host-a", "host-b", "host-c"}
            await replay.send(after[0])
            # What follows answers the steps of this status.
            await lab.until(
                f"/clusters/{cluster}",
                lambda found: all(h["status"] == "preparing-for-installation" for h in found["hosts"]),
                60,
            )
            for exchange in after[1:]:
                if step_type(exchange) == "install":
                    await lab.until(f"/clusters/{cluster}", lambda found: found["status"] == "installing", 60)
                await replay.send(exchange)

    asyncio.run(main())
