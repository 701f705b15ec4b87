"""Redfish sessions (DSP0266, 13.3.4) for an application that knows Basic authentication only: the lab's BMCs.

Part of the program `emulator.py`, which needs only the standard library here.
"""

from __future__ import annotations

import base64
import io
import json
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PATH = "/redfish/v1/SessionService/Sessions"
KEPT = 100
"""Sessions: the oldest ends when there would be more, and its client makes another."""
BODY = 4096
"""Longest request for a session, in bytes."""


class Sessions:
    """WSGI, laid over the check of passwords: a token of a session replaces the password that it was opened with."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._open: dict[str, tuple[str, str]] = {}  # id -> token, Basic credentials

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path, method = environ.get("PATH_INFO", "").rstrip("/"), environ["REQUEST_METHOD"]
        if (path, method) == (PATH, "POST"):
            return self._create(environ, start_response)
        token = environ.get("HTTP_X_AUTH_TOKEN", "")
        for name, (known, credentials) in list(self._open.items()):
            if secrets.compare_digest(known.encode(), token.encode("latin-1", "replace")):
                environ["HTTP_AUTHORIZATION"] = credentials
                if (path, method) == (f"{PATH}/{name}", "DELETE"):
                    self._open.pop(name, None)
                    start_response("204 No Content", [])
                    return []
        return self._application(environ, start_response)

    def _create(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            length = max(0, int(environ.get("CONTENT_LENGTH") or 0))
            fields = json.loads(environ["wsgi.input"].read(min(length, BODY)))
            user, password = fields["UserName"], fields["Password"]
            credentials = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        except (ValueError, LookupError, TypeError, RecursionError):
            return _answer(start_response, "400 Bad Request", _error("a session needs UserName and Password"))
        if not self._accepts(environ, credentials):
            return _answer(start_response, "401 Unauthorized", _error("UserName or Password is wrong"))
        name, token = secrets.token_hex(8), secrets.token_urlsafe(32)
        self._open[name] = token, credentials
        while len(self._open) > KEPT:
            self._open.pop(next(iter(self._open)), None)
        session = {
            "@odata.id": f"{PATH}/{name}",
            "@odata.type": "#Session.v1_1_0.Session",
            "Id": name,
            "Name": "Session",
            "UserName": user,
        }
        return _answer(start_response, "201 Created", session, ("Location", f"{PATH}/{name}"), ("X-Auth-Token", token))

    def _accepts(self, environ: WSGIEnvironment, credentials: str) -> bool:
        """Return whether the application answers a request with these credentials."""
        seen: list[str] = []

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            seen.append(status)

        body = {
            **environ,
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/redfish/v1/Registries",  # it needs a password, and no libvirt
            "HTTP_AUTHORIZATION": credentials,
            "CONTENT_LENGTH": "0",
            "wsgi.input": io.BytesIO(),
        }
        for __ in self._application(body, start):
            pass
        return bool(seen) and seen[0].startswith("200")


def _error(message: str) -> dict[str, object]:
    return {"error": {"code": "Base.1.0.GeneralError", "message": message}}


def _answer(
    start_response: StartResponse, status: str, body: dict[str, Any], *headers: tuple[str, str]
) -> Iterable[bytes]:
    text = json.dumps(body).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(text))), *headers])
    return [text]
