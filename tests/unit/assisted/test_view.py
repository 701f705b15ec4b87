"""The live view on a terminal: it starts, and what hosts and the service send is text."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.view import LiveView
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log

ROOT = Path(__file__).parents[3]
HOST = {
    "id": "1",
    "requested_hostname": "m[bold]0",
    "role": "master",
    "status": "error",
    "status_info": "no [/dev/sda] \x1b[2J\x1b]0;x\x07",
}


def test_texts_are_neither_markup_nor_commands_of_the_terminal() -> None:
    view = LiveView()
    view.show({"name": "a[/b]", "status": "error", "hosts": [HOST]}, [])
    with view.console.capture() as caught:
        view.console.print(view._table())
    text = caught.get()
    assert "m[bold]0" in text and "no [/dev/sda]" in text and "a[/b]: error" in text
    assert "\x1b[2J" not in text and "\x1b]0" not in text and "\x07" not in text


def test_a_message_is_not_a_command_of_the_terminal(tmp_path: Path) -> None:
    lines: list[str] = []
    log = Log(tmp_path, emit=lines.append)
    log.info("Host \x1b[2Jm0\r has\n\ta \x9b2J disk \u202e")
    written = (tmp_path / ".openshift_install.log").read_text()
    for text in ("\n".join(lines), written, log.lines[0][1]):
        assert not any(letter in text for letter in "\x1b\r\x9b\u202e"), repr(text)
    assert lines == ["level=info msg=Host  [2Jm0  has", "level=info msg=\ta  2J disk  "]


def test_wait_for_starts_on_a_terminal(tmp_path: Path) -> None:
    """It has a live view there, which no pipe has."""
    ours, theirs = pty.openpty()
    program = "import sys; from ansible_collections.agentlab.ocp.plugins.module_utils import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "wait-for", "bootstrap-complete", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other side is closed
        pass
    assert process.wait(60) == 1 and b"Traceback" not in shown, shown.decode()
    assert b"both AgentConfig and NMStateConfig are empty" in shown
