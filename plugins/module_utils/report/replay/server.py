"""A replay for any client: both APIs on one address, a directory for `wait-for`, and the run page, all at the time of the recording."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import json
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from ...addresses import in_url, socket_family
from ...installer import state as installer
from ...plan import certificates, rundir
from ...releases import LATEST
from ...state import write_atomic
from ...state.events import FILE, Event, EventLog, event, moment
from ...state.recording import Answer, Player
from ...vocabulary import RunFile
from . import SERVICE, Replay, openshift, service_answer

SPEEDS = (0.01, 10_000.0)
_PACE = 0.2
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


class ReplayClock:
    """A replay in progress: speed times as fast as the recording, from when it was made. Threads may share it."""

    def __init__(self, replay: Replay, speed: float) -> None:
        self.replay, self.speed = replay, speed
        self.player = Player(replay.recording)
        self.begun = time.monotonic()
        self.lock = threading.Lock()

    def position(self) -> float:
        """Return the seconds of the recording that were played."""
        return min((time.monotonic() - self.begun) * self.speed, self.replay.recording.length)

    def wall(self) -> float:
        """Return the time of the recording (epoch)."""
        with self.lock:
            self.player.seek(self.position())
            return self.player.wall()

    def answer(self, path: str) -> tuple[int, bytes] | None:
        """Return HTTP status and body of a GET now; None if nothing answers.

        path: with its query; the service's begin with its prefix, all others are the OpenShift API's.
        """
        of_service = path.startswith(f"{SERVICE}/")
        with self.lock:
            self.player.seek(self.position())
            if of_service:
                found = service_answer(self.player, _sorted(path.removeprefix(SERVICE)))
                return _encoded(found, of_service=True)
            return _encoded(openshift(self.player, _sorted(path)), of_service=False)

    def status(self) -> bytes:
        """Return what is played, as JSON."""
        notes = list(dict.fromkeys([*self.replay.notes, *self.player.notes]))
        length = round(self.replay.recording.length, 1)
        shown = {"recording": self.replay.name, "position": round(self.position(), 1), "length": length}
        return json.dumps({**shown, "speed": self.speed, "notes": notes}).encode()


def _sorted(path: str) -> str:
    split = urlsplit(path)
    pairs = [tuple(pair.partition("=")[::2]) for pair in split.query.split("&") if pair]
    return split.path + ("?" + "&".join("=".join(pair) for pair in sorted(pairs)) if pairs else "")


def _encoded(found: Answer | None, *, of_service: bool) -> tuple[int, bytes] | None:
    if found is None or not 200 <= found.status < 600:
        return None
    body = found.body
    if found.status >= 300:
        text = str(body)
        body = {"code": found.status, "kind": "Error", "reason": text, "message": text} if of_service else {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": text, "code": found.status,
            "reason": "NotFound" if found.status == 404 else ""}  # fmt: skip
    return found.status, json.dumps(body).encode()


class ReplayServer(ThreadingHTTPServer):
    """Serves both APIs of a replay, the service's live page at `/`, and at `/recording` what is played.

    page: HTML of the live page. Raises `OSError` if the port is taken. Requests with a host name other than localhost are refused,
    so that no web site reaches it by a name of its own.
    """

    daemon_threads = True
    allow_reuse_address = True  # after a restart; on Linux a port that is in use is still an error

    def __init__(self, playing: ReplayClock, host: str, port: int, page: bytes) -> None:
        self.playing, self.page = playing, page
        self.address_family = socket_family(host)
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """The URL of both APIs."""
        return f"http://{in_url(str(self.server_address[0]))}:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: ReplayServer
    timeout = 30
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not _is_local(self.headers.get("Host") or ""):
            self.send_error(HTTPStatus.FORBIDDEN, "unknown Host")
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            if self.path in ("/", "/index.html"):
                self._send(200, self.server.page, "text/html; charset=utf-8")
            elif self.path == "/recording":
                self._send(200, self.server.playing.status(), "application/json")
            elif found := self.server.playing.answer(self.path):
                self._send(*found, "application/json")
            else:
                self.close_connection = True  # nothing answered when this was recorded

    def do_POST(self) -> None:
        self.close_connection = True
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, "a recording cannot be changed")

    def do_PUT(self) -> None:
        self.do_POST()

    def do_PATCH(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self.do_POST()

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def _is_local(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname if "@" not in host else None
    if name in (None, "localhost"):
        return name is not None
    try:
        ipaddress.ip_address(str(name))
    except ValueError:
        return False
    return True


def assets(directory: Path, replay: Replay, host: str, url: str) -> None:
    """Write what `wait-for` and the run page read: the installer's state, a kubeconfig for `url`, the plan.

    directory: a new one; host: IP address on which the replay serves. Raises `OSError`.
    """
    (directory / "auth").mkdir(mode=0o700)
    (directory / "logs").mkdir(mode=0o700)
    state = {"*image.Ignition": {"RendezvousIP": host}, installer.OWN: {"profile": LATEST.name},
             "*gencrypto.AuthConfig": {"WatcherAuthToken": "replay", "AgentAuthToken": "replay"}}  # fmt: skip
    installer.save(directory, state)
    certificates.ensure(directory / "tls", "replay", [host])
    authority = base64.b64encode((directory / RunFile.CA).read_bytes()).decode()
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "replay", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "contexts": [{"name": "replay", "context": {"cluster": "replay", "user": "replay"}}],
        "current-context": "replay",
        "users": [{"name": "replay", "user": {}}],
    }
    write_atomic(directory / RunFile.KUBECONFIG, rundir.dump(kubeconfig), 0o600)
    write_atomic(directory / RunFile.PASSWORD, "replay\n", 0o600)
    if replay.plan:
        write_atomic(directory / rundir.PLAN, rundir.dump(replay.plan), 0o600)


class Events(threading.Thread):
    """Appends the events of a run to its log in `directory` when their time has come; what is missing is a warning at the start."""

    def __init__(self, playing: ReplayClock, directory: Path) -> None:
        super().__init__(daemon=True)
        self.playing, self.log = playing, EventLog(directory / FILE)
        self.ended = threading.Event()
        at = playing.replay.recording.entries[0].time
        notes = [event("message", "recording", text=note, level="warning", at=at) for note in playing.replay.notes]
        self._left: list[Event] = [*notes, *playing.replay.events]

    def run(self) -> None:
        """Run until `ended` is set."""
        while not self.ended.wait(_PACE):
            self.write()

    def write(self) -> None:
        """Append what is due. At the end of the recording all that is left is: clocks may have jumped."""
        now = self.playing.wall() * 1000
        over = self.playing.position() >= self.playing.replay.recording.length
        due = [one for one in self._left if over or (moment(one["time"]) or 0) <= now]
        if due:
            with contextlib.suppress(OSError):
                self.log.write(due)
            known = {id(one) for one in due}
            self._left = [one for one in self._left if id(one) not in known]
