"""A guest in a few hundred bytes: a UEFI program that prints a line on the serial console, waits for a byte there, and resets."""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path

import pycdlib
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm

CODE = 0x200


def program(line: str) -> bytes:
    text = line.encode() + b"\r\n"
    # Without interrupts, or the firmware's terminal driver reads what is meant for us.
    wait = b"\x66\xba\xfd\x03\xec\xa8\x01\x74\xf7"  # mov dx,3fdh; in al,dx; test al,1; jz
    reset = b"\x66\xba\xf9\x0c\xb0\x06\xee\xf4\xeb\xfd"  # mov dx,cf9h; mov al,6; out dx,al; hlt
    say = b"\xb9" + struct.pack("<I", len(text)) + b"\xac\x66\xba\xf8\x03\xee\xff\xc9\x75\xf6"  # lodsb; out 3f8h
    rest = say + wait + reset
    code = b"\xfa\x48\x8d\x35" + struct.pack("<i", len(rest)) + rest + text  # cli; lea rsi,[text]
    return kvm.efi_program()[:CODE] + code.ljust(CODE, b"\0")


def disk(line: str) -> bytes:
    """Return a bootable disk image."""
    return kvm.fat_disk(program(line))


def iso(path: Path, line: str) -> None:
    """Write a bootable ISO."""
    image = disk(line)
    made = pycdlib.PyCdlib()
    made.new(interchange_level=3, vol_ident="AGENT")
    made.add_fp(io.BytesIO(image), len(image), "/EFIBOOT.IMG;1")
    made.add_eltorito("/EFIBOOT.IMG;1", efi=True, platform_id=0xEF, boot_load_size=len(image) // 512)
    made.write(str(path))
    made.close()


if __name__ == "__main__":
    iso(Path(sys.argv[1]), sys.argv[2])
