"""How the replies of a BMC are read: bounded, as JSON of the project's limits, from that BMC alone, and to the end of a task."""

from __future__ import annotations

import time
import urllib.parse
from typing import TYPE_CHECKING, Any

from ... import deadline
from ..._deps import optional
from ...documents import DocumentError, Limits, load_json, read_reply

if TYPE_CHECKING:
    import requests
    import sushy
else:
    requests = optional("requests")
    sushy = optional("sushy")

_ACCEPTED, _BUSY = 202, 503
_LIMITS = Limits(size=8 << 20, nodes=200_000, depth=50)
MOST_SECONDS = 900.0
"""Limit of a request with its reply: an emulator downloads an image before it replies."""
MOST_BYTES = _LIMITS.size
"""Length of a reply. Message registries, the largest ones, have some hundred kilobytes."""


TASK_SECONDS = 900.0
"""How long a task is followed: a BMC fetches an image in one."""
_RUNNING = ("New", "Starting", "Running", "Pending", "Service", "Stopping", "Cancelling")
_POLL_SECONDS = 1.0


def connector(root: str, *, busy_seconds: float, **options: Any) -> sushy.connector.Connector:
    """Return sushy's connector, whose replies are bounded; it sends nothing, so no credentials either, to other hosts than root's.

    root: URL of the service; busy_seconds: how long a request is repeated that is answered with 503, so did nothing; options:
    those of sushy's class. A request that is answered with 202 returns when its task has ended; a task that fails is a `SushyError`.
    """

    class Connector(sushy.connector.Connector):  # type: ignore[misc]  # sushy has no types
        def _op(self, method: str, path: str = "", **rest: Any) -> Any:
            limit = time.monotonic() + busy_seconds
            while True:
                try:
                    answer = super()._op(method, path, **rest)
                    break
                except sushy.exceptions.ServerSideError as error:
                    if error.status_code != _BUSY:
                        raise
                    if time.monotonic() > limit:
                        reason = getattr(error, "detail", None) or error
                        raise sushy.exceptions.SushyError(
                            f"it is busy (HTTP {_BUSY}) for more than {busy_seconds:.0f} s: {reason}"
                        ) from error
                    time.sleep(_POLL_SECONDS)
            task = answer.headers.get("Location")
            return _ended(self, task) if method != "GET" and answer.status_code == _ACCEPTED and task else answer

    made = Connector(root, **options)
    for scheme in ("http://", "https://"):
        made._session.mount(scheme, _adapter(urllib.parse.urlsplit(root).netloc))
    return made


def _ended(service: sushy.connector.Connector, task: str) -> Any:
    """Return the last answer of the task at the path `task`. Raises `SushyError` for one that fails or does not end.

    A monitor answers 202 until it has the answer of the operation; other BMCs (iDRAC) name the task itself, which always answers 200
    and has its state in the body.
    """
    limit = time.monotonic() + TASK_SECONDS
    while True:
        answer = service.get(task)
        body = load_json(answer.content, name="the task", limits=_LIMITS) if answer.content.strip() else {}
        state = body.get("TaskState") if isinstance(body, dict) else None
        if answer.status_code != _ACCEPTED and state not in _RUNNING:
            break
        if time.monotonic() > limit:
            raise sushy.exceptions.SushyError(f"its task {task} timed out after {TASK_SECONDS:.0f} s: {state}")
        time.sleep(_POLL_SECONDS)
    if state not in (None, "Completed"):
        texts = [str(one.get("Message")) for one in body.get("Messages") or () if isinstance(one, dict)]
        raise sushy.exceptions.SushyError(f"its task ended as {state}: {' '.join(texts) or 'it gives no reason'}")
    return answer


def _adapter(host: str) -> requests.adapters.HTTPAdapter:
    """Return a transport of `requests` that refuses what does not come from `host`, or is too large or too deep."""

    class Adapter(requests.adapters.HTTPAdapter):
        def send(self, *arguments: Any, **options: Any) -> Any:
            url = str(arguments[0].url)
            if urllib.parse.urlsplit(url).netloc != host:
                raise requests.exceptions.InvalidURL(f"it refers to {url[:200]}, another host")
            send = super().send

            def ask() -> tuple[requests.Response, bytes]:
                with send(*arguments, **{**options, "stream": True}) as answer:
                    return answer, read_reply(answer, limits=_LIMITS)

            try:
                answer, body = deadline.call_within(MOST_SECONDS, ask)
            except TimeoutError as error:
                raise requests.exceptions.RequestException(str(error)) from error
            if len(body) > MOST_BYTES:
                raise requests.exceptions.InvalidJSONError(f"the reply is longer than {MOST_BYTES} bytes")
            if answer.ok and body.strip():
                try:
                    load_json(body, name="the reply", limits=_LIMITS)
                except DocumentError as error:
                    raise requests.exceptions.InvalidJSONError(str(error)) from error
            answer._content, answer._content_consumed = body, True
            return answer

    return Adapter()
