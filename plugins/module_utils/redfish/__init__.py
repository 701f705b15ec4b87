"""BMCs: the client that boots machines through Redfish, and the emulator that stands in for a BMC."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import emulator  # noqa: F401  (so that it travels with a module, which carries what it sees imported)


def source() -> str:
    """Return the text of the emulator, a program of its own (`emulator.py`), which needs sushy-tools where it runs."""
    return (pkgutil.get_data(__name__, "emulator.py") or b"").decode()
