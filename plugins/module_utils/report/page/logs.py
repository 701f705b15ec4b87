"""Lines of logs for the run page: the last ones of a file, and those around a moment, with time, level and unit.

Formats: logfmt of the installer, ISO 8601 at the start, the short formats of journalctl (no year, UTC in the lab). Serial
consoles have no time.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...cluster.pulled import parse
from ...documents import load_json
from ...redact import Redactor, redact
from ...state.events import Level, moment, printable
from . import leases
from .model import Line, Source

NEAR = 60_000
"""Milliseconds before and after the first cause in which lines are kept."""
MAX_READ = 4 << 20
"""What is read of the end of a file: many times the lines that are kept."""
MAX_LINE = 600
_LOGFMT = re.compile(r'time="(?P<time>[^"]{1,40})" level=(?P<level>\w{1,16}) msg=(?P<text>.*)')
_ISO = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)(?:[\]:]|\s|\Z)\s*(?P<text>.*)"
)
_JOURNAL = re.compile(r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) \S+ (?P<text>.*)")
_UNIT = re.compile(r"(?P<unit>[\w.@/:()\\-]{1,64}?)(?:\[\d{1,9}\])?: ")
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]{0,16}[A-Za-z]|[()][A-Z0-9]|[=>])")
_ERROR = re.compile(r"\b(?:error|failed|failure|fatal|panic|critical|traceback)\b", re.IGNORECASE)
_WARNING = re.compile(r"\b(?:warn|warning)\b", re.IGNORECASE)
_LEVELS: dict[str, Level] = {"trace": "debug", "debug": "debug", "info": "info", "warning": "warning", "warn": "warning",
                             "error": "error", "fatal": "error", "panic": "error", "critical": "error"}  # fmt: skip


def source(
    path: Path,
    *,
    name: str,
    host: str,
    shown: str,
    year: int,
    at: int | None,
    limit: int,
    secrets: Iterable[str] = (),
) -> Source:
    """Return a log with its last `limit` lines, and up to as many within `NEAR` of the moment `at`.

    shown: its path relative to the page; year: of lines without one; secrets: literals that are hidden, in addition to what looks like
    a secret. Raises `OSError`.
    """
    with path.open("rb") as stream:
        skipped = max(0, os.fstat(stream.fileno()).st_size - MAX_READ)
        stream.seek(skipped)
        raw = stream.read(MAX_READ).split(b"\n")
    if skipped:
        skipped += len(raw.pop(0)) + 1
    if raw and not raw[-1]:
        raw.pop()
    lines = list(_lines(raw, year))
    first = max(0, len(lines) - limit)
    near = [i for i in range(first) if at is not None and (t := lines[i]["at"]) is not None and abs(t - at) <= NEAR]
    kept = [*near[-limit:], *range(first, len(lines))] if limit else []
    before = kept[0] if kept else len(raw)
    left_out = skipped + sum(len(line) + 1 for line in raw[:before])
    hide = Redactor(secrets)
    for i in kept:
        lines[i]["text"] = hide.feed(lines[i]["text"])
    return {"name": name, "host": host, "path": shown, "left_out": left_out, "lines": [lines[i] for i in kept]}


def service_events(path: Path, shown: str, limit: int) -> Source:
    """Return the events of the assisted service as a log. Raises `OSError`, `ValueError`.

    path: JSON list of events as the service returns them; shown: its path relative to the page; limit: lines at most,
    the last ones; with 0 there are none. Entries that are not objects are left out.
    """
    found = load_json(path.read_bytes(), name=shown)
    lines: list[Line] = []
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict):
            level = _LEVELS.get(str(one.get("severity")), "info")
            text = printable(redact(str(one.get("message", ""))))[:MAX_LINE]
            lines.append({"at": moment(str(one.get("event_time"))), "level": level, "unit": "", "text": text})
    return {
        "name": "assisted-service events",
        "host": "",
        "path": shown,
        "left_out": 0,
        "lines": lines[-limit:] if limit else [],
    }


def _lines(raw: list[bytes], year: int) -> Iterator[Line]:
    before: int | None = None
    for data in raw:
        line = _line(data[: 4 * MAX_LINE].decode(errors="replace"), year)
        if line["at"] is None:
            line["at"] = before  # what a program adds to its line
        before = line["at"]
        yield line


def _line(text: str, year: int) -> Line:
    text = _ESCAPES.sub("", text.rstrip("\r"))
    at, level, unit = None, None, ""
    if response := parse(text):
        at, text = response.end, str(response)
    elif written := leases.parse(text):
        at, unit, text = written
    elif found := _LOGFMT.match(text):
        at, level, text = moment(found["time"]), _LEVELS.get(found["level"].lower()), found["text"]
        if text.startswith('"') and text.endswith('"'):
            text = text[1:-1].replace('\\"', '"').replace("\\n", " ").replace("\\t", " ")
    elif found := _ISO.match(text):
        at, text = moment(found["time"].replace(",", ".")), found["text"]
    elif found := _JOURNAL.match(text):
        at, text = _of_year(found["time"], year), found["text"]
        if named := _UNIT.match(text):
            unit = named["unit"]
            text = text[named.end() :]
    shown = "".join(letter if letter.isprintable() else " " for letter in text[:MAX_LINE])
    return {"at": at, "level": level or _guess(shown), "unit": unit, "text": shown}


def _of_year(stamp: str, year: int) -> int | None:
    try:
        whole, __, part = stamp.partition(".")
        when = datetime.datetime.strptime(f"{year} {whole}", "%Y %b %d %H:%M:%S").replace(tzinfo=datetime.UTC)
    except ValueError:
        return None
    return int(when.timestamp() * 1000) + int(f"{part:0<3}"[:3])


def _guess(text: str) -> Level:
    if _ERROR.search(text):
        return "error"
    return "warning" if _WARNING.search(text) else "info"
