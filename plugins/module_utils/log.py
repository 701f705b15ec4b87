"""The installer's log: logfmt lines on stderr, everything in `<dir>/.openshift_install.log`."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from . import files
from .vocabulary import RunFile

LEVELS = ("trace", "debug", "info", "warning", "error", "fatal")
ALIASES = {"warn": "warning", "panic": "fatal"}
"""Other names that logrus has for some of them."""
COLOURS = {"trace": 37, "debug": 37, "info": 36, "warning": 33, "error": 31, "fatal": 31}
LOG_FILE = RunFile.INSTALLER_LOG
_PLAIN = re.compile(r"[A-Za-z0-9\-._/@^+]+")


class Log:
    """Writes a line for each message, and keeps it in `lines` as (level, text).

    directory: of the log file (None: no file); level: the minimum level on stderr. On a terminal
    the lines look as logrus shows them there; otherwise they are `level=info msg=text`.
    emit: replaces stderr, for a live view that owns the terminal. copy: a file that gets, with time stamps, what stderr shows.
    Characters that cannot be printed become spaces (`visible`).
    A log that cannot be written never fails the run: the first such error is shown on stderr, and logging continues where it can.
    """

    def __init__(
        self,
        directory: Path | None,
        level: str = "info",
        emit: Callable[[str], None] | None = None,
        *,
        copy: Path | None = None,
    ) -> None:
        if level not in LEVELS:
            raise ValueError(f'not a valid logrus Level: "{level}"')
        self.threshold = LEVELS.index(level)
        self.tty = sys.stderr.isatty()
        self.emit = emit or _to_stderr
        self.file = directory / LOG_FILE if directory else None
        self.copy = copy
        self.lines: list[tuple[str, str]] = []
        self._broken: set[Path] = set()

    def debug(self, text: str) -> None:
        """Log details for debugging.

        text: may have several lines. It is in the log file at any level.
        """
        self("debug", text)

    def info(self, text: str) -> None:
        """Log progress."""
        self("info", text)

    def warning(self, text: str) -> None:
        """Log something that may not be what was meant.

        The run continues, and its exit code does not change.
        """
        self("warning", text)

    def error(self, text: str) -> None:
        """Log a failure.

        Others may follow; the exit code is the caller's.
        """
        self("error", text)

    def fatal(self, text: str) -> None:
        """Log the failure that ends the run; the caller ends it."""
        self("fatal", text)

    def __call__(self, level: str, text: str) -> None:
        text = visible(text)
        self.lines.append((level, text))
        shown = LEVELS.index(level) >= self.threshold
        self._append(self.file, level, text)
        if shown:
            self._append(self.copy, level, text)
            self._show(level, text)

    def _append(self, path: Path | None, level: str, text: str) -> None:
        if path is None:
            return
        try:
            _append(path, level, text)
        except OSError as error:
            if path not in self._broken:
                self._broken.add(path)
                self._show("warning", f"{path}: the log cannot be written: {error.strerror}")

    def _show(self, level: str, text: str) -> None:
        with contextlib.suppress(OSError):  # stderr may be a closed pipe, or a file on a full disk
            # As the installer's: each line of a message by itself, and no `msg=` for an empty one.
            for line in text.split("\n"):
                if self.tty:
                    self.emit(f"\x1b[{COLOURS[level]}m{level.upper()}\x1b[0m {line}".rstrip())
                else:
                    self.emit(f"level={level} msg={line}" if line else f"level={level}")


def visible(text: str) -> str:
    """Return a text, which may come from a host or a service, without commands for the terminal.

    Characters that cannot be printed become spaces; line breaks and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t" else " " for letter in text)


def level_of(text: str) -> str:
    """Return a level as `Log` takes it; as logrus, in any case and by any of its names. Raises `ValueError`.

    text: of `--log-level`. The result is one of `LEVELS`.
    """
    level = ALIASES.get(text.lower(), text.lower())
    if level not in LEVELS:
        raise ValueError(f'not a valid logrus Level: "{text}"')
    return level


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _append(path: Path, level: str, text: str) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = f'time="{stamp}" level={level} msg={quote(text)}\n'
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        if not os.fstat(handle).st_size:
            files.give(handle, path.parent)
        os.write(handle, line.encode(errors="backslashreplace"))
    finally:
        os.close(handle)


def quote(text: str) -> str:
    """A logfmt value: bare when it may be, else in double quotes with escapes.

    text: of any length, also empty. The rules are logrus' own: see `_PLAIN`.
    """
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
