"""cpio archives of whole trees and large files, written to a stream: the initrd and rootfs.img."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import BinaryIO

from ...plugins.module_utils.coreos.cpio import TRAILER, header, pad_data, padding


def add_file(out: BinaryIO, name: str, source: Path, mode: int = 0o100644) -> None:
    size = source.stat().st_size
    out.write(header(name, mode=mode, size=size))
    with source.open("rb") as data:
        shutil.copyfileobj(data, out, 1 << 20)
    out.write(padding(size))


def add_bytes(out: BinaryIO, name: str, data: bytes, mode: int = 0o100644) -> None:
    out.write(header(name, mode=mode, size=len(data)) + pad_data(data))


def end(out: BinaryIO) -> None:
    """The trailer, padded to the 512 bytes that cpio(1) writes."""
    out.write(header(TRAILER, mode=0, size=0))
    out.write(b"\0" * (-out.tell() % 512))


def add_tree(out: BinaryIO, root: Path) -> None:
    """Archive everything below `root` in a fixed order, owned by root, without timestamps.

    The same tree gives the same bytes. Further members may follow, or `end`.
    """
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
                out.write(header(relative, mode=info.st_mode, size=len(target), inode=inode) + pad_data(target))
            elif stat.S_ISREG(info.st_mode):
                out.write(header(relative, mode=info.st_mode, size=info.st_size, inode=inode))
                out.write(pad_data(full.read_bytes()))
            else:
                out.write(header(relative, mode=info.st_mode, size=0, nlink=2, inode=inode))
