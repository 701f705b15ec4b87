"""Hashes of a payload's inputs: files with their modes, and replacements of components."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from ...plugins.module_utils.plan import overrides as replacements
from ...plugins.module_utils.plan.overrides import Kind
from ..machine_os import checkout


def digest(data: bytes) -> str:
    """Return the SHA-256 of data, in hexadecimal as all of this module."""
    return hashlib.sha256(data).hexdigest()


def digest_path(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_files(folder: Path) -> str:
    """Return one hash of all files below a folder: path, mode as in a checkout, content.

    The mode is that of a checkout, whatever umask it was made with. Byte code does not count.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return hash_of([(str(path.relative_to(folder)), checkout.mode(path), digest_path(path)) for path in files])


def source_digest(name: str, source: str) -> str:
    """Return a hash of what replaces the component `name`; `source` is a value of `payload_overrides`.

    Of an image in a store or a layout its configuration or index counts, of files their content; a pullspec is its own
    hash.
    """
    kind, path = replacements.kind(source), Path(source)
    if kind is Kind.STORE:
        return digest(replacements.stored_config(source))
    if kind is Kind.LAYOUT:
        return digest((path / "index.json").read_bytes())
    if kind is Kind.FILES:
        files = sorted(replacements.contents(name, source).items())
        return hash_of([(place, _state(file)) for place, file in files if not file.is_dir() or file.is_symlink()])
    return source


def _state(file: Path) -> tuple[int, str]:
    info = file.lstat()
    if stat.S_ISLNK(info.st_mode):
        return 0, os.readlink(file)
    return info.st_mode & 0o7777, digest_path(file) if stat.S_ISREG(info.st_mode) else ""


def hash_of(value: object) -> str:
    """Return the hash of a value of plain types, by its repr.

    value: of tuples, lists, dicts, texts and numbers, whose repr is the same in each process.
    """
    return digest(repr(value).encode())
