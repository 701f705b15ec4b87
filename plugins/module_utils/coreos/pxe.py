"""Files for a network boot: kernel, initramfs and root file system of a live ISO, and an iPXE script."""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import cpio, image
from .errors import CoreosError, NotFound
from .iso import INITRD_PATH, ROOTFS_PATH, LiveIso
from .iso9660 import Iso9660, Record

PXE_DIR = "images/pxeboot"
LIVE_STAMP = "etc/coreos-live-initramfs"
FEATURES = "etc/coreos/features.json"
_KERNELS = (f"{PXE_DIR}/kernel.img", f"{PXE_DIR}/vmlinuz")
_ADDRSIZE = "images/initrd.addrsize"
_LPAR = "generic.ins"
_GZIP = b"\x1f\x8b"
_KERNEL_LIMIT = 1 << 28


def files(fs: Iso9660) -> Iterator[Record]:
    """Yield the PXE files of an image; raise `CoreosError` when it has none.

    Those are the regular files in `images/pxeboot`: kernel, initramfs and root file system.
    """
    try:
        directory = fs.find(PXE_DIR)
    except NotFound as error:
        raise CoreosError(f"Unrecognized CoreOS ISO image. ({error})") from None
    yield from (record for record in fs.entries(directory) if not record.is_dir)


def ipxe_script(base_url: str, prefix: str, arguments: str, kernel: str = "vmlinuz") -> str:
    """Return the script that boots `<prefix>-{<kernel>,initrd.img,rootfs.img}` below `base_url`.

    `arguments` are kernel arguments; the URL of the root file system is put before them.
    """
    base = base_url.rstrip("/")
    return (
        "#!ipxe\n"
        f"initrd --name initrd {base}/{prefix}-initrd.img\n"
        f"kernel {base}/{prefix}-{kernel} initrd=initrd "
        f"coreos.live.rootfs_url={base}/{prefix}-rootfs.img {arguments}\n"
        "boot\n"
    )


def kernel_arguments(iso: LiveIso, append: str = "") -> str:
    """Return the arguments for a boot without the ISO: its defaults without `coreos.liveiso`, then `append`.

    `append` is put behind as it is; the defaults of an image without argument areas are empty.
    """
    default = iso.kargs.default if iso.kargs else ""
    return re.sub(r"coreos\.liveiso=[^ ]+ ?", "", default) + append


def write_artifacts(
    iso: LiveIso,
    directory: str | os.PathLike[str],
    prefix: str,
    archives: Sequence[bytes] = (),
    base_url: str | None = None,
    append: str = "",
    kernel_name: str = "vmlinuz",
) -> list[str]:
    """Write the files for a network boot into an existing directory; return their names.

    `<prefix>-<kernel_name>` is the ISO's kernel, unpacked if it is gzip (as it is for arm64, where neither UEFI nor iPXE does that).
    `<prefix>-initrd.img` is the ISO's initramfs and `archives` behind it, of which each is padded to four bytes. With
    `base_url` there is `<prefix>.ipxe`, 0600. `append` goes behind the kernel arguments, with its own leading blank. On s390x
    `<prefix>-initrd.addrsize` and `<prefix>-generic.ins` are written too. Existing files are replaced.
    """
    folder = Path(directory)
    written: list[str] = []

    def write(name: str, *parts: Record | bytes, mode: int = 0o644) -> int:
        with image.new_file(folder / name, overwrite=True, mode=mode) as out:
            size = 0
            for part in parts:
                if isinstance(part, Record):
                    image.copy_range(iso.fd, out.fileno(), part.offset, part.size, 0)
                    size += part.size
                    out.truncate(size)
                    out.seek(size)
                else:
                    out.write(part)
                    size += len(part)
        written.append(name)
        return size

    kernel = next((record for record in (_find(iso.fs, path) for path in _KERNELS) if record), None)
    if kernel is None:
        raise CoreosError("Unrecognized CoreOS ISO image. (it has no kernel in images/pxeboot)")
    if image.pread(iso.fd, 2, kernel.offset) == _GZIP:
        _unpack(iso.fd, kernel, folder / f"{prefix}-{kernel_name}")
        written.append(f"{prefix}-{kernel_name}")
    else:
        write(f"{prefix}-{kernel_name}", kernel)
    initrd = iso.fs.find_file(INITRD_PATH)
    padding = bytes(-initrd.size % 4) if archives else b""
    size = write(f"{prefix}-initrd.img", initrd, padding, cpio.join(archives))
    write(f"{prefix}-rootfs.img", iso.fs.find_file(ROOTFS_PATH))
    if base_url:
        script = ipxe_script(base_url, prefix, kernel_arguments(iso, append), kernel_name)
        write(f"{prefix}.ipxe", script.encode(), mode=0o600)
    if _find(iso.fs, _ADDRSIZE):
        write(f"{prefix}-initrd.addrsize", iso.fs.read(_ADDRSIZE)[:8] + struct.pack(">Q", size))
        names = dict.fromkeys(("kernel.img", "vmlinuz"), kernel_name)
        names |= {name: name for name in ("initrd.img", "initrd.addrsize")}
        lines = iso.fs.read(_LPAR).decode("ascii", "replace").splitlines()
        renamed = [_renamed(line, prefix, names) for line in lines]
        write(f"{prefix}-generic.ins", "".join(f"{line}\n" for line in renamed).encode())
    return written


def _unpack(fd: int, record: Record, path: Path) -> None:
    packed = zlib.decompressobj(wbits=31)
    size = 0
    try:
        with image.new_file(path, overwrite=True, mode=0o644) as out:
            for block in image.blocks(fd, record.offset, record.size):
                while block:
                    size += out.write(packed.decompress(block, 1 << 20))
                    if size > _KERNEL_LIMIT:
                        raise CoreosError(f"{record.name}: the kernel is larger than {_KERNEL_LIMIT} bytes")
                    block = packed.unconsumed_tail
            out.write(packed.flush())
            if not packed.eof:
                raise CoreosError(f"{record.name}: the compressed kernel is truncated")
    except zlib.error as error:
        raise CoreosError(f"{record.name}: {error}") from error


def _find(fs: Iso9660, path: str) -> Record | None:
    try:
        return fs.find_file(path)
    except NotFound:
        return None


def _renamed(line: str, prefix: str, names: dict[str, str]) -> str:
    path, blank, address = line.partition(" ")
    name = path.rpartition("/")[2]
    return f"{prefix}-{names[name]}{blank}{address}" if name in names else line
