"""The few REST calls of the client, with the standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from ....plugins.module_utils.documents import load_json


class RestError(Exception):
    """A call that failed: HTTP status (0 when there was no answer) and the service's reason."""

    def __init__(self, method: str, path: str, status: int, reason: str) -> None:
        super().__init__(f"{method} {path}: {f'status {status}: ' if status else ''}{reason}")
        self.status, self.reason = status, reason


class Rest:
    """The service at `base_url` (`http://192.168.111.20:8090/`), called with a user's token."""

    def __init__(self, base_url: str, token: str) -> None:
        self._base = base_url.rstrip("/") + "/api/assisted-install/v2"
        self._token = token
        # The service is on the local network: do not use a proxy from the environment.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the response as JSON, as bytes if it is not JSON, or None if it is empty. RestError on failure."""
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = self._token
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=60) as answer:
                raw = answer.read()
                kind = answer.headers.get("Content-Type", "")
        except urllib.error.HTTPError as err:
            raise RestError(method, path, err.code, _reason(err.read())) from None
        except (urllib.error.URLError, OSError) as err:
            raise RestError(method, path, 0, str(getattr(err, "reason", err))) from None
        if not raw:
            return None
        return load_json(raw, name="the answer") if kind.startswith("application/json") else raw


def _reason(raw: bytes) -> str:
    try:
        value = load_json(raw, name="the answer")
        return str(value.get("reason") or value.get("message") or raw.decode())
    except (ValueError, AttributeError):
        return raw.decode("utf-8", "replace")[:500]
