"""A service that is played."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.orchestrator.service import PREFIX


class FakeService:
    """A fake service that records requests. `answers` maps method and path to a status and body, or a list of them in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bytes]] = []
        self.answers: dict[str, Any] = {}
        played = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path = self.path.removeprefix(PREFIX)
                played.calls.append((self.command, path, body))
                found = played.answers.get(f"{self.command} {path}", (200, {}))
                if not isinstance(found, list) and callable(found):
                    found = found(body)
                if isinstance(found, list):
                    found = found.pop(0) if len(found) > 1 else found[0]
                code, content = found
                data = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = _answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stages(self) -> list[tuple[str, str]]:
        told = [json.loads(body) for method, path, body in self.calls if method == "PUT" and path.endswith("/progress")]
        return [(entry["current_stage"], entry["progress_info"]) for entry in told]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are short."""
    for name in ("CONTROLLER_POLL_SECONDS", "INSTALLER_POLL_SECONDS"):
        monkeypatch.setenv(name, "0.01")


@pytest.fixture
def played() -> Iterator[FakeService]:
    made = FakeService()
    yield made
    made.server.shutdown()
