"""A small client of the OpenShift API for programs on nodes: blocking, standard library, one connection, one thread."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...plugins.module_utils.documents import load_json, load_yaml, read_file

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class KubeError(Exception):
    """The API returned an error, or none could be reached.

    code: the HTTP status, 0 if there was no answer; the text is that of the Status object, or the connection's error.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class KubeClient:
    """Client of one server, with a bearer token or a client certificate.

    ca: PEM of what the server's certificate is checked with; certificate and key: files. It keeps one connection, so it
    is of one thread: `again` returns another one.
    """

    def __init__(
        self, server: str, ca: str, *, token: str = "", certificate: Path | None = None, key: Path | None = None
    ) -> None:
        url = urllib.parse.urlsplit(server)
        self._host, self._port = url.hostname or "", url.port or 443
        self.server, self._ca, self._token, self._files = server, ca, token, (certificate, key)
        self._tls = ssl.create_default_context(cadata=ca)
        if certificate:
            self._tls.load_cert_chain(certificate, key)
        self._connection: http.client.HTTPSConnection | None = None

    @classmethod
    def from_kubeconfig(cls, path: Path) -> KubeClient:
        """Return a client with server, CA and token of the first context.

        The file must have the certificate authority and a token embedded. Raises OSError, ValueError for text that is
        not YAML, and KeyError for a field that is missing.
        """
        config = load_yaml(read_file(path), name=str(path))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        return cls(
            cluster["server"], base64.b64decode(cluster["certificate-authority-data"]).decode(), token=user["token"]
        )

    def another_client(self) -> KubeClient:
        """Return another client of the same server, for another thread."""
        return KubeClient(self.server, self._ca, token=self._token, certificate=self._files[0], key=self._files[1])

    def with_certificate(self, certificate: Path, key: Path) -> KubeClient:
        """Return a client of the same server that identifies itself by a certificate."""
        return KubeClient(self.server, self._ca, certificate=certificate, key=key)

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", timeout: float = 20
    ) -> Any:
        """Send a request and return the decoded answer.

        body: sent as JSON; timeout: seconds of silence. A kept connection that was closed is opened once again; any
        other failure raises KubeError, with code 0 without an answer.
        """
        for attempt in (1, 2):
            fresh = self._connection is None
            try:
                return self._exchange(method, path, body, content_type, timeout)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # A kept-alive connection may have been closed meanwhile; a failure of a new one is final.
                if fresh or attempt == 2:
                    raise KubeError(0, f"{self.server}: {error or type(error).__name__}") from None
        raise AssertionError

    def get(self, path: str) -> Any:
        """Return an object or a list."""
        return self.request("GET", path)

    def find(self, path: str) -> Object | None:
        """Return an object, None if it does not exist."""
        try:
            found: Object = self.get(path)
        except KubeError as error:
            if error.code == 404:
                return None
            raise
        return found

    def create(self, path: str, obj: Object) -> Any:
        """Create an object in the collection `path`."""
        return self.request("POST", path, obj)

    def ensure(self, path: str, obj: Object) -> None:
        """Create an object in the collection `path` unless it exists."""
        try:
            self.create(path, obj)
        except KubeError as error:
            if error.code != 409:
                raise

    def patch(self, path: str, patch: Any, content_type: str = MERGE) -> Any:
        """Patch an object."""
        return self.request("PATCH", path, patch, content_type)

    def watch(self, path: str, seconds: int) -> Iterator[tuple[str, Object]]:
        """Yield the events of a collection as (type, object), existing objects first, for at most `seconds`.

        path: of the collection, with a query if there are selectors. The connection is closed at the end. Raises
        KubeError, also for an event that is not JSON.
        """
        joint = "&" if "?" in path else "?"
        try:
            connection = self._open(seconds + 10)
            connection.request("GET", f"{path}{joint}watch=true&timeoutSeconds={seconds}", headers=self._headers())
            answer = connection.getresponse()
            if answer.status != 200:
                raise KubeError(answer.status, answer.read().decode(errors="replace"))
            for line in answer:
                event = load_json(line, name="event")
                yield event["type"], event["object"]
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise KubeError(0, f"{self.server}: {error}") from None
        finally:
            self.close()

    def close(self) -> None:
        """Drop the connection."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _open(self, timeout: float) -> http.client.HTTPSConnection:
        if self._connection is None:
            connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls, timeout=timeout)
            connection.connect()
            # Only a TCP probe detects that the server's address has moved.
            for option, value in ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 3), (socket.TCP_KEEPCNT, 3)):
                connection.sock.setsockopt(socket.IPPROTO_TCP, option, value)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._connection = connection
        return self._connection

    def _exchange(self, method: str, path: str, body: object, content_type: str, timeout: float) -> Any:
        connection = self._open(timeout)
        headers = self._headers()
        data = None
        if body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = content_type
        connection.request(method, path, body=data, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise KubeError(answer.status, _message(text))
        return (
            load_json(text, name="the answer")
            if answer.getheader("Content-Type", "").startswith("application/json")
            else text.decode()
        )


def _message(text: bytes) -> str:
    try:
        return str(load_json(text, name="the answer")["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode(errors="replace")[:500]
