"""Simulator of the ingress router: serves the hosts of Routes with a page that describes the cluster."""

from __future__ import annotations

import html
import logging
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from .dual_stack import Server
from .store import Object

REFRESH_SECONDS = 5.0
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{name} - agentlab</title></head>
<body><h1>{name}</h1>
<p>This is the route <code>{route}</code> of an agentlab cluster with the lab payload, OpenShift {version}.</p>
<p><strong>The control plane of this cluster is simulated.</strong> Its hosts were booted, discovered and installed for real; the API serves
live objects, but there is no web console and no workload runs.</p></body></html>
"""
_UNKNOWN = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Application is not available</title></head>
<body><h1>Application is not available</h1><p>No route of this cluster has the host <code>{host}</code>.</p></body></html>
"""
log = logging.getLogger("router")


class Router:
    """Serves HTTPS and plain HTTP (which redirects) on all addresses; `routes` returns the Route objects."""

    def __init__(self, routes: Callable[[], list[Object]], version: str, ports: tuple[int, int] = (443, 80)) -> None:
        self._routes, self._version, self._ports = routes, version, ports
        self._known: dict[str, Object] = {}
        self._read_at = -REFRESH_SECONDS
        self._lock = threading.Lock()
        self._servers: list[Server] = []

    def start(self, certificate: Path, key: Path) -> None:
        """Start serving in threads."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        for port, secure in zip(self._ports, (True, False), strict=True):
            server = Server(port, self._handler(secure), log)
            if secure:
                # The handshake belongs to the connection's thread, not to accept().
                server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            self._servers.append(server)
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Stop serving."""
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._servers.clear()

    def answer(self, host: str) -> tuple[int, str]:
        """Return status and page for a host name."""
        route = self._find(host)
        if route is None:
            return 503, _UNKNOWN.format(host=html.escape(host))
        metadata = route["metadata"]
        return 200, _PAGE.format(
            name=metadata["name"], route=f"{metadata['namespace']}/{metadata['name']}", version=self._version
        )

    def _find(self, host: str) -> Object | None:
        with self._lock:
            if time.monotonic() - self._read_at >= REFRESH_SECONDS:
                try:
                    self._known = {route["spec"]["host"]: route for route in self._routes()}
                    self._read_at = time.monotonic()
                except Exception as error:  # the API may be failing over; keep the known routes
                    log.warning("routes cannot be read: %s", error)
            return self._known.get(host)

    def _handler(self, secure: bool) -> type[BaseHTTPRequestHandler]:
        router = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def do_GET(self) -> None:
                host = (
                    self.headers.get("Host", "").rsplit(":", 1)[0]
                    if not self.headers.get("Host", "").endswith("]")
                    else self.headers["Host"]
                )
                code, page = router.answer(host)
                if not secure and code == 200:
                    self.send_response(302)
                    self.send_header("Location", f"https://{host}{self.path}")
                    page = ""
                else:
                    self.send_response(code)
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                data = page.encode()
                self.send_header("Content-Length", str(len(data)))
                self.send_header("X-Content-Type-Options", "nosniff")
                self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

            do_HEAD = do_GET  # noqa: N815 - http.server's name

            def log_message(self, format: str, *args: object) -> None:
                log.debug(format, *args)

        return Handler
