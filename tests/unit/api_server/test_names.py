"""Names that a service without tokens accepts, and the headers of its responses."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from ansible_collections.agentlab.ocp.payload.api_server.names import is_served
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import httpd

from .lab import V2, Lab

URLS, DOMAINS = ("http://service.example.com:8090",), ("lab.example.org",)


@pytest.mark.parametrize("host", [
    "127.0.0.1", "127.0.0.1:8090", "[::1]:8090", "[fe80::1%25eth0]:8090", "192.168.111.20:8090", "localhost", "localhost:1", "LOCALHOST:8090",
    "master-0:8090", "assisted-service", "x.localhost", "service.example.com:8090", "api.ostest.lab.example.org:8090", "lab.example.org",
    "Virthost.ostest.LAB.example.org.:8090", "ostest.test.metalkube.test", "",
])  # fmt: skip
def test_its_own_names(host: str) -> None:
    assert is_served(host, URLS, DOMAINS)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8090",
        "127.0.0.1.evil.example",
        "evillab.example.org",
        "lab.example.org.evil.com",
        "[::1",
    ],
)
def test_names_of_others(host: str) -> None:
    assert not is_served(host, URLS, DOMAINS)


@pytest.mark.parametrize(("host", "served"), [
    ("192.168.111.1:8089", True), ("[fd2e::1]:8089", True), ("virthost.ostest.test.metalkube.org", True), ("localhost:8089", True), ("virthost", True),
    ("evil.example:8089", False), ("127.0.0.1.evil.example", False), ("virthost.ostest.test.metalkube.org.evil.example", False),
])  # fmt: skip
def test_names_of_the_file_server(host: str, served: bool) -> None:
    assert httpd.is_served(host, "virthost.ostest.test.metalkube.org") is served


async def test_another_name_gets_nothing(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab, aiohttp.ClientSession() as session:
        for path in ("/", "/health", f"{V2}/clusters"):
            async with session.get(lab.server.make_url(path), headers={"Host": "evil.example:8090"}) as answer:
                assert answer.status == 421 and "evil.example" in await answer.text()
            async with session.get(lab.server.make_url(path)) as answer:
                assert answer.status == 200
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
        async with session.get(lab.server.make_url("/")) as answer:
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
