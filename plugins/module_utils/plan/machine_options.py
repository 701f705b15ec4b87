"""The types of a profile's machines: sizes, disks, interfaces and BMCs. See `options`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from ..bmc.quirks import QUIRKS
from .fields import (
    Bridge,
    File,
    Hctl,
    Ip,
    Label,
    Login,
    Mac,
    NameFormat,
    OneOf,
    Range,
    Serial,
    Uuid,
    Vendor,
    Wwn,
    WwnHint,
)
from .fields import Model as DiskModel
from .screens import ScreenStep

Bus = Literal["scsi", "sata", "virtio"]
DiskBus = Literal["scsi", "sata", "virtio", "iscsi"]
Cpus = Annotated[int, Range(1, 256)]
Gib = Annotated[int, Range(1, 65536)]


class _RequiredSize(TypedDict):
    size_gib: Gib
    """Size in GiB."""


class DiskOptions(_RequiredSize, total=False):
    """One more disk, and what it reports of itself, by which root device hints find it."""

    bus: Bus
    """Its bus; that of the first disk unless given."""
    vendor: Vendor
    """Its vendor, on the bus scsi; QEMU unless given."""
    model: DiskModel
    """Its model, on the bus scsi; QEMU_HARDDISK unless given."""
    serial: Serial
    """Its serial number. The default follows from the name of its volume."""
    wwn: Wwn
    """Its world wide name, on the buses scsi and sata; none unless given."""
    rotational: bool
    """Whether it rotates, on the buses scsi and sata: a hard disk, which it is unless given, or an SSD."""


class RootDeviceHints(TypedDict, total=False):
    """Which disk to install to; all of them must match. The hint `deviceName` is `root_device`."""

    hctl: Hctl
    """Its SCSI address: host, channel, target and LUN."""
    model: DiskModel
    """Part of its model."""
    vendor: Vendor
    """Part of its vendor."""
    serial_number: Serial
    """Its serial number."""
    min_size_gigabytes: Gib
    """Its least size, in units of 10^9 bytes."""
    wwn: WwnHint
    """Its world wide name."""
    wwn_with_extension: Wwn
    """Refused, as openshift-install does."""
    wwn_vendor_extension: Wwn
    """Refused, as openshift-install does."""
    rotational: bool
    """Whether it rotates."""


class MachineOptions(TypedDict, total=False):
    """One machine."""

    vcpus: Cpus
    """Virtual CPUs. The default is that of the topology."""
    memory_mib: Annotated[int, Range(512, 1 << 22)]
    """Memory in MiB. The default is that of the topology."""
    disk_gib: Gib
    """Size of the first disk in GiB. The default is that of the topology."""
    disk_bus: Bus
    """Bus of the first disk, unless that is a LUN (`boot.mode: iscsi`)."""
    extra_disks: list[DiskOptions]
    """Disks in addition to the first."""
    firmware: Literal["uefi", "bios"]
    """The machine's firmware."""
    secure_boot: bool
    """Whether its UEFI firmware has Microsoft's keys and starts only what is signed with one of them."""
    tpm: bool
    """Whether it has a TPM 2.0."""
    screen: bool
    """Whether it has a screen (VGA), which `agentlab console NODE --screen` reads."""
    screen_steps: list[ScreenStep]
    """Steps on its screen after it was booted: machines one after the other, in their order."""
    root_device: Annotated[str, "device"] | None
    """Path of the disk to install to, as root device hint. Null: the installer chooses."""
    root_device_hints: RootDeviceHints
    addressing: Literal["dhcp", "static"] | None
    """How it gets its addresses. Null: as the cluster."""
    segment: Bridge | None
    """The one of `segments` that it is in, of a worker. Null: the machine network itself, as all others."""


class RoleOptions(MachineOptions, total=False):
    """The machines of one role."""

    count: Annotated[int, Range(0, 100)]
    """How many there are. The default is that of the topology."""
    name_format: NameFormat | None
    """Their host names, with `%d` for the number from 0. Null: the role and the number, as in `master-%d`."""


class NicOptions(TypedDict, total=False):
    """One interface of a node."""

    mac: Mac
    """Its MAC. The default follows from cluster, interface and node."""
    addresses: list[Ip]
    """Its addresses: one for each family of the stack, in its order. The default follows from `network.offsets`."""


class NodeBmcOptions(TypedDict, total=False):
    """The BMC of one node; the default is that of the lab's emulator."""

    address: Annotated[str, "bmc"]
    """Its URL."""
    username: Login
    """User of the BMC."""
    password: str | None
    """Password of that user. Null: that of `services.bmc`."""
    verify_ca: bool
    """Whether its certificate is checked, of an existing machine: with the authorities of the host that boots it, unless `ca_file` is given."""
    ca_file: File | None
    """File, on the host that boots it, with the authority of its certificate, in PEM."""
    quirks: list[Annotated[str, OneOf(QUIRKS)]]
    """Known deviations from the Redfish specification; see bare-metal.md."""


class NodeOptions(MachineOptions, total=False):
    """Options of one node, in addition to those of its role."""

    uuid: Uuid
    """UUID of the machine. The default follows from cluster and node."""
    nics: dict[Annotated[str, "interface"], NicOptions]
    """Its interfaces, by name; those of bonds and VLANs (bond0.100) have no MAC of their own."""
    network_config: dict[str, Any]
    """Its nmstate, in place of what follows from the plan."""
    bmc: NodeBmcOptions
    hypervisor: Label
    """Name of the hypervisor that carries it, with `hypervisors`; `hypervisor` for the first. By memory unless given."""
    bare_metal: bool
    """Whether it is an existing machine, in place of a VM: it is reached by `bmc`, and only switched on and off, and given its medium."""
    day2: bool
    """Whether it is left out of the installation, and joins the installed cluster with `agentlab add-nodes`. Such a node is a worker."""
