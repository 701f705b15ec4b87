"""Logs in the format of upstream's programs: lines of logrus, `time="…" level=info msg="…"`, with an error as a field of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from ...plugins.module_utils.log import quote

LEVELS = {logging.CRITICAL: "fatal"}


class LogrusFormatter(logging.Formatter):
    """One line for each message; `extra={"error": ...}` is its error."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        level = LEVELS.get(record.levelno, record.levelname.lower())
        error = getattr(record, "error", None)
        field = "" if error is None else f" error={quote(str(error))}"
        return f'time="{stamp}" level={level} msg={quote(record.getMessage())}{field}'


def setup(handlers: Iterable[logging.Handler]) -> None:
    """Send everything from now on to these handlers."""
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers[:] = handlers
    for handler in root.handlers:
        handler.setFormatter(LogrusFormatter())
