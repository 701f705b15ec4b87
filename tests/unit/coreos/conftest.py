"""A live ISO in the CoreOS layout, small, with both trees, boot entries and a hybrid MBR."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pycdlib
import pytest

KARGS = "coreos.liveiso=lab-1.0 ignition.firstboot ignition.platform.id=metal"
LENGTH = 400
MARK = "# COREOS_KARG_EMBED_AREA\n"
ROOTFS = bytes(range(256)) * 64


def _area(head: str, tail: str) -> tuple[bytes, int]:
    text = head + (KARGS + "\n").ljust(LENGTH, "#") + MARK + tail
    return text.encode(), len(head)


def build(path: Path, area: int = 1 << 16, drop: tuple[str, ...] = (), igninfo: str | None = None) -> Path:
    grub, grub_at = _area(
        "menuentry {\n\tlinux /images/pxeboot/vmlinuz ", "\tinitrd /images/pxeboot/initrd.img /images/ignition.img\n}\n"
    )
    linux, linux_at = _area(
        "label linux\n  append initrd=/images/pxeboot/initrd.img,/images/ignition.img ", "\nmenu end\n"
    )
    kargs = {
        "default": KARGS,
        "files": [
            {"path": "EFI/redhat/grub.cfg", "offset": grub_at},
            {"path": "isolinux/isolinux.cfg", "offset": linux_at, "pad": "#", "end": "\n"},
        ],
        "size": LENGTH,
    }
    files = {
        "coreos/features.json": json.dumps({"installer-config": True, "live-initrd-network": True}).encode(),
        "coreos/igninfo.json": (igninfo or json.dumps({"file": "images/ignition.img"})).encode(),
        "coreos/kargs.json": json.dumps(kargs, indent=2).encode(),
        "coreos/miniso.dat": bytes(16384),
        "EFI/redhat/grub.cfg": grub,
        "isolinux/isolinux.cfg": linux,
        "isolinux/isolinux.bin": b"\xeb" + bytes(2047) + struct.pack("<I", 0x70),
        "images/efiboot.img": b"FAT" * 700,
        "images/ignition.img": bytes(area),
        "images/pxeboot/vmlinuz": b"kernel" * 100,
        "images/pxeboot/initrd.img": b"070701" + b"i" * 1234,
        "images/pxeboot/rootfs.img": ROOTFS,
    }
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=1, rock_ridge="1.09", joliet=3, vol_ident="lab-1.0")
    for folder in ("coreos", "EFI", "EFI/redhat", "isolinux", "images", "images/pxeboot"):
        iso.add_directory(f"/{folder.upper()}", rr_name=folder.rpartition("/")[2], joliet_path=f"/{folder}")
    for name, data in files.items():
        if name not in drop:
            folder, __, file = name.rpartition("/")
            stem, __, extension = file.upper().partition(".")
            plain = f"/{folder.upper()}/{stem[:8]}.{extension[:3]};1"
            iso.add_fp(io.BytesIO(data), len(data), plain, rr_name=file, joliet_path=f"/{name}")
    iso.add_eltorito(
        "/ISOLINUX/ISOLINUX.BIN;1",
        bootcatfile="/ISOLINUX/BOOT.CAT;1",
        rr_bootcatname="boot.cat",
        joliet_bootcatfile="/isolinux/boot.cat",
        boot_load_size=4,
        boot_info_table=True,
    )
    iso.add_eltorito("/IMAGES/EFIBOOT.IMG;1", efi=True)
    iso.write(str(path))
    iso.close()
    with path.open("r+b") as image:
        image.seek(446)
        image.write(struct.pack("<B3sB3sII", 0x80, b"\0\1\0", 0x17, b"\xfe\xff\xff", 0, path.stat().st_size // 512))
        image.seek(510)
        image.write(b"\x55\xaa")
    return path


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ISO that no test may change."""
    return build(tmp_path_factory.mktemp("iso") / "lab.iso")


@pytest.fixture
def iso(pristine: Path, tmp_path: Path) -> Path:
    """A copy for this test."""
    path = tmp_path / "lab.iso"
    path.write_bytes(pristine.read_bytes())
    return path


@pytest.fixture
def make_iso(tmp_path: Path):
    """Build another one."""

    def make(name: str = "other.iso", **options) -> Path:
        return build(tmp_path / name, **options)

    return make
