"""Logs in the format of upstream's programs: lines of logrus, `time="…" level=info msg="…"`, with an error as a field of its own.

The service gets them in an archive.
"""

from __future__ import annotations

import io
import logging
import tarfile
import time
from collections.abc import Iterable, Mapping

from ...plugins.module_utils.log import quote

LEVELS = {logging.CRITICAL: "fatal"}


class LogrusFormatter(logging.Formatter):
    """One line for each message; `extra={"error": ...}` is its error.

    Times are UTC, to the second. Texts are quoted as logrus quotes them.
    """

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        level = LEVELS.get(record.levelno, record.levelname.lower())
        error = getattr(record, "error", None)
        field = "" if error is None else f" error={quote(str(error))}"
        return f'time="{stamp}" level={level} msg={quote(record.getMessage())}{field}'


def setup(handlers: Iterable[logging.Handler]) -> None:
    """Send everything from now on to these handlers.

    handlers: replace those of the root logger; the level is info.
    """
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers[:] = handlers
    for handler in root.handlers:
        handler.setFormatter(LogrusFormatter())


def tarball(files: Mapping[str, str | bytes]) -> bytes:
    """Return a tar.gz of the files that are not empty.

    files: name in the archive -> content; times are now.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            if data:
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(data), int(time.time())
                archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
