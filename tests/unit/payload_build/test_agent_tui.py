"""The simulator of agent-tui: its pages by results, keys and time, and the program itself on a terminal."""

from __future__ import annotations

import importlib.util
import os
import pty
import select
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "payload/images/files/agent_tui.py"
IMAGE = "registry.test:5000/lab/release@sha256:" + "0" * 64


def load() -> Any:
    spec = importlib.util.spec_from_file_location("agent_tui", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["agent_tui"] = module
    spec.loader.exec_module(module)
    return module


TUI = load()


def result(name: str, ok: bool = True, text: str = "done") -> Any:
    return TUI.Result(name, ok, text)


@pytest.fixture
def dialog() -> Any:
    return TUI.Dialog(IMAGE)


def test_installation_continues_without_an_answer(dialog: Any) -> None:
    assert dialog.page == "splash" and dialog.buttons() == []
    dialog.result(result(TUI.DNS), 0)
    assert dialog.page == "splash"  # the pull alone decides
    dialog.result(result(TUI.PULL), 1)
    assert (dialog.page, dialog.buttons()) == ("prompt", ["<Yes>", "<No>"])
    assert dialog.lines(9)[-1] == "Without an answer the installation continues in 12 s."
    assert dialog.tick(20.9) is None
    assert dialog.tick(21) == "quit"


def test_wrong_dns_is_shown_and_corrected(dialog: Any) -> None:
    dialog.result(result(TUI.PULL, False, "dial tcp: lookup registry.test: no such host"), 0)
    dialog.result(result(TUI.DNS, False, "exit status 2"), 0)
    assert dialog.page == "checks" and dialog.tick(1000) is None
    text = "\n".join(dialog.lines(0))
    assert f"x {IMAGE[:50]}" in text and "x nslookup registry.test" in text and "? ping registry.test" in text
    assert "lookup registry.test: no such host" in text
    assert dialog.key("c") == "network"
    dialog.edited(["DNS", "  192.0.2.1"])
    assert dialog.page == "network" and "  192.0.2.1" in "\n".join(dialog.lines(0))
    dialog.result(result(TUI.PULL), 0)
    assert dialog.page == "network"  # until the user leaves it
    assert dialog.key("q") is None and dialog.page == "checks"
    dialog.result(result(TUI.PULL), 0)
    assert dialog.page == "checks" and "√" in "".join(dialog.lines(0))  # a user who was there leaves by a key
    assert "Check Errors" not in "".join(dialog.lines(0))
    assert dialog.key("tab") is None and dialog.key("enter") == "quit"


def test_checks_that_pass_later_ask_a_user_who_was_not_there(dialog: Any) -> None:
    dialog.result(result(TUI.PULL, False), 0)
    dialog.result(result(TUI.PULL), 5)
    assert dialog.page == "prompt" and dialog.until == 25
    dialog.result(result(TUI.PULL, False), 6)
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
    dialog.result(result(TUI.PULL), 0)
    assert [dialog.key(name) for name in keys][-1] == action
    assert dialog.page == page


@pytest.mark.parametrize(("image", "host"), [(IMAGE, "registry.test"), ("[fd00::1]:5000/x", "fd00::1"), ("r/x", "r")])
def test_host(image: str, host: str) -> None:
    assert TUI.host_of(image) == host


@pytest.mark.parametrize("status", [0, 1])
def test_on_a_terminal(tmp_path: Path, status: int) -> None:
    """With programs of the lab's OS that succeed or fail."""
    for name in ("podman", "getent", "ping", "nmtui"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} ran\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(PATH=f"{tmp_path}:{os.environ['PATH']}", TERM="linux", LINES="50", COLUMNS="100",
                          RELEASE_IMAGE="127.0.0.1:9/lab/release", AGENT_TUI_LOG_PATH=str(tmp_path / "log"))  # fmt: skip
        os.execv(sys.executable, [sys.executable, str(PROGRAM)])
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
