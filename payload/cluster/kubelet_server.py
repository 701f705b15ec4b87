"""The port of a kubelet: health, and nothing else without authentication."""

from __future__ import annotations

import logging
import ssl
import threading
from http.server import BaseHTTPRequestHandler

from .dual_stack import Server

log = logging.getLogger("kubelet")


def start(port: int, tls: ssl.SSLContext) -> None:
    """Serve on a port of all addresses until the process ends; a certificate that `tls` gets later applies at once."""
    server = Server(port, _Handler, log)
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
