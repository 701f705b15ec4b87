"""Foreign hardware: `ci/foreign_bmc.py` in front of sushy-emulator's fake driver, once for each quirk."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.ci import foreign_bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc import quirks
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.redfish import client, replies
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError

UUID = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
ISO = b"an ISO" * 1000
# Its driver changes the power after a random number of seconds.
EMULATOR = (
    "import random, sys; random.randint = lambda *__: 0; from sushy_tools.emulator.main import main; sys.exit(main())"
)

Make = Callable[..., "Room"]


class Room:
    """A machine behind a BMC with quirks, and a file server with an image."""

    def __init__(self, hardware: foreign_bmc.Hardware, log: Path, files: _Files) -> None:
        self._hardware, self._log, self.files = hardware, log, files
        self.image = f"http://127.0.0.1:{files.server_port}/agent.iso"
        self.address = f"redfish+http://127.0.0.1:{hardware.server_port}/redfish/v1/Systems/{UUID}"

    def machine(self, *names: str) -> bmc.Bmc:
        return bmc.connect("master-0", self.address, "admin", "password", quirks=names)

    def log(self, key: str) -> list[Any]:
        """What the hardware noted under `key`."""
        return [line[key] for line in map(json.loads, self._log.read_text().splitlines()) if key in line]

    def boot(self, *names: str) -> bmc.Bmc:
        """Do what `sequence.boot` does."""
        machine = self.machine(*names)
        machine.power_off()
        machine.eject()
        machine.insert(self.image)
        machine.boot_from_cd()
        machine.power_on()
        return machine


class _Files(http.server.ThreadingHTTPServer):
    daemon_threads = True
    reads = 0


class _File(http.server.BaseHTTPRequestHandler):
    server: _Files

    def do_GET(self) -> None:
        self.server.reads += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(ISO)))
        self.end_headers()
        self.wfile.write(ISO)

    def log_message(self, *__: object) -> None:
        pass


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Starts sushy-emulator with one machine that is off; returns its URL."""
    started: list[subprocess.Popen[bytes]] = []

    @functools.cache
    def start() -> str:
        folder = tmp_path_factory.mktemp("emulator")
        config = folder / "config.py"
        port = _free_port()
        config.write_text(
            f"SUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\nSUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n"
            "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\n"
        )
        with (folder / "log").open("wb") as log:
            started.append(
                subprocess.Popen([sys.executable, "-c", EMULATOR, "--config", str(config)], stdout=log, stderr=log)
            )
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/redfish/v1/", timeout=10).close()
                return f"http://127.0.0.1:{port}"
            except OSError:
                assert started[0].poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.1)

    yield start
    for process in started:
        process.kill()
        process.wait()


def _free_port() -> int:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as probe:
        return probe.server_port


@pytest.fixture
def make(emulator: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Returns the room with a machine with these quirks, which is off and has no medium; its tasks take a fifth of the time."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(foreign_bmc, "TASK_SECONDS", foreign_bmc.TASK_SECONDS / 5)
    monkeypatch.setattr(replies, "_POLL_SECONDS", replies._POLL_SECONDS / 5)
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(*names: str) -> Room:
        log = (tmp_path / "log").open("w")
        found = foreign_bmc.Hardware(("127.0.0.1", 0), emulator(), {*names}, log)
        files = _Files(("127.0.0.1", 0), _File)
        for server in (found, files):
            servers.append(server)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return Room(found, tmp_path / "log", files)

    yield start
    first = client.Bmc("cleanup", f"redfish+{emulator()}/redfish/v1/Systems/{UUID}", "admin", "password")
    first.power_off()
    first.eject()
    for server in servers:
        server.shutdown()
        server.server_close()


def test_foreign_hardware_without_quirks(make: Make) -> None:
    room = make()
    machine = room.boot()
    assert machine.power() == "on" and machine.medium() == room.image
    assert room.log("boot") == ["Cd"] and room.files.reads >= 1
    machine.power_off()
    assert machine.eject() is True and machine.eject() is False and machine.medium() is None


def test_an_existing_disk_boots_without_an_override(make: Make) -> None:
    """The counter-test: the simulator's machine does not boot a medium by itself."""
    room = make()
    machine = room.machine()
    machine.insert(room.image)
    machine.power_on()
    assert room.log("boot") == ["Hdd"]


def test_media_are_changed_while_the_machine_is_off(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    room = make("eject_refused_while_on")
    machine = room.boot("eject_refused_while_on")
    assert room.log("boot") == ["Cd"]
    asked = len(room.log("path"))
    with pytest.raises(LabError, match=r"cannot eject: quirk eject_refused_while_on: .*agentlab power master-0 off"):
        machine.eject()
    assert len(room.log("path")) == asked, "nothing is sent that the BMC refuses"
    monkeypatch.setattr(client, "MEDIUM_SECONDS", 0.0)
    with pytest.raises(LabError, match=r"it reports a medium after 0 s: .*quirks is \[eject_refused_while_on\]"):
        room.machine().eject()
    machine.power_off()
    assert machine.eject() is True


def test_tasks_are_followed(make: Make) -> None:
    room = make("tasks")
    started = time.monotonic()
    machine = room.machine()
    machine.insert(room.image)
    assert room.files.reads == 1, "the image was fetched when insert returned"
    assert time.monotonic() - started >= foreign_bmc.TASK_SECONDS
    machine.boot_from_cd()
    machine.power_on()
    assert room.log("boot") == ["Cd"]


def test_a_failed_task_is_an_error(make: Make) -> None:
    """Both quirks: what is refused is refused in the task, after a 202."""
    room = make("tasks", "eject_refused_while_on")
    machine = room.boot()
    with pytest.raises(LabError, match="cannot eject: its task ended as Exception: the medium cannot be changed"):
        machine.eject()


def test_a_slow_post_is_waited_for(make: Make) -> None:
    room = make("slow_post")
    machine = room.boot("slow_post")
    machine.power_off()
    assert room.log("boot") == ["Cd"] and len(room.log("busy")) >= 2


def test_a_slow_post_has_a_limit_that_is_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(quirks.QUIRKS, "slow_post", quirks.QUIRKS["slow_post"]._replace(changes={"busy_seconds": 1.0}))
    room = make("slow_post")
    machine = room.boot("slow_post")
    with pytest.raises(
        LabError, match=r"cannot power off: it is busy \(HTTP 503\) for more than 1 s: .*POST is in progress"
    ):
        machine.power_off()


def test_images_by_http_only(make: Make) -> None:
    room = make("http_only")
    machine = room.boot("http_only")
    assert room.log("boot") == ["Cd"] and machine.medium() == room.image
    sent = [body for body in room.log("body") if "Image" in body]
    assert [body.get("TransferProtocolType") for body in sent] == ["HTTP"], "not refused first"
    machine.power_off()
    with pytest.raises(LabError, match=r"cannot insert https://x/a.iso: quirk http_only: .*must be an http URL"):
        machine.insert("https://x/a.iso")


def test_without_the_quirk_the_protocol_is_added_when_it_is_asked_for(make: Make) -> None:
    room = make("http_only")
    room.boot()
    sent = [body.get("TransferProtocolType") for body in room.log("body") if "Image" in body]
    assert sent == [None, "HTTP"] and room.log("boot") == ["Cd"]


def test_a_lost_boot_override_is_set_again(make: Make) -> None:
    room = make("boot_override_lost")
    room.boot("boot_override_lost")
    assert room.log("boot") == ["Hdd", "Cd"]


def test_without_the_quirk_a_lost_override_boots_the_disk(make: Make) -> None:
    room = make("boot_override_lost")
    room.boot()
    assert room.log("boot") == ["Hdd"]


def test_all_quirks_at_once(make: Make) -> None:
    room = make(*foreign_bmc.QUIRKS)
    machine = room.boot(*quirks.QUIRKS)
    assert room.log("boot") == ["Hdd", "Cd"] and machine.power() == "on"


def test_an_unknown_quirk_is_refused(make: Make) -> None:
    with pytest.raises(LabError, match="BMC quirk 'odd' is unknown: known are eject_refused_while_on, slow_post"):
        make().machine("odd")


def test_the_simulator_shows_each_quirk() -> None:
    assert {*quirks.QUIRKS} | {"tasks"} == {*foreign_bmc.QUIRKS}
