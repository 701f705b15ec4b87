"""A snapshot as one file: a tar archive without compression, with `snapshot.json` first.

An archive from elsewhere is data: it may name no path outside of the snapshot, no link but a symbolic one inside of the run or state
directory's copy, and no more bytes than fit into the file system.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from .. import files
from . import manifest
from .lab import Lab
from .manifest import FILE, Manifest, SnapshotError

MAX_MEMBERS = 200_000
MAX_MANIFEST = 1 << 20
MAX_DEPTH = 32
_TOPS = ("memory", "state", "run")


def export(lab: Lab, name: str, path: Path) -> None:
    """Write snapshot `name` to the new file `path`, 0600. Raises `SnapshotError`, and `OSError` when the file exists.

    lab: of the caller; the file then belongs to the caller. A name that is not a snapshot is a `SnapshotError`. What is
    written of a failed export is removed.
    """
    lab.check()
    manifest.read(lab.state_dir, name)
    place = manifest.place(lab.state_dir, name)
    with files.new_file(path) as stream:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20) as archive:
            archive.add(place / FILE, FILE, recursive=False)

            def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
                archive.inodes.clear()  # type: ignore[attr-defined]  # write a file with two names twice, not as a link
                return member

            # The modes are the end: without them an archive is cut.
            for top in (*_TOPS, manifest.MODES):
                archive.add(place / top, top, filter=plain)
        os.fchown(stream.fileno(), lab.who.owner.uid, -1)


def import_(lab: Lab, path: Path) -> Manifest:
    """Add the snapshot in the file `path` to the lab. Raises `SnapshotError` for an archive that is not one, with nothing left.

    path: of an archive that `export` wrote, for the same cluster and state directory; a snapshot of that name must not
    exist. Returns the manifest. Raises `OSError` when the file cannot be read or the disk is full.
    """
    lab.check()
    try:
        with open(path, "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            return _unpack(lab, archive, path)
    except (tarfile.TarError, EOFError) as error:
        raise SnapshotError(
            f"{path}: not a snapshot ({error}): expected a file written by `agentlab snapshot export`"
        ) from error


def _unpack(lab: Lab, archive: tarfile.TarFile, path: Path) -> Manifest:
    first = archive.next()
    content = archive.extractfile(first) if first and first.name == FILE and first.isreg() else None
    if first is None or content is None or first.size > MAX_MANIFEST:
        raise SnapshotError(f"{path}: not a snapshot: it does not begin with {FILE}")
    made = manifest.parse(content.read(), path)
    target = manifest.place(lab.state_dir, made.name)
    if target.exists():
        raise SnapshotError(f"snapshot {made.name} exists: delete it first")
    cluster = lab.plan["cluster"]["name"]
    if (made.cluster, made.state_dir) != (cluster, str(lab.state_dir)):
        raise SnapshotError(
            f"{path}: a snapshot of cluster {made.cluster} in {made.state_dir}, not of {cluster} in {lab.state_dir}: "
            f"import it with --cluster {made.cluster}"
        )
    target.parent.mkdir(mode=0o700, exist_ok=True)
    with files.staging(target.parent) as stage:
        for member in _members(archive, path):
            if member is not first:
                _write(archive, member, stage, path)
        if not (stage / manifest.MODES).is_file():
            raise SnapshotError(f"{path}: not a whole snapshot: its end is missing")
        manifest.write(stage, made)
        stage.rename(target)
    return made


def _members(archive: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    seen: set[str] = set()
    for member in archive:
        parts = PurePosixPath(member.name).parts
        if len(seen) >= MAX_MEMBERS:
            raise SnapshotError(f"{path}: more than {MAX_MEMBERS} files")
        kind = member.isreg() or member.isdir() or member.issym()
        if not seen and member.name == FILE:  # which was read before
            seen.add(FILE)
            yield member
            continue
        if (
            not kind
            or not parts
            or (member.name != manifest.MODES if len(parts) == 1 and member.isreg() else parts[0] not in _TOPS)
            or len(parts) > MAX_DEPTH
            or any(part in ("", ".", "..") for part in member.name.split("/"))
            or "\0" in member.name
            or member.name in seen
            or member.issparse()
        ):
            raise SnapshotError(f"{path}: {member.name!r} cannot be in a snapshot; nothing was imported")
        seen.add(member.name)
        yield member


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, stage: Path, path: Path) -> None:
    target = stage / member.name
    _inside(stage, target.parent, path, member.name)
    if member.isdir():
        target.mkdir(mode=0o700)
    elif member.issym():
        target.symlink_to(member.linkname)
    else:
        status = os.statvfs(stage)
        if member.size > status.f_bavail * status.f_frsize:
            raise SnapshotError(f"{path}: {member.name} has {files.size_text(member.size)}, more than is free")
        content = archive.extractfile(member)
        if content is None:
            raise SnapshotError(f"{path}: {member.name} is not a file")
        with open(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600), "wb") as writer:
            shutil.copyfileobj(content, writer, 1 << 20)
    os.chown(target, member.uid, member.gid, follow_symlinks=False)
    if not member.issym():
        # 0600 for all, also in an archive from elsewhere; a directory needs to be entered.
        target.chmod(0o700 if member.isdir() else 0o600 | (member.mode & 0o100))
        os.utime(target, (member.mtime, member.mtime))


def _inside(stage: Path, parent: Path, path: Path, name: str) -> None:
    """Raise `SnapshotError` if a directory on the way is a link, or was not in the archive."""
    while parent != stage:
        if not parent.is_dir() or parent.is_symlink():
            raise SnapshotError(f"{path}: {name!r} is in no directory of the snapshot; nothing was imported")
        parent = parent.parent
