"""The boot modes: what each one publishes, and what drives the machines."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..libvirt.domain import Medium
from ..plan.model import BootMode
from ..vocabulary import BOOT_ARTIFACTS, CONFIG_IMAGE


class Mode(NamedTuple):
    """How machines get their image.

    bmc: through each machine's BMC; otherwise the domain itself is switched. medium: what machines boot from while their disks
    are empty.
    published: whether machines fetch it from the lab's file server; otherwise it is a file of the hypervisor. beside: the folder,
    seen from the image, whose files are published in any case. second: name of a file next to the image, which machines get in a second
    drive. boots: whether the lab boots the machines, or a person does.
    """

    bmc: bool = False
    medium: Medium = "cdrom"
    published: bool = True
    beside: str | None = None
    second: str | None = None
    boots: bool = True

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
    "config-image": Mode(published=False, second=CONFIG_IMAGE),
    "interactive": Mode(bmc=True),
    "manual": Mode(boots=False),
}
