"""Kernel arguments of a live ISO.

The arguments are in the bootloaders' files, each in an area of one fixed length. The areas are listed by
`coreos/kargs.json` (since 2021-09), `{"default": str, "size": int, "files": [{"path", "offset", "pad"?, "end"?}]}`, or by
the header `coreKarg` at 32672 of the system area: length of an area, offset of the default arguments, up to six
offsets of areas, each 64 bits little endian.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..documents import DocumentError, load_json
from .errors import CoreosError, NotFound
from .image import Piece, pread
from .iso9660 import Iso9660

INFO_PATH = "coreos/kargs.json"
_HEADER_AT = 32672
_AREA_LIMIT = 2048
_AREAS_LIMIT = 32
_MISSING = "No karg embed areas found; old or corrupted CoreOS ISO image."


@dataclass(frozen=True)
class KargsArea:
    """One place of the arguments: `offset` in the image, fill character and end-of-text character if not `#`, newline.

    None means the default, which `header` leaves out. All areas of an image have one length, `Kargs.length`.
    """

    offset: int
    pad: str | None = None
    end: str | None = None

    def parse(self, raw: bytes) -> str:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise CoreosError(f"invalid UTF-8 in karg area at offset {self.offset}") from None
        return text.rstrip(self.pad or "#").rstrip(self.end or "\n").strip()

    def format(self, text: str, length: int) -> bytes:
        head = text.encode() + (self.end or "\n").encode()
        return head + (self.pad or "#").encode("latin-1") * (length - len(head))


@dataclass(frozen=True)
class Kargs:
    """Arguments of an image: length of the areas, default and current arguments, and the areas.

    `length` is in bytes and includes the character that ends the text. `current` is the same in all areas.
    """

    length: int
    default: str
    areas: tuple[KargsArea, ...]
    current: str

    def pieces(self, text: str) -> list[Piece]:
        """Return the changes that make `text` the arguments; raise `CoreosError` when it does not fit.

        The text must be shorter than the area by at least a byte, for the character that ends it.
        """
        text = text.strip()
        used = len(text.encode())
        if used >= self.length:
            raise CoreosError(f"kargs too large for area: {used + 1} vs {self.length}")
        return [Piece.of(area.offset, area.format(text, self.length)) for area in self.areas]

    def header(self) -> dict[str, Any]:
        """Return what `dev show iso --kargs` prints.

        Offsets and lengths are in bytes; `pad` and `end` are there only where the image names them.
        """
        places = [
            {"offset": a.offset, "length": self.length}
            | ({"pad": a.pad} if a.pad is not None else {})
            | ({"end": a.end} if a.end is not None else {})
            for a in self.areas
        ]
        return {"length": self.length, "default": self.default, "kargs": places}


def json_object(raw: bytes, path: str) -> dict[str, Any]:
    """Parse one of the JSON files of an image; raise `CoreosError` naming it when it is not an object.

    `path` names the file in messages.
    """
    try:
        value = load_json(raw, name=path)
    except DocumentError as error:
        raise CoreosError(f"{error.name} is not JSON: line {error.line}: {error.problem}") from None
    if not isinstance(value, dict):
        raise CoreosError(f"{path} must hold a JSON object, not {type(value).__name__}")
    return value


def typed_field(value: Mapping[str, object], key: str, kind: type, path: str, default: object = ...) -> Any:
    """Return a field of such an object; a missing or null one is `default`, without which it is an error.

    `kind` is `str`, `int` or `list`; a boolean or a negative number is refused. Raises `CoreosError` naming file and
    field.
    """
    found = value.get(key)
    if found is None and default is not ...:
        return default
    wrong = not isinstance(found, kind) or isinstance(found, bool)
    if wrong or (isinstance(found, int) and found < 0):
        raise CoreosError(f"{path}: {key} must be a {kind.__name__}, not {found!r}")
    return found


def _from_json(iso: Iso9660) -> tuple[int, str, list[KargsArea]]:
    info = json_object(iso.read(INFO_PATH), INFO_PATH)
    length = typed_field(info, "size", int, INFO_PATH)
    default = typed_field(info, "default", str, INFO_PATH)
    areas = []
    places = typed_field(info, "files", list, INFO_PATH)
    if len(places) > _AREAS_LIMIT:
        raise CoreosError(f"{INFO_PATH} names {len(places)} files; at most {_AREAS_LIMIT} are expected")
    for place in places:
        if not isinstance(place, dict):
            raise CoreosError(f"{INFO_PATH}: files must hold objects, not {place!r}")
        characters = [typed_field(place, key, str, INFO_PATH, None) for key in ("pad", "end")]
        if any(c is not None and (len(c) != 1 or ord(c) > 127) for c in characters):
            raise CoreosError(f"{INFO_PATH}: pad and end must be one ASCII character, not {characters!r}")
        file = iso.find_file(typed_field(place, "path", str, INFO_PATH))
        areas.append(KargsArea(file.offset + typed_field(place, "offset", int, INFO_PATH), *characters))
    if length > _AREA_LIMIT:
        raise CoreosError(f"karg embed area size larger than {_AREA_LIMIT} (found {length})")
    if len(default.encode()) > length:
        raise CoreosError(f"default kargs size {len(default.encode())} larger than embed areas ({length})")
    return length, default, areas


def _from_header(iso: Iso9660) -> tuple[int, str, list[KargsArea]] | None:
    magic, length, default_at, *offsets = struct.unpack("<8s8Q", pread(iso.fd, 72, _HEADER_AT))
    if magic != b"coreKarg":
        return None
    if length > _AREA_LIMIT:
        raise CoreosError(f"karg embed area length larger than {_AREA_LIMIT} (found {length})")
    default = KargsArea(default_at).parse(pread(iso.fd, length, default_at))
    used = offsets[: offsets.index(0)] if 0 in offsets else offsets
    return length, default, [KargsArea(offset) for offset in used]


def read(iso: Iso9660) -> Kargs | None:
    """Return the kernel arguments of an image, None when it has no areas for them.

    `coreos/kargs.json` is preferred to the older header. Raises `CoreosError` for areas that are damaged, or whose
    arguments differ.
    """
    try:
        found: tuple[int, str, list[KargsArea]] | None = _from_json(iso)
    except NotFound as error:
        if INFO_PATH not in str(error):
            raise
        found = _from_header(iso)
    if found is None:
        return None
    length, default, areas = found
    areas.sort(key=lambda area: area.offset)
    if not areas:
        raise CoreosError("No karg embed areas found; corrupted CoreOS ISO image.")
    texts = [area.parse(pread(iso.fd, length, area.offset)) for area in areas]
    for area, text in zip(areas, texts, strict=True):
        if text != texts[0]:
            raise CoreosError(
                f"kargs don't match at all offsets! (expected '{texts[0]}', but offset {area.offset} has: '{text}')"
            )
    return Kargs(length, default, tuple(areas), texts[0])


def require_kargs(kargs: Kargs | None) -> Kargs:
    """Return `kargs`, or raise `CoreosError` for an image without areas.

    The message is that of coreos-installer.
    """
    if kargs is None:
        raise CoreosError(_MISSING)
    return kargs


def edit(text: str, append: Iterable[str] = (), delete: Iterable[str] = (), replace: Iterable[str] = ()) -> str:
    """Return arguments with some deleted, then some appended, then some replaced (`KEY=OLD=NEW`), as upstream does it.

    Arguments to delete or replace must match literally, otherwise nothing changes. Quotes have no meaning.
    """
    text = f" {text} "
    for karg in delete:
        text = text.replace(f" {karg.strip()} ", " ")
    for karg in append:
        text += f"{karg.strip()} "
    for karg in replace:
        parts = re.fullmatch(r"([^=]+)=([^=]+)=([^=]+)", karg)
        if not parts:
            raise CoreosError("Wrong input, format should be: KEY=OLD=NEW")
        key, old, new = parts.groups()
        text = text.replace(f" {key}={old} ", f" {key}={new} ")
    return text.strip()
