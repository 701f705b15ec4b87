"""Local authentication: three schemes, each in its own header, and two shapes of refusal."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import auth

from .lab import V2, Agent, Lab

KEY, TOKENS = auth.make_tokens()
LOCAL = {"AUTH_TYPE": "agent-installer-local", "EC_PUBLIC_KEY_PEM": KEY}
USER, AGENT, WATCHER = ({auth.HEADERS[scheme]: TOKENS[scheme]} for scheme in ("userAuth", "agentAuth", "watcherAuth"))


def forged(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    head, __, sign = TOKENS["userAuth"].split(".")
    return f"{head}.{body}.{sign}"


async def test_schemes(tmp_path: Path) -> None:
    async with Lab(tmp_path, LOCAL) as lab:
        lab.headers = USER
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        for path in ("/clusters", f"/clusters/{cluster['id']}", "/infra-envs", "/events"):
            lab.headers = WATCHER
            await lab.call("GET", path)
        for path in (f"/infra-envs/{infra_env['id']}/hosts", f"/clusters/{cluster['id']}/hosts"):
            assert (await lab.call("GET", path, status=401))["code"] == 401
        lab.headers = AGENT
        await Agent(lab, infra_env["id"], 0).register()
        await lab.call("GET", f"/infra-envs/{infra_env['id']}/hosts")
        await lab.call("POST", f"/clusters/{cluster['id']}/actions/install", status=401)


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ({}, 401, "unauthenticated for invalid credentials"),
        ({"Authorization": "x.y.z"}, 401, "not valid"),
        ({"Authorization": "Bearer " + TOKENS["userAuth"]}, 401, "not valid"),
        ({"Authorization": TOKENS["userAuth"] + "A"}, 401, "not valid"),
        ({"Authorization": TOKENS["watcherAuth"]}, 403, "authClaim watcherAuth is unauthorized to access"),
        ({"Watcher-Authorization": TOKENS["userAuth"]}, 403, "authClaim userAuth is unauthorized to access"),
        ({"X-Secret-Key": TOKENS["agentAuth"]}, 401, "unauthenticated for invalid credentials"),
        ({"Authorization": forged(auth_scheme="userAuth", exp=1)}, 401, "not valid"),
        ({"Authorization": "bad", "Watcher-Authorization": TOKENS["watcherAuth"]}, 200, ""),
    ],
)
async def test_refusals(tmp_path: Path, headers: dict[str, str], status: int, text: str) -> None:
    async with Lab(tmp_path, LOCAL) as lab:
        code, raw, __ = await lab.raw("GET", f"{V2}/clusters", headers=headers)
        assert code == status, raw
        if status != 200:
            body = json.loads(raw)
            assert sorted(body) == ["code", "message"]
            assert body["code"] == status
            assert text in body["message"]


def test_expired_and_odd_claims() -> None:
    local = auth.Local(KEY)
    local._known["old"] = {"auth_scheme": "userAuth", "exp": 1.0}
    local._known["none"] = {"infra_env_id": "x"}
    local._known["empty"] = {"auth_scheme": ""}
    for token, status, text in (
        ("old", 401, auth.EXPIRED),
        ("none", 500, "malformed auth_scheme claim"),
        ("empty", 400, "auth_scheme claim is empty"),
    ):
        with pytest.raises(auth.Refused) as refused:
            local.authorize(("userAuth",), {"Authorization": token})
        assert (refused.value.status, refused.value.message) == (status, text)


def test_key_is_checked() -> None:
    with pytest.raises(ValueError, match="EC_PUBLIC_KEY_PEM"):
        auth.Local("no key")
