"""What a request gets wrong is answered as the real service answers it: every operation and field, in every way that its type allows."""

from __future__ import annotations

import json
import lzma
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.api import BASE

from . import mistakes
from .lab import Agent, Lab

ROOT = Path(__file__).resolve().parents[3]
RECORDED = (
    Path(os.environ.get("AGENTLAB_SHARED") or ROOT.parent / "shared") / "conformance" / "rest" / "real-answers.json.xz"
)
#: What the recorded answers with status 404 have in common.
NOT_FOUND = re.compile(
    r"(record|Object) [Nn]ot [Ff]ound$|^host \S+ not found in infra env \S+$|does(n't| not) exist( in cluster \S+)?$"
)
FORMS = [re.compile(text, re.S) for text in mistakes.TEXTS]


@pytest.mark.skipif(not RECORDED.is_file(), reason="the recorded answers are not at hand")
def test_the_forms_are_those_of_the_real_service() -> None:
    with lzma.open(RECORDED) as stream:
        answers = [one["answer"] for one in json.load(stream) if one["status"] >= 400]
    found = [one["message"] for one in answers if isinstance(one, dict) and "message" in one]
    assert len(found) > 50
    assert not [text for text in found if not any(form.fullmatch(text) for form in FORMS)]
    # All other refusals are the service's own.
    own = [one for one in answers if isinstance(one, dict) and "message" not in one]
    assert all(list(one) == ["code", "href", "id", "kind", "reason"] and one["code"] == str(one["id"]) for one in own)


async def test_every_mistake(tmp_path: Path) -> None:
    counted: Counter[str] = Counter()
    different: list[Any] = []
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra["id"], 0)
        await agent.register()
        ids = {"cluster_id": cluster["id"], "infra_env_id": infra["id"], "host_id": agent.id}
        for one in mistakes.mistakes(ids):
            assert any(form.fullmatch(one.message) for form in FORMS), one.message
            raw = one.raw if one.raw is not None else b"" if one.body is None else json.dumps(one.body).encode()
            headers = (
                {"Content-Type": one.kind, "discovery_agent_version": "x"} if raw else {"discovery_agent_version": "x"}
            )
            status, body, __ = await lab.raw(
                one.method, BASE + one.path, params=one.query, data=raw or None, headers=headers
            )
            counted[one.what.partition(" ")[0]] += 1
            if (status, _json(body)) != (one.code, {"code": one.code, "message": one.message}):
                different.append(
                    (one.what, one.method, one.path, one.query, str(one.body)[:100], one.message, status, body[:300])
                )
        assert (await lab.call("GET", f"/clusters/{cluster['id']}"))["name"] == "ostest"
    assert not different, "\n".join(map(str, [len(different), counted, *different[:60]]))
    assert counted.total() > 1500, counted


async def test_objects_that_are_not_there(tmp_path: Path) -> None:
    """Every operation on an unknown cluster, infra-env or host, with a valid request: what the client asks for is not found."""
    different: list[Any] = []
    count = 0
    async with Lab(tmp_path) as lab:
        infra = await lab.infra_env((await lab.cluster())["id"])
        for one in mistakes.lost({"infra_env_id": infra["id"]}):
            raw = b"" if one.body is None else json.dumps(one.body).encode()
            headers = {"Content-Type": one.kind} if raw else {}
            status, body, __ = await lab.raw(
                one.method, BASE + one.path, params=one.query, data=raw or None, headers=headers
            )
            count += 1
            found = _json(body)
            form = {"code": str(status), "href": "", "id": status, "kind": "Error"}
            own = isinstance(found, dict) and {key: found.get(key) for key in form} == form
            if one.path.endswith(f"/clusters/{mistakes.UNKNOWN}/hosts"):
                assert (status, found) == (200, [])  # as upstream: the hosts, of which there are none
            elif status != 404 or not own or not NOT_FOUND.search(found["reason"]):
                different.append((one.what, one.method, one.path, one.query, one.body, status, body[:200]))
    assert not different, "\n".join(map(str, [len(different), count, *different]))
    assert count > 60


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body
