"""HTTP for the programs: one request, one connection, the proxies of the environment, an answer instead of an exception."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field

from .protocol import Request, Response

TIMEOUT = 60.0


def tls(insecure: bool = False, cacert: str = "", pem: str = "") -> ssl.SSLContext:
    """A client context; `cacert` (file) and `pem` (text) add authorities. OSError, ssl.SSLError: they cannot be read."""
    context = ssl.create_default_context(cafile=cacert or None, cadata=pem or None)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def send(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes | Iterable[bytes] | None = None,
    context: ssl.SSLContext | None = None,
    timeout: float = TIMEOUT,
) -> Response:
    """Status and raw body. Status 0: nobody answered, `error` says why."""
    request = urllib.request.Request(url, data=body, headers=headers, method=method)  # type: ignore[arg-type]
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return Response(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, error.read(), str(error))
    except (OSError, ValueError) as error:
        return Response(0, None, f"{method} {url}: {getattr(error, 'reason', error)}")


def decoded(response: Response) -> Response:
    """The same with a JSON body decoded; anything else stays as text."""
    raw = response.body
    if not isinstance(raw, bytes):
        return response
    text = raw.decode(errors="replace")
    try:
        return response._replace(body=json.loads(text) if text.strip() else None)
    except ValueError:
        return response._replace(body=None if response.ok else {"code": response.status, "reason": text[:512]})


@dataclass(slots=True)
class Client:
    """Sends protocol requests to one service."""

    url: str
    insecure: bool = False
    cacert: str = ""
    _context: ssl.SSLContext | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")
        if self.url.startswith("https:"):
            self._context = tls(self.insecure, self.cacert)

    def __call__(self, request: Request, headers: dict[str, str]) -> Response:
        body = None
        if request.body is not None:
            body = json.dumps(request.body).encode()
            headers = {**headers, "Content-Type": "application/json"}
        return decoded(
            send(request.method, self.url + request.path, {**headers, "Accept": "application/json"}, body, self._context)
        )

    def upload(self, path: str, headers: dict[str, str], body: Iterable[bytes]) -> Response:
        return decoded(send("POST", self.url + path, headers, body, self._context, timeout=600))
