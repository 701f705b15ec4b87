"""Sessions in front of an application that checks Basic credentials."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

from ansible_collections.agentlab.ocp.plugins.module_utils.boot import sessions

GOOD = "Basic " + base64.b64encode(b"admin:secret").decode()


def application(environ: dict[str, Any], start: Any) -> list[bytes]:
    good = environ.get("HTTP_AUTHORIZATION") == GOOD
    start("200 OK" if good else "401 Unauthorized", [])
    return [environ["PATH_INFO"].encode()]


def ask(over: sessions.Sessions, method: str, path: str, body: bytes = b"", token: str = "") -> tuple[str, dict, bytes]:
    seen: list[Any] = []
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        **({"HTTP_X_AUTH_TOKEN": token} if token else {}),
    }
    text = b"".join(over(environ, lambda *given: seen.append(given)))
    return seen[0][0], dict(seen[0][1]), text


def opened(over: sessions.Sessions) -> tuple[str, str]:
    body = json.dumps({"UserName": "admin", "Password": "secret"}).encode()
    status, headers, text = ask(over, "POST", sessions.PATH, body)
    assert status == "201 Created" and json.loads(text)["UserName"] == "admin"
    return headers["X-Auth-Token"], headers["Location"]


def test_a_token_replaces_the_password_until_the_session_ends() -> None:
    over = sessions.Sessions(application)
    token, place = opened(over)
    assert ask(over, "GET", "/redfish/v1/Systems")[0] == "401 Unauthorized"
    assert ask(over, "GET", "/redfish/v1/Systems", token="other")[0] == "401 Unauthorized"
    assert ask(over, "GET", "/redfish/v1/Systems", token=token)[0] == "200 OK"
    assert ask(over, "DELETE", place)[0] == "401 Unauthorized"
    assert ask(over, "DELETE", place, token=token)[0] == "204 No Content"
    assert ask(over, "GET", "/redfish/v1/Systems", token=token)[0] == "401 Unauthorized"


def test_wrong_requests_open_none() -> None:
    over = sessions.Sessions(application)
    wrong = json.dumps({"UserName": "admin", "Password": "no"}).encode()
    assert ask(over, "POST", sessions.PATH, wrong)[0] == "401 Unauthorized"
    for body in (b"", b"{", b"[]", b"[" * 5000, b'{"UserName": "admin"}', b'{"UserName": "\\ud800", "Password": ""}'):
        assert ask(over, "POST", sessions.PATH, body)[0] == "400 Bad Request"


def test_the_oldest_session_ends() -> None:
    over = sessions.Sessions(application)
    first, __ = opened(over)
    rest = [opened(over)[0] for __ in range(sessions.KEPT)]
    assert ask(over, "GET", "/", token=first)[0] == "401 Unauthorized"
    assert {ask(over, "GET", "/", token=token)[0] for token in rest} == {"200 OK"}
