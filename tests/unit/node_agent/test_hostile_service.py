"""A service that sends what it likes: a step touches only its own objects, and ends.

An audit hook of the interpreter sees every file that is opened to write, removed, renamed or linked, every program that is
started and every connection. Each field of each step's argument is given each hostile value.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent import (
    agent,
    dhcp_lease_allocate,
    disks,
    domain_resolution,
    fields,
    host,
    install,
    logs_sender,
    network,
    next_step_runner,
    ntp_synchronizer,
    probes,
    protocol,
    rest,
    steps,
    vips_verifier,
)
from ansible_collections.agentlab.ocp.payload.node_agent.protocol import Response, Result

UUID = "11111111-2222-3333-4444-555555555555"
SECONDS = 20.0
"""A step with a hostile value may take that long: none waits for anything here."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.setxattr",
    "os.removexattr", "shutil.rmtree", "shutil.move", "shutil.copyfile", "shutil.copymode", "shutil.copystat", "shutil.make_archive",
}  # fmt: skip
_watching: list[Watch] = []


class Watch:
    """What happened while it was observed."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.connected: list[Any] = []
        self.programs: list[list[str]] = []

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str | bytes):
            mode, flags = args[1], args[2] or 0
            if (isinstance(mode, str) and set(mode) & set("wax+")) or flags & _WRITES:
                self.written.append(os.fsdecode(args[0]))
        elif event in _CHANGES:
            folders = [
                arg for arg in args[1:] if isinstance(arg, int) and arg >= 0 and event in ("os.remove", "os.rmdir")
            ]
            start = os.readlink(f"/proc/self/fd/{folders[-1]}") if folders else ""
            self.written += [
                os.path.join(start, os.fsdecode(arg)) for arg in args[:2] if isinstance(arg, str | bytes | os.PathLike)
            ]
        elif event == "socket.connect":
            self.connected.append(args[1])
        elif event == "subprocess.Popen":
            self.programs.append([os.fsdecode(word) for word in args[1]])


@pytest.fixture(scope="module", autouse=True)
def hook() -> None:
    """An audit hook stays permanently; outside of `watched` it does nothing."""
    sys.addaudithook(lambda event, args: _watching[-1].see(event, args) if _watching else None)


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    _watching.append(Watch())
    try:
        yield _watching[-1]
    finally:
        _watching.pop()


class Machine:
    """The machine that a step sees: its programs do nothing and print nothing, its network is empty."""

    def __init__(self, root: Path) -> None:
        self.root, self.commands = root, list[list[str]]()
        self.secret = root / "home/user/photo"
        self.secret.parent.mkdir(parents=True)
        self.secret.write_text("keep me")
        (root / "var/log").mkdir(parents=True)
        (root / "var/log/agent.log").write_text("a log\n")
        (root / "keepalived").mkdir()

    @property
    def own(self) -> tuple[str, ...]:
        """Where steps may write."""
        return str(self.root / "var/log"), str(self.root / "keepalived"), "/dev/null"

    def run(
        self, argv: list[str], timeout: float | None = 60.0, host: bool = False, stdout: Any = subprocess.PIPE
    ) -> Result:
        assert timeout is None or 0 <= timeout <= 86400
        self.commands.append(argv)
        return Result("", "no such thing", 1) if argv[:2] == ["podman", "pull"] else Result()


class Web(BaseHTTPRequestHandler):
    def log_message(self, *_args: Any) -> None:
        return

    def do_GET(self) -> None:
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        if self.path.startswith("/endless"):
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b" " * 65536)
        if self.path.startswith("/drip"):
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b" ")
                    time.sleep(0.02)
        self.wfile.write(b'{"ignition":{"version":"3.2.0"}}')


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Machine:
    found = Machine(tmp_path)
    logging.disable()  # it would name every value
    request.addfinalizer(lambda: logging.disable(logging.NOTSET))
    monkeypatch.setattr(host, "run", found.run)
    monkeypatch.setattr(steps, "media_error", lambda: "")
    monkeypatch.setattr(logs_sender, "VAR_LOG", tmp_path / "var/log")
    monkeypatch.setattr(dhcp_lease_allocate, "FOLDER", tmp_path / "keepalived")
    monkeypatch.setattr(
        dhcp_lease_allocate.Exchange, "__init__", lambda *args: (each for each in ()).throw(ValueError("no network"))
    )
    monkeypatch.setattr(network, "outgoing_nics", list)
    monkeypatch.setattr(probes, "ping", lambda targets, *args, **more: {target: probes.Echo() for target in targets})
    for name in ("arp", "ndp"):
        monkeypatch.setattr(probes, name, lambda *args, **more: {})
    monkeypatch.setattr(domain_resolution.socket, "getaddrinfo", lambda *args, **more: [])
    monkeypatch.setattr(ntp_synchronizer, "resolve", lambda server: {server})
    monkeypatch.setattr(vips_verifier, "answers", lambda address, port: False)
    monkeypatch.setattr(rest, "MOST_BYTES", 2**20)
    monkeypatch.setattr(rest, "MOST_SECONDS", 0.3)
    monkeypatch.setattr(install, "network_by_hand", lambda: False)
    monkeypatch.setattr(install.subprocess, "Popen", lambda argv, **more: pytest.fail(f"it started {argv}"))
    return found


def good(web: str) -> dict[str, list[Any]]:
    """A good argument of each step that takes one; texts that hold JSON are given as what they hold."""
    disk = "/dev/no-such-disk"
    return {
        "inventory": [UUID, "--output-max-size=100000", "--disk-min-size=5"],
        "connectivity-check": [[{"host_id": UUID, "nics": [{"name": "eth0", "mac": "52:54:00:00:00:01", "ip_addresses": ["127.0.0.1"]}]}]],
        "free-network-addresses": [["127.0.1.0/24"]],
        "verify-vips": [[{"vip": "127.0.0.1", "vip_type": "api"}]],
        "ntp-synchronizer": [{"ntp_source": "127.0.0.1,ntp.example.org"}],
        "domain-resolution": [{"domains": [{"domain_name": "api.example.org"}]}],
        "dhcp-lease-allocate": [
            {"interface": "eth0", "api_vip_mac": "00:1a:4a:00:00:01", "ingress_vip_mac": "00:1b:4a:00:00:01", "api_vip_lease": "", "ingress_vip_lease": ""}
        ],
        "installation-disk-speed-check": [{"path": disk}, "21.00"],
        "container-image-availability": [{"images": ["reg/a@sha256:12", "reg/b:1"], "timeout": 5}],
        "tang-connectivity-check": [{"tang_servers": json.dumps([{"url": web, "thumbprint": "PLjNyRdGw03zlRoGjQYMahSZGu9"}])}],
        "api-vip-connectivity-check": [
            {"url": f"{web}/config/worker", "request_headers": [{"key": "Accept", "value": "x"}], "ignition_endpoint_token": "t", "verify_cidr": False}
        ],
        "install": [
            {"cluster_id": UUID, "infra_env_id": UUID, "host_id": UUID, "role": "master", "boot_device": disk, "controller_image": "reg/c",
             "installer_image": "reg/i", "mco_image": "reg/m", "coreos_image": "reg/o", "must_gather_image": json.dumps({"ocp": "reg/g"}),
             "installer_args": json.dumps(["--append-karg", "ip=dhcp"]), "openshift_version": "4.22.0", "control_plane_count": 3,
             "disks_to_format": [disk], "service_ips": ["127.0.0.1"], "check_cvo": True, "skip_installation_disk_cleanup": False,
             "proxy": {"http_proxy": "http://h:1", "https_proxy": "http://h:1", "no_proxy": "a,b"}}
        ],
        "stop-installation": [],
        "logs-gather": [
            {"cluster_id": UUID, "infra_env_id": UUID, "host_id": UUID, "bootstrap": True, "installer_gather": True, "master_ips": ["127.0.0.1"]}
        ],
        "upgrade-agent": [{"agent_image": "reg/agent:2"}],
    }  # fmt: skip


def hostile(machine: Machine, web: str) -> list[Any]:
    secret = str(machine.secret)
    up = "../" * 30
    return [
        secret, f"{up}{secret.lstrip('/')}", f"/{up}{secret.lstrip('/')}", f"/dev/../{secret}", f"/dev/./../..{secret}", f"/dev/null/..{secret}",
        str(machine.secret.parent), f"/{up}{machine.secret.parent}".replace("//", "/"), "..", "/", ".", "~",
        "/dev", "/dev/null", "/dev/stdin", "/dev/mem", "/dev/sda1",
        "-", "--", f"--authfile={secret}", f"-v{secret}:/x", "--privileged", f"--output={secret}", "-rf",
        f"file://{secret}", f"FILE:{secret}", "ftp://127.0.0.1:1/x", "data:,x", "gopher://127.0.0.1:1/", "jar:x", f"{web}/to/file://{secret}",
        f"{web}/to/ftp://127.0.0.1:1/x", f"{web}/to/", f"{web}/endless", f"{web}/drip", "http://", "http://[::1", "http://127.0.0.1:99999/", "http://a b/",
        "http://127.0.0.1:1/\r\nX: y", "https://127.0.0.1:1/",
        "\0", f"{secret}\0", "a\nb", "a\r\nSet-Cookie: x", "\x1b[2J", "\u202e", "\ud800", "`touch /tmp/x`", "$(touch /tmp/x)", "; touch /tmp/x",
        "| sh", "%n%s", "{{7*7}}", f"docker-archive:{secret}", f"dir:{secret}", "oci-archive:x", "containers-storage:x",
        "x" * 100_000, "[" * 50_000, "9" * 50_000, "0.0.0.0/0", "::/0", "224.0.0.1", "255.255.255.255", "127.0.0.0/8", "fe80::1%eth0",
        0, -1, 1, 2**31, 2**63, 2**200, 1.5, -1e308, 1e308, float("inf"), float("nan"), True, False, None,
        [], {}, [None], [[]], [{}], {"": ""}, {"a": {"b": []}},
        ["x"] * 50_000, [1, "a", None], [secret], {"path": secret},
    ]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in an argument a value can be put: each field, each entry, and the whole."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from places(inner, (*path, at))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = put(value[path[0]], path[1:], new)
    return value


def arguments(value: Any) -> list[Any]:
    return [arg if isinstance(arg, str) else json.dumps(arg) for arg in value] if isinstance(value, list) else value


def variants(args: list[Any], values: list[Any]) -> Iterator[list[Any]]:
    """The arguments with each value in each place; also inside of texts that hold JSON."""
    for path in places(args):
        for value in values:
            if path:
                yield arguments(put(args, path, value))
    for at, arg in enumerate(args):
        for key, text in arg.items() if isinstance(arg, dict) else ():
            if isinstance(text, str) and text[:1] in "[{" and text:
                inner = json.loads(text)
                for path in places(inner):
                    for value in values:
                        yield arguments(put(args, (at, key), json.dumps(put(inner, path, value))))


def is_bad(word: str, machine: Machine) -> bool:
    """Return whether an argument of a program could be taken for something else than a value."""
    return (
        (str(machine.root) in word and not word.startswith(machine.own))
        or not word.isprintable()
        or "touch /tmp" in word
        or len(word) > 2**17
    )


KNOWN = {"--quiet", "--format={{.Size}}", "-i", "-t"}


@pytest.mark.parametrize("kind", list(steps.STEPS))
def test_nothing_else_is_touched(kind: str, machine: Machine, web: str) -> None:
    context = steps.Context(web, UUID, UUID, "reg/agent", "token")
    tried = 0
    before = sorted(str(path) for path in machine.root.rglob("*"))
    for args in variants(good(web)[kind], hostile(machine, web)):
        machine.commands.clear()
        started = time.monotonic()
        with watched() as seen:
            results = list(steps.run({"step_type": kind, "step_id": "x", "args": args}, context))
        what = ascii(f"{kind} {str(args)[:300]}: {str(results)[:300]}")
        assert results and time.monotonic() - started < SECONDS, what
        assert all(path.startswith(machine.own) for path in seen.written), (what, seen.written)
        assert all(address[0] == "127.0.0.1" for address in seen.connected), (what, seen.connected)
        assert not seen.programs, what
        for command in machine.commands:
            assert not [word for word in command if is_bad(word, machine)], (what, command)
            if command[0] == "podman":
                assert {word for word in command[1:] if word.startswith("-")} <= KNOWN, (what, command)
        tried += 1
    assert machine.secret.read_text() == "keep me"
    assert sorted(str(path) for path in machine.root.rglob("*")) == before
    assert tried >= 80 * len(good(web)[kind])


@pytest.mark.parametrize("kind", list(steps.STEPS))
def test_arguments_of_a_wrong_type(kind: str, machine: Machine, web: str) -> None:
    for args in (None, 0, "x", {}, {"a": 1}, [None], [1], [{}], [[]], ["x"] * 1000, [True]):
        (result,) = steps.run({"step_type": kind, "step_id": "x", "args": args}, steps.Context(web, UUID, UUID))
        assert result.exit_code == -1 or (kind == "stop-installation" and not args), (args, result)
    assert machine.secret.read_text() == "keep me"


def test_a_disk_is_one_of_the_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real block devices of this machine, if it has any, are named by links as well; a partition or a loop device is not a disk."""
    for path in (
        "/dev/null",
        "/dev/zero",
        "/dev/stdin",
        "/dev/fd/0",
        "/dev/loop0",
        "/dev/shm",
        "/dev/pts/0",
        "/dev/log",
    ):
        with pytest.raises(ValueError, match=f"disk {path} (is not in this host's inventory|was not found)"):
            disks.known_disk(path)
    for path in ("/dev/../etc/hostname", "/etc/hostname", "dev/sda", "/dev/disk/../../etc/passwd", "//dev/sda", ""):
        with pytest.raises(ValueError, match="should start with /dev/ and not leave it"):
            disks.known_disk(path)
    monkeypatch.setattr(disks, "paths", lambda: {"/dev/null"})  # listed, but a character device
    with pytest.raises(ValueError, match="is not in this host's inventory"):
        disks.known_disk("/dev/null")
    monkeypatch.undo()
    for path in disks.paths():
        if os.path.exists(path):
            assert disks.known_disk(path) == path


def test_the_installer_is_given_no_option(machine: Machine, web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes becomes one word after its flag: podman's own options end at the image."""
    monkeypatch.setattr(disks, "known_disk", lambda value: fields.text("disk", value))
    (request,) = good(web)["install"]
    passed = 0
    for path in places(request):
        for value in hostile(machine, web):
            changed = put(request, path, value) if path else request
            try:
                asked = steps.argument("install", json.dumps(changed), *install.REQUIRED)
                install.validate(asked)
            except ValueError:
                continue
            passed += 1
            command = install.installer_command(asked, steps.Context(web, UUID, UUID, "reg/agent"))
            assert command[: len(install.PODMAN)] == list(install.PODMAN)
            assert fields.IMAGE.fullmatch(command[len(install.PODMAN)])
            assert all(isinstance(word, str) and word.isprintable() and len(word) < 2**17 for word in command)
    assert passed > 100


def test_credentials_do_not_follow_a_redirect(web: str) -> None:
    seen: list[str | None] = []

    class Other(Web):
        def do_GET(self) -> None:
            seen.extend(
                [self.headers.get("Authorization"), self.headers.get("X-Secret-Key"), self.headers.get("Accept")]
            )
            super().do_GET()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        headers = {"Authorization": "Bearer t", "X-Secret-Key": "t", "Accept": "x"}
        answer = rest.send("GET", f"{web}/to/http://127.0.0.1:{server.server_address[1]}/x", headers)
    finally:
        server.shutdown()
        server.server_close()
    assert answer.ok and seen == [None, None, "x"]


@pytest.mark.parametrize(
    "scheme", ["file:///etc/hostname", "FILE:///etc/hostname", "ftp://127.0.0.1/x", "data:,x", "unix:/x", "", "x"]
)
def test_only_http_is_spoken(scheme: str) -> None:
    answer = rest.send("GET", scheme, {})
    assert answer.status == 0 and "unsupported protocol scheme" in answer.error


# -- the conversation ---------------------------------------------------------------------------------------------------

ME = protocol.Identity(UUID, UUID, "reg/agent", interval=7)


def answers_of(body: Any) -> list[Any]:
    """What a runner does with one answer to its poll, until it polls again."""
    talk, found = protocol.poll(ME, protocol.ReplyCache()), list[Any]()
    action = talk.send(None)
    answer: Any = Response(200, body)
    for __ in range(4):
        try:
            action = talk.send(answer)
        except StopIteration:
            return found
        found.append(action)
        if isinstance(action, protocol.Request):
            return found
        answer = isinstance(action, protocol.Wait)
    return found


@pytest.mark.parametrize(
    "value", [-1, 1e308, float("nan"), float("inf"), "x", "1e400", [], {}, [1], True, 2**70, None], ids=repr
)
def test_polling_continues_with_any_pause(value: Any) -> None:
    for action in answers_of({"next_instruction_seconds": value, "post_step_action": "continue"}):
        if isinstance(action, protocol.Wait):
            assert 0 <= action.seconds <= protocol.LONGEST_PAUSE


@pytest.mark.parametrize(
    "instructions", [1, "x", {}, [1], [None], [{}], [{"step_type": 1}], [{"step_type": "inventory", "args": "x"}],
                     [{"step_type": "inventory", "args": [{}]}], [{"step_type": "inventory", "step_id": {}, "args": ["x"]}]], ids=repr,
)  # fmt: skip
def test_an_invalid_step_is_not_run(instructions: Any) -> None:
    found = answers_of({"instructions": instructions, "next_instruction_seconds": 1})
    assert not [action for action in found if isinstance(action, protocol.Dispatch)]


def test_steps_are_bounded() -> None:
    step = {"step_type": "inventory", "step_id": "x", "args": [UUID]}
    (dispatch, *__) = answers_of({"instructions": [step] * 100_000, "next_instruction_seconds": 1})
    assert len(dispatch.steps) == protocol.MOST_STEPS
    gate = threading.Event()
    driver = next_step_runner.Driver(rest.Client("http://127.0.0.1:1"), ME, steps.Context())
    driver._step = lambda step: gate.wait(20) and None
    try:
        for number in range(300):
            driver._start({**step, "args": [str(number)]})
        assert len(driver._running) == protocol.MOST_STEPS
    finally:
        gate.set()


@pytest.mark.parametrize(
    "change", [{"host_id": "../../x"}, {"host_id": "-x"}, {"infra_env_id": "a/b"}, {"infra_env_id": 7}, {"agent_version": "--authfile=/x"},
               {"agent_version": "a b"}, {"host_id": "a\nb"}, {"host_id": "x" * 1000}], ids=repr,
)  # fmt: skip
def test_a_runner_that_is_invalid(change: dict[str, Any], machine: Machine) -> None:
    request = {"infra_env_id": UUID, "host_id": UUID, "agent_version": "reg/agent:2", **change}
    with pytest.raises(ValueError, match="next step runner: "):
        protocol.runner_request({"args": [json.dumps(request)]})
    assert not machine.commands


@pytest.mark.parametrize(
    "command", [[], {"args": 1}, {"args": [1]}, {"args": ["[]"]}, {"args": ["["]}, {"args": ["1", "2"]}], ids=repr
)
def test_a_register_reply_that_is_invalid(command: Any) -> None:
    with pytest.raises(ValueError):
        protocol.runner_request(command if isinstance(command, dict) else {})
    assert protocol.retry_delay({"retry_seconds": "x"}) == protocol.RUNNER_RETRY_SECONDS
    assert agent.RUNNER
