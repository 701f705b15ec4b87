"""The agent installer's minimal ISO: without the root file system, which the machine fetches from a URL, and its restoration.

Unlike upstream's recipe in `miniso`, it has space for another initramfs, `images/assisted_installer_custom.img`, that the
boot loaders load after the others.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import kargs
from .build import rebuild
from .errors import CoreosError, NotFound
from .image import pread
from .iso import ROOTFS_PATH, LiveIso

CUSTOM_PATH = "images/assisted_installer_custom.img"
_CUSTOM_SIZE = 1 << 20
_SPARE = 256


def _with_initrd(text: str) -> str:
    """Add the custom archive to every line that names initramfs images: GRUB's `initrd`, isolinux's `initrd=`."""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        word = line.lstrip().split(" ", 1)[0]
        if CUSTOM_PATH in line:
            continue
        if word.startswith("initrd"):
            lines[index] = f"{line} /{CUSTOM_PATH}"
        elif word == "append" and "initrd=" in line:
            head, __, tail = line.partition("initrd=")
            images, blank, rest = tail.partition(" ")
            lines[index] = f"{head}initrd={images},/{CUSTOM_PATH}{blank}{rest}"
    return "\n".join(lines)


def _boot_files(iso: LiveIso, arguments: str, custom: bool) -> dict[str, bytes]:
    """Return the boot loaders' files, and kargs.json, with these arguments as current and default ones."""
    present = kargs.require_kargs(iso.kargs)
    try:
        info: dict[str, Any] = kargs.json_object(iso.fs.read(kargs.INFO_PATH), kargs.INFO_PATH)
    except NotFound:
        raise CoreosError(f"this ISO has no {kargs.INFO_PATH}; its arguments cannot be changed permanently") from None
    needed = len(arguments.encode()) + 1
    length = present.length if needed <= present.length else needed + _SPARE
    written: dict[str, bytes] = {}
    for place in info["files"]:
        record = iso.fs.find_file(place["path"])
        raw = written.get(place["path"]) or pread(iso.fd, record.size, record.offset)
        offset = place["offset"]
        try:
            before, after = raw[:offset].decode(), raw[offset + present.length :].decode()
        except UnicodeDecodeError:
            raise CoreosError(f"{place['path']} is not text; this image's arguments cannot be moved") from None
        if custom:
            line, newline, rest = after.partition("\n")
            before, after = _with_initrd(before), line + newline + _with_initrd(rest)
        place["offset"] = len(before.encode())
        area = kargs.KargsArea(0, place.get("pad"), place.get("end"))
        written[place["path"]] = before.encode() + area.format(arguments, length) + after.encode()
    info |= {"default": arguments, "size": length}
    return written | {kargs.INFO_PATH: json.dumps(info, indent=2, ensure_ascii=False).encode()}


def make(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    rootfs_url: str,
    overwrite: bool = False,
    mode: int = 0o600,
) -> None:
    """Write the minimal form of a full live ISO to a new file. Customizations of the full ISO are kept.

    Without rootfs_url, the user must add the kernel argument `coreos.live.rootfs_url` at boot.
    Raises `CoreosError` for a URL with `$`, a backslash, quotes or blanks, and for images without kernel-argument areas.
    """
    if any(c in '$\\"' or c.isspace() for c in rootfs_url):
        raise CoreosError(f"root file system URL {rootfs_url!r} must not contain $, backslashes, quotes or blanks")
    with LiveIso(source) as iso:
        words = [w for w in kargs.require_kargs(iso.kargs).current.split() if not w.startswith("coreos.liveiso=")]
        if rootfs_url:
            words.append(f'coreos.live.rootfs_url="{rootfs_url}"')
        arguments = " ".join(words)
        files = _boot_files(iso, arguments, custom=True)
        rebuild(source, output, {**files, CUSTOM_PATH: bytes(_CUSTOM_SIZE)}, [ROOTFS_PATH], overwrite, mode)


def restore(
    source: str | os.PathLike[str],
    rootfs: str | os.PathLike[str],
    output: str | os.PathLike[str],
    overwrite: bool = False,
    mode: int = 0o600,
) -> None:
    """Write a full live ISO of a minimal one, of either form, and its root file system.

    `rootfs` is the path of the root file system. The arguments get `coreos.liveiso` in the place of the URL of the root
    file system.
    """
    with LiveIso(source) as iso:
        dropped = ("coreos.live.rootfs_url=", "coreos.liveiso=")
        words = [w for w in kargs.require_kargs(iso.kargs).current.split() if not w.startswith(dropped)]
        arguments = " ".join([f"coreos.liveiso={iso.fs.volume_id}", *words])
        rebuild(
            source,
            output,
            {**_boot_files(iso, arguments, custom=False), ROOTFS_PATH: Path(rootfs)},
            overwrite=overwrite,
            mode=mode,
        )
