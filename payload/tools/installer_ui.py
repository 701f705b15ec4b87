"""Web interface of the rendezvous host, of the lab: the assisted service's page and API, with the user's token.

Upstream's (openshift-assisted/assisted-installer-ui, apps/assisted-disconnected-ui) is a wizard on top of the same proxy. Environment:
AIUI_APP_API_URL, the service; AIUI_URL, its own place; USER_AUTH_TOKEN, which users of the interface need not know.
"""

from __future__ import annotations

import logging
import os
import sys
import urllib.parse
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler

from ...plugins.module_utils.vocabulary import Component
from ..cluster import dual_stack
from ..node_agent import rest

PORT = 3001
MOST = 1 << 20
"""Of a request's body, in bytes."""


class Server(dual_stack.Server):
    """The interface in front of the service at `api`, whose requests get `token`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.api = environment.get("AIUI_APP_API_URL", "").rstrip("/")
        self.token = environment.get("USER_AUTH_TOKEN", "")
        if not self.api:
            raise ValueError("AIUI_APP_API_URL is not set: it should be like http://192.168.111.20:8090/")
        place = urllib.parse.urlsplit(environment.get("AIUI_URL") or f"http://localhost:{PORT}/")
        super().__init__(PORT if place.port is None else place.port, Handler, logging.getLogger(Component.UI))


class Handler(BaseHTTPRequestHandler):
    """Hands a request to the service, and returns its answer."""

    server: Server

    def _pass_on(self) -> None:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdecimal() or int(length) > MOST:
            self.send_error(413)
            return
        body = self.rfile.read(int(length)) or None
        headers = {name: self.headers[name] for name in ("Accept", "Content-Type") if name in self.headers}
        if self.server.token:
            headers["Authorization"] = self.server.token
        answer = rest.send(self.command, self.server.api + self.path, headers, body, direct=True)
        if not answer.status:
            self.send_error(502, explain=f"The assisted service does not answer: {answer.error}")
            return
        data = answer.body or b""
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind or "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _pass_on  # noqa: N815


def main() -> int:
    """Serve until the end of the container; returns 1 when it cannot."""
    try:
        server = Server(os.environ)
    except (ValueError, OSError) as error:
        print(f"{Component.UI}: {error}", file=sys.stderr)
        return 1
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
