"""The simulator of agent-tui: its pages by results, keys and time, and the program itself on a terminal."""

from __future__ import annotations

import fnmatch
import os
import pty
import select
import sys
import time
from pathlib import Path
from typing import Any

import jinja2
import pytest
from ansible_collections.agentlab.ocp.payload.images import code, components
from ansible_collections.agentlab.ocp.payload.images.files.agent_tui import checks as tui
from ansible_collections.agentlab.ocp.payload.images.files.agent_tui import rendezvous
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Component

IMAGE = "registry.test:5000/lab/release@sha256:" + "0" * 64


def result(name: str, ok: bool = True, text: str = "done") -> Any:
    return tui.Result(name, ok, text)


@pytest.fixture
def dialog() -> Any:
    return tui.Dialog(IMAGE)


def test_the_image_has_all_that_openshift_install_extracts() -> None:
    """Builds of openshift-install fail without the library (pkg/asset/agent/image/agentartifacts.go)."""
    paths = code.executables(components.COMPONENTS[Component.UTILS])
    for pattern in ("usr/bin/agent-tui", "usr/lib64/libnmstate.so.*"):
        assert fnmatch.filter(paths, pattern)


def test_installation_continues_without_an_answer(dialog: Any) -> None:
    assert dialog.page == "splash" and dialog.buttons() == []
    dialog.result(result(tui.DNS), 0)
    assert dialog.page == "splash"  # the pull alone decides
    dialog.result(result(tui.PULL), 1)
    assert (dialog.page, dialog.buttons()) == ("prompt", ["<Yes>", "<No>"])
    assert dialog.lines(9)[-1] == "Without an answer the installation continues in 12 s."
    assert dialog.tick(20.9) is None
    assert dialog.tick(21) == "quit"


def test_wrong_dns_is_shown_and_corrected(dialog: Any) -> None:
    dialog.result(result(tui.PULL, False, "dial tcp: lookup registry.test: no such host"), 0)
    dialog.result(result(tui.DNS, False, "exit status 2"), 0)
    assert dialog.page == "checks" and dialog.tick(1000) is None
    text = "\n".join(dialog.lines(0))
    assert f"x {IMAGE[:50]}" in text and "x nslookup registry.test" in text and "? ping registry.test" in text
    assert "lookup registry.test: no such host" in text
    assert dialog.key("c") == "network"
    dialog.edited(["DNS", "  192.0.2.1"])
    assert dialog.page == "network" and "  192.0.2.1" in "\n".join(dialog.lines(0))
    dialog.result(result(tui.PULL), 0)
    assert dialog.page == "network"  # until the user leaves it
    assert dialog.key("q") is None and dialog.page == "checks"
    dialog.result(result(tui.PULL), 0)
    assert dialog.page == "checks" and "√" in "".join(dialog.lines(0))  # a user who was there leaves by a key
    assert "Check Errors" not in "".join(dialog.lines(0))
    assert dialog.key("tab") is None and dialog.key("enter") == "quit"


def test_checks_that_pass_later_ask_a_user_who_was_not_there(dialog: Any) -> None:
    dialog.result(result(tui.PULL, False), 0)
    dialog.result(result(tui.PULL), 5)
    assert dialog.page == "prompt" and dialog.until == 25
    dialog.result(result(tui.PULL, False), 6)
    assert dialog.page == "checks"


@pytest.mark.parametrize(
    ("keys", "action", "page"),
    [
        (["enter"], None, "checks"),
        (["right", "enter"], "quit", "prompt"),
        (["tab", "tab", "enter"], None, "checks"),
        (["esc"], "quit", "prompt"),
        (["c"], None, "prompt"),
    ],
)
def test_answers_of_the_question(dialog: Any, keys: list[str], action: str | None, page: str) -> None:
    dialog.result(result(tui.PULL), 0)
    assert [dialog.key(name) for name in keys][-1] == action
    assert dialog.page == page


class Host:
    """What the dialog of the rendezvous host needs of a host."""

    def __init__(self, *, answers: bool = False, error: str = "") -> None:
        self.answers, self.error = answers, error
        self.saved: list[str] = []

    def save(self, address: str) -> None:
        if self.error:
            raise OSError(self.error)
        self.saved.append(address)

    def dialog(self) -> rendezvous.Rendezvous:
        return rendezvous.Rendezvous(lambda: ["192.168.111.20", "fd00::20"], lambda _ip: self.answers, self.save)


def do(dialog: rendezvous.Rendezvous, *names: str) -> str | None:
    return [dialog.key(name) for name in names][-1]


def test_this_host_is_the_rendezvous_host() -> None:
    host = Host()
    dialog = host.dialog()
    assert dialog.buttons() == ["<Save rendezvous IP>", "<This is the rendezvous node>", "<Configure Network>"]
    assert do(dialog, "tab", "tab", "enter") is None
    assert dialog.buttons() == ["192.168.111.20", "fd00::20", "<Back>"] and host.saved == []
    assert do(dialog, "down", "enter") is None and host.saved == ["fd00::20"]
    assert dialog.buttons() == ["<Continue>", "<Back>"]
    assert "Enter it on the other hosts" in " ".join(dialog.lines(0))
    assert do(dialog, "enter") == "quit"


@pytest.mark.parametrize("answers", [True, False])
def test_another_host_is_the_rendezvous_host(answers: bool) -> None:
    """Whether its service answers already or not, the first button continues; its label ends with the same word."""
    host = Host(answers=answers)
    dialog = host.dialog()
    assert do(dialog, *"192.168.111.21x", "backspace", "tab", "enter") is None
    assert host.saved == (["192.168.111.21"] if answers else [])
    assert dialog.buttons()[dialog.button].endswith("ontinue>")
    assert "Enter it on the other hosts" not in " ".join(dialog.lines(0))
    assert do(dialog, "enter") == "quit"
    assert host.saved == ["192.168.111.21"]


@pytest.mark.parametrize(
    ("text", "shown"), [("", "<blank> is not an IP address"), ("1.2.3", "1.2.3 is not an IP address")]
)
def test_an_invalid_address_is_not_saved(text: str, shown: str) -> None:
    host = Host(answers=True)
    dialog = host.dialog()
    do(dialog, *text, "tab", "enter")
    assert shown in " ".join(dialog.lines(0)) and dialog.buttons() == ["<Back>"]
    assert do(dialog, "enter") is None and dialog.button == -1 and host.saved == []
    assert do(dialog, "up", "enter") == "network"


def test_an_address_that_cannot_be_saved_is_an_error_on_the_screen() -> None:
    dialog = Host(answers=True, error="No space left on device").dialog()
    do(dialog, *"192.168.111.21", "tab", "enter")
    assert "No space left on device" in " ".join(dialog.lines(0)) and dialog.buttons() == ["<Back>"]


@pytest.mark.parametrize(("address", "host"), [("192.168.111.20", "192.168.111.20"), ("fd00::20", "[fd00::20]")])
def test_environment_of_the_rendezvous_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, host: str
) -> None:
    """From the template that the installer puts into the image."""
    template = (
        Path(code.__file__).parents[2]
        / "roles/agent_image/files/live/files/etc/assisted/rendezvous-host.env.template.j2"
    )
    text = jinja2.Template(template.read_text()).render(tokens={"AgentAuthToken": "a", "UserAuthToken": "u"})
    (tmp_path / "env.template").write_text(text)
    monkeypatch.setattr(rendezvous, "ENV", tmp_path / "env")
    rendezvous.save(address)
    made = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert made == {
        "NODE_ZERO_IP": address, "SERVICE_BASE_URL": f"http://{host}:8090/", "IMAGE_SERVICE_BASE_URL": f"http://{host}:8888/",
        "PULL_SECRET_TOKEN": "a", "USER_AUTH_TOKEN": "u", "WORKFLOW_TYPE": "install",
        "AIUI_APP_API_URL": f"http://{host}:8090/", "AIUI_URL": f"http://{host}:3001/",
    }  # fmt: skip
    assert (tmp_path / "env").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("image", "host"), [(IMAGE, "registry.test"), ("[fd00::1]:5000/x", "fd00::1"), ("r/x", "r")])
def test_host(image: str, host: str) -> None:
    assert tui.host_of(image) == host


@pytest.mark.parametrize("status", [0, 1])
def test_on_a_terminal(tmp_path: Path, status: int) -> None:
    """With programs of the lab's OS that succeed or fail."""
    for name in ("podman", "getent", "ping", "nmtui"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} ran\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    package = Path(code.__file__).parent / "files/agent_tui"
    (tmp_path / "agent-tui").write_bytes(code.program(package))
    assert code.program(package) == (tmp_path / "agent-tui").read_bytes()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(PATH=f"{tmp_path}:{os.environ['PATH']}", TERM="linux", LINES="50", COLUMNS="100",
                          RELEASE_IMAGE="127.0.0.1:9/lab/release", AGENT_TUI_LOG_PATH=str(tmp_path / "log"))  # fmt: skip
        os.execv(sys.executable, [sys.executable, str(tmp_path / "agent-tui")])
    wanted, keys = ("installation continues in", b"\t\n") if status == 0 else ("podman ran", b"cqq")
    shown, end, pause, left = "", time.monotonic() + 60, 0.0, list(keys)
    try:
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    shown += os.read(terminal, 65536).decode(errors="replace")
                except OSError:  # it ended
                    break
            if wanted in shown and left and time.monotonic() > pause:
                os.write(terminal, bytes([left.pop(0)]))
                pause = time.monotonic() + 1
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
    assert wanted in shown
    log = (tmp_path / "log").read_text()
    assert f"release image pull: {'failed' if status else 'as it must be'}: podman ran" in log
    assert ("the network was edited" in log) is bool(status)
