"""The live ISO: CoreOS's layout, read by coreos-installer, assisted-image-service and this collection's `coreos` library."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pycdlib

from ...plugins.module_utils.coreos import miniso
from ...plugins.module_utils.vocabulary import REGISTRY
from . import bootloader, cpio

EMBED_AREA = 256 * 1024
RECIPE = 16 * 1024  # space for the recipe of the minimal ISO
ROOTFS = "images/pxeboot/rootfs.img"
SQUASHFS_OFFSET = 124
# An emulated machine is slow and shares its host: disable checks that treat slowness as an error.
KARGS = "mitigations=off no_timer_check nowatchdog"


def default_kargs(volume_id: str) -> str:
    return (
        f"coreos.liveiso={volume_id} ignition.firstboot ignition.platform.id=metal console=ttyS0,115200n8 quiet {KARGS}"
    )


def rootfs_image(squashfs: Path, stamp: str, out: Path) -> None:
    """rootfs.img: an uncompressed cpio whose first member is the squashfs, so that it can be mounted in place at byte 124."""
    with out.open("wb") as stream:
        cpio.add_file(stream, "root.squashfs", squashfs)
        cpio.add_bytes(stream, "etc", b"", 0o040755)
        cpio.add_bytes(stream, "etc/coreos-live-rootfs", stamp.encode() + b"\n")
        cpio.end(stream)
    with out.open("rb") as stream:
        stream.seek(SQUASHFS_OFFSET)
        assert stream.read(4) == b"hsqs"


def build(
    out: Path,
    volume_id: str,
    *,
    vmlinuz: Path,
    initrd: Path,
    rootfs: Path,
    efiboot: Path,
    isolinux: dict[str, Path],
    efi: dict[str, bytes],
) -> None:
    """Write the ISO, with the recipe of the minimal ISO, which is the same without the root file system.

    isolinux: boot loader of BIOS, by the names in its folder. efi: configs of signed GRUB (`bootloader.cd_config`).
    """
    kargs = default_kargs(volume_id)
    configs = {
        f"EFI/{bootloader.VENDOR}/grub.cfg": bootloader.grub_cfg(kargs),
        "isolinux/isolinux.cfg": bootloader.isolinux_cfg(kargs),
    }
    kargs_json = {
        "default": kargs,
        "files": [
            {"path": path, "offset": text.index(kargs), "pad": "#", "end": "\n"} for path, text in configs.items()
        ],
        "size": bootloader.KARG_AREA,
    }
    files: dict[str, Path | bytes] = {
        "coreos/igninfo.json": _json({"file": "images/ignition.img"}),
        "coreos/kargs.json": _json(kargs_json),
        "coreos/features.json": _json({"live-initrd-network": True}),
        "images/ignition.img": b"\0" * EMBED_AREA,
        "images/efiboot.img": efiboot,
        "images/pxeboot/vmlinuz": vmlinuz,
        "images/pxeboot/initrd.img": initrd,
        ROOTFS: rootfs,
        **{path: text.encode() for path, text in configs.items()},
        **{f"isolinux/{name}": source for name, source in isolinux.items()},
        **efi,
    }
    minimal = out.with_suffix(".minimal")
    _write(minimal, volume_id, {path: data for path, data in files.items() if path != ROOTFS})
    _write(out, volume_id, {**files, miniso.PATH: bytes(RECIPE)})
    miniso.pack(out, minimal)
    minimal.unlink()


def _write(out: Path, volume_id: str, files: dict[str, Path | bytes]) -> None:
    """BIOS (isolinux) and UEFI (GRUB), primary tree in 8.3 upper case, Rock Ridge and Joliet."""
    image = pycdlib.PyCdlib()
    image.new(interchange_level=1, vol_ident=volume_id, joliet=3, rock_ridge="1.09", sys_ident="LINUX")
    made: set[str] = set()
    for path in sorted(files):
        parents = path.split("/")[:-1]
        for depth in range(len(parents)):
            parent = "/".join(parents[: depth + 1])
            if parent not in made:
                made.add(parent)
                image.add_directory(
                    "/" + _iso_name(parent, directory=True), rr_name=parents[depth], joliet_path="/" + parent
                )
        names = {"iso_path": "/" + _iso_name(path), "rr_name": path.rsplit("/", 1)[-1], "joliet_path": "/" + path}
        data = files[path]
        if isinstance(data, bytes):
            image.add_fp(BytesIO(data), len(data), **names)  # type: ignore[arg-type]
        else:
            image.add_file(str(data), **names)  # type: ignore[arg-type]
    image.add_eltorito(
        "/" + _iso_name("isolinux/isolinux.bin"),
        bootcatfile="/ISOLINUX/BOOT.CAT;1",
        rr_bootcatname="boot.cat",
        joliet_bootcatfile="/isolinux/boot.cat",
        boot_load_size=4,
        boot_info_table=True,
    )
    image.add_eltorito("/" + _iso_name("images/efiboot.img"), efi=True, platform_id=0xEF)
    image.write(str(out))
    image.close()


def _iso_name(path: str, directory: bool = False) -> str:
    """A path in ISO 9660 level 1: eight and three characters, upper case."""
    words = path.upper().replace("-", "_").split("/")
    folders = [word[:8] for word in words[:-1]]
    if directory:
        return "/".join([*folders, words[-1][:8]])
    stem, __, suffix = words[-1].rpartition(".") if "." in words[-1] else (words[-1], "", "")
    return "/".join([*folders, f"{stem[:8]}.{suffix[:3]};1"])


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def stream(version: str, name: str, sha256: str) -> bytes:
    """coreos-stream.json: the stream metadata next to the ISO in machine-os-images."""
    disk = {"location": f"https://{REGISTRY}/{name}", "sha256": sha256}
    return _json(
        {
            "stream": "lab",
            "metadata": {"last-modified": "1970-01-01T00:00:00Z", "generator": "agentlab"},
            "architectures": {
                "x86_64": {"artifacts": {"metal": {"release": version, "formats": {"iso": {"disk": disk}}}}}
            },
        }
    )
