"""The parts of a lab's real Ironic: its programs, and the images that it boots and writes, made of locked packages and the lab's OS.

The ramdisk is the initrd and the root file system of the live ISO, and a squashfs with ironic-python-agent and the
programs that it calls, which a hook of the initrd lays over /usr. The disk image boots the lab's OS from its EFI system
partition.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
from pathlib import Path

from ...plugins.module_utils.coreos.iso import LiveIso
from ...plugins.module_utils.files import usual_umask
from ..build import digests, steps
from ..machine_os import bootloader, cpio, debs, distro, rootfs

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
PLUGIN = "install_coreos"
"""The hardware manager of the ramdisk: a module of that name, here and there."""
PROGRAMS = (
    "bsdextrautils",
    "file", "libmagic1", "libmagic-mgc",
    "gdisk", "libpopt0",
    "hdparm",
    "lshw",
    "mdadm",
    "psmisc",
    "parted", "libparted2", "libdevmapper1.02.1", "libreadline8", "libtinfo6",
)  # fmt: skip
"""Packages with what ironic-python-agent calls and the lab's OS does not have, with their libraries."""
MARK = "agentlab.deployed"
"""Kernel argument of the disk image, by which a console shows where the OS was booted from."""
KARGS = "console=ttyS0,115200n8 mitigations=off no_timer_check nowatchdog"
EXTENSION = "ironic-python-agent.squashfs"
HOOK = f"""set -e
mkdir -p "$NEWROOT/var/lib/ironic-python-agent"
cp /{EXTENSION} "$NEWROOT/var/lib/"
mount -t squashfs -o loop,ro "$NEWROOT/var/lib/{EXTENSION}" "$NEWROOT/var/lib/ironic-python-agent"
mount -t overlay -o "lowerdir=$NEWROOT/var/lib/ironic-python-agent/usr:$NEWROOT/usr" overlay "$NEWROOT/usr"
mkdir -p "$NEWROOT/etc/systemd/system/multi-user.target.wants"
ln -sf /usr/lib/systemd/system/ironic-python-agent.service "$NEWROOT/etc/systemd/system/multi-user.target.wants/"
"""
UNIT = """[Unit]
Description=Ironic Python Agent
After=NetworkManager-wait-online.service
Wants=NetworkManager-wait-online.service

[Service]
ExecStart=/usr/bin/python3 -c 'from ironic_python_agent.cmd.agent import run; run()'
Restart=on-failure
RestartSec=5
StandardOutput=journal+console
StandardError=journal+console
"""
SECTOR = 512
FIRST = 2048  # sectors: where partitions begin
GUIDS = ("5f0c6a1e-3f5e-4c0b-9a55-0d6f4c1b7a01", "5f0c6a1e-3f5e-4c0b-9a55-0d6f4c1b7a02")
"""GUIDs of the disk and of its partition: the same input gives the same image."""
LABEL = "VMEDIA_BOOT_ISO"
"""Of the ISO that Ironic makes."""


def grub_config() -> str:
    """Return what signed GRUB reads, of the ISO that it was started from, or of the EFI system partition on it."""
    return f"EFI/{platform.freedesktop_os_release()['ID']}/grub.cfg"


def environment(made: steps.Steps) -> Path:
    """Return a directory with Ironic and its libraries, for PYTHONPATH of this interpreter."""
    lock = _ROOT / "requirements-ironic.lock"
    key = digests.hash_of([sys.version, digests.digest_path(lock)])
    return made.step("ironic", key, "Ironic", lambda out: _install(lock, out, sys.version.split()[0]))


def images(made: steps.Steps, iso: Path) -> Path:
    """Return a directory with `kernel`, `ramdisk`, `esp.img` and `disk.raw`, made of the lab's base ISO `iso`."""
    lock = _ROOT / "requirements-ironic-agent.lock"
    made_of = (iso, lock, Path(__file__), _HERE / f"{PLUGIN}.py")
    key = digests.hash_of([digests.digest_path(path) for path in made_of])
    return made.step("ironic-images", key, "The ramdisk of Ironic", lambda out: _images(iso, lock, out, made.cache))


def _install(lock: Path, target: Path, python: str) -> None:
    """Install what is locked for a version of Python into a directory, as wheels only."""
    distro.run(
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
        "--only-binary=:all:", "--python-version", python, "--target", target, "--requirement", lock,
    )  # fmt: skip


def _images(iso: Path, lock: Path, out: Path, cache: Path) -> None:
    host = distro.host()
    work = out / "work"
    parts = {name: work / name for name in ("vmlinuz", "initrd.img", "rootfs.img")}
    work.mkdir()
    with LiveIso(iso) as live:
        for name, path in parts.items():
            live.fs.extract(live.fs.find_file(f"images/pxeboot/{name}"), path)
    apt = debs.Apt(host, cache / "apt")
    tree = work / "tree"
    debs.unpack(apt.download(*PROGRAMS, dependencies=False), tree, merged_usr=True)
    shutil.rmtree(tree / "usr/share/doc", ignore_errors=True)
    python = distro.run("/usr/bin/python3", "-c", "import platform; print(platform.python_version())").strip()
    packages = tree / "usr/lib/python3/dist-packages"
    _install(lock, packages, python)
    shutil.rmtree(packages / "bin")
    _plug_in(packages)
    distro.run(
        "/usr/bin/python3", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", packages
    )
    unit = tree / "usr/lib/systemd/system/ironic-python-agent.service"
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(UNIT)
    rootfs.squash(tree, work / EXTENSION)
    parts["vmlinuz"].rename(out / "kernel")
    with (out / "ramdisk").open("wb") as stream:
        for name in ("initrd.img", "rootfs.img"):
            with parts[name].open("rb") as part:
                shutil.copyfileobj(part, stream)
            stream.write(b"\0" * (-stream.tell() % 4))
        cpio.add_file(stream, EXTENSION, work / EXTENSION)
        for folder in ("usr", "usr/lib", "usr/lib/dracut", "usr/lib/dracut/hooks", "usr/lib/dracut/hooks/pre-pivot"):
            cpio.add_bytes(stream, folder, b"", 0o040755)
        cpio.add_bytes(stream, "usr/lib/dracut/hooks/pre-pivot/50-ironic-python-agent.sh", HOOK.encode())
        cpio.end(stream)
    loaders = _loaders(iso, work)
    search = f"search --no-floppy --set=root --label {LABEL}\nconfigfile ($root)/{grub_config()}\n"
    bootloader.fat_image(out / "esp.img", {**loaders, grub_config(): search.encode()}, "ESP")
    _disk(out, loaders, host, {name: parts[name] for name in ("initrd.img", "rootfs.img")})
    shutil.rmtree(work)


def _plug_in(packages: Path) -> None:
    """Add the hardware manager, which the agent finds by an entry point of installed packages."""
    shutil.copyfile(_HERE / f"{PLUGIN}.py", packages / f"agentlab_{PLUGIN}.py")
    facts = packages / f"agentlab_{PLUGIN}-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: agentlab-{PLUGIN.replace('_', '-')}\nVersion: 1\n")
    manager = f"{PLUGIN} = agentlab_{PLUGIN}:InstallCoreos"
    (facts / "entry_points.txt").write_text(f"[ironic_python_agent.hardware_managers]\n{manager}\n")


def _loaders(iso: Path, work: Path) -> dict[str, Path | bytes]:
    """Return shim and signed GRUB, by their paths in an EFI system partition, from the one of the ISO."""
    image = work / "efiboot.img"
    with LiveIso(iso) as live:
        live.fs.extract(live.fs.find_file("images/efiboot.img"), image)
    found: dict[str, Path | bytes] = {}
    for name in ("BOOTX64.EFI", "grubx64.efi"):
        distro.run("mcopy", "-n", "-i", image, f"::EFI/BOOT/{name}", work / name)
        found[f"EFI/BOOT/{name}"] = work / name
    return found


def _disk(out: Path, loaders: dict[str, Path | bytes], host: distro.Distro, parts: dict[str, Path]) -> None:
    """Write `disk.raw`: a GPT with an EFI system partition, from which GRUB boots the lab's OS."""
    grub = f"set timeout=0\nmenuentry 'lab OS' {{\n  linux /vmlinuz {KARGS} {MARK}=1\n  initrd /initrd.img /rootfs.img\n}}\n"
    esp, disk = out / "work/partition.img", out / "disk.raw"
    files = {**loaders, grub_config(): grub.encode(), "vmlinuz": out / "kernel", **parts}
    bootloader.fat_image(esp, files, "ESP")
    size = esp.stat().st_size // SECTOR
    with disk.open("wb") as stream:
        stream.truncate((size + 2 * FIRST) * SECTOR)
        stream.seek(FIRST * SECTOR)
        with esp.open("rb") as part:
            shutil.copyfileobj(part, stream)
    # The programs of the ramdisk are of the host's distribution.
    tree = out / "work/tree/usr"
    libraries = f"LD_LIBRARY_PATH={tree}/lib/{host.triplet}"
    table = (
        f"--new=1:{FIRST}:{FIRST + size - 1}",
        "--typecode=1:ef00",
        f"--disk-guid={GUIDS[0]}",
        f"--partition-guid=1:{GUIDS[1]}",
    )
    distro.run("env", libraries, tree / "sbin/sgdisk", *table, disk)


def main(argv: list[str] | None = None) -> int:
    """Make Ironic and the images for a base ISO; print their directories as JSON: `ironic` and `ironic_images`."""
    parser = argparse.ArgumentParser(prog="payload.ipi.images", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("iso", type=Path)
    for name in ("json", "progress"):
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    usual_umask()
    made = steps.Steps(steps.cache_root(), lambda text: print(text, file=sys.stderr, flush=True))
    try:
        with steps.lock(made.cache / "lock", made.report):
            print(json.dumps({"ironic": str(environment(made)), "ironic_images": str(images(made, args.iso))}))
    except (distro.BuildError, OSError) as error:
        print(f"agentlab payload: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
