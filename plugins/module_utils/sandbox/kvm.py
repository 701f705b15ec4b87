"""Whether guests boot on KVM here: tested with a guest.

An accessible `/dev/kvm` proves little: nested KVM often starts a guest and fails at the first instruction that it must emulate.
So a guest of ours boots as a node does, by the distribution's UEFI, from a disk with one UEFI program, which ends QEMU
through the debug-exit device. The result is cached for this boot of the host (`<cache>/kvm.json`).
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TypedDict

from ..documents import load_json, read_file
from ..files import cache_directory
from ..state import write_atomic

LIMIT_SECONDS = 25.0
_PORT, _VALUE = 0xF4, 0x10
_EXIT = _VALUE << 1 | 1


class Answer(TypedDict):
    """Whether /dev/kvm is usable, as a file keeps it until the next boot.

    boot_id: of the kernel, by which it is known for which boot it holds; seconds: how long the test took.
    """

    boot_id: str
    usable: bool
    reason: str
    seconds: float


def domain_type(wanted: str, cache: Path | None = None) -> str:
    """Return libvirt's domain type for `wanted`: itself if it is `kvm` or `qemu`, for `auto` what works.

    cache: directory of the result, see `usable`. For `auto` the first call may take up to `LIMIT_SECONDS`.
    """
    if wanted != "auto":
        return wanted
    return "kvm" if usable(cache)["usable"] else "qemu"


def usable(cache: Path | None = None) -> Answer:
    """Return whether a guest boots on KVM, and why not; tested once for each boot of the host.

    cache: directory for `kvm.json`, that of the user by default. Raises `OSError` when it cannot be written.
    """
    path = (cache or cache_directory()) / "kvm.json"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
        known: Answer = load_json(read_file(path), name=str(path))
        if known["boot_id"] == boot_id:
            return known
    begin = time.monotonic()
    reason = attempt("kvm")
    answer: Answer = {
        "boot_id": boot_id,
        "usable": not reason,
        "reason": reason or "a guest booted",
        "seconds": round(time.monotonic() - begin, 1),
    }
    write_atomic(path, json.dumps(answer) + "\n")
    return answer


def attempt(accelerator: str, limit: float = LIMIT_SECONDS) -> str | None:
    """Boot the trial guest with `accelerator`; return None if it did, else the reason.

    accelerator: of QEMU, `kvm` or `tcg`; limit: seconds. The guest has 128 MiB and no network.
    """
    if accelerator == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "/dev/kvm is missing or not accessible"
    qemu = shutil.which("qemu-system-x86_64")
    if not qemu:
        return "qemu-system-x86_64 is not installed"
    with tempfile.TemporaryDirectory(prefix="agentlab-kvm-") as scratch:
        disk, errors = Path(scratch) / "disk", Path(scratch) / "errors"
        disk.write_bytes(fat_disk(efi_program()))
        command = [
            *(
                qemu,
                "-accel",
                accelerator,
                "-machine",
                "q35",
                "-m",
                "128",
                "-nodefaults",
                "-display",
                "none",
                "-no-reboot",
            ),
            *(["-cpu", "host"] if accelerator == "kvm" else []),
            *_firmware(Path(scratch)),
            *("-drive", f"file={disk},format=raw,if=none,id=d", "-device", "virtio-blk-pci,drive=d,bootindex=1"),
            *("-device", f"isa-debug-exit,iobase={_PORT:#x},iosize=4"),
        ]
        with open(errors, "wb") as stream:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd="/")
        try:
            return _outcome(process, errors, limit)
        finally:
            process.kill()
            process.wait()


def _outcome(process: subprocess.Popen[bytes], errors: Path, limit: float) -> str | None:
    deadline = time.monotonic() + limit
    while process.poll() is None:
        # After an internal error of KVM, QEMU stays, with the guest paused.
        if b"KVM internal error" in errors.read_bytes():
            break
        if time.monotonic() > deadline:
            return f"the trial guest did not boot within {limit:.0f} s"
        time.sleep(0.05)
    if process.poll() == _EXIT:
        return None
    lines = errors.read_text(errors="replace").strip().splitlines()
    return " ".join(lines[:2]) or f"QEMU exited with code {process.poll()}"


def _firmware(scratch: Path) -> list[str]:
    """Return QEMU's arguments for UEFI as the distribution describes it (QEMU's firmware.json), or nothing for a BIOS."""
    for path in sorted(glob.glob("/usr/share/qemu/firmware/*.json")):
        described = load_json(read_file(Path(path)), name=path)
        mapping = described.get("mapping", {})
        if (
            "uefi" not in described.get("interface-types", [])
            or mapping.get("device") != "flash"
            or "nvram-template" not in mapping
            or {"requires-smm", "enrolled-keys"} & set(described.get("features", []))
            or not any(target["architecture"] == "x86_64" for target in described.get("targets", []))
        ):
            continue
        if mapping["executable"].get("format", "raw") != "raw":
            continue
        variables = scratch / "vars"
        shutil.copyfile(mapping["nvram-template"]["filename"], variables)
        return [
            *("-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={mapping['executable']['filename']}"),
            *("-drive", f"if=pflash,unit=1,format=raw,file={variables}"),
        ]
    return []


def efi_program() -> bytes:
    """Return a UEFI application (PE32+, x86-64) that writes a byte to the debug-exit port and halts.

    The exit status of QEMU is then `_EXIT`. The format is Microsoft's PE/COFF, with one section and no relocations.
    """
    code = bytes([0x66, 0xBA]) + struct.pack("<H", _PORT) + bytes([0xB0, _VALUE, 0xEE, 0xF4, 0xEB, 0xFD])
    align, base = 0x200, 0x1000
    dos = b"MZ" + bytes(58) + struct.pack("<I", 64)
    coff = struct.pack("<4sHHIIIHH", b"PE\0\0", 0x8664, 1, 0, 0, 0, 240, 0x0226)
    optional = struct.pack("<HBBIIIII", 0x20B, 0, 0, align, 0, 0, base, base)
    optional += struct.pack("<QIIHHHHHHIIIIHH", 0, base, align, 0, 0, 0, 0, 0, 0, 0, 2 * base, align, 0, 10, 0)
    optional += struct.pack("<QQQQII", 0, 0, 0, 0, 0, 16) + bytes(128)
    section = struct.pack("<8sIIIIIIHHI", b".text", align, base, align, align, 0, 0, 0, 0, 0x60000020)
    headers = dos + coff + optional + section
    return headers.ljust(align, b"\0") + code.ljust(align, b"\0")


def fat_disk(program: bytes) -> bytes:
    r"""Return a FAT12 disk image of 1.44 MB with `program` as `\EFI\BOOT\BOOTX64.EFI`."""
    sector, sectors, fat_sectors, root_entries = 512, 2880, 9, 224
    boot = b"\xeb\x3c\x90" + b"AGENTLAB"
    boot += struct.pack("<HBHBHHBHHHII", sector, 1, 1, 2, root_entries, sectors, 0xF0, fat_sectors, 18, 2, 0, 0)
    boot += struct.pack("<BBBI11s8s", 0, 0, 0x29, 1, b"AGENTLAB   ", b"FAT12   ")
    boot = boot.ljust(510, b"\0") + b"\x55\xaa"
    clusters = -(-len(program) // sector)
    chain = [0xFF0, 0xFFF, 0xFFF, 0xFFF, *(range(5, 4 + clusters)), 0xFFF]
    if len(chain) % 2:
        chain.append(0)
    fat = bytearray()
    for low, high in zip(chain[::2], chain[1::2], strict=True):
        fat += struct.pack("<I", low | high << 12)[:3]
    table = bytes(fat).ljust(fat_sectors * sector, b"\0")

    def entry(name: bytes, attributes: int, cluster: int, size: int = 0) -> bytes:
        return struct.pack("<11sB10xHHHI", name, attributes, 0, 0, cluster, size)

    def folder(own: int, parent: int, *entries: bytes) -> bytes:
        dots = entry(b".          ", 0x10, own) + entry(b"..         ", 0x10, parent)
        return (dots + b"".join(entries)).ljust(sector, b"\0")

    root = entry(b"EFI        ", 0x10, 2).ljust(root_entries * 32, b"\0")
    data = folder(2, 0, entry(b"BOOT       ", 0x10, 3))
    data += folder(3, 2, entry(b"BOOTX64 EFI", 0x20, 4, len(program))) + program
    return (boot + table + table + root + data).ljust(sectors * sector, b"\0")
