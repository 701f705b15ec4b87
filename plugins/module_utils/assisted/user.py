"""A user of the assisted service: with the user's token, what defines and installs a cluster."""

from __future__ import annotations

from typing import Any

from .. import deadline
from .._deps import optional
from ..documents import DocumentError, load_json, read_reply
from ..errors import AssistedError
from .client import AssistedClient, reason

requests = optional("requests")


class RefusedError(AssistedError):
    """The service answered with an error. `status`: of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class User(AssistedClient):
    """A client that also changes things; it is an `Api` of `registration`."""

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer: JSON, bytes if it is not JSON, or None if it is empty.

        path: below `/api/assisted-install/v2`, with its query; body: sent as JSON, unless it is None. It is not repeated. Raises
        `RefusedError` for an answer with an error status, and `AssistedError` without an answer.
        """
        url = self.base + path

        def ask() -> tuple[int, str, str, bytes]:
            with self.session.request(
                method, url, json=body, timeout=self.timeout, stream=True, allow_redirects=False
            ) as answer:
                return answer.status_code, answer.reason, answer.headers.get("Content-Type", ""), read_reply(answer)

        try:
            status, title, kind, data = deadline.call_within(deadline.REQUEST_SECONDS, ask)
        except (requests.RequestException, TimeoutError) as error:
            raise AssistedError(f"{method} {url}: {error}") from error
        if status >= 300:
            raise RefusedError(f"{method} {url}: HTTP {status}: {reason(data, title)}", status)
        if not data:
            return None
        try:
            return load_json(data, name="the answer") if kind.startswith("application/json") else data
        except DocumentError as error:
            raise AssistedError(f"{method} {url}: the answer is not JSON: {error}") from error
