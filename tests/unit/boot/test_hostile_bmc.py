"""Any program may answer as a BMC: whatever it sends, an operation succeeds or fails with one line, and the credentials stay."""

from __future__ import annotations

import contextlib
import copy
import functools
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.quirks import Behavior
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.redfish import client, replies
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError

SYSTEM = "/redfish/v1/Systems/1"
MEDIA = f"{SYSTEM}/VirtualMedia"
ANSWERS: dict[str, Any] = {
    "/redfish/v1/": {
        "@odata.id": "/redfish/v1/", "Id": "RootService", "Name": "root", "RedfishVersion": "1.5.0", "UUID": "x",
        "Systems": {"@odata.id": "/redfish/v1/Systems"}, "Managers": {"@odata.id": "/redfish/v1/Managers"}, "Links": {}},
    "/redfish/v1/Systems": {"@odata.id": "/redfish/v1/Systems", "Name": "s", "Members": [{"@odata.id": SYSTEM}]},
    SYSTEM: {
        "@odata.id": SYSTEM, "Id": "1", "Name": "m", "UUID": "u", "PowerState": "On", "Links": {"ManagedBy": []},
        "Status": {"State": "Enabled", "Health": "OK"}, "VirtualMedia": {"@odata.id": MEDIA},
        "Boot": {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None",
                 "BootSourceOverrideTarget@Redfish.AllowableValues": ["Cd", "Hdd"]},
        "Actions": {"#ComputerSystem.Reset": {
            "target": f"{SYSTEM}/reset", "ResetType@Redfish.AllowableValues": ["On", "ForceOff"]}}},
    MEDIA: {"@odata.id": MEDIA, "Name": "v", "Members": [{"@odata.id": f"{MEDIA}/Cd"}]},
    f"{MEDIA}/Cd": {
        "@odata.id": f"{MEDIA}/Cd", "Id": "Cd", "Name": "cd", "MediaTypes": ["CD"], "Image": "http://a/x.iso",
        "ImageName": "x.iso", "Inserted": True, "WriteProtected": True, "Actions": {
            "#VirtualMedia.EjectMedia": {"target": f"{MEDIA}/Cd/eject"},
            "#VirtualMedia.InsertMedia": {"target": f"{MEDIA}/Cd/insert"}}},
}  # fmt: skip
ODD: list[Any] = [None, 5, True, "x", "\x1b[2J", [], [None], ["x"], [{}], {}, {"a": 1}, "../..", 10**400, "[" * 200]


class Bmc(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = copy.deepcopy(ANSWERS)
        self.raw: bytes | None = None
        self.drips = False
        self.asked: list[tuple[str, str]] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Bmc

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization", "")))
        body = json.dumps(self.server.answers.get(self.path)).encode() if self.server.raw is None else self.server.raw
        for letter in b"HTTP/1.1 200 OK and more" if self.server.drips else b"":
            with contextlib.suppress(OSError):
                self.wfile.write(bytes([letter]))
            time.sleep(0.05)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_POST()

    def log_message(self, *__: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Bmc]:
    with Bmc() as found:
        threading.Thread(target=found.serve_forever, args=(0.05,), daemon=True).start()
        yield found
        found.shutdown()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SERVER_RETRIES", 1)
    monkeypatch.setattr(client, "MEDIUM_SECONDS", 0.0)
    monkeypatch.setattr(client, "behavior", lambda __: Behavior(busy_seconds=0.0, power_seconds=0.0))


def connect(server: Bmc, path: str = SYSTEM) -> client.Bmc:
    return client.Bmc("master-0", f"redfish+http://127.0.0.1:{server.server_port}{path}", "admin", "secret")


OPERATIONS: dict[str, Callable[[client.Bmc], object]] = {
    "power": client.Bmc.power, "power_off": client.Bmc.power_off, "power_on": client.Bmc.power_on, "medium": client.Bmc.medium,
    "insert": lambda bmc: bmc.insert("http://a/y.iso"), "eject": client.Bmc.eject, "boot_from_cd": client.Bmc.boot_from_cd,
}  # fmt: skip
OF_MEDIA = ("medium", "insert", "eject")


def operations(server: Bmc, names: Iterable[str] = tuple(OPERATIONS)) -> list[str]:
    """What connecting and each operation end with."""
    found: list[str] = []

    def attempt(function: Callable[[], object]) -> object:
        try:
            result = function()
        except LabError as error:
            found.append(str(error))
            return None
        found.append("ok")
        return result

    bmc = attempt(lambda: connect(server))
    if isinstance(bmc, client.Bmc):
        for name in names:
            attempt(functools.partial(OPERATIONS[name], bmc))
    return found


def replaced(value: Any) -> Iterator[Any]:
    yield from ODD
    if isinstance(value, dict):
        for key in value:
            yield {other: part for other, part in value.items() if other != key}
            for part in replaced(value[key]):
                yield {**value, key: part}
    elif isinstance(value, list) and value:
        for part in replaced(value[0]):
            yield [part]


@pytest.mark.parametrize("path", ANSWERS)
def test_any_answer_is_taken_or_named(path: str, server: Bmc) -> None:
    names = OF_MEDIA if path.startswith(MEDIA) else OPERATIONS
    for odd in replaced(ANSWERS[path]):
        server.answers[path] = odd
        for reported in operations(server, names):
            assert reported == "ok" or (
                reported.startswith("BMC of master-0 (redfish+http://") and "\n" not in reported
            ), reported
            assert reported.isprintable()


def test_other_operations_read_no_media(server: Bmc) -> None:
    operations(server, OPERATIONS.keys() - OF_MEDIA)
    assert not [path for path, __ in server.asked if path.startswith(MEDIA)]


@pytest.mark.parametrize("raw", [b"", b"[" * 100_000, b"\xff\xfe", b'{"a": NaN}', b"<html>"])
def test_what_is_not_json(raw: bytes, server: Bmc) -> None:
    server.raw = raw
    [reported] = operations(server)
    assert reported.startswith("BMC of master-0 (")


def test_an_answer_without_end_is_not_read(server: Bmc) -> None:
    server.raw = b'{"a": "' + b"x" * (replies.MOST_BYTES + (4 << 20)) + b'"}'
    [reported] = operations(server)
    assert f"longer than {replies.MOST_BYTES} bytes" in reported


def test_a_reply_that_drips_is_given_up(server: Bmc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MOST_SECONDS", 0.5)
    server.drips = True
    [reported] = operations(server)
    assert "the answer is not complete within 0.5 s" in reported


def test_the_credentials_stay_with_the_bmc(server: Bmc) -> None:
    with Bmc() as other:
        threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
        elsewhere = f"http://127.0.0.1:{other.server_port}"
        for path, value in (
            (SYSTEM, {**ANSWERS[SYSTEM], "VirtualMedia": {"@odata.id": f"{elsewhere}{MEDIA}"}}),
            (MEDIA, {**ANSWERS[MEDIA], "Members": [{"@odata.id": f"{elsewhere}{MEDIA}/Cd"}]}),
        ):
            server.answers = {**copy.deepcopy(ANSWERS), path: value}
            found = operations(server)
            assert any(f"refers to {elsewhere}" in reported or "virtual media" in reported for reported in found), found
        other.shutdown()
        assert not other.asked
