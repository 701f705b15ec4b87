"""The load balancer's check, with a real haproxy before two or three servers on addresses of the loopback device."""

from __future__ import annotations

import contextlib
import http.server
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import balancing
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import balancer, lifecycle, processes
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Port

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin") or ""
NODES = {"master-0": "127.0.0.2", "master-1": "127.0.0.3", "master-2": "127.0.0.4"}


class Answer(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def started(tmp_path: Path, port: int, nodes: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A plan whose load balancer listens on 127.0.0.1, without health checks by HTTPS, but with four of them for one."""
    usual = balancer._DEFAULTS
    monkeypatch.setattr(balancer, "_DEFAULTS", usual.replace("inter 2s", "inter 500ms"))
    assert usual != balancer._DEFAULTS
    plan: Any = build.build(profile.load("compact_segments_static", PROFILES), "ostest")
    plan["services"]["balancer"] = {
        "addresses": ["127.0.0.1"],
        "stats": str(tmp_path / "balancer/stats.sock"),
        "frontends": [
            {"name": "ingress-http", "port": port, "health": None, "backends": [{"name": n, "ip": NODES[n]} for n in nodes]}
        ],
    }  # fmt: skip
    monkeypatch.setattr(Port, "HTTP", port)
    lifecycle.ensure({"balancer": balancer.render(plan, tmp_path / "balancer", HAPROXY)}, tmp_path / "processes")
    return plan["services"]["balancer"]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    yield number
    processes.stop(tmp_path / "processes", "balancer")


@pytest.fixture
def serve(port: int) -> Iterator[Any]:
    made = []

    def start(*names: str) -> None:
        for name in names:
            server = http.server.ThreadingHTTPServer((NODES[name], port), Answer)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            made.append(server)

    yield start
    for server in made:
        server.shutdown()
        server.server_close()


needs_haproxy = pytest.mark.skipif(not HAPROXY, reason="haproxy is not installed")


@needs_haproxy
@pytest.mark.parametrize(
    ("nodes", "serving", "ok"), [(2, 2, True), (3, 3, True), (3, 2, True), (3, 1, False), (2, 1, False)]
)
def test_every_node_serves(
    nodes: int, serving: int, ok: bool, tmp_path: Path, port: int, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list(NODES)
    made: Any = started(tmp_path, port, names[:nodes], monkeypatch)
    serve(*names[:serving])
    settled = 0
    for __ in range(
        800
    ):  # until haproxy has noticed who is down, which is three checks, and no server is about to change
        listed = balancing.servers(Path(made["stats"]))
        settled = settled + 1 if {one.node for one in listed if one.state == "UP"} == {*names[:serving]} else 0
        if settled == 15:
            break
        threading.Event().wait(0.05)
    (found,) = balancing.findings(made)
    assert found.ok == ok, found
    if not ok:
        assert f"{names[serving]} is DOWN" in found.found


@needs_haproxy
def test_no_load_balancer_is_a_finding(tmp_path: Path, port: int, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = started(tmp_path, port, ["master-0"], monkeypatch)
    processes.stop(tmp_path / "processes", "balancer")
    (found,) = balancing.findings(made)
    assert not found.ok and "does not serve: " in found.found


@needs_haproxy
def test_a_wrong_configuration_is_refused_by_haproxy_before_the_start(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balancer, "_DEFAULTS", balancer._DEFAULTS + "  bogus yes\n")
    with pytest.raises(LabError, match=r"(?s)balancer: exited: .*unknown keyword 'bogus'"):
        started(tmp_path, port, ["master-0"], monkeypatch)


@needs_haproxy
@pytest.mark.parametrize("serving", [["master-0", "master-1"], ["master-0"]])
def test_a_machine_reports_at_a_port(
    serving: list[str], tmp_path: Path, port: int, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load balancer that is a machine outside of the cluster is asked over the network."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        stats = free.getsockname()[1]
    monkeypatch.setattr(Port, "HTTP", port)
    monkeypatch.setattr(balancing, "STATS_PORT", stats)
    monkeypatch.setattr(balancer, "STATS_PORT", stats)
    serve(*serving)
    behind = [{"name": name, "ip": NODES[name]} for name in ("master-0", "master-1")]
    front = {"name": "ingress-http", "port": port, "health": None, "backends": behind}
    made: Any = {"addresses": ["127.0.0.1"], "stats": "/unused", "frontends": [front], "machine": "lb"}
    (tmp_path / "haproxy.cfg").write_text(balancer.config(made))
    command = [HAPROXY, "-db", "-f", str(tmp_path / "haproxy.cfg")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            for __ in range(200):
                with contextlib.suppress(OSError):
                    if [one.node for one in balancing.servers(("127.0.0.1", stats)) if one.state == "UP"] == serving:
                        break
                threading.Event().wait(0.05)
            (found,) = balancing.findings(made)
        finally:
            running.terminate()
    assert found.ok == (len(serving) == 2), found
