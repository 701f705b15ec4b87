from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent import journal


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    raising = logging.raiseExceptions
    yield
    journal.log.handlers.clear()
    logging.raiseExceptions = raising


def test_journal_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "JOURNAL", str(tmp_path / "socket"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(journal.JOURNAL)
        server.settimeout(5)
        journal.setup("agent", True, True, False, tmp_path)
        journal.log.warning("two\nlines: %s", 7)
        datagram = server.recv(65536)
    head, __, message = datagram.partition(b"MESSAGE\n")
    assert {b"PRIORITY=4", b"SYSLOG_IDENTIFIER=agent", b"TAG=agent"} <= set(head.splitlines())
    line = message[8:].decode()
    assert len(line) - 1 == int.from_bytes(message[:8], "little")
    assert re.fullmatch(
        r'time="\d\d-\d\d-\d{4} \d\d:\d\d:\d\d" level=warning msg="two\\nlines: 7" file="test_journal.py:\d+"\n', line
    )
    assert (tmp_path / "agent.log").read_text() == line


def test_nowhere_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(journal, "JOURNAL", str(tmp_path / "socket"))
    journal.setup("agent", True, True, False, tmp_path / "missing")
    journal.log.info("quiet")
    journal.log.warning("loud")
    assert "loud" in capsys.readouterr().err and len(journal.log.handlers) == 1
