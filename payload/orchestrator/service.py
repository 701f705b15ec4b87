"""Client of the assisted service with the retry rules of the installer (downloads and reports must survive a busy service)."""

from __future__ import annotations

import itertools
import json
import logging
import random
import ssl
import time
import uuid
from collections.abc import Callable
from typing import Any

from ...plugins.module_utils.documents import load_json
from ..node_agent import rest

PREFIX = "/api/assisted-install"
# Upstream's rules: 10 retries for missing objects, 360 for a busy or unreachable service (the controller: 15).
NOT_YET, BUSY = frozenset({404, 423, 425}), frozenset({0, 408, 429, *range(500, 600)})
NOT_YET_RETRIES = 10
INSTALLER_RETRIES, CONTROLLER_RETRIES = 360, 15
log = logging.getLogger("service")


class ServiceError(Exception):
    """The service returned an error; `code` is the HTTP status, 0 if it could not be reached."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Service:
    """The REST API as one cluster's installer or controller uses it.

    `token` goes into the agents' header; `wait` is the range in seconds of the first pause between two attempts, which doubles from then on,
    and any of them may be. How long they are is left to chance.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        ca_file: str = "",
        insecure: bool = False,
        retries: int = INSTALLER_RETRIES,
        wait: tuple[float, float] = (2, 10),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base = base_url.rstrip("/") + PREFIX
        self.token, self._retries, self._wait, self._sleep = token, retries, wait, sleep
        self._tls: ssl.SSLContext | None = None
        if base_url.startswith("https:"):
            self._tls = ssl.create_default_context(cafile=ca_file or None)
            if insecure:
                self._tls.check_hostname = False
                self._tls.verify_mode = ssl.CERT_NONE

    def get(self, path: str) -> Any:
        """Return the decoded answer of a GET.

        path: from `/v2` on, with parameters. Raises `ServiceError`, and `ValueError` for an answer that is not JSON.
        """
        return load_json(self.call("GET", path), name="the answer")

    def download(self, path: str) -> bytes:
        """Return a file."""
        return self.call("GET", path)

    def send(self, method: str, path: str, body: object) -> Any:
        """Send JSON and return the decoded answer, None if it is empty.

        method: such as PUT; body: plain data. Raises `ServiceError`.
        """
        answer = self.call(method, path, json.dumps(body).encode(), "application/json")
        return load_json(answer, name="the answer") if answer.strip() else None

    def upload(self, path: str, name: str, data: bytes) -> None:
        """Post a file as the multipart field `upfile`.

        path: from `/v2` on; name: of the file, an archive in gzip. Raises `ServiceError`.
        """
        boundary = uuid.uuid4().hex
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="upfile"; filename="{name}"\r\nContent-Type: application/gzip\r\n\r\n'
        body = head.encode() + data + f"\r\n--{boundary}--\r\n".encode()
        self.call("POST", path, body, f"multipart/form-data; boundary={boundary}")

    def call(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        """Send a request until it is answered or the attempts are exhausted; raise ServiceError.

        path: from `/v2` on; content_type: of the body. Retried are 404, 423 and 425 a few times, 408, 429, 5xx and no
        answer for longer.
        """
        for attempt in itertools.count():
            try:
                return self._send_once(method, path, body, content_type)
            except ServiceError as error:
                retries = NOT_YET_RETRIES if error.code in NOT_YET else self._retries if error.code in BUSY else 0
                if attempt >= retries:
                    raise
                log.info("%s %s: %s; retrying", method, path, error)
            first, longest = self._wait
            self._sleep(min(longest, random.random() * first * 2 ** min(attempt, 16)))
        raise AssertionError

    def _send_once(self, method: str, path: str, body: bytes | None, content_type: str) -> bytes:
        headers = {"X-Secret-Key": self.token, "X-Request-Id": str(uuid.uuid4())}
        if content_type:
            headers["Content-Type"] = content_type
        answer = rest.send(method, self._base + path, headers, body, self._tls)
        if not answer.status:
            why = rest.reason(answer, f"{method} {self._base}{path}: ")
            raise ServiceError(0, f"{self._base} does not answer: {why}")
        if not answer.ok:
            raise ServiceError(answer.status, f"{answer.status} {rest.reason(answer)}")
        data: bytes = answer.body
        return data
