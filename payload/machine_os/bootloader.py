"""GRUB and isolinux: images and configurations of the ISO and of the disk."""

from __future__ import annotations

from pathlib import Path

from .distro import run

KARG_AREA = 1139  # coreos/kargs.json "size" of Fedora and RHEL CoreOS
KARG_MARK = "# COREOS_KARG_EMBED_AREA"
VENDOR = "redhat"  # EFI/<vendor>/grub.cfg, as in RHEL CoreOS

_CD_MODULES = (
    "iso9660",
    "part_gpt",
    "part_msdos",
    "fat",
    "normal",
    "configfile",
    "linux",
    "search",
    "search_label",
    "test",
    "echo",
    "boot",
    "serial",
    "terminal",
    "sleep",
    "reboot",
    "halt",
    "ls",
    "cat",
    "minicmd",
)
_DISK_MODULES = (
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
)


def grub_image(parts: Path, platform: str, modules: tuple[str, ...], config: str, out: Path) -> None:
    """A stand-alone GRUB image for `platform` (x86_64-efi, i386-pc) that runs `config` first."""
    early = out.with_suffix(".early")
    early.write_text(config)
    extra = ("efi_gop",) if platform == "x86_64-efi" else ("biosdisk",)
    run(
        parts / "usr/bin/grub-mkimage",
        "-d",
        parts / "usr/lib/grub" / platform,
        "-O",
        platform,
        "-p",
        "/EFI/BOOT",
        "-c",
        early,
        "-o",
        out,
        *modules,
        *extra,
    )
    early.unlink()


def cd_efi(parts: Path, volume_id: str, out: Path) -> None:
    """GRUB for efiboot.img: reads EFI/<vendor>/grub.cfg of the ISO labelled `volume_id`."""
    grub_image(
        parts,
        "x86_64-efi",
        _CD_MODULES,
        f"search --no-floppy --set=root --label {volume_id}\nset prefix=($root)/EFI/{VENDOR}\nconfigfile ($root)/EFI/{VENDOR}/grub.cfg\n",
        out,
    )


def disk_efi(parts: Path, out: Path) -> None:
    """GRUB for the ESP of a disk, from which it was started: reads grub.cfg of the boot file system that EFI/BOOT/boot.cfg names."""
    grub_image(parts, "x86_64-efi", _DISK_MODULES, "configfile $prefix/boot.cfg\n", out)


def disk_bios(parts: Path, out: Path) -> tuple[Path, Path]:
    """boot.img and core.img for the MBR gap of a GPT disk (BIOS boot partition): `out` is core.img's path."""
    grub_image(
        parts,
        "i386-pc",
        _DISK_MODULES,
        "search --no-floppy --set=root --label boot\nconfigfile ($root)/grub2/grub.cfg\n",
        out,
    )
    return parts / "usr/lib/grub/i386-pc/boot.img", out


def fat_image(out: Path, files: dict[str, Path | bytes], label: str, kib: int | None = None) -> None:
    """A FAT image with `files` (path -> content), written by mtools."""
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
    """Return the kernel arguments with padding: the area that coreos-installer rewrites, then its marker."""
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
