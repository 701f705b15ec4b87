"""The check of a proxied lab, with logs as squid and docker-registry write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import proxied
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page import pulls

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
CONNECT = 'time="2026-11-23T19:37:50.389Z" client={} method=CONNECT url=registry.agentlab.test:443 status={} bytes=31830 ms=58\n'
GET = (
    'time="2026-11-23T19:37:50.4Z" level=info msg="response completed" http.request.host="registry.agentlab.test" '
    'http.request.method=GET http.request.remoteaddr="{}:40112" http.request.uri="/v2/lab/release/{}" '
    "http.response.status=200 http.response.written=91\n"
)
BLOB = f"blobs/sha256:{'0' * 64}"


@pytest.fixture(params=["compact_ipv4", "compact_ipv6"])
def plan(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    given: Any = profile.load(request.param, PROFILES)
    given["network"]["connection"] = "proxied"
    made: Any = build.build(given, "ostest")
    made["services"]["directory"] = str(tmp_path)
    for name in ("proxy", "registry"):
        (tmp_path / name).mkdir()
    clients = addresses(made)
    (tmp_path / "proxy/log").write_text("".join(CONNECT.format(client, 200) for client in clients) + "cut\xff\n")
    (tmp_path / "registry/log").write_text(GET.format("127.0.0.1", BLOB) * 3)
    return made


def addresses(plan: Any) -> list[str]:
    return [node["nics"][0]["addresses"][0]["ip"] for node in plan["nodes"]]


def test_every_node_pulled_through_the_proxy(plan: Any) -> None:
    (found,) = proxied.findings(plan)
    assert found.ok and found.found == "master-0, master-1, master-2"


def test_a_node_without_a_successful_connection_is_a_finding(plan: Any, tmp_path: Path) -> None:
    first, second, third = addresses(plan)
    other = CONNECT.format(third, 200).replace("registry.agentlab.test", "quay.io")
    (tmp_path / "proxy/log").write_text(CONNECT.format(first, 200) + CONNECT.format(second, 503) + other)
    (found,) = proxied.findings(plan)
    assert not found.ok
    assert found.found == "master-0, master-1 had no connection, master-2 had no connection"


def test_a_pull_past_the_proxy_is_a_finding(plan: Any, tmp_path: Path) -> None:
    client = addresses(plan)[1]
    shown = f"[{client}]" if ":" in client else client
    with (tmp_path / "registry/log").open("a") as log:
        log.write(GET.format(shown, "").replace("lab/release/", ""))
        log.flush()
        (found,) = proxied.findings(plan)
        assert found.ok  # it asked for the API's version, as any client may
        log.write(GET.format(shown, BLOB))
    (found,) = proxied.findings(plan)
    assert found.found == "master-0, master-1 pulled past the proxy, master-2"


def test_a_missing_log_is_a_finding(plan: Any, tmp_path: Path) -> None:
    (tmp_path / "proxy/log").unlink()
    (found,) = proxied.findings(plan)
    assert not found.ok and found.found.endswith("proxy/log: No such file or directory")


def test_other_labs_are_not_checked() -> None:
    assert not list(proxied.findings(build.build(profile.load("compact_ipv4", PROFILES), "ostest")))


def test_connections_are_rows_of_the_page(plan: Any, tmp_path: Path) -> None:
    (tmp_path / "services").mkdir()
    (tmp_path / "proxy/log").rename(tmp_path / "services/proxy.log")
    rows = list(pulls.lanes(tmp_path, plan))
    assert [row["name"] for row in rows] == ["pulls of master-0", "pulls of master-1", "pulls of master-2"]
    (pull,) = rows[0]["states"]
    assert pull["text"].startswith("1 connections") and pull["end"] - pull["start"] == 58
