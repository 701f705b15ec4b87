"""The firmware of machines with secure boot refuses a program without a signature, which other firmware starts."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm

FIRMWARE = Path("/usr/share/OVMF")
PORT, ENDED = 0xF4, 33
"""Where the program writes to, and the exit status of QEMU then."""
SECONDS = 240


@pytest.mark.parametrize(
    ("variables", "refused"),
    [("OVMF_VARS_4M.ms.fd", True), ("OVMF_VARS_4M.fd", False)],
    ids=["with Microsoft's keys", "without keys"],
)
def test_program_without_signature(tmp_path: Path, variables: str, refused: bool) -> None:
    (tmp_path / "disk").write_bytes(kvm.fat_disk(kvm.efi_program()))
    shutil.copy(FIRMWARE / variables, tmp_path / "variables")
    console = tmp_path / "console"
    console.touch()
    command = [
        "qemu-system-x86_64", "-machine", "q35,smm=on,accel=tcg", "-cpu", "max", "-m", "256", "-display", "none", "-net", "none",
        "-global", "driver=cfi.pflash01,property=secure,value=on", "-serial", f"file:{console}", "-no-reboot",
        "-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={FIRMWARE / 'OVMF_CODE_4M.ms.fd'}",
        "-drive", f"if=pflash,unit=1,format=raw,file={tmp_path / 'variables'}",
        "-drive", f"if=virtio,format=raw,file={tmp_path / 'disk'}",
        "-device", f"isa-debug-exit,iobase={PORT:#x},iosize=4",
    ]  # fmt: skip
    end = time.monotonic() + SECONDS
    with subprocess.Popen(command) as machine:
        try:
            while b"Access Denied" not in console.read_bytes() and machine.poll() is None and time.monotonic() < end:
                time.sleep(0.5)
            status = machine.poll()
        finally:
            machine.kill()
    assert (b"Access Denied" in console.read_bytes(), status) == (refused, None if refused else ENDED)
