"""Rebuilds ISO 9660 images with files added, replaced and removed, and builds config images.

For changes of bytes in place see `iso`.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._deps import optional
from . import cpio
from .errors import CoreosError, NotFound
from .image import blocks, new_file
from .iso import HEADER_AT, IGNITION_PATH, embed_header
from .iso9660 import SECTOR, Iso9660, open_image

if TYPE_CHECKING:
    import pycdlib
else:
    pycdlib = optional("pycdlib")

CONFIG_LABEL = "agent_configimage"
_CONFIG_NAME = "config.gz"


def _plain_name(name: str, taken: Iterable[str]) -> str:
    """Return an 8.3 name for a long one that no other file of its directory has."""
    stem, __, extension = name.upper().rpartition(".")
    letters = "".join(c if c.isascii() and c.isalnum() else "_" for c in stem or extension)
    extension = "".join(c for c in extension if c.isascii() and c.isalnum())[:3] if stem else ""
    candidates = [letters[:8], *(f"{letters[:5]}{index:03}" for index in range(1000))]
    return next(f"{c}.{extension}" for c in candidates if f"{c}.{extension}".removesuffix(".") not in taken)


def rebuild(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    write: Mapping[str, bytes | Path],
    remove: Iterable[str] = (),
    overwrite: bool = False,
    mode: int = 0o600,
) -> None:
    """Write a copy of an image to a new file, with files written (bytes, or from a path) and removed.

    Directories must exist. Boot entries, Rock Ridge and Joliet names are kept. Raises `CoreosError` when the source cannot
    be read or a file to remove does not exist.
    """
    fd = open_image(source)
    try:
        fs = Iso9660(fd)
        plain = dict(zip((p for p, __ in fs.walk()), (p for p, __ in fs.walk(plain=True)), strict=True))
    finally:
        os.close(fd)
    iso = pycdlib.PyCdlib()
    try:
        iso.open(str(source))
        rock_ridge, joliet = iso.has_rock_ridge(), iso.has_joliet()
        for path in [*remove, *(path for path in write if path in plain)]:
            if path not in plain:
                raise NotFound(f"no {path} in {source}")
            iso.rm_file(iso_path=_stored(iso, plain[path]))
            if joliet and _exists(iso, joliet_path=f"/{path}"):
                iso.rm_hard_link(joliet_path=f"/{path}")
        for path, data in write.items():
            directory, __, name = path.rpartition("/")
            place = plain.get(directory, "") if directory else ""
            siblings = {p.rpartition("/")[2] for p in plain.values() if p.rpartition("/")[0] == place}
            stored = plain[path].rpartition("/")[2] if path in plain else _plain_name(name, siblings)
            names: dict[str, Any] = {"iso_path": f"/{place}/{stored};1".replace("//", "/")}
            names |= {"rr_name": name} if rock_ridge else {}
            names |= {"joliet_path": f"/{path}"} if joliet else {}
            if isinstance(data, bytes):
                iso.add_fp(io.BytesIO(data), len(data), **names)
            else:
                iso.add_file(str(data), **names)
        with new_file(output, overwrite, mode) as out:
            iso.write_fp(out)
        iso.close()
    except (
        pycdlib.pycdlibexception.PyCdlibException,
        struct.error,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
    ) as error:
        # For a corrupt image pycdlib also raises unintended exceptions.
        raise CoreosError(f"{source}: cannot be rebuilt: {error}") from None


def _exists(iso: pycdlib.PyCdlib, **path: str) -> bool:
    try:
        iso.get_record(**path)
    except pycdlib.pycdlibexception.PyCdlibInvalidInput:
        return False
    return True


def _stored(iso: pycdlib.PyCdlib, path: str) -> str:
    candidates = (f"/{path};1", f"/{path}.;1", f"/{path}")
    return next((c for c in candidates if _exists(iso, iso_path=c)), candidates[0])


def same_files(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two images have the same files, ignoring their creation times."""
    descriptors: list[int] = []
    try:
        for path in (one, other):
            descriptors.append(open_image(path))
        first, second = (Iso9660(fd) for fd in descriptors)
        mine, theirs = ({p: r for p, r in fs.walk() if not r.is_dir} for fs in (first, second))
        return mine.keys() == theirs.keys() and all(
            record.size == theirs[path].size
            and all(
                a == b
                for a, b in zip(
                    blocks(first.fd, record.offset, record.size),
                    blocks(second.fd, theirs[path].offset, record.size),
                    strict=True,
                )
            )
            for path, record in mine.items()
        )
    except CoreosError:
        return False
    finally:
        for fd in descriptors:
            os.close(fd)


def config_image(
    files: Mapping[str, cpio.File | bytes],
    output: str | os.PathLike[str],
    ignition: bytes = b"",
    overwrite: bool = False,
    mode: int = 0o600,
) -> None:
    """Write an image with one file `config.gz`, the gzip newc archive of `files` under their absolute paths.

    The last of `files` is the last in the archive: its creation triggers units that wait for it. `ignition`, the same as a
    config, goes into an embed area behind the volume that only the header of the system area names: what shows the config
    of a live ISO shows this one's, and the volume stays as it is.
    """
    archive = cpio.compress(cpio.archive(files, parents=False, ordered=True))
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=3, rock_ridge="1.09", vol_ident=CONFIG_LABEL)
    iso.add_fp(io.BytesIO(archive), len(archive), "/CONFIG.GZ;1", rr_name=_CONFIG_NAME)
    area = cpio.compress(cpio.archive({IGNITION_PATH: ignition})) if ignition else b""
    with new_file(output, overwrite, mode) as out:
        iso.write_fp(out)
        if area:
            start = out.seek(0, io.SEEK_END)
            out.write(area + b"\0" * (-len(area) % SECTOR))
            out.seek(HEADER_AT)
            out.write(embed_header(start, len(area)))
    iso.close()


def read_config_image(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the files of such an image by path."""
    fd = open_image(path)
    try:
        return cpio.read_files(io.BytesIO(Iso9660(fd).read(_CONFIG_NAME, cpio.DEFAULT_LIMIT)))
    finally:
        os.close(fd)
