"""HTTP for the programs: one request, one connection, the proxies of the environment, an answer instead of an exception."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .protocol import Request, Response

TIMEOUT = 60.0


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
    """The proxy that the environment names for a URL; empty: none.

    As Go's programs read it: `no_proxy` has names (with their subdomains), addresses, networks and `*`, each with a port or without, and
    this machine itself is never asked for through a proxy. urllib's own reading knows no networks.
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
    return bool(entry) and (name.endswith(entry) if entry.startswith(".") else name == entry or name.endswith(f".{entry}"))


def send(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes | Iterable[bytes] | None = None,
    context: ssl.SSLContext | None = None,
    timeout: float = TIMEOUT,
    direct: bool = False,
) -> Response:
    """Status and raw body. Status 0: nobody answered, `error` says why. `direct`: whatever proxies the environment names."""
    try:
        proxy = "" if direct else proxy_of(url, os.environ)
        proxies = urllib.request.ProxyHandler({urllib.parse.urlsplit(url).scheme: proxy} if proxy else {})
        opener = urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=context))
        request = urllib.request.Request(url, data=body, headers=headers, method=method)  # type: ignore[arg-type]
        with opener.open(request, timeout=timeout) as answer:
            return Response(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, error.read(), str(error))
    except (OSError, ValueError, http.client.HTTPException) as error:
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
