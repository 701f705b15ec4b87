"""The run page on 127.0.0.1 during a run: the same page, with its changes as server-sent events.

Served are the page and the files that it lists, all of which are in the report without secrets; nothing else of the run
directory. Requests with another Host are refused, so that no web site reaches it by a name of its own.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ...state.events import FILE
from ...vocabulary import RunFile
from . import collect
from .document import DOCUMENT, REPORT
from .model import Run

ADDRESS = "127.0.0.1"
_PACE = 1.0
_WATCHED = (FILE, RunFile.STATE, RunFile.WAIT_LOG, f"{REPORT}/summary.txt")
_PIECE = 1 << 16
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


class Server(ThreadingHTTPServer):
    """Serves the run in `run_dir`. Raises `OSError` if the port is taken. port: 0 selects a free one.

    clock: the time of the run, of a replay another than now.
    Use it as any `socketserver` server: `serve_forever` in a thread, `shutdown` to end. It listens on 127.0.0.1 only.
    """

    daemon_threads = True
    # A port that is in use must be an error.
    allow_reuse_address = False

    def __init__(self, run_dir: Path, port: int = 0, clock: Callable[[], float] = time.time) -> None:
        self.run_dir, self._clock = run_dir, clock
        self._lock = threading.Lock()
        self._seen: tuple[object, ...] = ()
        self._made: tuple[Run, str] | None = None
        self.number = 0
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """The URL of the page."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def current(self) -> tuple[Run, str, int]:
        """Return the document, the page, and their number, which changes with them.

        They are made again only when a file of the run that they depend on has changed. Raises `OSError`, as `collect`.
        """
        with self._lock:
            seen = tuple(_signature(self.run_dir / name) for name in _WATCHED)
            if self._made is None or seen != self._seen:
                self._seen = seen
                self._made = collect(self.run_dir, live=True, clock=self._clock)
                self.number += 1
            return (*self._made, self.number)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 30

    def do_GET(self) -> None:
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.FORBIDDEN, "unknown Host")
            return
        path = unquote(urlsplit(self.path).path).lstrip("/")
        try:
            if path in ("", "index.html"):
                self._send(self.server.current()[1].encode(), "text/html; charset=utf-8")
            elif path == DOCUMENT:
                self._send(json.dumps(self.server.current()[0]).encode(), "application/json")
            elif path == "changes":
                self._changes()
            else:
                self._file(path)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            return
        except OSError as error:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, error.strerror)

    def _begin(self, kind: str, size: int | None) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in {**_HEADERS, "Content-Type": kind}.items():
            self.send_header(name, value)
        if size is not None:
            self.send_header("Content-Length", str(size))
        self.end_headers()

    def _send(self, data: bytes, kind: str) -> None:
        self._begin(kind, len(data))
        self.wfile.write(data)

    def _file(self, path: str) -> None:
        """Send a file of the report as text, whatever is in it."""
        listed = {file["path"]: file["size"] for file in self.server.current()[0]["files"]}
        if path not in listed:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with (self.server.run_dir / REPORT / path).open("rb") as stream:
            self._begin("text/plain; charset=utf-8", None)
            while piece := stream.read(_PIECE):
                self.wfile.write(piece)

    def _changes(self) -> None:
        self._begin("text/event-stream", None)
        # The run as it is comes first: it may have changed since the page was loaded, or the connection was lost.
        sent = 0
        while True:
            run, __, number = self.server.current()
            if number != sent:
                sent = number
                self.wfile.write(b"event: run\ndata: " + json.dumps(run).encode() + b"\n\n")
            else:
                self.wfile.write(b":\n\n")  # notices a reader that has gone
            time.sleep(_PACE)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def _signature(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
