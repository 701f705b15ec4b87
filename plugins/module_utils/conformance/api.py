"""Requests to the API as one identity, with what they are expected to return."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from .._deps import optional
from ..documents import DocumentError, load_json, read_reply
from ..errors import ClusterError

requests = optional("requests")

Object = dict[str, Any]
T = TypeVar("T")
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
WATCH_SECONDS = 20


class CaseFailed(Exception):
    """What a cluster does differently than a case expects."""


class CaseSkipped(Exception):
    """Why a case does not apply to a cluster."""


class Answer(NamedTuple):
    """code: HTTP status; text: the body; kind: its media type without parameters."""

    code: int
    text: str
    kind: str

    @property
    def body(self) -> Object:
        """The decoded body; Failed if it is not a JSON object."""
        try:
            found = load_json(self.text, name="the answer")
        except DocumentError as error:
            raise CaseFailed(f"the answer is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise CaseFailed("the answer is not a JSON object")
        return found


class Events:
    """Events of a watch, in their order."""

    def __init__(self, lines: Iterator[bytes], until: float) -> None:
        self._lines, self._until = lines, until

    def next(self, kind: str, name: str = "") -> Object:
        """Return the object of the next event, which must be of this kind, and of the object `name` if that is given."""
        found, obj = self.any()
        shown = (obj.get("metadata") or {}).get("name", "")
        expect(found == kind and name in ("", shown), f"the event is {found} {shown}, not {kind} {name}".rstrip())
        return obj

    def any(self) -> tuple[str, Object]:
        """Return the next event; Failed when the watch ends."""
        try:
            for line in self._lines:
                if line.strip():
                    event = load_json(line, name="event")
                    return str(event["type"]), event["object"]
        except (requests.RequestException, DocumentError, LookupError, TypeError) as error:
            raise CaseFailed(f"the watch ends with: {error}") from None
        raise CaseFailed("the watch ends without the event")

    def rest(self) -> list[tuple[str, Object]]:
        """Return the events up to the end of the watch."""
        found = []
        try:
            for line in self._lines:
                if line.strip():
                    event = load_json(line, name="event")
                    found.append((event["type"], event["object"]))
        except (requests.RequestException, DocumentError, LookupError, TypeError) as error:
            raise CaseFailed(f"the watch ends with: {error}") from None
        return found


class Api:
    """The API as one identity sees it; `session` has server trust and credentials, `headers` are those of the identity.

    Methods raise `CaseFailed` for another HTTP status than the expected one, with the request, and `ClusterError` when the
    API cannot be reached.
    """

    def __init__(self, session: Any, server: str, headers: Mapping[str, str | list[str]], timeout: float = 30) -> None:
        self.session, self.server, self.timeout = session, server, timeout
        self.headers = dict(headers)

    def send(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON, accept: str = JSON, **query: str
    ) -> Answer:
        """Send a request and return its answer, whatever the status. body: bytes are sent as they are, all else as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {**self.headers, "Accept": accept} | ({"Content-Type": content_type} if data is not None else {})
        try:
            with self.session.request(
                method, self.server + path, data=data, headers=headers, params=query, timeout=self.timeout, stream=True
            ) as answer:
                text = read_reply(answer).decode(errors="replace")
                return Answer(answer.status_code, text, answer.headers.get("Content-Type", "").partition(";")[0])
        except (requests.RequestException, OSError) as error:
            raise ClusterError(f"{method} {self.server}{path}: {error}") from error

    def call(self, method: str, path: str, body: object = None, code: int = 200, **options: Any) -> Object:
        """Send a request, expect the status, and return the decoded body."""
        answer = self.send(method, path, body, **options)
        if answer.code != code:
            raise CaseFailed(f"{method} {path}: status {answer.code}, not {code}: {_message(answer)}")
        return answer.body

    def get(self, path: str, code: int = 200, **options: Any) -> Object:
        """GET."""
        return self.call("GET", path, None, code, **options)

    def post(self, path: str, body: object, code: int = 201, **options: Any) -> Object:
        """POST."""
        return self.call("POST", path, body, code, **options)

    def put(self, path: str, body: object, code: int = 200, **options: Any) -> Object:
        """PUT."""
        return self.call("PUT", path, body, code, **options)

    def patch(self, path: str, body: object, code: int = 200, *, content_type: str = MERGE, **query: str) -> Object:
        """PATCH, by default a merge patch."""
        return self.call("PATCH", path, body, code, content_type=content_type, **query)

    def delete(self, path: str, body: object = None, code: int = 200, **options: Any) -> Object:
        """DELETE; body: its options."""
        return self.call("DELETE", path, body, code, **options)

    def refused(self, method: str, path: str, code: int, reason: str, body: object = None, **options: Any) -> Object:
        """Send a request that the API must refuse with a Status of this code and reason, and return the Status."""
        status = self.call(method, path, body, code, **options)
        found = {key: status.get(key) for key in ("kind", "apiVersion", "status", "reason", "code")}
        wanted = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
        expect(found == wanted, f"{method} {path}: {found} is not {wanted}")
        expect(bool(status.get("message")), f"{method} {path}: the Status has no message")
        return status

    def items(self, path: str, **options: Any) -> list[Object]:
        """Return the items of a list."""
        return list(self.get(path, **options).get("items") or [])

    @contextmanager
    def watch(self, path: str, seconds: int = WATCH_SECONDS, *, accept: str = JSON, **query: str) -> Iterator[Events]:
        """Watch a collection for at most `seconds`."""
        params = {"watch": "true", "timeoutSeconds": str(seconds), **query}
        try:
            with self.session.get(
                self.server + path,
                params=params,
                headers={**self.headers, "Accept": accept},
                timeout=(self.timeout, seconds + 10),
                stream=True,
            ) as answer:
                if answer.status_code != 200:
                    text = read_reply(answer).decode(errors="replace")
                    raise CaseFailed(f"watch of {path}: status {answer.status_code}: {text[:300]}")
                yield Events(answer.iter_lines(chunk_size=None), time.monotonic() + seconds)
        except (requests.RequestException, OSError) as error:
            raise ClusterError(f"watch of {self.server}{path}: {error}") from error


def expect(condition: object, message: object) -> None:
    """Raise Failed with the message unless the condition is true."""
    if not condition:
        raise CaseFailed(str(message))


def equal(found: object, wanted: object, what: str) -> None:
    """Raise Failed unless both are equal; what: the thing that is compared."""
    expect(found == wanted, f"{what} is {found!r}, not {wanted!r}")


def wait_until(what: str, function: Callable[[], T | None], seconds: float = 60) -> T:
    """Return what `function` returns once it is true, within `seconds`; what: the thing that is waited for."""
    end = time.monotonic() + seconds
    while True:
        if found := function():
            return found
        expect(time.monotonic() < end, f"{what}: not within {seconds:.0f} s")
        time.sleep(0.2)


def conditions(obj: Object) -> dict[str, Object]:
    """Return the conditions of an object's status, by type."""
    return {c["type"]: c for c in (obj.get("status") or {}).get("conditions") or []}


def _message(answer: Answer) -> str:
    try:
        return str(answer.body.get("message", ""))[:400]
    except CaseFailed:
        return answer.text[:400]
