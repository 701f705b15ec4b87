"""The types of a profile's machines: sizes, disks, interfaces and BMCs. See `options`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from .fields import Ip, Login, Mac, Range, Uuid

Bus = Literal["scsi", "sata", "virtio"]
Cpus = Annotated[int, Range(1, 256)]
Gib = Annotated[int, Range(1, 65536)]


class _RequiredSize(TypedDict):
    size_gib: Gib
    """Size in GiB."""


class DiskOptions(_RequiredSize, total=False):
    """One more disk."""

    bus: Bus
    """Its bus; that of the first disk unless given."""


class MachineOptions(TypedDict, total=False):
    """One machine."""

    vcpus: Cpus
    """Virtual CPUs. The default is that of the topology."""
    memory_mib: Annotated[int, Range(512, 1 << 22)]
    """Memory in MiB. The default is that of the topology."""
    disk_gib: Gib
    """Size of the first disk in GiB. The default is that of the topology."""
    disk_bus: Bus
    """Bus of the first disk."""
    extra_disks: list[DiskOptions]
    """Disks in addition to the first."""
    firmware: Literal["uefi", "bios"]
    """The machine's firmware."""
    tpm: bool
    """Whether it has a TPM 2.0."""
    root_device: Annotated[str, "device"] | None
    """Path of the disk to install to, as root device hint. Null: the installer chooses."""


class RoleOptions(MachineOptions, total=False):
    """The machines of one role."""

    count: Annotated[int, Range(0, 100)]
    """How many there are. The default is that of the topology."""


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


class NodeOptions(MachineOptions, total=False):
    """What one node has other than its role."""

    uuid: Uuid
    """UUID of the machine. The default follows from cluster and node."""
    nics: dict[Annotated[str, "interface"], NicOptions]
    """Its interfaces, by name; those of bonds and VLANs (bond0.100) have no MAC of their own."""
    network_config: dict[str, Any]
    """Its nmstate, in place of what follows from the plan."""
    bmc: NodeBmcOptions
    day2: bool
    """Whether it is left out of the installation, and joins the installed cluster with `agentlab add-nodes`. Such a node is a worker."""
