"""What a run left, found in a directory or an archive: of each kind of file the nearest to the top, without unpacking anything.

Files are recognized by the names that they have in run directories of agentlab, in directories of `openshift-install agent`, in
artifacts of OpenShift CI (dev-scripts), and in archives of `agent-gather`. An archive may have archives of `agent-gather` in it.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

MOST_FILES = 100_000
MOST_BYTES = 4 << 30
"""Limit of what an archive has in it, unpacked: one that claims more is not read on."""
LARGEST = {"log": 64 << 20, "recording": 64 << 20, "events": 64 << 20}
_LARGEST = 8 << 20

# Kind -> name of the file, as a pattern of its whole path.
KINDS: dict[str, re.Pattern[str]] = {
    "profile": re.compile(r"(.*/)?profile\.ya?ml"),
    "run": re.compile(r"(.*/)?run\.json"),
    "plan": re.compile(r"(.*/)?plan\.yaml"),
    "install-config": re.compile(r"(.*/)?install-config\.yaml"),
    "agent-config": re.compile(r"(.*/)?agent-config\.yaml"),
    "state": re.compile(r"(.*/)?\.openshift_install_state\.json"),
    "log": re.compile(r"(.*/)?(\.openshift_install|wait-for)[^/]*\.log"),
    "config": re.compile(r"(.*/)?(config_\w+\.sh|ds-vars\.conf)"),
    "prowjob": re.compile(r"(.*/)?prowjob\.json"),
    "agent-cluster-install": re.compile(r"(.*/)?agent-cluster-install\.yaml"),
    "cluster-deployment": re.compile(r"(.*/)?cluster-deployment\.yaml"),
    "recording": re.compile(r"(.*/)?recording\.jsonl(\.gz)?"),
    "events": re.compile(r"(.*/)?logs/events\.jsonl"),  # artifacts of a job also have those of ansible-runner
    "nmstate": re.compile(r"(.*/)?nmstateconfig\.yaml"),
    "rendezvous": re.compile(r"(.*/)?rendezvous-host\.env"),
}
_INNER = re.compile(r"(.*/)?agent-gather[^/]*\.tar\.(xz|gz)")


class File(NamedTuple):
    """One file: where it was found, and its bytes.

    name: relative to the directory, or within the archive; of an archive in an archive, with both names.
    """

    name: str
    data: bytes


class EvidenceError(ValueError):
    """What is given cannot be read; one message for users.

    The message names the path and what is wrong with it: missing, damaged, too large, or without a file of a run.
    """


def collect(path: Path) -> dict[str, File]:
    """Return the file of each kind of `KINDS` that a directory or an archive has.

    Raises `EvidenceError`: there is nothing there, it is not an archive or a damaged one, or it has more in it than the limits.
    """
    found: dict[str, File] = {}
    try:
        if path.is_dir():
            members = _directory(path)
        elif path.is_file():
            members = _archive(path.open("rb"), str(path))
        else:
            raise EvidenceError(f"{path}: there is no such directory or archive")
        for name, size, opened in members:
            kind = next((kind for kind, pattern in KINDS.items() if pattern.fullmatch(name)), None)
            # Of a longer recording the beginning can be played.
            if kind is None or (kind != "recording" and size > LARGEST.get(kind, _LARGEST)):
                continue
            known = found.get(kind)
            if known is None or _depth(name) < _depth(known.name):
                found[kind] = File(name, opened.read(LARGEST.get(kind, _LARGEST) + 1))
    except OSError as error:
        raise EvidenceError(f"{error.filename or path}: {error.strerror or error}") from None
    except (tarfile.TarError, EOFError, ValueError) as error:
        if isinstance(error, EvidenceError):
            raise
        raise EvidenceError(f"{path}: is not an archive that can be read: {error}") from None
    if not found:
        raise EvidenceError(f"{path}: has none of the files that a run leaves: install-config.yaml, profile.yaml, ...")
    return found


_Member = tuple[str, int, IO[bytes]]


def _depth(name: str) -> tuple[int, str]:
    return len(PurePosixPath(name).parts), name


def _directory(top: Path) -> Iterator[_Member]:
    count = 0
    for folder, names, files in os.walk(top):
        names.sort()
        for name in sorted(files):
            count += 1
            if count > MOST_FILES:
                raise EvidenceError(f"{top}: has more than {MOST_FILES} files")
            path = Path(folder, name)
            relative = path.relative_to(top).as_posix()
            if path.is_symlink() or not path.is_file():
                continue
            if any(pattern.fullmatch(relative) for pattern in KINDS.values()):
                with path.open("rb") as stream:
                    yield relative, path.stat().st_size, stream
            elif _INNER.fullmatch(relative):
                yield from _archive(path.open("rb"), relative)


def _archive(stream: IO[bytes], name: str, left: int = 1) -> Iterator[_Member]:
    """The files of an archive, and those of the archives of agent-gather in it. Nothing is written: no path matters."""
    count = total = 0
    with stream, tarfile.open(fileobj=stream, mode="r:*") as tar:
        for entry in tar:
            count, total = count + 1, total + entry.size
            if count > MOST_FILES or total > MOST_BYTES:
                raise EvidenceError(f"{name}: has more than {MOST_FILES} files or {MOST_BYTES >> 30} GiB in it")
            opened = tar.extractfile(entry) if entry.isfile() else None
            if opened is None:
                continue
            if left and _INNER.fullmatch(entry.name) and entry.size <= LARGEST["log"]:
                yield from _archive(io.BytesIO(opened.read()), f"{name}: {entry.name}", left - 1)
            else:
                yield entry.name.removeprefix("./"), entry.size, opened
