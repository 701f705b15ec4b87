"""An HTTP server on all addresses of both families, for the ports of the kubelet, the router and the web interface."""

from __future__ import annotations

import logging
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Listens on `port` of every IPv6 and IPv4 address, with a thread for each connection.

    log: gets a line for a connection that ends early, which is not an error of the server.
    """

    address_family = socket.AF_INET6
    daemon_threads = True

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler], log: logging.Logger) -> None:
        self._log = log
        super().__init__(("::", port), handler)

    def server_bind(self) -> None:
        """Bind to both families: the port of IPv6 alone is the default of some hosts."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what ended a connection without a traceback."""
        self._log.debug("connection from %s ended early", client_address)
