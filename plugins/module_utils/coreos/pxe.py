"""What a machine boots from the network: kernel, initramfs and root file system of a live ISO, and an iPXE script."""

from __future__ import annotations

import os
import struct
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


def files(fs: Iso9660) -> Iterator[Record]:
    """Yield the PXE files of an image; raise `CoreosError` when it has none."""
    try:
        directory = fs.find(PXE_DIR)
    except NotFound as error:
        raise CoreosError(f"Unrecognized CoreOS ISO image. ({error})") from None
    yield from (record for record in fs.entries(directory) if not record.is_dir)


def ipxe_script(base_url: str, prefix: str, arguments: str) -> str:
    """Return the script that boots `<prefix>-{vmlinuz,initrd.img,rootfs.img}` below `base_url`."""
    base = base_url.rstrip("/")
    return (
        "#!ipxe\n"
        f"initrd --name initrd {base}/{prefix}-initrd.img\n"
        f"kernel {base}/{prefix}-vmlinuz initrd=initrd "
        f"coreos.live.rootfs_url={base}/{prefix}-rootfs.img {arguments}\n"
        "boot\n"
    )


def kernel_arguments(iso: LiveIso, append: str = "") -> str:
    """Return the arguments for a boot without the ISO: its defaults without `coreos.liveiso`, then `append`."""
    default = iso.kargs.default if iso.kargs else ""
    words = [word for word in default.split(" ") if not word.startswith("coreos.liveiso=")]
    return " ".join(words) + append


def write_artifacts(
    iso: LiveIso,
    directory: str | os.PathLike[str],
    prefix: str,
    archives: Sequence[bytes] = (),
    base_url: str | None = None,
    append: str = "",
) -> list[str]:
    """Write the files for a network boot into an existing directory; return their names.

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
    write(f"{prefix}-vmlinuz", kernel)
    initrd = iso.fs.find_file(INITRD_PATH)
    padding = bytes(-initrd.size % 4) if archives else b""
    size = write(f"{prefix}-initrd.img", initrd, padding, cpio.join(archives))
    write(f"{prefix}-rootfs.img", iso.fs.find_file(ROOTFS_PATH))
    if base_url:
        script = ipxe_script(base_url, prefix, kernel_arguments(iso, append))
        write(f"{prefix}.ipxe", script.encode(), mode=0o600)
    if _find(iso.fs, _ADDRSIZE):
        write(f"{prefix}-initrd.addrsize", iso.fs.read(_ADDRSIZE)[:8] + struct.pack(">Q", size))
        names = {"kernel.img": "vmlinuz", "initrd.img": "initrd.img", "initrd.addrsize": "initrd.addrsize"}
        lines = iso.fs.read(_LPAR).decode("ascii", "replace").splitlines()
        renamed = [_renamed(line, prefix, names) for line in lines]
        write(f"{prefix}-generic.ins", "".join(f"{line}\n" for line in renamed).encode())
    return written


def _find(fs: Iso9660, path: str) -> Record | None:
    try:
        return fs.find_file(path)
    except NotFound:
        return None


def _renamed(line: str, prefix: str, names: dict[str, str]) -> str:
    path, blank, address = line.partition(" ")
    name = path.rpartition("/")[2]
    return f"{prefix}-{names[name]}{blank}{address}" if name in names else line
