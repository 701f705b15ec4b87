"""The services of a gateway, as they are started; the file server and the port's owner are asked for real."""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.request
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import media
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, created, profile, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import lifecycle, processes, services

PROFILES = Path(__file__).parents[3] / "config_examples"
TLS = {"ca": "", "certificate": "certificate", "key": "key"}


@pytest.fixture
def plan(tmp_path: Path) -> dict:
    chosen = profile.load("compact_dualstack", PROFILES)
    chosen["hypervisor"]["state_dir"] = str(tmp_path)
    return build.build(chosen, "ostest")


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("chronyd", "docker-registry"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def render(plan: dict, *, private: bool) -> dict[str, lifecycle.Service]:
    found = {"bmc": "one", "registry": "two", "registry_http": "three", "nodes": {}}
    return services.render(secrets.with_passwords(plan, found), TLS, private=private, http_secret="three")


def content(service: lifecycle.Service, name: str) -> str:
    return next(text for path, (text, __) in service.files.items() if path.name == name)


def test_emulator_sees_our_machines_only(plan: dict) -> None:
    settings: dict = {}
    exec(content(render(plan, private=True)["bmc"], "emulator.conf"), settings)
    assert settings["SUSHY_EMULATOR_ALLOWED_INSTANCES"] == [node["uuid"] for node in plan["nodes"]]
    assert "SUSHY_EMULATOR_IGNORE_BOOT_DEVICE" not in settings
    assert settings["SUSHY_EMULATOR_STORAGE_POOL"] == "agentlab-ostest"
    assert settings["SUSHY_EMULATOR_LISTEN_IP"] == "::"


def test_bmcs_report_the_disks(plan: dict) -> None:
    settings: dict = {}
    exec(content(render(plan, private=True)["bmc"], "emulator.conf"), settings)
    for node in plan["nodes"]:
        (controller,) = settings["SUSHY_EMULATOR_STORAGE"][node["uuid"]]
        drives = settings["SUSHY_EMULATOR_DRIVES"][node["uuid"], controller["Id"]]
        assert controller["Drives"] == [drive["Id"] for drive in drives] == [disk["target"] for disk in node["disks"]]
        assert [drive["CapacityBytes"] for drive in drives] == [disk["size_gib"] << 30 for disk in node["disks"]]
        # Without it, sushy-tools answers 500 to a client that asks for RAID volumes.
        assert settings["SUSHY_EMULATOR_VOLUMES"][node["uuid"], controller["Id"]] == []


def test_outside_a_sandbox_only_the_gateway_listens(plan: dict) -> None:
    made = render(plan, private=False)
    settings: dict = {}
    exec(content(made["bmc"], "emulator.conf"), settings)
    assert settings["SUSHY_EMULATOR_LISTEN_IP"] == "192.168.111.1"
    assert json.loads(content(made["registry"], "config.yml"))["http"]["addr"] == "192.168.111.1:5000"
    assert made["http"].program.argv[-2:] == ["192.168.111.1", "fd2e:6f44:5dd8:c956::1"]
    assert "bindaddress 192.168.111.1\nbindaddress fd2e:6f44:5dd8:c956::1" in content(made["ntp"], "chrony.conf")


def test_clock_is_never_set(plan: dict) -> None:
    assert "-x" in render(plan, private=True)["ntp"].program.argv


def test_secrets_are_private(plan: dict) -> None:
    made = render(plan, private=True)
    modes = {path.name: mode for service in made.values() for path, (__, mode) in service.files.items()}
    assert modes["htpasswd"] == modes["server.key"] == modes["config.yml"] == 0o600
    assert json.loads(content(made["registry"], "config.yml"))["http"]["secret"] == "three"


def test_password_hash_stays_while_it_fits(plan: dict, tmp_path: Path) -> None:
    path = tmp_path / "htpasswd"
    user = {"username": "u", "password": "p"}
    first = services._htpasswd(path, user)
    path.write_text(first)
    assert services._htpasswd(path, user) == first
    assert services._htpasswd(path, {**user, "password": "q"}) != first


def test_start_again_and_change(plan: dict, tmp_path: Path) -> None:
    plan["networks"][0]["subnets"] = [{"gateway": "127.0.0.1", "family": "ipv4"}]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        plan["services"]["http"] |= {"port": port, "url": f"http://127.0.0.1:{port}"}
    where = tmp_path / "processes"
    try:
        wanted = {"http": render(plan, private=False)["http"]}
        assert [change["name"] for change in lifecycle.ensure(wanted, where, check=True)] == ["http"]
        assert [change["name"] for change in lifecycle.ensure(wanted, where)] == ["http"]
        assert lifecycle.ensure(wanted, where) == []
        (tmp_path / "image.iso").write_bytes(bytes(range(100)))
        url = media.publish(plan, tmp_path / "image.iso")
        request = urllib.request.Request(url, headers={"Range": "bytes=10-19"})
        with urllib.request.urlopen(request) as answer:
            assert (answer.status, answer.read()) == (206, bytes(range(10, 20)))
        next(iter(wanted["http"].files)).write_text("changed")
        assert lifecycle.ensure(wanted, where, check=True)[0]["before"] == "running with different settings\n"
        assert [change["name"] for change in lifecycle.ensure(wanted, where)] == ["http"]
    finally:
        processes.stop(where, "http")


def test_taken_port_is_reported_with_its_owner(plan: dict, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = plan["services"]["http"]["port"] = other.getsockname()[1]
        plan["networks"][0]["subnets"] = [{"gateway": "127.0.0.1", "family": "ipv4"}]
        wanted = {"http": render(plan, private=False)["http"]}
        with pytest.raises(LabError, match=rf"http: port {port}/tcp is used by pid {os.getpid()} "):
            lifecycle.ensure(wanted, tmp_path / "processes")


def test_one_that_ends_reports_why(tmp_path: Path) -> None:
    def refuse() -> None:
        raise ConnectionRefusedError("refused")

    program = processes.Program(
        "x", [sys.executable, "-c", "print('the reason', flush=True); raise SystemExit(1)"], tmp_path / "log"
    )
    service = lifecycle.Service(program, {}, 1, "tcp", refuse)
    with pytest.raises(LabError, match="x: exited: the reason"):
        lifecycle.ensure({"x": service}, tmp_path / "processes")


def test_everything_made_is_listed(plan: dict) -> None:
    items = created.items(plan, "h")
    assert [item["kind"] for item in items][:3] == ["sandbox", "state_dir", "network"]
    assert {item["name"] for item in items if item["kind"] == "domain"} == {node["domain"] for node in plan["nodes"]}
    plan["hypervisor"]["route"] = True
    assert created.items(plan, "h")[1] == {"kind": "uplink", "name": "ostest", "host": "h"}
