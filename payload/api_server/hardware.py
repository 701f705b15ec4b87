"""Types of a host's inventory, as its agent reports it, and of minimum hardware: definitions of `data/swagger.yaml`, which a test compares."""

from __future__ import annotations

from typing import Literal, TypedDict

LeastKey = Literal["cpu_cores", "ram_mib", "disk_size_gb"]
LimitKey = Literal["installation_disk_speed_threshold_ms", "network_latency_threshold_ms", "packet_loss_percentage"]
LEAST: tuple[LeastKey, ...] = ("cpu_cores", "ram_mib", "disk_size_gb")
REQUIREMENTS: tuple[LeastKey | LimitKey, ...] = (
    *LEAST,
    "installation_disk_speed_threshold_ms",
    "network_latency_threshold_ms",
    "packet_loss_percentage",
)


class Eligibility(TypedDict, total=False):
    """Whether OpenShift can be installed to a disk, and why not.

    `not_eligible_reasons` are texts of the agent, and those that `inventory.prepare` adds for size and type. `eligible`
    is true exactly if the list is empty.
    """

    eligible: bool
    not_eligible_reasons: list[str]


class IoPerf(TypedDict, total=False):
    """Performance of a disk.

    `sync_duration` is the 99th percentile of fdatasync in ms, as upstream's agent reports it.
    """

    sync_duration: int


class Iscsi(TypedDict, total=False):
    """The iSCSI session of a disk."""

    host_ip_address: str


class Disk(TypedDict, total=False):
    """A disk of an inventory.

    `size_bytes` is in bytes. `drive_type` is HDD, SSD, Multipath, iSCSI and so on (`inventory.DRIVE_TYPES` can be
    installed to). `holders`: device names on top of it, joined by commas. `hctl`: SCSI address. `smart`: JSON of
    smartctl as text. `bootable`: it has a boot sector. `id`, `by_id`, `by_path` and `path` all identify it, see
    `inventory.find_disk`.
    """

    bootable: bool
    by_id: str
    by_path: str
    drive_type: str
    has_uuid: bool
    hctl: str
    holders: str
    id: str
    installation_eligibility: Eligibility
    io_perf: IoPerf
    is_installation_media: bool
    iscsi: Iscsi
    model: str
    name: str
    partitionTypes: str
    path: str
    removable: bool
    serial: str
    size_bytes: int
    smart: str
    vendor: str
    wwn: str


class Interface(TypedDict, total=False):
    """A network interface of an inventory; addresses have their prefix length.

    `192.168.111.80/24`, `fd2e::50/64`. `type` is `physical`, `bond`, `vlan` or a virtual type
    (`inventory.VIRTUAL_TYPES`). `flags` are those of the kernel (`up`, `broadcast`).
    """

    biosdevname: str
    client_id: str
    flags: list[str]
    has_carrier: bool
    ipv4_addresses: list[str]
    ipv6_addresses: list[str]
    mac_address: str
    mtu: int
    name: str
    product: str
    speed_mbps: int
    type: str
    vendor: str


class Boot(TypedDict, total=False):
    """How the live system was booted.

    `current_boot_mode` is `uefi` or `bios`, `device_type` is `persistent` if the live system is on a disk, for which no
    disk speed is measured. `command_line` is the kernel's.
    """

    command_line: str
    current_boot_mode: str
    device_type: str
    pxe_interface: str
    secure_boot_state: str


class SystemVendor(TypedDict, total=False):
    """Maker and product of a machine."""

    manufacturer: str
    product_name: str
    serial_number: str
    virtual: bool


class Memory(TypedDict, total=False):
    """RAM in bytes.

    `physical_bytes` is what the machine has, `usable_bytes` what the kernel has left. `physical_bytes_method` is where
    the first is from: `dmidecode`, `ghw`, or `meminfo`, which is too low and gets more tolerance
    (`inventory.ram_fits`).
    """

    physical_bytes: int
    physical_bytes_method: str
    usable_bytes: int


class Cpu(TypedDict, total=False):
    """CPUs of a machine."""

    architecture: str
    count: int
    flags: list[str]
    frequency: float
    model_name: str


class Gpu(TypedDict, total=False):
    """A GPU; ids are those of PCI."""

    address: str
    device_id: str
    name: str
    vendor: str
    vendor_id: str


class Route(TypedDict, total=False):
    """A route of the live system.

    `destination` is an address with or without prefix, `0.0.0.0` or `::` for the default route. `family` is the
    kernel's number: 2 for IPv4, 10 for IPv6.
    """

    destination: str
    family: int
    gateway: str
    interface: str
    metric: int


class Truncation(TypedDict, total=False):
    """What an agent left out of an inventory that would have been too large."""

    reasons: list[str]
    type: str


class Inventory(TypedDict, total=False):
    """The hardware of a host, as its agent reports it and `inventory.prepare` stores it.

    The stored one differs from the reported one: virtual interfaces are left out, disks have an id and an eligibility.
    It is the reply to the step `inventory`.
    """

    bmc_address: str
    bmc_v6address: str
    boot: Boot
    cpu: Cpu
    disks: list[Disk]
    gpus: list[Gpu]
    hostname: str
    interfaces: list[Interface]
    memory: Memory
    routes: list[Route]
    system_vendor: SystemVendor
    tpm_version: str
    truncation: Truncation


class Requirement(TypedDict, total=False):
    """Minimum hardware of a role: MiB, GB of 10^9 bytes, ms, percent.

    The keys with thresholds limit fdatasync of the installation disk (ms), the latency (ms) and the packet loss (%)
    between hosts. Nothing is required for a missing key. Upstream's model is `cluster-host-requirements-details`.
    """

    cpu_cores: int
    disk_size_gb: int
    installation_disk_speed_threshold_ms: int
    network_latency_threshold_ms: float
    packet_loss_percentage: float
    ram_mib: int
