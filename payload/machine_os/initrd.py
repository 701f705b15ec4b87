"""The initrd: a static busybox, the modules that find the medium, and a script that runs the real Ignition."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import checkout, cpio, kernel, kernel_modules
from .distro import Distro, run

# Programs that Ignition calls; they run in the root file system.
CHROOTED = (
    "useradd",
    "usermod",
    "groupadd",
    "userdel",
    "groupdel",
    "passwd",
    "mkfs.ext4",
    "mkfs.fat",
    "mkfs.vfat",
    "mkswap",
    "sgdisk",
    "mdadm",
    "wipefs",
    "partx",
    "systemctl",
    "udevadm",
    "id",
)
# Programs that find the root file system, with their libraries.
PROGRAMS = ("iscsistart", "dmsetup", "kpartx")
# The DHCPv6 client, of the unpacked packages. It needs no library that those programs do not.
CLIENT = "sbin/dhclient"
NO_OP = ("setfiles", "restorecon")
FILES = Path(__file__).parent / "files/initrd"


def build(distro: Distro, parts: Path, root: Path, release: str, work: Path, out: Path, stamp: str) -> None:
    """Write the initrd (newc, compressed with zstd) of the lab OS.

    parts: unpacked packages; root: the tree that it starts, with the modules of the kernel `release`; work: a
    directory, which is removed first; stamp: content of /etc/coreos-live-initramfs, by which the initrd knows its root
    file system.
    """
    shutil.rmtree(work, ignore_errors=True)
    for name in (
        "bin",
        "dev",
        "proc",
        "sys",
        "run",
        "sysroot",
        "etc",
        "tmp",
        "usr/bin",
        "usr/sbin",
        "usr/lib/ignition/base.d",
        "usr/libexec",
    ):
        (work / name).mkdir(parents=True)
    (work / "sbin").symlink_to("bin")
    shutil.copy2(_unpacked(parts, "bin/busybox"), work / "bin/busybox")
    for applet in run(work / "bin/busybox", "--list").split():
        if applet != "busybox":
            (work / "bin" / applet).symlink_to("busybox")

    modules = root / "usr/lib/modules" / release
    target = work / "lib/modules" / release
    for path in kernel.closure(modules, kernel_modules.INITRD_MODULES):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(modules / path, target / path)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy2(modules / name, target / name)
    run(work / "bin/busybox", "depmod", "-b", work, release)
    (work / "etc/preload").write_text(" ".join(kernel_modules.INITRD_PRELOAD) + "\n")
    (work / "etc/coreos-live-initramfs").write_text(stamp + "\n")
    (work / "etc/initrd-release").write_text('NAME="machine-os initrd"\nID=machine-os\n')

    checkout.copy(FILES / "base.ign", work / "usr/lib/ignition/base.d/00-core.ign")

    values = {"@LOADER@": distro.loader, "@LIBDIR@": f"usr/lib/{distro.triplet}"}
    _script("init", work / "init", values)
    _script("ignition", work / "usr/bin/ignition", values)
    _script("python3", work / "usr/bin/python3", values)
    _script("systemd-version.py", work / "usr/libexec/systemd-version.py", values)
    for name in ("initrd-network", "initrd-network.lease"):
        _script(name, work / "usr/libexec" / name, values)
    for name in PROGRAMS:
        _program(distro, root, f"usr/sbin/{name}", work)
    shutil.copy2(_unpacked(parts, CLIENT), work / "usr" / CLIENT)
    run("chroot", work, f"/lib64/{distro.loader}", "--list", f"/usr/{CLIENT}")  # fails if a library is missing
    for names, script in ((CHROOTED, "chrooted"), (NO_OP, "no-op")):
        for name in names:
            (work / "bin" / name).unlink(missing_ok=True)
            _script(script, work / "usr/sbin" / name, values)

    archive = out.with_suffix(".cpio")
    with archive.open("wb") as stream:
        cpio.add_tree(stream, work)
        cpio.end(stream)
    run("zstd", "-q", "-f", "-15", "-T0", archive, "-o", out)
    archive.unlink()
    with out.open("r+b") as stream:  # appended archives must start at a multiple of 4
        stream.seek(0, 2)
        stream.write(b"\0" * (-stream.tell() % 4))


def _unpacked(parts: Path, name: str) -> Path:
    """Return the file `name` of the unpacked packages, which a distribution has in / or in /usr."""
    return parts / name if (parts / name).exists() else parts / "usr" / name


def _program(distro: Distro, root: Path, name: str, work: Path) -> None:
    """Copy a program of `root` with its libraries and their loader: it runs before there is a root file system."""
    loader = f"lib64/{distro.loader}"
    listed = run("chroot", root, f"/{loader}", "--list", f"/{name}")
    paths = [word for word in listed.split() if word.startswith("/")]
    for path in {name, loader, *(path.lstrip("/") for path in paths)}:
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, work / path)


def _script(name: str, target: Path, values: dict[str, str]) -> None:
    text = (FILES / name).read_text()
    for key, value in values.items():
        text = text.replace(key, value)
    target.write_text(text)
    target.chmod(0o755)
