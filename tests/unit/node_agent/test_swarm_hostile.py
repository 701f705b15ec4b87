"""Any program may answer as the service of a swarm: what it sends is taken, or is one message, and is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import support
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings, SwarmError
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted

from .test_swarm import FAST

CLUSTER = {
    "id": "c", "name": "a", "status": "insufficient", "base_dns_domain": "b", "control_plane_count": 3,
    "high_availability_mode": "Full", "api_vips": [{"ip": "192.168.111.5"}], "ingress_vips": [{"ip": "192.168.111.4"}],
    "machine_networks": [{"cidr": "192.168.111.0/24"}],
}  # fmt: skip
ODD: list[Any] = [
    5,
    True,
    "x",
    "\x1b[2J",
    [],
    [None],
    [[]],
    {},
    {"a": 1},
    [{"id": 5}],
    [{"id": "i", "name": []}],
    10**9,
]
ANSWERS: dict[str, list[Any]] = {
    "/component-versions": [*ODD, {"versions": []}, {"versions": {"discovery-agent": []}}],
    "/v2/clusters": [
        *ODD, *([{**CLUSTER, key: odd}] for key in CLUSTER for odd in ODD), *({**CLUSTER, "id": odd} for odd in ODD),
    ],
    "/v2/infra-envs": [*ODD, [{"id": "i", "cluster_id": []}], [{"id": [], "cluster_id": "c"}]],
}  # fmt: skip


def run(settings: Settings) -> str:
    """Return the swarm's message, "" if it ran."""

    async def whole() -> None:
        await asyncio.wait_for(Swarm(settings).run(), 30)

    try:
        asyncio.run(whole())
    except SwarmError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("discover", [True, False])
@pytest.mark.parametrize("path", ANSWERS)
def test_any_answer_is_taken_or_named(path: str, discover: bool, service: FakeAssisted) -> None:
    usual: dict[str, Callable[[], web.Response]] = {
        "/v2/clusters/": lambda: web.json_response({"code": 404, "message": "no"}, status=404),
        "/v2/component-versions": lambda: web.json_response({"versions": {"discovery-agent": "x"}}),
        "/v2/clusters": lambda: web.json_response([CLUSTER] if discover else {"id": "c"}),
        "/v2/infra-envs/": lambda: web.json_response({"code": 404, "message": "no"}, status=404),
        "/v2/infra-envs": lambda: web.json_response([] if discover else {"id": []}),
    }
    for odd in ANSWERS[path]:
        service.instead = {
            **usual,
            next(part for part in usual if part.endswith(path)): lambda odd=odd: web.json_response(odd),
        }
        reported = run(Settings(service.url, clusters=1, discover=discover, duration=0.1, **FAST))
        assert (
            reported.startswith((service.url, f"GET {service.url}", f"POST {service.url}", "cluster "))
            and reported.isprintable()
        ), (odd, reported)


def test_an_answer_without_end_is_not_read(service: FakeAssisted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "MOST_ANSWER", 1 << 20)
    service.instead = {
        "component": lambda: web.Response(body=b"[" + b" " * (2 << 20) + b"]", content_type="application/json")
    }
    assert "the answer is longer than 1048576 bytes" in run(Settings(service.url, **FAST))


def test_a_message_of_the_service_is_not_a_command_of_a_terminal(service: FakeAssisted) -> None:
    service.instead = {"component": lambda: web.json_response({"code": 401, "message": "no\x1b[2J"}, status=401)}
    assert "[401] no [2J" in run(Settings(service.url, **FAST))
