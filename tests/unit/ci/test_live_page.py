"""The page of the rendezvous host, requested through `agentlab forward`: that a job notices when it is not served."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ansible_collections.agentlab.ocp.ci import live_page
from ansible_collections.agentlab.ocp.ci.calls import VerbFailed

CLUSTERS = "/api/assisted-install/v2/clusters"
HOSTS = [{"id": "1", "requested_hostname": "master-0"}, {"id": "2"}]


class Service(BaseHTTPRequestHandler):
    """Serves `page`, and with the token the cluster and its `hosts`."""

    page = "<title>assisted-service</title>"
    hosts: list[dict[str, str]] = HOSTS

    def do_GET(self) -> None:
        found: dict[str, Any] = {CLUSTERS: [{"id": "c"}], f"{CLUSTERS}/c": {"hosts": self.hosts}}
        text = self.page if self.path == "/" else json.dumps(found.get(self.path))
        allowed = self.path == "/" or self.headers["Watcher-Authorization"] == "secret"
        self.send_response(200 if allowed and text else 401)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *__: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def watch(*lines: str) -> None:
    @contextlib.contextmanager
    def running(*words: str) -> Iterator[Any]:
        assert words == ("forward", "service")
        yield SimpleNamespace(stdout=iter(lines))

    plan = {"nodes": [{"name": "master-0"}, {"name": "master-1"}]}
    live_page.watch(cast(Any, SimpleNamespace(json=lambda verb: plan, running=running)))


def printed(port: int, token: str = "secret") -> tuple[str, str]:
    here = f"http://127.0.0.1:{port}"
    return f"{here}      192.168.0.116:8090\n", f"for the service's page in a browser: {here}/#token={token}\n"


def test_the_page_shows_all_hosts(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    watch(*printed(port))
    assert capsys.readouterr().out == f"ok   the page of http://127.0.0.1:{port}/ shows 2, master-0\n"


@pytest.mark.parametrize(
    ("page", "hosts", "token", "reason"),
    [
        ("<title>another</title>", HOSTS, "secret", "is another page"),
        ("", HOSTS, "secret", "401"),
        (Service.page, HOSTS, "other", "401"),
        (Service.page, HOSTS[:1], "secret", "it shows 1 of 2 hosts"),
    ],
)
def test_a_page_that_is_not_served(
    page: str, hosts: Any, token: str, reason: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Service, "page", page)
    monkeypatch.setattr(Service, "hosts", hosts)
    monkeypatch.setattr(live_page, "SECONDS", 0.2)
    monkeypatch.setattr(live_page, "POLL_SECONDS", 0.1)
    with pytest.raises(VerbFailed, match=rf"after 0 s: the page shows all hosts is not true: .*{reason}"):
        watch(*printed(port, token))


def test_nothing_is_forwarded() -> None:
    with pytest.raises(VerbFailed, match="forward prints no URL"):
        watch("agentlab: no such cluster\n")
