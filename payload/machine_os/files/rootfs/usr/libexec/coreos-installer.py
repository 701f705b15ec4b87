"""coreos-installer of the lab OS: writes the running live system to a disk.

Command line, progress lines and layout are those of coreos-installer: GPT with the partitions BIOS-BOOT,
EFI-SYSTEM, boot and root, the Ignition config in /ignition/config.ign and the network of --copy-network in
/coreos-firstboot-network of the boot file system, and the file ignition.firstboot that makes the boot loader ask for
Ignition once. The root partition is ext4 and holds the root file system as root.squashfs, next to what becomes of /etc and
/var.
"""

from __future__ import annotations

import argparse
import binascii
import contextlib
import fcntl
import gzip
import hashlib
import lzma
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

SECTOR = 512
MIB = 1024 * 1024
BLKRRPART, BLKFLSBUF, BLKGETSIZE64 = 0x125F, 0x1261, 0x80081272
# Name, type, size in MiB; 0 is the rest of the disk. Numbers and names are those of CoreOS.
PARTITIONS = (
    ("BIOS-BOOT", "21686148-6449-6e6f-744e-656564454649", 1),
    ("EFI-SYSTEM", "c12a7328-f81f-11d2-ba4b-00a0c93ec93b", 64),
    ("boot", "0fc63daf-8483-4772-8e79-3d69d8477de4", 256),
    ("root", "4f68bce3-e8cd-4db1-96e7-fbcaf984b709", 0),
)
SMALLEST = 2048 * MIB
FILES = Path("/usr/lib/machine-os")
KARGS = "console=ttyS0,115200n8 quiet mitigations=off no_timer_check nowatchdog"
GRUB_CFG = """\
set timeout=0
set default=0
set ignition_firstboot=
if [ -f ($root)/ignition.firstboot ]; then
    set ignition_firstboot="ignition.firstboot"
fi
menuentry 'machine-os' --class os {{
    linux /vmlinuz root=UUID={root} boot=UUID={boot} ignition.platform.id={platform} {kargs} $ignition_firstboot
    initrd /initramfs.img
}}
"""


class InstallError(Exception):
    """The installation failed; the message is for users."""


class Progress:
    """`> Read disk 1.2 GiB/2.3 GiB (52%)` on stderr, at most once per percent."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.shown = total, 0, -1
        self.end = "\r" if sys.stderr.isatty() else "\n"

    def add(self, count: int) -> None:
        self.done += count
        percent = self.done * 100 // self.total if self.total else 100
        if percent != self.shown:
            self.shown = percent
            sys.stderr.write(f"> Read disk {_bytes(self.done)}/{_bytes(self.total)} ({percent}%)   {self.end}")
            sys.stderr.flush()


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


# The partition table (UEFI specification, chapter 5)


def write_table(disk: BinaryIO, size: int) -> list[tuple[int, int]]:
    """Writes a GPT over the whole disk; returns first sector and number of sectors of each partition."""
    sectors = size // SECTOR
    last_usable = sectors - 34
    spans, entries, start = [], b"", 2048
    for name, kind, mib in PARTITIONS:
        count = mib * MIB // SECTOR if mib else (last_usable - start + 1) // 2048 * 2048
        spans.append((start, count))
        entries += struct.pack(
            "<16s16sQQQ72s",
            uuid.UUID(kind).bytes_le,
            uuid.uuid4().bytes_le,
            start,
            start + count - 1,
            0,
            name.encode("utf-16-le"),
        )
        start += count
    entries = entries.ljust(128 * 128, b"\0")
    guid = uuid.uuid4().bytes_le

    def header(mine: int, other: int, table: int) -> bytes:
        fields = (
            b"EFI PART",
            0x10000,
            92,
            0,
            0,
            mine,
            other,
            34,
            last_usable,
            guid,
            table,
            128,
            128,
            binascii.crc32(entries),
        )
        plain = struct.pack("<8sIIIIQQQQ16sQIII", *fields)
        return plain[:16] + struct.pack("<I", binascii.crc32(plain)) + plain[20:]

    protective = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, min(sectors - 1, 0xFFFFFFFF))
    disk.seek(0)
    disk.write((b"\0" * 446 + protective).ljust(510, b"\0") + b"\x55\xaa")
    disk.write(header(1, sectors - 1, 2).ljust(SECTOR, b"\0") + entries)
    disk.seek((sectors - 33) * SECTOR)
    disk.write(entries + header(sectors - 1, 1, sectors - 33).ljust(SECTOR, b"\0"))
    return spans


def write_bios_loader(disk: BinaryIO, start: int) -> None:
    """GRUB for BIOS: boot.img in the first sector, core.img in the partition that starts at sector `start`."""
    boot, core = bytearray((FILES / "boot.img").read_bytes()), bytearray((FILES / "core.img").read_bytes())
    core += b"\0" * (-len(core) % SECTOR)
    boot[0x5C:0x64] = struct.pack("<Q", start)  # location of core.img
    boot[0x64] = 0xFF  # the drive that the firmware booted
    boot[0x66:0x68] = b"\x90\x90"  # no check for floppies
    core[500:510] = struct.pack(
        "<QH", start + 1, len(core) // SECTOR - 1
    )  # the rest of core.img, for its own first sector
    disk.seek(start * SECTOR)
    disk.write(core)
    disk.seek(0)
    disk.write(boot[:440])


# Devices


def claim(device: str) -> int:
    """The size of the disk; InstallError when it is not one, or in use."""
    try:
        info = os.stat(device)
    except OSError as error:
        raise InstallError(f"getting metadata for {device}: {error.strerror}") from None
    if not stat.S_ISBLK(info.st_mode):
        raise InstallError(f"{device} is not a block device")
    real = os.path.realpath(device)
    if os.path.exists(f"/sys/class/block/{os.path.basename(real)}/partition"):
        raise InstallError(f"{device} is a partition; specify a whole disk")
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    own = re.compile(re.escape(real) + "(p?[0-9]+)?")
    busy = [f"{source} on {target}" for source, target, *__ in mounts if own.fullmatch(source)]
    if busy:
        raise InstallError(f"{device} is in use: {', '.join(busy)}")
    with open(device, "rb") as stream:
        size: int = struct.unpack("Q", fcntl.ioctl(stream, BLKGETSIZE64, b"\0" * 8))[0]
    if size < SMALLEST:
        raise InstallError(f"{device} has {_bytes(size)}; at least {_bytes(SMALLEST)} are required")
    return size


def partition(device: str, number: int) -> str:
    """Return the device of a partition; those of a multipath device are devices of their own, on top of it."""
    real = os.path.realpath(device)
    if is_multipath(device):
        return f"/dev/mapper/{Path('/sys/class/block', os.path.basename(real), 'dm/name').read_text().strip()}-part{number}"
    return f"{real}p{number}" if real[-1].isdigit() else f"{real}{number}"


def is_multipath(device: str) -> bool:
    """Return whether the disk is a multipath device: the kernel does not read its partition table."""
    return os.path.basename(os.path.realpath(device)).startswith("dm-")


def reread(device: str, wanted: int) -> None:
    """Make the kernel read the partition table, and wait for the device nodes."""
    if is_multipath(device):
        run("udevadm", "settle")  # its rule does the same when the table was written
        run("kpartx", "-u", "-s", "-p", "-part", device)
    for attempt in range(50):
        with open(device, "rb") as stream, contextlib.suppress(OSError):
            fcntl.ioctl(stream, BLKRRPART)
        if os.path.exists(partition(device, wanted)):
            return
        time.sleep(0.1 + attempt / 50)
    raise InstallError(f"the kernel does not show {partition(device, wanted)} after the partition table was written")


@contextlib.contextmanager
def mount(device: str, kind: str) -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="coreos-installer-", dir="/run")
    try:
        run("mount", "-t", kind, device, folder)
        try:
            yield Path(folder)
        finally:
            run("umount", folder)
    finally:
        os.rmdir(folder)


def copy(source: BinaryIO, target: Path | str, size: int, progress: Progress) -> None:
    with open(target, "wb") as out:
        while size > 0 and (piece := source.read(min(4 * MIB, size))):
            out.write(piece)
            size -= len(piece)
            progress.add(len(piece))
        out.flush()
        os.fsync(out.fileno())
    if size > 0:
        raise InstallError(f"{source.name} ended {size} bytes early")


def live_root() -> tuple[str, int]:
    """Return the block device of the running root file system, and the size of the squashfs."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, target, kind, *__ = line.split()
        if target == "/" and kind == "squashfs":
            with open(device, "rb") as stream:
                superblock = stream.read(96)
            return device, (int(struct.unpack_from("<Q", superblock, 40)[0]) + 4095) // 4096 * 4096
    raise InstallError("this is not a live system: / is not a squashfs")


# Installing


def install_live(options: argparse.Namespace, size: int, ignition: bytes | None) -> None:
    source, length = live_root()
    release = os.uname().release
    kernel = Path("/usr/lib/modules") / release
    boot_id, root_id = str(uuid.uuid4()), str(uuid.uuid4())
    with open(options.device, "r+b") as disk:
        disk.write(b"\0" * MIB)
        spans = write_table(disk, size)
        for start, count in spans:  # remove traces of an older installation
            disk.seek(start * SECTOR)
            disk.write(b"\0" * min(MIB, count * SECTOR))
        write_bios_loader(disk, spans[0][0])
        disk.flush()
        os.fsync(disk.fileno())
    reread(options.device, len(PARTITIONS))
    esp, boot, root = (partition(options.device, number) for number in (2, 3, 4))
    run("mkfs.fat", "-n", "EFI-SYSTEM", esp)
    run(
        "mkfs.ext4",
        "-q",
        "-F",
        "-L",
        "boot",
        "-U",
        boot_id,
        "-O",
        "^metadata_csum,^64bit,^orphan_file",
        "-E",
        "nodiscard",
        boot,
    )
    run(
        "mkfs.ext4",
        "-q",
        "-F",
        "-L",
        "root",
        "-U",
        root_id,
        "-J",
        "size=32",
        "-E",
        "nodiscard,lazy_itable_init=1,lazy_journal_init=1",
        root,
    )
    files = [(kernel / "vmlinuz", "vmlinuz"), (kernel / "initramfs.img", "initramfs.img")]
    progress = Progress(length + sum(path.stat().st_size for path, __ in files))
    with mount(esp, "vfat") as folder:
        for path in (FILES / "esp").rglob("*.*"):
            target = folder / path.relative_to(FILES / "esp")
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.name == "grub.cfg":
                target.write_text(
                    f"search --no-floppy --set=root --fs-uuid {boot_id}\nconfigfile ($root)/grub2/grub.cfg\n"
                )
            else:
                shutil.copyfile(path, target)
    with mount(boot, "ext4") as folder:
        for path, name in files:
            with path.open("rb") as stream:
                copy(stream, folder / name, path.stat().st_size, progress)
        (folder / "grub2").mkdir()
        kargs = [word for word in KARGS.split() if word not in options.delete_karg] + options.append_karg
        (folder / "grub2/grub.cfg").write_text(
            GRUB_CFG.format(root=root_id, boot=boot_id, platform=options.platform or "metal", kargs=" ".join(kargs))
        )
        configure(options, folder, ignition)
    with mount(root, "ext4") as folder, open(source, "rb") as stream:
        copy(stream, folder / "root.squashfs", length, progress)
        (folder / "ostree/deploy").mkdir(parents=True)


def install_image(options: argparse.Namespace, size: int, ignition: bytes | None) -> None:
    """Writes a raw disk image, plain or compressed, that has a partition with the file system label boot."""
    path = Path(options.image_file)
    progress = Progress(path.stat().st_size)
    with path.open("rb") as packed, open(options.device, "r+b") as disk, contextlib.ExitStack() as stack:
        magic = packed.read(6)
        packed.seek(0)
        reader: IO[bytes] = packed
        if magic.startswith(b"\x1f\x8b"):
            reader = cast("IO[bytes]", stack.enter_context(gzip.open(packed)))
        elif magic == b"\xfd7zXZ\0":
            reader = stack.enter_context(lzma.open(packed))
        before = 0
        while piece := reader.read(4 * MIB):
            if disk.tell() + len(piece) > size:
                raise InstallError(f"{path} is larger than {options.device}")
            disk.write(piece)
            progress.add(packed.tell() - before)
            before = packed.tell()
        os.fsync(disk.fileno())
    reread(options.device, 1)
    run("udevadm", "settle")
    found = [
        words[0]
        for line in run("lsblk", "-nlpo", "NAME,LABEL", options.device).splitlines()
        if (words := line.split())[1:] == ["boot"]
    ]
    if len(found) != 1:
        raise InstallError(f"{path}: one partition with the label boot expected, found {len(found)}")
    with mount(found[0], "ext4") as folder:
        configure(options, folder, ignition)


def configure(options: argparse.Namespace, boot: Path, ignition: bytes | None) -> None:
    """Write the input of the first boot into the boot file system."""
    (boot / "ignition.firstboot").write_text("")
    if ignition is not None:
        (boot / "ignition").mkdir(exist_ok=True)
        (boot / "ignition/config.ign").write_bytes(ignition)
        (boot / "ignition/config.ign").chmod(0o600)
    if options.copy_network:
        profiles = [path for path in sorted(Path(options.network_dir).glob("*")) if path.is_file()]
        (boot / "coreos-firstboot-network").mkdir(exist_ok=True)
        for profile in profiles:
            print(f"Installing networking config from {profile}", file=sys.stderr)
            shutil.copyfile(profile, boot / "coreos-firstboot-network" / profile.name)
            (boot / "coreos-firstboot-network" / profile.name).chmod(0o600)


def read_ignition(options: argparse.Namespace) -> bytes | None:
    if not options.ignition_file:
        return None
    try:
        data = sys.stdin.buffer.read() if options.ignition_file == "-" else Path(options.ignition_file).read_bytes()
    except OSError as error:
        raise InstallError(f"opening source Ignition config {options.ignition_file}: {error.strerror}") from None
    if options.ignition_hash:
        kind, __, wanted = options.ignition_hash.partition("-")
        if kind not in ("sha256", "sha512") or hashlib.new(kind, data).hexdigest() != wanted.lower():
            raise InstallError(f"digest of the Ignition config does not match {options.ignition_hash}")
    return data


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="coreos-installer", description="Install the lab OS, as coreos-installer does.")
    top.add_argument("--version", action="version", version="coreos-installer 0.24.0 (agentlab)")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    install = commands.add_parser("install", help="install to a disk")
    install.add_argument("-i", "--ignition-file", metavar="FILE", help="embed an Ignition config")
    install.add_argument("--ignition-hash", metavar="TYPE-VALUE", help="digest of the Ignition config")
    install.add_argument("-f", "--image-file", metavar="FILE", help="write this disk image instead of the live system")
    install.add_argument("--append-karg", action="append", default=[], metavar="ARG", help="append a kernel argument")
    install.add_argument("--delete-karg", action="append", default=[], metavar="ARG", help="delete a kernel argument")
    install.add_argument(
        "-n", "--copy-network", action="store_true", help="copy the network configuration of the live system"
    )
    install.add_argument(
        "--network-dir", default="/etc/NetworkManager/system-connections/", metavar="DIR", help="for --copy-network"
    )
    install.add_argument("-p", "--platform", metavar="NAME", help="Ignition platform; default: metal")
    install.add_argument(
        "--console", action="append", default=[], metavar="SPEC", help="kernel console, as in ttyS0,115200n8"
    )
    for name in ("--insecure", "--insecure-ignition", "--offline", "--preserve-on-error"):
        install.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    for name in ("--stream", "--architecture", "--save-partlabel", "--save-partindex"):
        install.add_argument(name, metavar="NAME", help=argparse.SUPPRESS)
    install.add_argument("device", metavar="DEVICE")
    return top


def main() -> int:
    options = parser().parse_args()
    options.append_karg += [f"console={spec}" for spec in options.console]
    try:
        if options.save_partlabel or options.save_partindex:
            raise InstallError("saving partitions is not supported: the whole disk is written")
        ignition = read_ignition(options)
        size = claim(options.device)
        print(
            "Installing lab OS from the running system"
            if not options.image_file
            else f"Installing {options.image_file}",
            file=sys.stderr,
        )
        (install_image if options.image_file else install_live)(options, size, ignition)
        os.sync()
        with open(options.device, "rb") as disk:
            os.fsync(disk.fileno())
            fcntl.ioctl(disk, BLKFLSBUF)
    except (InstallError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print("Install complete.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
