"""Local authentication: three schemes, each in its own header, and two shapes of refusal."""

from __future__ import annotations

import base64
import json
import re
import uuid
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import auth
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import credentials

from .description import BASE
from .lab import OWN, V2, Agent, Lab

KEY, TOKENS = auth.make_tokens()
LOCAL = {"AUTH_TYPE": "agent-installer-local", "EC_PUBLIC_KEY_PEM": KEY}
USER, AGENT, WATCHER = ({auth.HEADERS[scheme]: TOKENS[scheme]} for scheme in ("userAuth", "agentAuth", "watcherAuth"))


def forged(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    head, __, sign = TOKENS["userAuth"].split(".")
    return f"{head}.{body}.{sign}"


def encoded(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def forgeries() -> list[str]:
    """Tokens that claim to be valid: no signature, another kind of one, one by the public key, one of another key."""
    import hashlib
    import hmac

    public = base64.b64decode(KEY)
    __, others = auth.make_tokens()
    head, claims, sign = TOKENS["userAuth"].split(".")
    found = [
        others["userAuth"],
        f"{head}.{claims}.{'A' * 86}",
        f"{head}.{claims}.",
        f"{head}.{claims}",
        f"{head}.{claims}.{sign}.{sign}",
        "..",
        "é.é.é",
    ]
    for name in ("none", "None", "", "HS256", "RS256", "ES384", "ES512", "es256", None, ["ES256"], {}):
        text = encoded({"alg": name, "typ": "JWT"}) + "." + claims
        for raw in (b"", hmac.new(public, text.encode(), hashlib.sha256).digest(), bytes(64), b"\1" * 256):
            found.append(f"{text}.{encoded(raw)}")
        found.append(f"{text}.{sign}")
    return found


async def test_every_operation_asks_for_its_schemes(tmp_path: Path) -> None:
    """Table: what the description requires of each operation against all schemes, each in each header, and none."""
    unknown = str(uuid.uuid4())
    asked = 0
    async with Lab(tmp_path, LOCAL) as lab:
        for template, operations in OWN.document["paths"].items():
            for method, operation in operations.items():
                wanted = {name for entry in operation["security"] for name in entry} & set(auth.HEADERS)
                path = BASE + re.sub(r"\{\w+\}", unknown, template)
                for header in (*auth.HEADERS, ""):
                    for scheme in auth.HEADERS:
                        headers = {auth.HEADERS[header]: TOKENS[scheme]} if header else {}
                        code, raw, __ = await lab.raw(method.upper(), path, headers=headers)
                        asked += 1
                        refused = 401 if header not in wanted else 403 if header != scheme else 0
                        text = f"{method} {path}: {scheme} in {header or 'no header'}: {code} {raw!r}"
                        if wanted:
                            assert (code if code in (401, 403) else 0) == refused, text
                        if refused:
                            assert sorted(json.loads(raw)) == ["code", "message"], text
    assert asked > 900


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 0),
        ({"exp": 4e9}, 0),
        ({"exp": 1}, 401),
        ({"nbf": 4e9}, 401),
        ({"iat": 4e9}, 401),
        ({"iat": 1, "nbf": 1}, 0),
        ({"exp": "no"}, 401),
    ],
)
def test_times_of_a_token(claims: dict[str, object], status: int) -> None:
    key, tokens = auth.make_tokens(claims)
    local = auth.Local(key)
    for __ in range(2):
        try:
            assert local.authorize(("agentAuth",), {"X-Secret-Key": tokens["agentAuth"]}) == "agentAuth"
            assert not status
        except auth.RefusedCall as refused:
            assert refused.status == status


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
        *(({"Authorization": token}, 401, "not valid") for token in forgeries()),
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


@pytest.mark.parametrize(
    ("version", "more", "one"),
    [
        ("4.16.9", {}, False),
        ("4.17.0-rc.1", {}, True),
        ("4.18.2", {"AGENT_AUTH_TOKEN": "t"}, False),
        ("4.18.2", {"AGENTLAB_RELEASE_PROFILE": "4.17"}, True),
        ("4.17.1", {"INSTALL_INVOKER": "assisted-installer"}, False),
        ("", {}, False),
    ],
)
def test_the_release_decides_on_the_tokens(version: str, more: dict[str, str], one: bool) -> None:
    """The service took any release for 4.17 that had a variable of that release in its environment."""
    images = json.dumps([{"openshift_version": version[:4], "version": version, "url": "r"}] if version else [])
    config = Config({"RELEASE_IMAGES": images, "INSTALL_INVOKER": "agent-installer", **more}).check()
    assert config.one_token is one


def test_an_unknown_release_stops_the_service() -> None:
    with pytest.raises(ValueError, match="AGENTLAB_RELEASE_PROFILE: '3' is not a known release"):
        Config({"AGENTLAB_RELEASE_PROFILE": "3"}).check()


async def test_release_4_17_has_one_token(tmp_path: Path) -> None:
    """Its rendezvous host never got further: the service asked for a claim that the only token does not have."""
    tokens = credentials.infra_env_token(str(uuid.uuid4()))
    token = tokens["UserAuthToken"]
    images = [{"openshift_version": "4.17", "version": "4.17.3", "cpu_architecture": "x86_64", "url": "r"}]
    config = {**LOCAL, "EC_PUBLIC_KEY_PEM": tokens["PublicKey"], "RELEASE_IMAGES": json.dumps(images)}
    config["INSTALL_INVOKER"] = "agent-installer"
    async with Lab(tmp_path, config) as lab:
        assert (await lab.raw("GET", f"{V2}/infra-envs", headers={"Authorization": token}))[0] == 200
        assert (await lab.raw("GET", f"{V2}/infra-envs"))[0] == 401
        assert (await lab.raw("GET", f"{V2}/infra-envs", headers={"Authorization": TOKENS["userAuth"]}))[0] == 401
    local = auth.Local(tokens["PublicKey"], one_token=True)
    assert local.authorize(("agentAuth",), {"X-Secret-Key": token}) == "agentAuth"
    signer = credentials.TokenSigner()
    with pytest.raises(auth.RefusedCall, match="claims are incorrectly formatted"):
        auth.Local(signer.public(), one_token=True).authorize(("userAuth",), {"Authorization": signer.token({})})


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
        with pytest.raises(auth.RefusedCall) as refused:
            local.authorize(("userAuth",), {"Authorization": token})
        assert (refused.value.status, refused.value.message) == (status, text)


def test_key_is_checked() -> None:
    with pytest.raises(ValueError, match="EC_PUBLIC_KEY_PEM"):
        auth.Local("no key")
