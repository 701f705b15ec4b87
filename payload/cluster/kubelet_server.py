"""The port of a kubelet: health, and nothing else without authentication."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = logging.getLogger("kubelet")


def start(port: int, tls: ssl.SSLContext) -> None:
    """Serve on a port of all addresses until the process ends; a certificate that `tls` gets later applies at once."""
    server = _KubeletServer(("::", port), _Handler)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self) -> None:
        text = "ok" if self.path == "/healthz" else "Unauthorized"
        self.send_response(200 if self.path == "/healthz" else 401)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)


class _KubeletServer(ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: object, client_address: object) -> None:
        log.debug("connection from %s ended early", client_address)
