"""The web interface of the rendezvous host, in front of a service that records what it is asked."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from ansible_collections.agentlab.ocp.payload.tools import installer_ui


class Service(BaseHTTPRequestHandler):
    """Answers with what it was asked; `/missing` does not exist."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = json.dumps([self.command, self.path, self.headers["Authorization"], body]).encode()
        self.send_response(404 if self.path == "/missing" else 201)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def place() -> Iterator[str]:
    service = HTTPServer(("127.0.0.1", 0), Service)
    server = installer_ui.Server(
        {
            "AIUI_APP_API_URL": f"http://127.0.0.1:{service.server_port}/",
            "AIUI_URL": "http://x:0/",
            "USER_AUTH_TOKEN": "t",
        }
    )
    for one in (service, server):
        threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    for one in (service, server):
        one.shutdown()
        one.server_close()


def test_requests_reach_the_service_with_the_token(place: str) -> None:
    request = urllib.request.Request(f"{place}/api/x?y=1", b"{}", {"Authorization": "mine"}, method="POST")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 201 and answer.headers["Content-Type"] == "application/json"
        assert json.load(answer) == ["POST", "/api/x?y=1", "t", "{}"]


@pytest.mark.parametrize(
    ("path", "length", "status"), [("/missing", None, 404), ("/x", "9999999", 413), ("/x", "-1", 413)]
)
def test_errors(place: str, path: str, length: str | None, status: int) -> None:
    headers = {"Content-Length": length} if length else {}
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(urllib.request.Request(place + path, b"{}", headers, method="POST"))
    assert error.value.code == status
    assert status != 404 or error.value.headers["Content-Type"] == "application/json"


def test_service_that_does_not_answer() -> None:
    server = installer_ui.Server({"AIUI_APP_API_URL": "http://127.0.0.1:9/", "AIUI_URL": "http://x:0/"})
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/")
    assert error.value.code == 502
    server.shutdown()
    server.server_close()


def test_needs_the_service() -> None:
    with pytest.raises(ValueError, match="AIUI_APP_API_URL is not set"):
        installer_ui.Server({})
