"""The program that simulates the BMCs of a lab, `emulator.py`: it runs by itself, and needs sushy-tools where it runs."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import emulator  # noqa: F401  (so that AnsiballZ, which packs what it sees imported, packs it with a module)


def source() -> str:
    """Return the text of the program.

    A module sends it to the hypervisor, where it is started as a file of its own.
    """
    return (pkgutil.get_data(__name__, "emulator.py") or b"").decode()
