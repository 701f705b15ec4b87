"""A snapshot as one file: a tar archive without compression, with `snapshot.json` first.

An archive from elsewhere must not have a path outside of the snapshot, no link but a symbolic one inside of the run or state
directory's copy, no more bytes than fit into the file system, and of libvirt's configuration only what a lab writes. A restore starts
machines and services with what is in it all the same, so it is only for archives of those who may run programs as root.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path, PurePosixPath

from .. import files
from . import locks, manifest
from .lab import Lab
from .manifest import FILE, Manifest, SnapshotError

MAX_MEMBERS = 200_000
MAX_MANIFEST = 1 << 20
MAX_DEPTH = 32
_TOPS = ("memory", "state", "run")
_LIBVIRT = "state/sandbox/etc-libvirt/"
_WRITTEN = re.compile(r"(libvirtd|virtlogd|qemu)\.conf|(qemu/|qemu/networks/|storage/)[^/]+\.xml")
"""The files there that a lab has. libvirt executes `hooks` as root."""
_LATEST = 1 << 33  # seconds since 1970
_BILLION = 10**9


def export(lab: Lab, name: str, path: Path) -> Manifest:
    """Write snapshot `name` to the new file `path`, 0600; return its manifest. Raises `SnapshotError`, and `OSError` when the file exists.

    lab: of the caller; the file then belongs to the caller. A name that is not a snapshot is a `SnapshotError`. What is
    written of a failed export is removed. The snapshot cannot be deleted meanwhile (`locks`).
    """
    lab.check()
    with locks.exclusive(lab.state_dir, lab.cluster, shared=True):
        found = manifest.read(lab.state_dir, name)
        _export(lab, manifest.place(lab.state_dir, name), path)
    return found


def _export(lab: Lab, place: Path, path: Path) -> None:
    with files.new_file(path) as stream:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20) as archive:
            archive.add(place / FILE, FILE, recursive=False)

            def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
                archive.inodes.clear()  # type: ignore[attr-defined]  # write a file with two names twice, not as a link
                # The float of tarfile lacks digits, and an image with another time is taken for another image.
                changed = (place / member.name).lstat().st_mtime_ns
                member.pax_headers = {"mtime": f"{changed // _BILLION}.{changed % _BILLION:09}"}
                return member

            # The modes are the end: without them an archive is cut.
            for top in (*_TOPS, manifest.MODES):
                archive.add(place / top, top, filter=plain)
        os.fchown(stream.fileno(), lab.who.owner.uid, -1)


def import_(lab: Lab, path: Path) -> Manifest:
    """Add the snapshot in the file `path` to the lab. Raises `SnapshotError` for an archive that is not one, with nothing left.

    path: of an archive that `export` wrote, for the same cluster and state directory; a snapshot of that name must not
    exist, and no other action may run (`locks`). Returns the manifest. Raises `OSError` when the file cannot be read or the disk is full.
    """
    lab.check()
    try:
        with (
            locks.exclusive(lab.state_dir, lab.cluster),
            open(path, "rb") as stream,
            tarfile.open(fileobj=stream, mode="r|") as archive,
        ):
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
    if (made.cluster, made.state_dir) != (lab.cluster, str(lab.state_dir)):
        raise SnapshotError(
            f"{path}: a snapshot of cluster {made.cluster} in {made.state_dir}, not of {lab.cluster} in {lab.state_dir}: "
            f"import it with --cluster {made.cluster}"
        )
    target.parent.mkdir(mode=0o700, exist_ok=True)
    user = lab.run_dir.stat()
    with files.staging_directory(target.parent) as stage:
        for member in _members(archive, path):
            if member is not first:
                _write(archive, member, stage, path, user)
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
        if not seen and member.name == FILE:  # which was read before
            seen.add(FILE)
            yield member
            continue
        if (
            not (member.isreg() or member.isdir() or member.issym())
            or not parts
            or parts[0] not in (_TOPS if len(parts) > 1 or member.isdir() else (manifest.MODES,))
            or (len(parts) == 1 and member.issym())
            or len(parts) > MAX_DEPTH
            or any(part in ("", ".", "..") for part in member.name.split("/"))
            or "\0" in member.name
            or member.name in seen
            or member.issparse()
        ):
            raise SnapshotError(f"{path}: {member.name!r} cannot be in a snapshot; nothing was imported")
        if _configures_libvirt(member):
            raise SnapshotError(
                f"{path}: {member.name!r} cannot be in a snapshot: a lab does not write it, and libvirt would use it; "
                "nothing was imported"
            )
        seen.add(member.name)
        yield member


def _configures_libvirt(member: tarfile.TarInfo) -> bool:
    """Return whether a member is of libvirt's configuration, or is a link in its place, and is not what a lab has there."""
    if member.issym():
        return _LIBVIRT.startswith(f"{member.name}/") or member.name.startswith(_LIBVIRT)
    name = member.name.removeprefix(_LIBVIRT)
    if name == member.name:
        return False
    return name.split("/")[0] == "hooks" if member.isdir() else not _WRITTEN.fullmatch(name)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, stage: Path, path: Path, user: os.stat_result) -> None:
    """Write a member below `stage`; user: of the run directory, to whom the files of the run belong that are not root's."""
    target = stage / member.name
    _check_inside(stage, target.parent, path, member.name)
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
    of_user = member.uid and member.name.startswith("run/")
    uid, gid = (user.st_uid, user.st_gid) if of_user else (member.uid, member.gid)
    try:
        os.chown(target, uid, gid, follow_symlinks=False)
        if not member.issym():
            # 0600 for all, also in an archive from elsewhere; a directory needs to be entered.
            target.chmod(0o700 if member.isdir() else 0o600 | (member.mode & 0o100))
            os.utime(target, ns=(changed := _changed(member), changed))
    except (ArithmeticError, ValueError) as error:
        raise SnapshotError(
            f"{path}: {member.name!r} cannot be in a snapshot: its owner or its time is not valid; nothing was imported"
        ) from error


def _changed(member: tarfile.TarInfo) -> int:
    """Return when a member was changed, in ns since 1970. Raises `ArithmeticError` or `ValueError` for no such time."""
    seconds = Decimal(member.pax_headers.get("mtime", member.mtime))
    if not 0 <= seconds < _LATEST:
        raise ValueError(f"mtime is {seconds}")
    return int(seconds * _BILLION)


def _check_inside(stage: Path, parent: Path, path: Path, name: str) -> None:
    """Raise `SnapshotError` if a directory on the way is a link, or was not in the archive."""
    while parent != stage:
        if not parent.is_dir() or parent.is_symlink():
            raise SnapshotError(f"{path}: {name!r} is in no directory of the snapshot; nothing was imported")
        parent = parent.parent
