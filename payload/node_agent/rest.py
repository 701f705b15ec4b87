"""HTTP for the programs: one request, one connection, the proxies of the environment, a response instead of an exception."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...plugins.module_utils.bounded import load_json
from .protocol import Request, Response

TIMEOUT = 60.0
SCHEMES = ("http", "https")
SECRET_HEADERS = ("Authorization", "X-secret-key", "Cookie")
"""In urllib's spelling. Go's client drops the first and the last on a redirect to another host; the service's token is as secret."""
MOST_BYTES, MOST_SECONDS, MOST_ERROR = 64 * 2**20, 600.0, 2**20
"""Of a response: an Ignition config with all of a cluster's certificates has less than 2 MiB."""


def tls(insecure: bool = False, cacert: str = "", pem: str = "") -> ssl.SSLContext:
    """A client context; `cacert` (file) and `pem` (text) add authorities. OSError, ssl.SSLError: they cannot be read."""
    context = ssl.create_default_context(cadata=pem or None)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cacert:
        context.load_verify_locations(cacert)
    return context


def proxy_of(url: str, environment: Mapping[str, str]) -> str:
    """Return the environment's proxy for a URL; empty: none.

    As Go's programs read it: `no_proxy` has names (with their subdomains), addresses, networks and `*`, each with or without a port, and
    this machine itself is never reached through a proxy. urllib's own parser does not support networks.
    """
    where = urllib.parse.urlsplit(url)
    name, port = (where.hostname or "").rstrip("."), str(where.port or {"https": 443}.get(where.scheme, 80))
    proxy = environment.get(f"{where.scheme.upper()}_PROXY") or environment.get(f"{where.scheme}_proxy") or ""
    if not proxy or name == "localhost":
        return ""
    address = _address(name)
    if address and address.is_loopback:
        return ""
    for entry in (environment.get("NO_PROXY") or environment.get("no_proxy") or "").lower().split(","):
        if _matches(entry.strip(), name, port, address):
            return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _matches(entry: str, name: str, port: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    own = _address(entry)
    if own is None and entry.rpartition(":")[2].isdigit():
        entry, __, only = entry.rpartition(":")
        if only != port:
            return False
        own = _address(entry)
    if own or address:
        return own == address
    entry = entry.removeprefix("*")
    return bool(entry) and (
        name.endswith(entry) if entry.startswith(".") else name == entry or name.endswith(f".{entry}")
    )


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow HTTP only; secrets are sent only to the original host, as with Go's client."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        there, here = urllib.parse.urlsplit(newurl), urllib.parse.urlsplit(req.full_url)
        if there.scheme not in SCHEMES:
            raise ValueError(f"redirected to an unsupported protocol scheme {there.scheme!r}")
        if new is not None and (there.netloc != here.netloc or (here.scheme, there.scheme) == ("https", "http")):
            for name in SECRET_HEADERS:
                new.headers.pop(name, None)
        return new


def opener(proxies: dict[str, str], context: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    """Handlers for HTTP only: urllib's default also opens files, FTP and data URLs."""
    found = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(proxies), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor(), _Redirects(), urllib.request.UnknownHandler(),
    ):  # fmt: skip
        found.add_handler(handler)
    return found


def read(answer: Any, url: str) -> bytes:
    """The body of an answer. OSError: it is larger than MOST_BYTES, or takes longer than MOST_SECONDS."""
    until, parts, got = time.monotonic() + MOST_SECONDS, list[bytes](), 0
    while data := answer.read1(65536):
        parts.append(data)
        got += len(data)
        if got > MOST_BYTES:
            raise OSError(f"the response of {url} is larger than {MOST_BYTES} bytes")
        if time.monotonic() > until:
            raise OSError(f"the response of {url} takes longer than {MOST_SECONDS:g} s")
    return b"".join(parts)


def send(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes | Iterable[bytes] | None = None,
    context: ssl.SSLContext | None = None,
    timeout: float = TIMEOUT,
    direct: bool = False,
) -> Response:
    """Return status and raw body. Status 0: no response, with the reason in `error`. `direct`: ignore proxies of the environment."""
    scheme = url.partition(":")[0].lower()
    if scheme not in SCHEMES:
        return Response(0, None, f'{method} {url[:200]!r}: unsupported protocol scheme "{scheme[:20]}"')
    try:
        proxy = "" if direct else proxy_of(url, os.environ)
        proxies = {scheme: proxy} if proxy else {}
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        with opener(proxies, context).open(request, timeout=timeout) as answer:
            return Response(answer.status, read(answer, url), kind=answer.headers.get("Content-Type", ""))
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, error.read(MOST_ERROR), str(error)[:512], error.headers.get("Content-Type", ""))
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Response(0, None, f"{method} {url}: {getattr(error, 'reason', error)}")


def decode_body(response: Response) -> Response:
    """The same with a JSON body decoded; anything else stays as text."""
    raw = response.body
    if not isinstance(raw, bytes):
        return response
    text = raw.decode(errors="replace")
    try:
        return response._replace(body=load_json(text, name="the answer") if text.strip() else None)
    except ValueError:
        return response._replace(body=None if response.ok else {"code": response.status, "reason": text[:512]})


def reason(response: Response, request: str = "") -> str:
    """Return why a response is not `ok`: what the service's two formats of errors say, its text, or why there is none.

    `request` is what a caller's message names already: it is left out.
    """
    found = decode_body(response).body
    if isinstance(found, dict) and (text := found.get("reason") or found.get("message")):
        return str(text)
    if isinstance(response.body, bytes):
        return response.body.decode(errors="replace")[:500]
    return response.error.removeprefix(request)


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
        return decode_body(
            send(
                request.method, self.url + request.path, {**headers, "Accept": "application/json"}, body, self._context
            )
        )

    def upload(self, path: str, headers: dict[str, str], body: Iterable[bytes]) -> Response:
        return decode_body(send("POST", self.url + path, headers, body, self._context, timeout=600))
