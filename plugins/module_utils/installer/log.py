"""The installer's log with a method for each level, over the collection's logfmt writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .. import log as logfmt


class Log:
    """directory: where `.openshift_install.log` goes (None: nowhere); emit: replaces stderr. `lines` keeps (level, text)."""

    def __init__(self, directory: Path | None, level: str = "info", emit: Callable[[str], None] | None = None) -> None:
        self._write = logfmt.Log(directory, level, emit)
        self.lines: list[tuple[str, str]] = []

    def _line(self, level: str, text: str) -> None:
        self.lines.append((level, text))
        self._write(level, text)

    def debug(self, text: str) -> None:
        """Details for somebody who searches."""
        self._line("debug", text)

    def info(self, text: str) -> None:
        """Progress."""
        self._line("info", text)

    def warning(self, text: str) -> None:
        """Something that may not be what was meant."""
        self._line("warning", text)

    def error(self, text: str) -> None:
        """A failure."""
        self._line("error", text)

    def fatal(self, text: str) -> None:
        """The failure that ends the run; the caller ends it."""
        self._line("fatal", text)
