"""newc cpio archives (kernel documentation, driver-api/early-userspace/buffer-format), the format of the initrd and rootfs.img."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import BinaryIO

TRAILER = "TRAILER!!!"


def header(name: str, *, mode: int, size: int, nlink: int = 1, inode: int = 0) -> bytes:
    """Header and name of one member, padded: 124 bytes for a name of up to 13 characters."""
    encoded = name.encode() + b"\0"
    fields = (inode, mode, 0, 0, nlink, 0, size, 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    return head + b"\0" * (-len(head) % 4)


def add_file(out: BinaryIO, name: str, source: Path, mode: int = 0o100644) -> None:
    size = source.stat().st_size
    out.write(header(name, mode=mode, size=size))
    with source.open("rb") as data:
        shutil.copyfileobj(data, out, 1 << 20)
    out.write(b"\0" * (-size % 4))


def add_bytes(out: BinaryIO, name: str, data: bytes, mode: int = 0o100644) -> None:
    out.write(header(name, mode=mode, size=len(data)) + data + b"\0" * (-len(data) % 4))


def end(out: BinaryIO) -> None:
    """The trailer, padded to the 512 bytes that cpio(1) writes."""
    out.write(header(TRAILER, mode=0, size=0))
    out.write(b"\0" * (-out.tell() % 512))


def add_tree(out: BinaryIO, root: Path) -> None:
    """Archive everything below `root` in a fixed order, owned by root, without timestamps."""
    inode = 1
    for path, dirs, files in os.walk(root):
        dirs.sort()
        for name in sorted([*dirs, *files]):
            full = Path(path, name)
            relative = str(full.relative_to(root))
            info = full.lstat()
            inode += 1
            if stat.S_ISLNK(info.st_mode):
                target = os.readlink(full).encode()
                out.write(
                    header(relative, mode=info.st_mode, size=len(target), inode=inode)
                    + target
                    + b"\0" * (-len(target) % 4)
                )
            elif stat.S_ISREG(info.st_mode):
                out.write(header(relative, mode=info.st_mode, size=info.st_size, inode=inode))
                out.write(full.read_bytes() + b"\0" * (-info.st_size % 4))
            else:
                out.write(header(relative, mode=info.st_mode, size=0, nlink=2, inode=inode))
