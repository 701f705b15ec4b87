"""The recording of a run, `logs/recording.jsonl`: what the two APIs answered and what was found in the lab, whenever it changed.

Each line is a change of one answer: its time, where it is from (`assisted`, `openshift` or `lab`), its path, HTTP status (0: no
answer) and a patch of its body. A patch is `[value]` (replace), `[]` (remove), or a mapping of keys or indices to patches. Lines are
appended in one piece, so a killed run leaves a recording that can be played. Only the owner of the run directory may read it, and
it has no secrets.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ..documents import DocumentError, load_json
from ..redact import MAX_LINE, Redactor
from ..redact_shapes import HIDDEN
from ..redact_words import is_innocent, is_secret_key
from ..vocabulary import RunFile
from .events import append

FILE = RunFile.RECORDING
MOST_BYTES = 64 << 20
"""Bytes of a recording at most, written and read."""
_PIECE = MAX_LINE // 4  # bytes of a patch: a longer line is cut when it is gathered
_LONGEST_STEP = 3600.0
_LATE = 60.0
_FULL = "/full"
_LOGINS = ("-u", "-U", "--user", "--proxy-user")
"""Options of curl with user:password."""
PROFILE, CAUSES = "/profile", "/causes"
"""Paths of what the lab had: the profile, and the causes that the run found, the first one first (`text` and `next`)."""

Source = Literal["assisted", "openshift", "lab"]
Tape = Callable[[Source, str, int, Any], None]
"""Gets each answer: where it is from, path with query, HTTP status (0: no answer), and the body, or the error's text."""


def no_tape(source: Source, path: str, status: int, body: object) -> None:
    """Record nothing."""


class Recorder:
    """A `Tape` that appends what has changed to the file `path`; it and its folder are made with the first answer, with mode 0600.

    secrets: literals that are hidden, in addition to what looks like a secret. An answer that cannot be recorded does not end what
    asked for it.
    """

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self.path, self._redactor = path, Redactor(secrets)
        self._known: dict[tuple[Source, str], tuple[int, Any]] = {}
        self._full = False
        self._lock = threading.Lock()

    def __call__(self, source: Source, path: str, status: int, body: Any) -> None:
        with self._lock:
            self._record(source, path, status, body)

    def _record(self, source: Source, path: str, status: int, body: Any) -> None:
        body = _kept(path, body) if source == "openshift" else body
        before = self._known.get((source, path))
        if self._full or before == (status, body):
            return
        self._known[source, path] = (status, body)
        change = patch(before[1], body) if before else [body]
        clean = self._patch(change, body, secret=False)
        head = {
            "time": round(time.time(), 3),
            "at": round(time.monotonic(), 3),
            "source": source,
            "path": self._redactor.document(path),
            "status": status,
        }
        lines = [_line(head | {"patch": piece}) for piece in _pieces(clean)]
        with contextlib.suppress(OSError):
            if self.path.exists() and self.path.stat().st_size + sum(map(len, lines)) > MOST_BYTES:
                self._full = True
                lines = [_line(head | {"source": "lab", "path": _FULL, "patch": [MOST_BYTES]})]
            append(self.path, b"".join(lines))

    def _patch(self, change: Any, after: Any, *, secret: bool) -> Any:
        """Return a patch without secrets. after: the value that it makes, which has the names next to what has changed."""
        if isinstance(change, list):
            return [self._clean(after, secret=secret)] if change else change
        return {
            key: self._patch(inner, _entry(after, key), secret=secret or _is_secret(after, key)) if inner else inner
            for key, inner in change.items()
        }

    def _clean(self, value: Any, *, secret: bool) -> Any:
        """Return a value without secrets. secret: it is below the name of one."""
        if isinstance(value, dict):
            return {key: self._clean(item, secret=secret or _is_secret(value, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean(item, secret=secret or _is_secret(value, str(at))) for at, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        return HIDDEN if secret and not is_innocent(value) else self._redactor.document(value)


def _entry(value: Any, key: str) -> Any:
    return value[int(key)] if isinstance(value, list) else value[key]


def _is_secret(value: Any, key: str) -> bool:
    """Return whether an entry of a mapping or a list is a secret: by its key, the name or kind next to it, or the option in front of it."""
    if isinstance(value, list):
        before, item = value[int(key) - 1] if int(key) else None, value[int(key)]
        option = isinstance(before, str) and before.startswith("-") and isinstance(item, str)
        return option and (is_secret_key(before) or (before in _LOGINS and ":" in item))
    if key in ("data", "stringData") and value.get("kind") == "Secret":
        return True
    name = value.get("name")
    return is_secret_key(key) or (key == "value" and isinstance(name, str) and is_secret_key(name))


def _line(entry: object) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _kept(path: str, body: Any) -> Any:
    """Return what is recorded of an object: of a Secret and of a MachineConfig, which has files of the nodes, only what is public."""
    if not isinstance(body, dict):
        return body
    name = (body.get("metadata") or {}).get("name")
    if "/machineconfigs/" in path:
        return {"metadata": {"name": name}, "spec": {"fips": (body.get("spec") or {}).get("fips")}}
    return {"metadata": {"name": name}} if "/secrets" in path else body


def patch(before: Any, after: Any) -> Any:
    """Return the patch that makes one JSON value of another; `{}` for equal ones. See the module."""
    if isinstance(before, dict) and isinstance(after, dict):
        changed = {key: patch(before[key], after[key]) if key in before else [after[key]] for key in after}
        return {key: change for key, change in changed.items() if change != {}} | {
            k: [] for k in before if k not in after
        }
    if isinstance(before, list) and isinstance(after, list):
        both = min(len(before), len(after))
        changes = {str(at): patch(before[at], after[at]) for at in range(both)}
        grown = {str(at): [after[at]] for at in range(both, len(after))}
        # Backwards, so that the indices of the others stay.
        removed: dict[str, Any] = {str(at): [] for at in reversed(range(both, len(before)))}
        return {at: change for at, change in changes.items() if change != {}} | grown | removed
    return {} if before == after and type(before) is type(after) else [after]


def apply_patch(change: Any, value: Any) -> Any:
    """Return what a patch makes of a value, which is changed in place. Raises `ValueError` for a patch of another value."""
    if isinstance(change, list) and len(change) == 1:
        return change[0]
    if not isinstance(change, dict):
        raise ValueError("is not a patch")
    for key, inner in change.items():
        if isinstance(value, dict):
            if inner == []:
                value.pop(key, None)
            else:
                value[key] = apply_patch(inner, value.get(key))
        elif isinstance(value, list) and key.isdecimal() and len(key) < 10 and int(key) <= len(value):
            at = int(key)
            if inner == []:
                del value[at:]
            elif at == len(value):
                value.append(apply_patch(inner, None))
            else:
                value[at] = apply_patch(inner, value[at])
        else:
            raise ValueError(f"changes {key[:40]!r}, which does not exist")
    return value


def _pieces(change: Any) -> Iterator[Any]:
    """Yield patches with the same effect, each short enough for a line unless it is a single string."""
    if len(json.dumps(change)) <= _PIECE:
        yield change
    elif isinstance(change, dict):
        few: dict[str, Any] = {}
        size = 0
        for key, inner in change.items():
            length = len(json.dumps(inner))
            if size + length > _PIECE and few:
                yield few
                few, size = {}, 0
            if length > _PIECE:
                yield from ({key: piece} for piece in _pieces(inner))
            else:
                few[key] = inner
                size += length
        if few:
            yield few
    elif change and isinstance(change[0], dict | list):
        whole = change[0]
        yield [type(whole)()]
        items = whole.items() if isinstance(whole, dict) else enumerate(whole)
        yield from _pieces({str(key): [item] for key, item in items})
    else:
        yield [f"{change[0][: _PIECE // 2]} [cut]"]


class Entry(NamedTuple):
    """A line: seconds since the start of the recording, wall time (epoch), and the text with the patch."""

    at: float
    time: float
    source: Source
    path: str
    status: int
    line: str


class Answer(NamedTuple):
    """What a path answers: HTTP status (0: no answer) and the body; for an error, its text."""

    status: int
    body: Any


class Recording(NamedTuple):
    """Entries in their order; notes: what is wrong with the recording, a sentence each."""

    entries: list[Entry]
    notes: list[str]

    @property
    def length(self) -> float:
        """Seconds from the first change to the last."""
        return self.entries[-1].at if self.entries else 0.0


def load(data: bytes, name: str) -> Recording:
    """Return the recording in `data`, which may be compressed by gzip. What is damaged or too long is left out, with a note.

    name: of the file, for notes. Raises `ValueError` when nothing in it can be played.
    """
    notes: list[str] = []
    text = _unpacked(data, name, notes) if data[:2] == b"\x1f\x8b" else data
    if len(text) > MOST_BYTES:
        notes.append(f"{name}: is longer than {MOST_BYTES >> 20} MiB: the rest was left out")
    lines = text[:MOST_BYTES].split(b"\n")
    if lines.pop():
        notes.append(f"{name}: ends within line {len(lines) + 1}, which was left out")
    entries: list[Entry] = []
    damaged: list[int] = []
    at = last_at = last_time = 0.0
    for number, line in enumerate(lines, 1):
        found = _fields(line)
        if found is None:
            damaged += [number] if line.strip() else []
            continue
        moment, wall = float(found["at"]), float(found["time"])
        if entries:
            step, walls = moment - last_at, wall - last_time
            if step < 0:  # another boot of the host, or lines out of order
                step = walls
            if abs(step - walls) > _LATE or step < 0:
                notes.append(f"{name}:{number}: the clock jumped by {walls - max(step, 0):.0f} s")
            at += min(max(step, 0.0), _LONGEST_STEP)
        last_at, last_time = moment, wall
        if found["path"] == _FULL:
            notes.append(f"{name}: was full after {MOST_BYTES >> 20} MiB: the end of the run is missing")
            continue
        entries.append(Entry(at, wall, found["source"], found["path"], found["status"], line.decode(errors="replace")))
    if damaged:
        notes.append(f"{name}: {len(damaged)} lines are damaged and were left out, the first is line {damaged[0]}")
    if not entries:
        raise ValueError(f"{name}: has no line of a recording")
    return Recording(entries, _limited_notes(notes))


def _limited_notes(notes: list[str], most: int = 20) -> list[str]:
    return notes if len(notes) <= most else [*notes[:most], f"{len(notes) - most} more"]


def _unpacked(data: bytes, name: str, notes: list[str]) -> bytes:
    unpack = zlib.decompressobj(wbits=31)
    try:
        text = unpack.decompress(data, MOST_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"{name}: is not a gzip file that can be read: {error}") from None
    if not unpack.eof and len(text) <= MOST_BYTES:
        notes.append(f"{name}: the compressed file is cut")
    return text


def _fields(line: bytes) -> dict[str, Any] | None:
    kinds = {"time": int | float, "at": int | float, "source": str, "path": str, "status": int, "patch": dict | list}
    try:
        found = load_json(line, name=FILE)
    except DocumentError:
        return None
    good = (
        isinstance(found, dict)
        and all(isinstance(found.get(key), kind) and not isinstance(found[key], bool) for key, kind in kinds.items())
        and found["source"] in get_args(Source)
        and all(0 <= found[key] < 1 << 34 for key in ("time", "at"))
        and found["path"].startswith("/")
    )
    return found if good else None


class Player:
    """The answers of a recording at one time. notes: those of the recording, and changes that could not be applied."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.notes = recording, list(recording.notes)
        self._start()

    def _start(self) -> None:
        self.answers: dict[tuple[Source, str], Answer] = {}
        self.next, self.now = 0, 0.0

    def seek(self, at: float) -> None:
        """Go to `at` seconds after the start; back is possible, too. Answers that were returned before may change."""
        if at < self.now:
            self._start()
        self.now = at
        entries = self.recording.entries
        while self.next < len(entries) and entries[self.next].at <= at:
            self.step()

    def step(self) -> Entry:
        """Apply the next entry, and return it."""
        entry = self.recording.entries[self.next]
        self.next += 1
        self.now = max(self.now, entry.at)
        key = (entry.source, entry.path)
        before = self.answers.get(key)
        try:
            found = load_json(entry.line, name=FILE)
            body = apply_patch(found["patch"], before.body if before else None)
        except ValueError as error:
            note = f"{entry.source} {entry.path[:100]}: a change is left out: {error}"
            if note not in self.notes and len(self.notes) < 100:
                self.notes.append(note)
            return entry
        self.answers[key] = Answer(entry.status, body)
        return entry

    def wall(self) -> float:
        """Return the time of the recording (epoch), which runs on between two entries."""
        entries = self.recording.entries
        last = entries[max(self.next - 1, 0)]
        return last.time + max(0.0, self.now - last.at)

    def get(self, source: Source, path: str) -> Answer | None:
        """Return the answer of a path now; None if it was never asked."""
        return self.answers.get((source, path))

    def causes(self) -> list[tuple[str, str]]:
        """Return the causes that the run had found by now, the first one first: text and next step."""
        answer = self.get("lab", CAUSES)
        found = answer.body if answer and isinstance(answer.body, list) else []
        return [(str(one.get("text") or ""), str(one.get("next") or "")) for one in found if isinstance(one, dict)]


def at_the_end(recording: Recording) -> Player:
    """Return a player that has played all of a recording."""
    player = Player(recording)
    player.seek(recording.length)
    return player
