"""A simulator of foreign hardware: a Redfish service in front of sushy-emulator that shows one quirk or several.

`python3 ci/foreign_bmc.py ADDRESS:PORT UPSTREAM [QUIRK ...] [--log FILE] [--ca FILE]`. The machine behind it boots
what its boot override names: a medium reaches the upstream machine only when it is switched on with the override Cd. The log has a line of
JSON for each write, and for each boot.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import ssl
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import requests
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import certificates

QUIRKS = ("eject_refused_while_on", "tasks", "slow_post", "http_only", "boot_override_lost")
TASKS = "/redfish/v1/TaskService/Tasks"
POST_SECONDS = 4.0
"""How long a machine with the quirk `slow_post` answers 503."""
TASK_SECONDS = 1.0
_KEPT = ("Content-Type", "ETag", "Location", "OData-Version")


class Reply(NamedTuple):
    """An answer: its status, body and headers."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def error(status: int, code: str, message: str, *headers: tuple[str, str]) -> Reply:
        """Return a refusal as Redfish has it."""
        about = {"MessageId": f"Base.1.8.{code}", "Message": message, "RelatedProperties": [], "MessageArgs": []}
        if code == "ActionParameterMissing":
            about["RelatedProperties"] = ["#/TransferProtocolType"]
        body = {"error": {"code": f"Base.1.8.{code}", "message": message, "@Message.ExtendedInfo": [about]}}
        return Reply(status, json.dumps(body).encode(), (("Content-Type", "application/json"), *headers))


class Machine:
    """What the hardware knows of one system: its medium, its boot override, and until when it is in POST."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.image = self.override = ""
        self.busy_until = 0.0


class Hardware(http.server.ThreadingHTTPServer):
    """The BMC service. `quirks` are those of `QUIRKS`; `upstream` is the URL of the emulator, `log` what is written to."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], upstream: str, quirks: set[str], log: TextIO) -> None:
        if unknown := quirks - {*QUIRKS}:
            raise ValueError(f"quirk {', '.join(unknown)} is unknown: known are {', '.join(QUIRKS)}")
        super().__init__(address, _Handler)
        self.upstream, self.quirks, self.log = upstream, quirks, log
        self.machines: dict[str, Machine] = {}
        self.session = requests.Session()
        self.session.trust_env = False
        self.tasks: dict[str, Reply | None] = {}

    def note(self, **what: Any) -> None:
        """Add a line to the log."""
        self.log.write(json.dumps(what) + "\n")
        self.log.flush()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Hardware
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith(TASKS):
            self._send(self._task(self.path.rpartition("/")[2]))
            return
        reply = self._ask("GET", self.path)
        if reply.status == 200 and "/VirtualMedia/" in self.path:
            body, machine = json.loads(reply.body), self._machine()
            kinds = {"CD", "DVD"} & {*body.get("MediaTypes", ())}
            if kinds and machine.image and not body["Inserted"]:
                body |= {"Image": machine.image, "Inserted": True}
                reply = reply._replace(body=json.dumps(body).encode())
        self._send(reply)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        machine, quirks = self._machine(), self.server.quirks
        if "slow_post" in quirks and time.monotonic() < machine.busy_until:
            self.server.note(busy=self.path)
            self._send(Reply.error(503, "ServiceTemporarilyUnavailable", "POST is in progress", ("Retry-After", "1")))
            return
        if "tasks" not in quirks:
            self._send(self._write(machine, data))
            return
        number = str(len(self.server.tasks) + 1)
        self.server.tasks[number] = None

        def later() -> None:
            time.sleep(TASK_SECONDS)
            self.server.tasks[number] = self._write(machine, data)

        threading.Thread(target=later, daemon=True).start()
        self._send(Reply(202, headers=(("Location", f"{TASKS}/{number}"),)))

    def do_PATCH(self) -> None:
        self.do_POST()

    def _task(self, number: str) -> Reply:
        """Return the task as iDRAC does: always with 200, and its state in the body."""
        if number not in self.server.tasks:
            return Reply.error(404, "ResourceMissingAtURI", "there is no such task")
        reply, body = self.server.tasks[number], {"@odata.id": f"{TASKS}/{number}", "Id": number, "Name": "task"}
        if reply is None:
            return Reply(200, json.dumps({**body, "TaskState": "Running"}).encode())
        text = ""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(reply.body)["error"]["message"]
        body |= {"TaskState": "Completed"} if reply.status < 300 else {"TaskState": "Exception"}
        return Reply(200, json.dumps({**body, "Messages": [{"Message": text}] if text else []}).encode())

    def _write(self, machine: Machine, data: bytes) -> Reply:
        with machine.lock:
            body = json.loads(data) if data.strip() else {}
            self.server.note(path=self.path, body=body)
            if self.path.endswith(("InsertMedia", "EjectMedia")):
                return self._media(machine, body, data)
            if self.path.endswith("ComputerSystem.Reset"):
                return self._reset(machine, str(body.get("ResetType")))
            if boot := body.get("Boot"):
                machine.override = boot.get("BootSourceOverrideTarget", "") or machine.override
            return self._ask(self.command, self.path, data)

    def _media(self, machine: Machine, body: dict[str, Any], data: bytes) -> Reply:
        quirks, image = self.server.quirks, str(body.get("Image") or "")
        if "eject_refused_while_on" in quirks and self._is_on():
            return Reply.error(409, "ResourceInUse", "the medium cannot be changed while the machine is on")
        if self.path.endswith("InsertMedia") and "http_only" in quirks:
            if not image.startswith("http://"):
                return Reply.error(400, "ActionParameterValueFormatError", f"{image} is not an http URL")
            if body.get("TransferProtocolType") != "HTTP":
                return Reply.error(400, "ActionParameterMissing", "TransferProtocolType is missing")
        if not image and machine.image and not self._inserted():
            machine.image = ""  # the upstream machine was booted without it
            return Reply(204)
        sent = {key: value for key, value in body.items() if key != "TransferProtocolType"}
        reply = self._ask("POST", self.path, json.dumps(sent).encode() if data else data)
        if reply.status < 300:
            machine.image = image
        return reply

    def _reset(self, machine: Machine, kind: str) -> Reply:
        on = self._is_on()
        if kind == "ForceOff" or (kind == "On" and on):
            return self._ask("POST", self.path, json.dumps({"ResetType": kind}).encode())
        if kind not in ("On", "ForceOn", "ForceRestart"):
            return Reply.error(400, "ActionParameterNotSupported", f"{kind} is not supported")
        if on:
            self._ask("POST", self.path, b'{"ResetType": "ForceOff"}')
            self._wait_off()
        elif "boot_override_lost" in self.server.quirks:
            machine.override = ""
        source, machine.override = machine.override, ""
        self.server.note(boot=source or "Hdd", image=machine.image)
        if machine.image:
            self._put(machine.image if source == "Cd" else "")
        if "slow_post" in self.server.quirks:
            machine.busy_until = time.monotonic() + POST_SECONDS
        return self._ask("POST", self.path, b'{"ResetType": "On"}')

    def _put(self, image: str) -> None:
        """Insert the image into the upstream machine, which is off, or eject it."""
        if image and not self._inserted():
            self._ask("POST", f"{self._cd()}/Actions/VirtualMedia.InsertMedia", json.dumps({"Image": image}).encode())
        if not image and self._inserted():
            self._ask("POST", f"{self._cd()}/Actions/VirtualMedia.EjectMedia", b"{}")

    def _cd(self) -> str:
        return f"{self._system()}/VirtualMedia/Cd"

    def _system(self) -> str:
        parts = self.path.split("/")
        return f"/redfish/v1/Systems/{parts[4]}"

    def _inserted(self) -> bool:
        return bool(json.loads(self._ask("GET", self._cd()).body)["Inserted"])

    def _is_on(self) -> bool:
        return bool(json.loads(self._ask("GET", self._system()).body)["PowerState"] == "On")

    def _wait_off(self) -> None:
        deadline = time.monotonic() + 60
        while self._is_on() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _machine(self) -> Machine:
        parts = self.path.split("/")
        return self.server.machines.setdefault(parts[4] if len(parts) > 4 else "", Machine())

    def _ask(self, method: str, path: str, data: bytes | None = None) -> Reply:
        headers = {"Content-Type": "application/json"} if data is not None else {}
        if self.headers.get("Authorization"):
            headers["Authorization"] = self.headers["Authorization"]
        answer = self.server.session.request(
            method, f"{self.server.upstream}{path}", data=data, headers=headers, timeout=600, verify=False
        )
        return Reply(
            answer.status_code,
            answer.content,
            tuple((name, answer.headers[name]) for name in _KEPT if name in answer.headers),
        )

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Connection", "close")  # as clients ask for
        for name, value in reply.headers:
            self.send_header(name, value)
        if reply.status != 204:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if reply.status != 204:
            self.wfile.write(reply.body)

    def log_message(self, *__: object) -> None:
        """Print nothing: the log has what is written."""


def main(argv: list[str]) -> int:
    """Serve until the process is ended; print the port first."""
    parser = argparse.ArgumentParser(description="Simulate foreign hardware in front of sushy-emulator.")
    parser.add_argument("listen", metavar="ADDRESS:PORT", help="where it listens; port 0: a free one")
    parser.add_argument("upstream", help="URL of sushy-emulator")
    parser.add_argument("quirks", nargs="*", choices=QUIRKS, help="what it does other than Redfish has it")
    parser.add_argument("--log", type=Path, help="file for what it was asked; standard output unless given")
    parser.add_argument(
        "--ca",
        type=Path,
        help="ca.crt, which its certificate is checked with; both are made if necessary; http without it",
    )
    args = parser.parse_args(argv)
    host, __, port = args.listen.rpartition(":")
    log = args.log.open("w", encoding="utf-8") if args.log else sys.stdout
    with log, Hardware((host, int(port)), args.upstream.rstrip("/"), {*args.quirks}, log) as server:
        if args.ca:
            folder = args.ca.expanduser().parent
            certificates.ensure(folder, "foreign hardware", [host])
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "server.crt", folder / "server.key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.note(port=server.server_port, quirks=sorted(server.quirks))
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
