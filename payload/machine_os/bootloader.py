"""GRUB and isolinux: images and configurations of the ISO and of the disk."""

from __future__ import annotations

from pathlib import Path

from .distro import BuildError, Distro, run

KARG_AREA = 1139  # coreos/kargs.json "size" of Fedora and RHEL CoreOS
KARG_MARK = "# COREOS_KARG_EMBED_AREA"
VENDOR = "redhat"  # EFI/<vendor>/grub.cfg, as in RHEL CoreOS

_BIOS_MODULES = (
    "ext2",
    "part_gpt",
    "fat",
    "normal",
    "configfile",
    "linux",
    "search",
    "search_fs_uuid",
    "search_label",
    "test",
    "echo",
    "boot",
    "serial",
    "terminal",
    "reboot",
    "halt",
    "ls",
    "cat",
    "minicmd",
    "biosdisk",
)


def efi(parts: Path, distro: Distro) -> dict[str, Path | bytes]:
    """Return the boot loaders of an EFI system partition, by their paths in it: shim, and GRUB with the distribution's signature.

    Firmware with Microsoft's keys starts shim with secure boot on; shim starts GRUB, which starts the distribution's kernel.
    GRUB reads EFI/<ID of the distribution>/grub.cfg of the file system that it was started from; what is there chooses
    the real configuration. Raises BuildError without one of the two.
    """
    return {
        "EFI/BOOT/BOOTX64.EFI": _first(
            parts, "usr/lib/shim/shimx64.efi.signed.latest", "usr/lib/shim/shimx64.efi.signed"
        ),
        "EFI/BOOT/grubx64.efi": _first(parts, "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"),
        f"EFI/{distro.id}/grub.cfg": b"",
    }


def _first(parts: Path, *names: str) -> Path:
    for name in names:
        if (parts / name).is_file():
            return parts / name
    raise BuildError(f"the packages have no {names[-1]}")


def cd_config(distro: Distro, volume_id: str) -> dict[str, bytes]:
    """Return what signed GRUB reads, by its path: it continues with EFI/<vendor>/grub.cfg of the ISO labelled `volume_id`.

    Both the ISO and efiboot.img have it: GRUB takes the ISO for what it was started from, other firmware the image.
    """
    folder = f"($root)/EFI/{VENDOR}"
    config = f"search --no-floppy --set=root --label {volume_id}\nset prefix={folder}\nconfigfile {folder}/grub.cfg\n"
    return {f"EFI/{distro.id}/grub.cfg": config.encode()}


def disk_efi(parts: Path, distro: Distro, out: Path) -> None:
    """Write the EFI system partition of a disk to folder `out`; the installer writes its grub.cfg."""
    for name, content in efi(parts, distro).items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.read_bytes())


def disk_bios(parts: Path, out: Path) -> tuple[Path, Path]:
    """Return the paths of boot.img and core.img for a GPT disk that BIOS boots.

    parts: the unpacked packages of GRUB; out: core.img's path, which goes into the BIOS boot partition. Raises
    BuildError.
    """
    early = out.with_suffix(".early")
    early.write_text("search --no-floppy --set=root --label boot\nconfigfile ($root)/grub2/grub.cfg\n")
    folder = parts / "usr/lib/grub/i386-pc"
    make = parts / "usr/bin/grub-mkimage"
    run(make, "-d", folder, "-O", "i386-pc", "-p", "/EFI/BOOT", "-c", early, "-o", out, *_BIOS_MODULES)
    early.unlink()
    return folder / "boot.img", out


def fat_image(out: Path, files: dict[str, Path | bytes], label: str, kib: int | None = None) -> None:
    """Write a FAT image, with mtools.

    files: path -> content, or a file with it; label: of the file system; kib: size of the image, by default what the
    files need with some space. Its serial number is fixed, so that the same content gives the same image.
    """
    sizes = sum(len(data) if isinstance(data, bytes) else data.stat().st_size for data in files.values())
    total = kib or (sizes // 1024 + 256 + 63) // 64 * 64
    out.unlink(missing_ok=True)
    with out.open("wb") as stream:
        stream.truncate(total * 1024)
    run("mformat", "-i", out, "-T", str(total * 2), "-v", label, "-N", "20240101", "::")
    made: set[str] = set()
    for name, data in files.items():
        parents = name.split("/")[:-1]
        for depth in range(len(parents)):
            parent = "/".join(parents[: depth + 1])
            if parent not in made:
                made.add(parent)
                run("mmd", "-i", out, f"::{parent}")
        source = out.with_suffix(".part")
        if isinstance(data, bytes):
            source.write_bytes(data)
        run("mcopy", "-i", out, data if isinstance(data, Path) else source, f"::{name}")
        source.unlink(missing_ok=True)


def area(kargs: str) -> str:
    """Return the kernel arguments with padding: the area that coreos-installer rewrites, then its marker.

    kargs: at most KARG_AREA characters less one.
    """
    return kargs + "\n" + "#" * (KARG_AREA - len(kargs) - 1) + KARG_MARK + "\n"


def grub_cfg(kargs: str) -> str:
    return (
        "set timeout=0\nset default=0\n"
        "menuentry 'machine-os (Live)' --class fedora --class gnu-linux --class gnu --class os {\n"
        f"\tlinux /images/pxeboot/vmlinuz {area(kargs)}"
        "\tinitrd /images/pxeboot/initrd.img /images/ignition.img\n}\n"
    )


def isolinux_cfg(kargs: str) -> str:
    return (
        "serial 0\ndefault linux\nprompt 0\ntimeout 1\n\nlabel linux\n  menu label ^machine-os (Live)\n  menu default\n"
        "  kernel /images/pxeboot/vmlinuz\n"
        f"  append initrd=/images/pxeboot/initrd.img,/images/ignition.img {area(kargs)}"
    )
