"""The program of the BMCs: which clients it answers, and the headers of its responses. It uses no libvirt."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import flask
import pytest
import sushy
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import emulator, sessions
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, certificates, profile, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import services

PROFILES = Path(__file__).parents[3] / "config_examples"
NAME = "virthost.ostest.test.metalkube.org"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of BMCs that run as a lab runs them, on the loopback."""
    plan = build.build(profile.load("sno_ipv4", PROFILES), "ostest")
    plan["hypervisor"]["state_dir"] = str(tmp_path)
    plan["networks"][0]["subnets"] = [{"gateway": "127.0.0.1", "family": "ipv4"}]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    plan["services"]["bmc"]["port"] = number
    certificates.ensure(tmp_path / "tls", "ostest", ["127.0.0.1"])
    pem = {"ca": (tmp_path / "tls/ca.crt").read_text(), "certificate": (tmp_path / "tls/server.crt").read_text(),
           "key": (tmp_path / "tls/server.key").read_text()}  # fmt: skip
    known = secrets.with_passwords(plan, {"bmc": "one", "registry": "two", "registry_http": "three", "nodes": {}})
    service = services._bmc(known, pem, tmp_path / "bmc", ["127.0.0.1"], False)
    for path in service.directories:
        path.mkdir(parents=True)
    for path, (text, __) in service.files.items():
        path.write_text(text)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            service.program.argv, env={**os.environ, **service.program.environment}, stderr=log, stdout=log
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", number)).close()
                break
            except ConnectionRefusedError:
                assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
                time.sleep(0.1)
        yield number
    finally:
        process.kill()
        process.wait()


def ask(port: int, path: str, host: str) -> tuple[int, dict[str, str], bytes]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def test_a_client_opens_a_session(port: int) -> None:
    """Ironic's: it finds the place in the service root, and sends the password once."""
    auth = sushy.auth.SessionAuth("admin", "one")
    root = sushy.Sushy(f"https://127.0.0.1:{port}/", auth=auth, verify=False)
    assert root.get_sessions_path() == sessions.PATH
    assert auth.get_session_key() and auth.get_session_resource_id().startswith(sessions.PATH)
    assert root._conn.get("/redfish/v1/Registries").status_code == 200
    auth.close()
    with pytest.raises(sushy.exceptions.AccessError):
        sushy.Sushy(f"https://127.0.0.1:{port}/", auth=sushy.auth.SessionAuth("admin", "no"), verify=False)


def test_bmcs_answer_to_their_own_names_only_and_with_headers_for_browsers(port: int) -> None:
    statuses = {}
    for host in (
        "127.0.0.1",
        f"127.0.0.1:{port}",
        f"{NAME}:{port}",
        "virthost",
        "evil.example",
        f"{NAME}.evil.example:{port}",
    ):
        # The second needs a password; who is asked comes first.
        for path in ("/redfish/v1/", "/redfish/v1/Systems"):
            status, headers, body = ask(port, path, host)
            statuses[host, path] = status
            assert (
                headers["X-Content-Type-Options"] == "nosniff"
                and "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            )
            if status == 421:
                assert json.loads(body)["error"]["message"] == f"{host} is not a name of this BMC"
    assert {host for (host, __), status in statuses.items() if status == 421} == {
        "evil.example",
        f"{NAME}.evil.example:{port}",
    }
    assert {status for (host, path), status in statuses.items() if "evil" not in host and path.endswith("v1/")} == {200}
    assert {status for (host, path), status in statuses.items() if "evil" not in host and path.endswith("Systems")} == {
        401
    }


def test_a_medium_leaves_the_requested_boot_device_as_it_is() -> None:
    """sushy-tools sets the boot device again when its medium changes: without a request to do so, that was a KeyError."""
    bmc, app = emulator.BootOrderStays(), flask.Flask(__name__)
    with app.test_request_context(
        json={"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}
    ):
        bmc.set_boot_device("x", "Cd")
    try:
        with app.test_request_context(json={"Image": "http://192.0.2.1/agent.iso"}):
            bmc.set_boot_device("x", "Cd")
        assert bmc._overrides["x"] == ("Cd", True)
    finally:
        bmc._overrides.pop("x", None)
