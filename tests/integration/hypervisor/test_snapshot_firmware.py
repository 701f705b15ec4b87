"""What a machine keeps apart from its memory and disks: UEFI variables and the state of its TPM. Snapshots have both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_lab import boot, copied, domain, press_a_key, snapshot, state, wait_for, write

pytestmark = pytest.mark.slow


def kept(one: Any) -> dict[str, bytes]:
    """UEFI variables and the TPM's state as libvirt's directories of the sandbox have them."""
    top = one.state_dir / "sandbox/var-lib-libvirt"
    places = [*top.glob("qemu/nvram/*_VARS.*"), *top.glob("swtpm/*/tpm2/tpm2-00.permall")]
    assert len(places) == 2, places
    return {path.suffix: path.read_bytes() for path in places}


def restart(one: Any) -> None:
    """Reset the guest: the firmware counts it in the TPM, and its next program stores another line."""
    press_a_key(one)


def test_variables_and_tpm_go_back_to_the_snapshot(lab: Any, guests: None, base: Path) -> None:
    """Of a machine that runs and of one that is off; a copy has files of its own."""
    one = boot(lab, tpm=True)
    console = one.state_dir / "console/agtest_master_0.log"
    write(one, "this is the disk", base)
    saved = kept(one)
    assert any(b"this is the image" in content for content in saved.values())
    assert not any(b"this is the disk" in content for content in saved.values())
    snapshot(one, "save", "ready")
    assert kept(one) == saved

    restart(one)
    wait_for(console, "this is the disk")
    changed = kept(one)
    assert any(b"this is the disk" in content for content in changed.values())
    assert [suffix for suffix in saved if changed[suffix] == saved[suffix]] == []
    one.enter("virsh", "destroy", domain(one))
    snapshot(one, "save", "off")

    snapshot(one, "copy", "ready", "agcopy")
    second = copied(one, "agcopy")
    try:
        assert kept(second) == saved and kept(one) == changed
        restart(second)
        wait_for(second.state_dir / "console/agtest_master_0.log", "this is the disk")
        assert kept(second) != saved and kept(one) == changed
    finally:
        second.play("destroy")

    snapshot(one, "restore", "ready")
    assert state(one) == "running" and kept(one) == saved
    restart(one)  # what QEMU has in its memory is what the files have
    wait_for(console, "this is the disk")
    assert any(b"this is the disk" in content for content in kept(one).values())
    snapshot(one, "restore", "off")
    assert state(one) == "shut off" and kept(one) == changed
