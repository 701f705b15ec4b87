"""Messages of UEFI firmware next to its logo: the golden picture is of OVMF that found nothing to start."""

from __future__ import annotations

import gzip
from pathlib import Path

from ansible_collections.agentlab.ocp.plugins.module_utils.screen import picture, text

SHOWN = picture.from_ppm(gzip.decompress((Path(__file__).parent / "golden/efi-logo.ppm.gz").read_bytes()))
LOGO = 360
"""Row of dots above the logo and below the text."""


def test_text_next_to_the_logo() -> None:
    screen = text.read(SHOWN)
    lines = [line.strip() for line in screen.lines]
    assert screen.font == "UEFI firmware, 8x19"
    assert "BdsDxe: No bootable option or device was found." in lines
    assert "BdsDxe: Press any key to enter the Boot Manager Menu." in lines
    above = lines[: lines.index("BdsDxe: Press any key to enter the Boot Manager Menu.") + 1]
    assert not any(text.UNKNOWN in line for line in above)


def test_the_logo_alone_is_not_text() -> None:
    above = SHOWN.width * 3 * LOGO
    assert text.read(SHOWN._replace(dots=bytes(above) + SHOWN.dots[above:])).font is None
