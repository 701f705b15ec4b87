"""The file server of a lab: whom it answers, and the headers of what it sends."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import httpd


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a server as a lab starts it, on the loopback."""
    (tmp_path / "page.html").write_text("<script>")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, httpd.__file__, str(tmp_path), str(number), "virthost.lab", "127.0.0.1"]
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", number)).close()
                break
            except ConnectionRefusedError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
        yield number
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("path", ["/page.html", "/", "/none"])
def test_names_and_headers(port: int, path: str) -> None:
    for host, refused in (("virthost.lab", False), (f"127.0.0.1:{port}", False), ("evil.example", True)):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        assert (answer.status == 421) == refused
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        connection.close()
