"""The boot modes: all in which they differ. What drives the machines is in `boot`, by the medium."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from ..vocabulary import BOOT_ARTIFACTS, CONFIG_IMAGE

_NOTHING: Mapping[str, str] = MappingProxyType({})
_NOT_EXPORTED = "dev-scripts inserts the ISO into a CD drive; read back it is `redfish`"
Medium = Literal["cdrom", "usb", "network", "lun"]


class Mode(NamedTuple):
    """How machines get their image.

    meaning: for users, in Markdown. bmc: through each machine's BMC; otherwise the domain itself is switched. medium: what machines boot from while their disks
    are empty.
    published: whether machines fetch it from the lab's file server; otherwise it is a file of the hypervisor. folder: the folder,
    seen from the image, whose files are published in any case. second: name of a file next to the image, which machines get in a second
    drive. boots: whether the lab boots the machines, or a person does. configured: whether the image has the cluster; otherwise hosts
    get it after they have booted. dialog: whether they get the rendezvous host on their screens, and the cluster over REST. targets: of
    `create`, after the manifests. joining: the mode of day-2 nodes, whose ISO is never a minimal one; None: the same. devscripts: its
    variables, with their values; lost: why there are none.
    """

    meaning: str
    bmc: bool = False
    medium: Medium = "cdrom"
    published: bool = True
    folder: str | None = None
    second: str | None = None
    boots: bool = True
    configured: bool = True
    dialog: bool = False
    targets: tuple[str, ...] = ("image",)
    joining: str | None = None
    devscripts: Mapping[str, str] = _NOTHING
    lost: str = ""

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
        return self.published and self.folder is not None

    def extra_files(self, image: Path) -> list[Path]:
        """Return the files that machines get in drives of their own next to `image`."""
        return [] if self.second is None else [image.parent / self.second]

    def files(self, image: Path) -> list[Path]:
        """Return what belongs to `image`, itself included, in a stable order.

        Of the modes `pxe`, `minimal` and `iscsi` those are all files of a folder, too, which is read here.
        """
        return sorted({image, *self.extra_files(image), *self.next_to(image)})

    def next_to(self, image: Path) -> list[Path]:
        """Return the files that are published with `image`, or without it where machines do not fetch the image."""
        return [] if self.folder is None else sorted((image.parent / self.folder).glob("*"))


MODES: dict[str, Mode] = {
    "redfish": Mode("virtual media of the BMC", bmc=True),
    "minimal": Mode(
        "a small ISO as virtual media, which fetches the rest; platform external has this one in place of `redfish`",
        bmc=True,
        folder=BOOT_ARTIFACTS,
        joining="redfish",
        devscripts={"AGENT_MINIMAL_ISO": "true"},
    ),
    "cdrom": Mode("a CD drive, without a BMC", published=False, lost=_NOT_EXPORTED),
    "usb": Mode("a USB stick", medium="usb", published=False, lost=_NOT_EXPORTED),
    "pxe": Mode(
        "over the network: an iPXE script, kernel and root file system",
        medium="network",
        folder=".",
        targets=("pxe-files",),
        devscripts={"AGENT_E2E_TEST_BOOT_MODE": "PXE"},
    ),
    "iscsi": Mode(
        "from a LUN, over a network of its own; it is the machine's only disk",
        medium="lun",
        published=False,
        folder=BOOT_ARTIFACTS,
        devscripts={"AGENT_E2E_TEST_BOOT_MODE": "ISCSI", "AGENT_MINIMAL_ISO": "true"},
    ),
    "config-image": Mode(
        f"an ISO without a cluster in one CD drive, and the cluster's files, `{CONFIG_IMAGE}`, in another",
        published=False,
        second=CONFIG_IMAGE,
        configured=False,
        targets=("unconfigured-image", "config-image"),
        devscripts={"AGENT_USE_APPLIANCE_MODEL": "true"},
    ),
    "interactive": Mode(
        "an ISO without a cluster as virtual media, the rendezvous host chosen on the hosts' screens, and the cluster defined over REST",
        bmc=True,
        configured=False,
        dialog=True,
        targets=("interactive-image",),
        lost="dev-scripts has it for the ISO without a registry alone; read back it is `redfish`",
    ),
    "manual": Mode("by hand, from the image that the lab's file server has", boots=False, lost=_NOT_EXPORTED),
}


def modes_where(which: Callable[[Mode], bool]) -> tuple[str, ...]:
    """Return the names of the modes for which `which` is true, in the order of the table."""
    return tuple(name for name, mode in MODES.items() if which(mode))
