"""The REST calls of the client: the agent's transport, without a proxy and without retries, which its callers decide on."""

from __future__ import annotations

import json
from typing import Any

from ....plugins.module_utils.documents import load_json
from ...node_agent import rest


class RestError(Exception):
    """A call that failed: HTTP status (0 when there was no answer) and the service's reason.

    `reason` is the `reason` or `message` of the service's error body. A service that does not run yet is the common
    cause of status 0, so callers that run at boot try again.
    """

    def __init__(self, method: str, path: str, status: int, reason: str) -> None:
        super().__init__(f"{method} {path}: {f'status {status}: ' if status else ''}{reason}")
        self.status, self.reason = status, reason


class Rest:
    """The service at `base_url` (`http://192.168.111.20:8090/`), called with a user's token.

    Without a token no Authorization header is sent (`AUTH_TYPE` `none`). A proxy of the environment is not used: the
    service is on the local network.
    """

    def __init__(self, base_url: str, token: str) -> None:
        self._base = base_url.rstrip("/") + "/api/assisted-install/v2"
        self._token = token

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the response as JSON, as bytes if it is not JSON, or None if it is empty. RestError on failure.

        `path` follows `/api/assisted-install/v2`, with its query. `body` is sent as JSON unless it is None. The call is
        not repeated.
        """
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = self._token
        data = None if body is None else json.dumps(body).encode()
        # The service is on the local network: do not use a proxy from the environment.
        answer = rest.send(method, self._base + path, headers, data, direct=True)
        if not answer.ok:
            raise RestError(method, path, answer.status, rest.reason(answer, f"{method} {self._base}{path}: "))
        if not answer.body:
            return None
        return load_json(answer.body, name="the answer") if answer.kind.startswith("application/json") else answer.body
