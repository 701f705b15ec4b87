"""Logging of the programs: a text file below /var/log, the systemd journal, standard output; each by its flag."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import socket
import sys
import time
from pathlib import Path

JOURNAL = "/run/systemd/journal/socket"
LOG_DIR = Path("/var/log")
LEVELS = {"WARNING": "warning", "CRITICAL": "fatal"}
PLAIN = re.compile(r"[-A-Za-z0-9._/@^+]*")
PRIORITY = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}

log = logging.getLogger("agentlab.node_agent")


class Fields(logging.Formatter):
    """A line in upstream's format (logrus text), so that its log readers work with ours."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)
        message = message if PLAIN.fullmatch(message) else json.dumps(message, ensure_ascii=False)
        stamp = time.strftime("%d-%m-%Y %H:%M:%S", time.localtime(record.created))
        level = LEVELS.get(record.levelname, record.levelname.lower())
        return f'time="{stamp}" level={level} msg={message} file="{record.filename}:{record.lineno}"'


class JournalHandler(logging.Handler):
    """Native journal protocol (systemd's journal-native): fields of one message in one datagram.

    Upstream marks its messages with `TAG=agent`, the installer's with `TAG=installer`; `logs_sender` selects them by this field.
    """

    def __init__(self, identifier: str, tag: str = "agent", path: str | None = None) -> None:
        super().__init__()
        self._identifier, self._tag = identifier, tag
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.connect(path or JOURNAL)

    def emit(self, record: logging.LogRecord) -> None:
        message = self.format(record).encode(errors="replace")[:60000]
        fields = (
            f"PRIORITY={PRIORITY.get(record.levelno, 6)}\nSYSLOG_IDENTIFIER={self._identifier}\nTAG={self._tag}\n"
            f"CODE_FILE={record.filename}\nCODE_LINE={record.lineno}\nMESSAGE\n"
        ).encode()
        try:
            self._socket.send(fields + len(message).to_bytes(8, "little") + message + b"\n")
        except OSError:
            self.handleError(record)


def setup(name: str, text: bool, journal: bool, stdout: bool, log_dir: Path = LOG_DIR) -> None:
    """Set up the logger's outputs. One that cannot be opened is skipped; without any, warnings go to stderr."""
    log.handlers.clear()
    log.propagate = False
    log.setLevel(logging.INFO)
    logging.raiseExceptions = False
    handlers: list[logging.Handler] = []
    if text:
        with contextlib.suppress(OSError):
            handlers.append(logging.FileHandler(log_dir / f"{name}.log"))
    if journal:
        with contextlib.suppress(OSError):
            handlers.append(JournalHandler(name))
    if stdout:
        handlers.append(logging.StreamHandler(sys.stdout))
    if not handlers:
        handlers.append(logging.StreamHandler(sys.stderr))
        log.setLevel(logging.WARNING)
    for handler in handlers:
        handler.setFormatter(Fields())
        log.addHandler(handler)
