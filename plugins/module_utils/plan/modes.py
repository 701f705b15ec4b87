"""The boot modes: what each one publishes, what drives the machines, and what follows from that for a profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from ..vocabulary import BOOT_ARTIFACTS, CONFIG_IMAGE
from .fields import BootMode

Medium = Literal["cdrom", "usb", "network", "lun"]


class Mode(NamedTuple):
    """How machines get their image.

    bmc: through each machine's BMC; otherwise the domain itself is switched. medium: what machines boot from while their disks
    are empty.
    published: whether machines fetch it from the lab's file server; otherwise it is a file of the hypervisor. beside: the folder,
    seen from the image, whose files are published in any case. second: name of a file next to the image, which machines get in a second
    drive. boots: whether the lab boots the machines, or a person does. configured: whether the image has the cluster; otherwise hosts
    get it after they have booted.
    """

    bmc: bool = False
    medium: Medium = "cdrom"
    published: bool = True
    beside: str | None = None
    second: str | None = None
    boots: bool = True
    configured: bool = True

    @property
    def removable(self) -> bool:
        """Whether the lab inserts a medium, which it can eject."""
        return self.boots and self.medium in ("cdrom", "usb")

    @property
    def from_iso(self) -> bool:
        """Whether machines boot from an ISO that has all that they need."""
        return self.medium == "cdrom" and self.configured

    @property
    def fetches(self) -> bool:
        """Whether firmware or initramfs fetches the root file system, before a machine has its static addresses."""
        return self.published and self.beside is not None

    def more(self, image: Path) -> list[Path]:
        """Return the files that machines get in drives of their own next to `image`."""
        return [] if self.second is None else [image.parent / self.second]

    def files(self, image: Path) -> list[Path]:
        """Return what belongs to `image`, itself included, in a stable order.

        Of the modes `pxe`, `minimal` and `iscsi` those are all files of a folder, too, which is read here.
        """
        return sorted({image, *self.more(image), *self.next_to(image)})

    def next_to(self, image: Path) -> list[Path]:
        """Return the files that are published with `image`, or without it where machines do not fetch the image."""
        return [] if self.beside is None else sorted((image.parent / self.beside).glob("*"))


MODES: dict[BootMode, Mode] = {
    "redfish": Mode(bmc=True),
    "minimal": Mode(bmc=True, beside=BOOT_ARTIFACTS),
    "cdrom": Mode(published=False),
    "usb": Mode(medium="usb", published=False),
    "pxe": Mode(medium="network", beside="."),
    "iscsi": Mode(medium="lun", published=False, beside=BOOT_ARTIFACTS),
    "config-image": Mode(published=False, second=CONFIG_IMAGE, configured=False),
    "interactive": Mode(bmc=True, configured=False),
    "manual": Mode(boots=False),
}


def those(which: Callable[[Mode], bool]) -> tuple[BootMode, ...]:
    """Return the names of the modes for which `which` is true, in the order of the table."""
    return tuple(name for name, mode in MODES.items() if which(mode))
