"""What booting needs of a machine, whatever drives it."""

from __future__ import annotations

from typing import Protocol


class Machine(Protocol):
    """A machine that can be switched and given a boot medium; BMCs and `boot.domain.Machine` are such.

    Each method that changes something returns whether it did; failures are a `LabError` of one line.
    """

    def power(self) -> str:
        """Return `on` or `off`."""

    def power_on(self) -> bool:
        """Switch on."""

    def power_off(self) -> bool:
        """Switch off at once."""

    def insert(self, url: str) -> bool:
        """Insert the image at `url`, in the place of another one."""

    def eject(self) -> bool:
        """Take the image out."""

    def boot_from_cd(self) -> None:
        """Boot from the image next time."""


class Bmc(Machine, Protocol):
    """A machine behind a BMC, which can report the medium."""

    def medium(self) -> str | None:
        """Return the URL of the inserted image, or None."""
