"""What two runs of openshift-install made of the same inputs, and where they differ.

Images are compared by what is in them: the Ignition config file by file and unit by unit, and the kernel arguments.
What is random in each run (keys, certificates, tokens, UUIDs, times) is compared by its shape alone, and YAML, JSON and
registries.conf by their values: order of keys, quotes and comments do not count.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..coreos import cpio
from ..coreos.build import read_config_image
from ..coreos.errors import CoreosError
from ..coreos.iso import LiveIso
from ..documents import DocumentError, load_json, load_yaml_all
from ..ignition.config import files_of
from ..ignition.resources import IgnitionError
from ..log import LOG_FILE
from .state import FILENAME

ABSENT = "(absent)"
"""What a difference has for a file or field that one of the two lacks."""
SHOWN = 200
"""Characters of a value that a difference shows."""
_LINES = 40
_LARGE = 64 << 20
_SKIPPED = (LOG_FILE, ".openshift_install_binary.json")
# Each run has its own. The pattern is bounded in what it repeats, so that no file takes long.
_RANDOM = tuple((re.compile(pattern), name) for pattern, name in (
    (r"-----BEGIN ([A-Z ]{1,40})-----[^-]*-----END \1-----\n?", r"<\1>"),
    (r"LS0tLS1CRUdJTi[A-Za-z0-9+/]*={0,2}", "<PEM in base64>"),
    (r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}", "<token>"),
    (r"\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}", "<password hash>"),
    (r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "<UUID>"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"(?<![\w-])[A-Za-z0-9]{5}(?:-[A-Za-z0-9]{5}){3}(?![\w-])", "<password>"),
))  # fmt: skip


class Difference(NamedTuple):
    """file: where it is; of a file inside of an image `IMAGE: PATH`. where: the field, or "". ours, theirs: the values as text."""

    file: str
    where: str
    ours: str
    theirs: str


@dataclass
class Side:
    """What one run left. code: its exit code; messages: level and text of each; files: content by path, images unpacked."""

    code: int
    messages: list[tuple[str, str]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


def contents(directory: Path, inputs: Iterable[str] = ()) -> dict[str, bytes]:
    """Return what a run left in its assets directory, by path; images as `IMAGE: PATH` for each file in them.

    inputs: paths to leave out. Of the state file only the names of the assets are kept, because it repeats the others.
    An image that cannot be read is one file, with its digest as content.
    """
    left_out = {*_SKIPPED, *inputs}
    found: dict[str, bytes] = {}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        name = path.relative_to(directory).as_posix()
        if name in left_out:
            continue
        unpack = next((reader for ending, reader in _READERS.items() if name.endswith(ending)), None)
        try:
            found |= unpack(name, path) if unpack else {name: _plain(path)}
        except (CoreosError, IgnitionError, DocumentError, KeyError, TypeError):
            found[name] = _plain(path)
    return found


def _plain(path: Path) -> bytes:
    if path.stat().st_size <= _LARGE:
        return path.read_bytes()
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}".encode()


def _live(name: str, path: Path) -> dict[str, bytes]:
    try:
        with LiveIso(path) as iso:
            config, kargs, network = iso.ignition, iso.kargs, iso.network
    except CoreosError:
        return {f"{name}: {inner}": text for inner, text in read_config_image(path).items()}
    arguments = "\n".join(kargs.current.split()) if kargs else ""
    return {
        f"{name}: kernel arguments": arguments.encode(),
        **{f"{name}: network/{inner}": text for inner, text in network.items()},
        **_config(name, config or b"{}"),
    }


def _initrd(name: str, path: Path) -> dict[str, bytes]:
    with path.open("rb") as stream:
        found = cpio.read_files(stream, lambda inner: inner in ("config.ign", "images/ignition.img"))
    return _config(name, found["config.ign"])


def _ignition(name: str, path: Path) -> dict[str, bytes]:
    return _config(name, path.read_bytes())


def _state(name: str, path: Path) -> dict[str, bytes]:
    return {name: "\n".join(sorted(load_json(path.read_bytes(), name=name))).encode()}


def _config(name: str, config: bytes) -> dict[str, bytes]:
    """Return the files and units of an Ignition config, its users and the rest of it, each by a path."""
    loaded = load_json(config, name=name)
    files = {f"{name}: {path}": content for path, content in files_of(loaded).items()}
    modes = {
        entry["path"]: oct(entry["mode"]) for entry in loaded.get("storage", {}).get("files") or [] if "mode" in entry
    }
    units = {
        f"{name}: unit {unit['name']}": json.dumps(unit).encode()
        for unit in loaded.get("systemd", {}).get("units") or []
    }
    rest = {key: value for key, value in loaded.items() if key not in ("storage", "systemd")}
    rest["storage"] = {key: value for key, value in (loaded.get("storage") or {}).items() if key != "files"}
    return {
        **files,
        **units,
        f"{name}: modes of files": json.dumps(modes).encode(),
        f"{name}: users and the rest of the config": json.dumps(rest).encode(),
    }


_READERS: dict[str, Callable[[str, Path], dict[str, bytes]]] = {
    ".iso": _live,
    "initrd.img": _initrd,
    ".ign": _ignition,
    FILENAME: _state,
}


def differences(ours: Side, theirs: Side) -> list[Difference]:
    """Return where the two differ: exit code, messages in their order, then files by path."""
    found = []
    if ours.code != theirs.code:
        found.append(Difference("exit code", "", str(ours.code), str(theirs.code)))
    # One that a program repeats for each asset counts once.
    lines = [
        list(
            dict.fromkeys(
                f"{level}: {line}"
                for level, text in side.messages
                if level != "debug"
                for line in _steady(text).splitlines()
            )
        )
        for side in (ours, theirs)
    ]
    found += _of_lines("messages", *lines)
    for name in sorted({*ours.files, *theirs.files}):
        if name not in ours.files or name not in theirs.files:
            present = [_size(side.files[name]) if name in side.files else ABSENT for side in (ours, theirs)]
            found.append(Difference(name, "", *present))
        elif ours.files[name] != theirs.files[name]:
            found += _of_file(name, ours.files[name], theirs.files[name])
    return found


def _size(content: bytes) -> str:
    return f"{len(content)} bytes"


def _of_file(name: str, ours: bytes, theirs: bytes) -> Iterator[Difference]:
    try:
        texts = [_steady(content.decode()) for content in (ours, theirs)]
    except UnicodeDecodeError:
        digests = [f"{_size(content)}, sha256:{hashlib.sha256(content).hexdigest()}" for content in (ours, theirs)]
        yield Difference(name, "", *digests)
        return
    if texts[0] == texts[1]:
        return
    documents = [_documents(name, text) for text in texts]
    if documents[0] is None or documents[1] is None:
        yield from _of_lines(name, *(text.splitlines() for text in texts))
        return
    yield from _of_value(name, "", documents[0], documents[1])


def _documents(name: str, text: str) -> object | None:
    """The value of a JSON, YAML or TOML file whose top is a mapping or a list; None for any other text."""
    try:
        if name.endswith("registries.conf"):
            return tomllib.loads(text)
        found = load_yaml_all(text, name=name)
    except (DocumentError, tomllib.TOMLDecodeError, RecursionError):
        return None
    one = found[0] if len(found) == 1 else found
    return one if isinstance(one, Mapping | list) else None


def _of_value(name: str, where: str, ours: object, theirs: object) -> Iterator[Difference]:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            yield from _of_value(name, f"{where}.{key}".lstrip("."), ours.get(key, _NONE), theirs.get(key, _NONE))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _of_value(name, f"{where}[{at}]", one, other)
    elif ours != theirs or type(ours) is not type(theirs):
        yield Difference(name, where, _shown(ours), _shown(theirs))


_NONE = object()


def _shown(value: object) -> str:
    if value is _NONE:
        return ABSENT
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def _of_lines(name: str, ours: list[str], theirs: list[str]) -> Iterator[Difference]:
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=len(ours) + len(theirs) > 2000)
    pieces = [piece for piece in matcher.get_opcodes() if piece[0] != "equal"]
    for __, start, end, other, last in pieces[:_LINES]:
        lines = ["\n".join(part) if part else ABSENT for part in (ours[start:end], theirs[other:last])]
        yield Difference(name, f"line {start + 1}", *(line[: 5 * SHOWN] for line in lines))
    if len(pieces) > _LINES:
        yield Difference(name, f"and {len(pieces) - _LINES} more places", "", "")


def _steady(text: str) -> str:
    """Replace what is random in each run by its kind."""
    for pattern, name in _RANDOM:
        text = pattern.sub(name, text)
    return text
