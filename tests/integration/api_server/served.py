"""`agentlab serve assisted-service` as a process, and a client of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

PULL_SECRET = json.dumps({"auths": {"registry.example.test": {"auth": "dXNlcjpwYXNz"}}})
START = "import sys; from ansible_collections.agentlab.ocp.plugins.module_utils.cli.serve import main; sys.exit(main(sys.argv[1:]))"


class Served:
    """The process; `start` waits until it listens."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data, self.options, self.url = data, options, ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [
            sys.executable,
            "-c",
            START,
            "assisted-service",
            "--listen",
            "127.0.0.1:0",
            "--data",
            str(self.data),
            *self.options,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "listens on " in line:
                self.url = line.split()[-1]
                return
        raise AssertionError("the service ended at its start")

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        names = {key.replace("_", "-"): value for key, value in headers.items()}
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json", **names}, method=method
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            raw = answer.read()
            return json.loads(raw) if answer.headers.get_content_type() == "application/json" else raw


V2 = "/api/assisted-install/v2"
CLUSTER = {
    "name": "ostest",
    "openshift_version": "4.22.0",
    "base_dns_domain": "test.example",
    "pull_secret": PULL_SECRET,
    "high_availability_mode": "None",
}
