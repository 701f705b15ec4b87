"""What sets a kind of BMC apart, as data."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from .machine import Bmc

Connect = Callable[[str, str, str, str, "bool | str", Collection[str]], Bmc]
"""name (the machine's, for messages), address, username, password, verify (whether its certificate is checked, or the path of
the CA to check with), quirks (names of `quirks.QUIRKS`) -> the machine. Raises `LabError`."""


class Kind(NamedTuple):
    """A kind of BMC.

    title: its name in messages; schemes: of its addresses; transports: what `+` may add to a scheme, as in `+https`; example: an
    address; drivers: Ironic's names for it in inventories, the usual one first; ca_key: key of `driver_info` in inventories, with the
    path of the CA, or whether certificates are checked; client: returns what connects to a machine. Only that function imports code
    and libraries of the kind that a plan does not use.
    """

    title: str
    schemes: tuple[str, ...]
    transports: tuple[str, ...]
    example: str
    drivers: tuple[str, ...]
    ca_key: str
    client: Callable[[], Connect]

    def addresses(self) -> str:
        """Return which addresses it has, for messages: `Redfish: one of redfish, https, with +http or +https`."""
        added = f", with {' or '.join(f'+{name}' for name in self.transports)}" if self.transports else ""
        return f"{self.title}: one of {', '.join(self.schemes)}{added}"
