"""An OpenShift API on loopback that reports a healthy cluster. It writes a kubeconfig, and ends after five minutes.

A second argument is a file with more answers, JSON by path.
"""

from __future__ import annotations

import json
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

GOOD = {
    "conditions": [
        {"type": "Available", "status": "True"},
        {"type": "Degraded", "status": "False"},
        {"type": "Progressing", "status": "False"},
    ]
}
ANSWERS: dict[str, Any] = {
    "/version": {"gitVersion": "v1.35.0"},
    "/api/v1/nodes": {
        "items": [
            {
                "metadata": {"name": "master-0", "labels": {}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
        ]
    },
    "/apis/config.openshift.io/v1/clusterversions/version": {"status": {**GOOD, "desired": {"version": "4.20.1"}}},
    "/apis/config.openshift.io/v1/clusteroperators": {"items": [{"metadata": {"name": "etcd"}, "status": GOOD}]},
    "/api/v1/pods": {
        "items": [
            {"metadata": {"name": "etcd", "namespace": "openshift-etcd"}, "spec": {}, "status": {"phase": "Succeeded"}}
        ]
    },
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = ANSWERS.get(self.path.partition("?")[0])
        body = json.dumps(answer if answer is not None else {"kind": "Status", "code": 404}).encode()
        self.send_response(200 if answer is not None else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(kubeconfig: Path, *more: Path) -> None:
    signal.alarm(300)
    for path in more:
        ANSWERS.update(json.loads(path.read_text()))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "admin",
        "clusters": [{"name": "one", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "admin", "user": {"token": "t"}}],
        "contexts": [{"name": "admin", "context": {"cluster": "one", "user": "admin"}}],
    }
    kubeconfig.write_text(json.dumps(config))
    server.serve_forever()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
