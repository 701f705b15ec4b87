"""A guest in a few hundred bytes: a UEFI program that prints a line on the serial console, waits for a byte there, and resets.

It stores the line in the UEFI variable `line`, too.
"""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path

import pycdlib
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm

CODE = 0x200
VARIABLE = "line".encode("utf-16-le") + bytes(2)
VENDOR = bytes.fromhex("6167656e746c616220746573742e2e2e")  # any GUID


def program(line: str) -> bytes:
    text = line.encode() + b"\r\n"
    # Without interrupts, or the firmware's terminal driver reads what is meant for us.
    wait = b"\x66\xba\xfd\x03\xec\xa8\x01\x74\xf7"  # mov dx,3fdh; in al,dx; test al,1; jz
    reset = b"\x66\xba\xf9\x0c\xb0\x06\xee\xf4\xeb\xfd"  # mov dx,cf9h; mov al,6; out dx,al; hlt
    output = b"\xb9" + struct.pack("<I", len(text)) + b"\xac\x66\xba\xf8\x03\xee\xff\xc9\x75\xf6"  # lodsb; out 3f8h
    rest = output + wait + reset
    rest = b"\xfa\x48\x8d\x35" + struct.pack("<i", len(rest)) + rest + text  # cli; lea rsi,[text]
    # SetVariable(name, vendor, NON_VOLATILE | BOOTSERVICE_ACCESS | RUNTIME_ACCESS, size, text) of the runtime services.
    after = b"\x4c\x89\x54\x24\x20\xff\x50\x58\x48\x83\xc4\x38" + rest  # mov [rsp+32],r10; call [rax+88]; add rsp,56
    after = b"\x4c\x8d\x15" + struct.pack("<i", len(after) - len(text)) + after  # lea r10,[text]
    after = b"\x41\xb8" + struct.pack("<I", 7) + b"\x41\xb9" + struct.pack("<I", len(text)) + after  # mov r8d; mov r9d
    vendor = b"\x48\x8d\x15" + struct.pack("<i", len(after))  # lea rdx,[vendor]
    name = b"\x48\x8d\x0d" + struct.pack("<i", len(vendor + after + VENDOR))  # lea rcx,[name]
    code = (
        b"\x48\x83\xec\x38\x48\x8b\x42\x58" + name + vendor + after + VENDOR + VARIABLE
    )  # sub rsp,56; mov rax,[rdx+88]
    assert len(code) <= CODE
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
