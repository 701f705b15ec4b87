"""When the lab's process does what: against a service that answers over HTTP, with the acts of the lab replaced by notes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faultd, faults, processes

MACS = {"master-0": "00:00:00:00:00:01", "master-1": "00:00:00:00:00:02"}


def host(name: str, status: str, *stages: str) -> dict[str, Any]:
    inventory = {"interfaces": [{"mac_address": MACS[name].upper()}]}
    progress = {"current_stage": stages[-1]} if stages else {}
    return {
        "status": status,
        "requested_hostname": "localhost",
        "inventory": json.dumps(inventory),
        "progress": progress,
        "progress_stages": ["Starting installation", "Installing", "Writing image to disk", "Rebooting"],
    }


@pytest.fixture
def service() -> Iterator[Any]:
    """An assisted service that returns `service.cluster` to clients with the token."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            authorized = self.headers.get("Watcher-Authorization") == "token"
            known = server.cluster
            answer = known if self.path.endswith("/c1") else ([{"id": "c1"}] if known else [])
            body = json.dumps(answer).encode()
            self.send_response(200 if authorized else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *__: Any) -> None:
            pass

    server: Any = HTTPServer(("127.0.0.1", 0), Handler)
    server.cluster = None
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Injected:
    """An injector whose acts are noted instead of done."""

    def __init__(self, service: Any, folder: Path, *given: dict[str, Any]) -> None:
        self.acts: list[str] = []
        self.reported: list[str] = []
        self.obstacle = ""
        self.config = {
            "faults": [{"when": "boot", "seconds": None, **fault} for fault in given],
            "nodes": {name: {"domain": f"x_{name}", "nics": {"eth0": mac}} for name, mac in MACS.items()},
            "api": {"url": f"http://127.0.0.1:{service.server_port}/v2", "headers": {"Watcher-Authorization": "token"}},
            "processes": str(folder),
            "repository": str(folder),
            "state": str(folder / "state.json"),
        }
        self.start()

    def start(self) -> None:
        self.injector = faultd.Injector(self.config, self.reported.append)
        self.injector.kinds = {
            "power_off": faultd.Kind(self.begin, self.end, self.note),
            "service_down": faultd.Kind(self.begin),
        }

    def note(self, fault: dict[str, Any]) -> str:
        return f"note of {fault['node']}"

    def begin(self, fault: dict[str, Any], note: str | None) -> None:
        if self.obstacle:
            raise faultd.FaultError(self.obstacle)
        self.acts.append(f"{fault['kind']} {fault.get('node', '')}".strip())

    def end(self, fault: dict[str, Any], note: str) -> None:
        self.acts.append(f"end of {fault['kind']} {note}")


def test_waits_for_its_stage_and_ends_after_its_time(service: Any, tmp_path: Path) -> None:
    one = Injected(
        service, tmp_path, {"kind": "power_off", "node": "master-1", "when": "Writing image to disk", "seconds": 30}
    )
    assert one.injector.turn(0)
    service.cluster = {
        "status": "installing",
        "hosts": [host("master-0", "installing", "Rebooting"), host("master-1", "installing", "Installing")],
    }
    assert one.injector.turn(1)
    assert one.acts == []
    service.cluster["hosts"][1] = host(
        "master-1", "installing", "Rebooting"
    )  # the stage itself was over between two looks
    assert one.injector.turn(2)
    one.start()  # as after a restart of the process
    assert one.injector.turn(31)
    assert one.acts == ["power_off master-1"]
    one.injector.turn(32)
    assert one.acts == ["power_off master-1", "end of power_off note of master-1"]
    assert not one.injector.turn(33)
    assert one.reported == [
        "power_off master-1 begins (Writing image to disk)",
        "power_off master-1 ends (Writing image to disk)",
    ]


def test_a_status_of_the_cluster_is_a_trigger_of_the_lab(service: Any, tmp_path: Path) -> None:
    one = Injected(
        service, tmp_path, {"kind": "service_down", "service": "registry", "when": "preparing-for-installation"}
    )
    service.cluster = {"status": "ready", "hosts": [host("master-0", "known")]}
    one.injector.turn(0)
    assert one.acts == []
    service.cluster["status"] = "preparing-for-installation"
    one.injector.turn(1)
    assert one.acts == ["service_down"]


def test_a_name_that_two_hosts_have_is_not_the_node(service: Any, tmp_path: Path) -> None:
    one = Injected(service, tmp_path, {"kind": "power_off", "node": "master-1", "when": "known"})
    other = host("master-0", "known") | {"requested_hostname": "master-1"}
    service.cluster = {"status": "insufficient", "hosts": [other]}
    one.injector.turn(0)
    assert one.acts == []
    service.cluster["hosts"] = [other | {"inventory": ""}]  # before the inventory there is only the name
    one.injector.turn(1)
    assert one.acts == ["power_off master-1"]


def test_what_fails_is_tried_again_and_reported_once(service: Any, tmp_path: Path) -> None:
    one = Injected(service, tmp_path, {"kind": "power_off", "node": "master-0"})
    one.obstacle = "x_master-0 is not running"
    assert one.injector.turn(0)
    assert one.injector.turn(1)
    one.obstacle = ""
    one.injector.turn(2)
    assert one.reported == ["power_off master-0 not yet: x_master-0 is not running", "power_off master-0 begins (boot)"]


def test_an_image_is_hidden_and_found_again(tmp_path: Path) -> None:
    manifests = tmp_path / "_manifests"
    for link in ("tags/hyperkube/current/link", "revisions/sha256/ab/link"):
        (manifests / link).parent.mkdir(parents=True)
        (manifests / link).write_text("sha256:ab")
    begin, end, note = faultd.kinds(faultd.Lab({"repository": str(tmp_path)}))["image_missing"]
    fault = {"component": "hyperkube"}
    noted = note(fault)
    begin(fault, noted)
    assert end and not (manifests / "revisions/sha256/ab/link").exists()
    for __ in range(2):  # also one that has not begun
        end(fault, noted)
        assert (manifests / "revisions/sha256/ab/link").exists()
    with pytest.raises(faultd.FaultError, match="the registry has no image nobody"):
        note({"component": "nobody"})


def test_images_are_hidden_where_they_are_pushed() -> None:
    """`test_push_writes_the_registry_layout_once` has the same directory, below the registry's storage."""
    plan = build.build(profile.complete({}), "ostest")
    storage = plan["services"]["registry"]["storage"]
    assert faults._config(plan)["repository"] == f"{storage}/docker/registry/v2/repositories/lab/payload"


def environment(pid: int) -> bytes:
    """Popen returns a little before the kernel has laid out the new program's environment."""
    deadline = time.monotonic() + 60
    while not (found := Path(f"/proc/{pid}/environ").read_bytes()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_a_service_ends_and_comes_back(tmp_path: Path) -> None:
    program = processes.Program(
        "registry", [sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "log", {"MARK": "a=b"}
    )
    first = processes.launch(tmp_path, program)
    assert environment(first.pid)
    begin, end, note = faultd.kinds(faultd.Lab({"processes": str(tmp_path)}))["service_down"]
    fault = {"service": "registry"}
    noted = json.loads(json.dumps(note(fault)))
    assert end
    end(fault, noted)  # it has not begun
    assert processes.find(tmp_path, "registry") == first
    begin(fault, noted)
    assert processes.find(tmp_path, "registry") is None
    assert os.waitpid(first.pid, 0)[0] == first.pid
    with pytest.raises(faultd.FaultError, match="registry is not running"):
        note(fault)
    end(fault, noted)
    again = processes.find(tmp_path, "registry")
    assert again and again.pid != first.pid and again.digest == program.digest()
    assert b"MARK=a=b" in environment(again.pid)
    end(fault, noted)  # it runs again by other means
    assert processes.find(tmp_path, "registry") == again
    assert processes.stop(tmp_path, "registry")


def test_it_is_a_program_of_the_standard_library(tmp_path: Path) -> None:
    """It runs on hypervisors that have nothing of ours, with any Python 3.11."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", faultd.__file__, tmp_path / "none.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "FileNotFoundError" in done.stderr and "none.json" in done.stderr


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("file cdrom sdb /pool/agent.img", "sdb"),
        ("file disk sdx /run/agent.iso", "sdx"),
        ("file cdrom sdb -", ""),
        ("", ""),
    ],
)
def test_a_medium_becomes_slow_and_fast_again(monkeypatch: pytest.MonkeyPatch, line: str, device: str) -> None:
    """A CD, or the stick of the boot mode usb; never a disk of the machine."""
    ran: list[tuple[str, ...]] = []

    def run(*command: str, given: str = "") -> str:
        ran.append(command)
        return f" Type Device Target Source\n---\n volume disk sda m_0\n {line}\n"

    monkeypatch.setattr(faultd, "run", run)
    slow = faultd.kinds(faultd.Lab({"nodes": {"master-0": {"domain": "m"}}}))["slow_media"]
    fault = {"kind": "slow_media", "node": "master-0", "bytes_per_second": 500000}
    if not device:
        with pytest.raises(faultd.FaultError, match="m has no medium"):
            slow.begin(fault, None)
        return
    slow.begin(fault, None)
    assert slow.end is not None
    slow.end(fault, None)
    assert [command for command in ran if command[1] == "blkdeviotune"] == [
        ("virsh", "blkdeviotune", "m", device, "--read-bytes-sec", rate, "--live") for rate in ("500000", "0")
    ]


@pytest.mark.parametrize("halfway", [False, True])
def test_a_medium_is_ejected_and_inserted(monkeypatch: pytest.MonkeyPatch, halfway: bool) -> None:
    """A machine that ends halfway has the medium no more where it is defined, and what was noted gives it back."""
    there = {"--config": "/pool/agent.img", "--live": "/pool/agent.img"}

    def run(*command: str, given: str = "") -> str:
        if command[1] == "change-media" and "--eject" in command:
            if halfway and command[-1] == "--live":
                raise faultd.FaultError("domain is not running")
            there[command[-1]] = "-"
        elif command[1] == "change-media":
            there.update(dict.fromkeys(command[-2:], command[4]))
        source = there["--config" if "--inactive" in command else "--live"]
        return f" Type Device Target Source\n---\n volume disk sda m_0\n file cdrom sdb {source}\n"

    monkeypatch.setattr(faultd, "run", run)
    begin, end, note = faultd.kinds(faultd.Lab({"nodes": {"master-0": {"domain": "m"}}}))["eject"]
    fault = {"kind": "eject", "node": "master-0"}
    noted = note(fault)
    assert noted == ["sdb", "/pool/agent.img"] and end
    with pytest.raises(faultd.FaultError) if halfway else contextlib.nullcontext():
        begin(fault, noted)
    assert there["--config"] == "-"
    end(fault, noted)
    assert set(there.values()) == {"/pool/agent.img"}
    there["--live"] = "-"
    with pytest.raises(faultd.FaultError, match="m has no medium"):
        note(fault)
    assert there["--config"] == "/pool/agent.img"


def test_faults_that_never_began(tmp_path: Path) -> None:
    """A job with a fault passed where the lab had done nothing."""
    given = tmp_path / "p.yml"
    given.write_text(
        "topology: compact\nboot: {eject: on_rebooting}\nfaults: [{kind: pause, node: master-0, when: boot, seconds: 3},\n"
        " {kind: power_off, node: master-1, when: Installing}, {kind: boot_order, node: master-2}]\n"
    )
    plan = build.build(profile.load(given, None, "unit"), "unit")
    plan["services"]["directory"] = str(tmp_path)
    assert faults.outstanding(plan) == ["pause of master-0 (boot)", "power_off of master-1 (Installing)"]
    (tmp_path / faults.NAME).mkdir()
    (tmp_path / faults.NAME / faults.STATE).write_text('{"0": {"at": 1, "note": null}}')
    assert faults.outstanding(plan) == ["power_off of master-1 (Installing)"]
