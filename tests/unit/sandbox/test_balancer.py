"""The load balancer of a lab, with the distribution's haproxy in a network namespace of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import balancer

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin")
pytestmark = pytest.mark.skipif(not HAPROXY, reason="haproxy is not installed")

# TLS servers on 127.0.0.2 alone, that answer as those of a control plane do.
SERVERS = """
import http.server, ssl, subprocess, sys, threading, time, json, pathlib
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import balancing
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import balancer
folder, haproxy, given = pathlib.Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
new = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out certificate -days 2 -subj /CN=x"
subprocess.run(new.split(), cwd=folder, check=True, capture_output=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204 if self.path == "/healthz" else 200)
        self.end_headers()
    def log_message(self, *words): pass
for port in (6443, 22623):
    server = http.server.ThreadingHTTPServer(("127.0.0.2", port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
(folder / "haproxy.cfg").write_text(balancer.config(given))
running = subprocess.Popen([haproxy, "-db", "-f", str(folder / "haproxy.cfg")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
deadline, found = time.monotonic() + 30, []
while time.monotonic() < deadline:
    time.sleep(0.5)
    try:
        found = balancing.servers(pathlib.Path(given["stats"]))
    except OSError:
        continue
    if all(one.up == (one.node == "master-0") for one in found):
        break
running.terminate()
print(json.dumps([[one.frontend, one.node, one.up] for one in found]))
"""


def test_a_node_that_serves_gets_connections_and_one_that_does_not_gets_none(tmp_path: Path) -> None:
    """The API answers its health with 200, the machine-config server with 204."""
    behind = [{"name": "master-0", "ip": "127.0.0.2"}, {"name": "master-1", "ip": "127.0.0.3"}]
    given = {
        "addresses": ["127.0.0.1"],
        "stats": str(tmp_path / "stats.sock"),
        "frontends": [
            {"name": "api", "port": 6443, "health": "/readyz", "backends": behind},
            {"name": "machine-config", "port": 22623, "health": "/healthz", "backends": behind},
        ],
    }
    argv = ["unshare", "-n", sys.executable, "-c", SERVERS, str(tmp_path), str(HAPROXY), json.dumps(given)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        ["api", "master-0", True],
        ["api", "master-1", False],
        ["machine-config", "master-0", True],
        ["machine-config", "master-1", False],
    ]


def test_the_log_has_what_is_wrong_with_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text("topology: compact\nplatform: none\n")
    plan: Any = build.build(profile.load(path, None, "ostest"), "ostest")
    plan["services"]["balancer"]["stats"] = f"/{100 * 's'}"  # haproxy takes 97 characters
    service = balancer.render(plan, tmp_path, str(HAPROXY))
    for file, (text, __) in service.files.items():
        file.write_text(text)
    done = subprocess.run(service.program.argv, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert "too long (max 97)" in done.stderr
