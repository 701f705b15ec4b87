"""Files that are either complete or absent, however the program ends.

Where the file system has O_TMPFILE, an unfinished file has no name, so that nothing is left when the program is killed.
Elsewhere its name starts with PREFIX and it is locked while it is written: the next writer in that directory removes those without
a lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PREFIX = ".agentlab-temp-"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_TMPFILE = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL}
_GIB = 1 << 30
_MIB = 1 << 20


def cache_directory() -> Path:
    """Return the directory of what this user's runs share and can make again: `$XDG_CACHE_HOME/agentlab`, or `~/.cache/agentlab`.

    It need not exist.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentlab"


def usual_umask() -> None:
    """Let others enter and read what this process creates without a mode of its own, whatever umask its user has.

    QEMU, dnsmasq and PostgreSQL run as users of their own, and a guest's file system must not depend on who built it.
    """
    os.umask(0o022)


class _CompleteWriter(io.FileIO):
    """A file without a buffer that is written whole: a plain one writes less where a disk becomes full, without an error."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of `data`; raises `OSError`."""
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            left = left[super().write(left) :]
        return size


@contextmanager
def new_file(path: str | os.PathLike[str], *, overwrite: bool = False, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Open a file that gets the name `path` if the block succeeds, and is removed otherwise.

    Raises `OSError` that names `path`, also for a device, a FIFO, or a link to one; `FileExistsError` when it exists and
    `overwrite` is not set, in one step with the naming. Its owner is as `give` has it.
    """
    target = Path(path)
    with _naming(target):
        if not overwrite and os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        if target.is_dir() and not target.is_symlink():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        if target.exists() and not target.is_file() and not target.is_dir():
            raise OSError(errno.EINVAL, "Not a regular file", str(target))
        sweep(target.parent)
        fd, temporary = _open(target.parent)
    try:
        with _CompleteWriter(fd, "w+b") as file:
            try:
                yield file
            except OSError as error:
                raise _full(error, target) from error
            with _naming(target):
                give(fd, target.parent)
                os.fchmod(fd, mode)
                if temporary is None and not overwrite:
                    _link(fd, target)
                else:
                    if temporary is None:
                        temporary = target.parent / f"{PREFIX}{os.urandom(8).hex()}"
                        _link(fd, temporary)
                    _rename(temporary, target, overwrite)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


def give(fd: int, folder: Path) -> None:
    """Give a file that root makes in another user's directory to that user: with sudo, the files of a run stay its user's.

    fd: of the open file; folder: where it is. Without root, or where root may not, nothing changes.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            status = folder.stat()
            if status.st_uid:
                os.fchown(fd, status.st_uid, status.st_gid)


@contextmanager
def staging_directory(parent: Path, *, inherited: bool = False) -> Iterator[Path]:
    """A directory below `parent` for files that are moved from there when they are complete; removed at the end.

    inherited: a child that is started with `close_fds=False` keeps it from being swept when this process is killed.
    """
    import tempfile  # whose generator of random numbers every start of the command line would wait for

    sweep(parent)
    path, fd = _locked(lambda: Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)), os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(fd, inherited)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(fd)


def sweep(folder: Path) -> None:
    """Remove unfinished files and directories of killed programs of this user.

    What another program is still writing is locked, and stays. Nothing is raised, also for a folder that does not
    exist.
    """
    try:
        left = [entry for entry in os.scandir(folder) if entry.name.startswith(PREFIX)]
    except OSError:
        return
    for entry in left:
        with contextlib.suppress(OSError):
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
            finally:
                os.close(fd)


def explain(error: OSError) -> str:
    """Return `path: reason`; Python's own message starts with a number.

    Of two paths the second one is named, as it is the target. Without a path it is the reason alone.
    """
    name = error.filename2 or error.filename
    text = error.strerror or str(error)
    return f"{os.fsdecode(name)}: {text}" if isinstance(name, str | bytes | os.PathLike) else text


def size_text(size: int) -> str:
    """Return a size in GiB or MiB.

    size: in bytes. One decimal is shown; what is smaller than 1 GiB is in MiB.
    """
    return f"{size / _GIB:.1f} GiB" if size >= _GIB else f"{size / _MIB:.1f} MiB"


def _open(folder: Path) -> tuple[int, Path | None]:
    if os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600), None
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
    path, fd = _locked(lambda: _made(folder), os.O_RDWR)
    return fd, path


def _made(folder: Path) -> Path:
    import tempfile

    fd, name = tempfile.mkstemp(prefix=PREFIX, dir=folder)
    os.close(fd)
    return Path(name)


def _locked(make: Callable[[], Path], flags: int) -> tuple[Path, int]:
    while True:
        path = make()
        try:
            fd = os.open(path, flags | os.O_CLOEXEC)
        except FileNotFoundError:  # swept before it was locked
            continue
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.path.lexists(path):
            return path, fd
        os.close(fd)


def _link(fd: int, target: Path) -> None:
    # With a directory descriptor it is linkat, which follows the link in /proc; link does not.
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(f"/proc/self/fd/{fd}", target.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _rename(source: Path, target: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(source, target)
        return
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.rename(source, target)
    else:
        os.unlink(source)


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Make errors name the target file, not the temporary one."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(target)) from error


def _full(error: OSError, target: Path) -> OSError:
    if error.errno not in _FULL or error.filename is not None:
        return error
    text = os.strerror(error.errno)
    with contextlib.suppress(OSError):
        status = os.statvfs(target.parent)
        text += f" ({size_text(status.f_bavail * status.f_frsize)} free)"
    return OSError(error.errno, text, str(target))
