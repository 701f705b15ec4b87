"""The firmware of a machine with secure boot refuses an image without a signature, which that of other machines starts (`test_lab`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import guest
import small_lab

pytestmark = pytest.mark.slow

REFUSED = "the firmware does not trust what it should boot: BdsDxe: failed to load Boot0001 "
SECONDS = 120


def test_an_image_without_a_signature_is_refused_and_that_is_the_first_cause(lab: Any, guests: None) -> None:
    one = lab("agtest", {"topology": "sno", "master": {"secure_boot": True}})
    one.play("prepare")
    guest.iso(one.run_dir / "agent.x86_64.iso", "this is the image")
    one.play("boot")
    console = Path(one.plan["nodes"][0]["console"])
    small_lab.wait_for(console, "BdsDxe: No bootable option or device was found.", SECONDS)
    assert "Access Denied" in console.read_text(errors="replace")
    one.play("gather")
    first = (one.run_dir / "report/summary.txt").read_text().partition("\n")[0]
    assert first.startswith(f'First cause: agtest_master_0: {REFUSED}"UEFI QEMU QEMU CD-ROM "'), first
    assert "this is the image" not in console.read_text(errors="replace")
