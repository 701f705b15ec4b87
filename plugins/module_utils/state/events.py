"""Events of a run as JSON lines, `logs/events.jsonl` of the run directory: stages, tasks, messages, hosts, faults, checks, causes.

Each line is an `Event`; the schema is docs/events.schema.json. Several processes append at once, and a resumed run appends to
what it finds: a line is written in one piece, after what a killed writer may have left. Only the owner of the run directory may
read the file, and its texts have no secrets.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args, get_type_hints

from .. import files
from ..documents import DocumentError, load_json
from ..redact import Redactor
from ..vocabulary import RunFile

FILE = RunFile.EVENTS
MAX_TEXT = 4000
"""Characters of a text; what is longer is cut."""
MAX_BYTES = 64 << 20
"""What is read of a file; earlier lines are left out."""

Kind = Literal[
    "run", "stage", "task", "message", "cluster", "host", "validation", "operator", "machine", "fault", "check", "cause"
]
Level = Literal["debug", "info", "warning", "error"]


class _RequiredFields(TypedDict):
    time: str
    """When it happened, ISO 8601 in UTC."""
    kind: Kind
    """What it is about: `run` (a program begins to work on the cluster), `stage` and `task` (of the run), `message` (of a wait), `cluster`,
    `host` and `validation` (a change in the assisted service), `operator` (of a ClusterOperator), `machine` (an action of its BMC),
    `fault`, `check` (of validate), `cause` (of a failure, the first one first)."""
    level: Level
    """How serious it is."""
    subject: str
    """Name of what it is about: cluster, stage, task, host, validation, operator, machine or check."""
    state: str
    """Its state from now on: of a stage `started`, `ok` or `failed`; of a task and a check `ok` or `failed`; of the others as upstream
    spells it; `renamed` of a host whose text is its new name. Empty for messages, faults and causes."""
    text: str
    """The message."""


class OptionalFields(TypedDict, total=False):
    """Fields that only some kinds of events have.

    They are present only where their kind has them: read with `get`. The JSON schema is docs/events.schema.json.
    """

    host: str
    """Host of a validation; empty for those of the cluster."""
    stage: str
    """Installation stage of a host, or the stage of a task."""
    percentage: int
    """How much of a host's installation is done, in percent."""
    seconds: int
    """How long a task took, or a test of the profile, in seconds."""
    late: int
    """How long after the change a state of the cluster or of an operator was observed, in milliseconds: what the wait's poll cost."""
    next: str
    """What to do next about a cause."""


_MORE = get_type_hints(OptionalFields)


class Event(_RequiredFields, OptionalFields):
    """Something that happened in a run."""


class RunEvents(NamedTuple):
    """Events in the order of the file; damaged: lines that are not events; cut: bytes at the start that were left out.

    An event has all fields of `Event` that are always there, with valid types and a readable time.
    """

    events: list[Event]
    damaged: int = 0
    cut: int = 0


def event(
    kind: Kind,
    subject: str,
    state: str = "",
    text: str = "",
    *,
    level: Level = "info",
    at: float | None = None,
    **more: Unpack[OptionalFields],
) -> Event:
    """Return an event of now, or of `at` (seconds since the epoch).

    kind, state, level: see `Event`; subject: the name of what it is about; more: fields of `OptionalFields`. The time has
    milliseconds.
    """
    when = datetime.datetime.now(datetime.UTC) if at is None else datetime.datetime.fromtimestamp(at, datetime.UTC)
    stamp = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    always: _RequiredFields = {
        "time": stamp,
        "kind": kind,
        "level": level,
        "subject": subject,
        "state": state,
        "text": text,
    }
    return {**always, **more}  # mypy loses the fields of More


def level_of(name: str) -> Level:
    """Return the level of an event for a level of a log or of the service.

    Unknown names, such as `notice`, are `info`; `fatal` and `critical` are errors, `trace` is `debug`.
    """
    levels: dict[str, Level] = {"trace": "debug", "debug": "debug", "warning": "warning", "error": "error", "fatal": "error", "critical": "error"}  # fmt: skip
    return levels.get(name, "info")


class EventLog:
    """Appends events to the file `path` (None: to no file); secrets: literals that are hidden, in addition to what looks like a secret.

    The file and its folder are made with the first event, with mode 0600. Several processes may write at once.
    """

    def __init__(self, path: Path | None, secrets: Iterable[str] = ()) -> None:
        self.path, self._redactor = path, Redactor(secrets)

    def write(self, events: Sequence[Event]) -> list[Event]:
        """Append events, and return them without secrets, as they were written. Raises `OSError`; then none of them is in the file.

        Their texts are cut to `MAX_TEXT` printable characters, also without a file.
        """
        clean = [self._clean(one) for one in events]
        if clean and self.path:
            lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in clean)
            append(self.path, lines.encode())
        return clean

    def _clean(self, one: Event) -> Event:
        found: dict[str, Any] = {
            key: self._text(value) if isinstance(value, str) else value for key, value in one.items()
        }
        return found  # type: ignore[return-value]  # the same keys

    def _text(self, text: str) -> str:
        return printable(self._redactor.document(text))


def printable(text: str) -> str:
    """Return a text of others in printable characters and line breaks, of at most `MAX_TEXT` characters.

    Other characters become spaces; a text that is cut ends with the number of characters that are missing.
    """
    cut = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} [{len(text) - MAX_TEXT} characters cut]"
    if cut.isprintable():
        return cut
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in cut).strip()


def read(path: Path) -> RunEvents:
    """Return the events of a file; none if it does not exist. Lines that are not events are counted and left out.

    At most the last `MAX_BYTES` are read. A line that a writer has not completed yet counts as damaged. Raises
    `OSError`.
    """
    try:
        with path.open("rb") as stream:
            cut = max(0, os.fstat(stream.fileno()).st_size - MAX_BYTES)
            stream.seek(cut)
            return parse(stream.read(MAX_BYTES), cut)
    except FileNotFoundError:
        return RunEvents([])


def parse(data: bytes, cut: int = 0) -> RunEvents:
    """Return the events in the lines of `data`, as `read`. cut: bytes in front of it that were left out."""
    lines = data.split(b"\n")
    whole = [line for line in lines[1 if cut else 0 :] if line.strip()]
    events = list(_events(whole))
    return RunEvents(events, len(whole) - len(events), cut)


def _events(lines: Iterable[bytes]) -> Iterator[Event]:
    for line in lines:
        with contextlib.suppress(DocumentError):
            if _is_event(found := load_json(line, name=FILE)):
                yield found


def _is_event(value: object) -> bool:
    if not isinstance(value, dict) or not all(
        isinstance(value.get(name), str) for name in _RequiredFields.__required_keys__
    ):
        return False
    if value["kind"] not in get_args(Kind) or value["level"] not in get_args(Level):
        return False
    return moment(value["time"]) is not None and all(
        isinstance(value[name], kind) and not isinstance(value[name], bool)
        for name, kind in _MORE.items()
        if name in value
    )


def moment(stamp: str) -> int | None:
    """Return a time stamp (ISO 8601) in milliseconds since the epoch; None for anything else.

    A time stamp without an offset is UTC.
    """
    try:
        when = datetime.datetime.fromisoformat(stamp)
        return int((when if when.tzinfo else when.replace(tzinfo=datetime.UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def append(path: Path, data: bytes) -> None:
    """Append whole lines to a file (0600) in one piece, after what a killed writer may have left.

    The file and its folder are made if necessary; its owner is as `files.give` has it. Several processes may write at once.
    Raises `OSError`; then nothing was appended.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        if not size:
            files.give(handle, path.parent)
        if size and os.pread(handle, 1, size - 1) != b"\n":  # a writer was killed
            data = b"\n" + data
        if os.write(handle, data) != len(data):
            os.ftruncate(handle, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(handle)
