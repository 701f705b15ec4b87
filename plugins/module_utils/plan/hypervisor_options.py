"""The types of a profile's hypervisors. See `options`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from .fields import Directory, Host, Ip, Label, Range

Memory = Annotated[int, Range(512, 1 << 30)]


class PlacedOptions(TypedDict, total=False):
    """What the placement of machines on several hypervisors needs of each."""

    address: Ip | None
    """Its address towards the other hypervisors, between which the VXLANs are. Null: it is not needed, because all are sandboxes of this host."""
    memory_mib: Memory | None
    """Memory for machines in MiB, by which they are placed; for all hypervisors or none. Null: each gets about as much memory of machines."""


class HypervisorOptions(PlacedOptions, total=False):
    """Where the machines run."""

    kind: Literal["sandbox", "local", "ssh"]
    """A sandbox on this host, this host's own libvirt, or another host that is reached by ssh."""
    host: Host | None
    """Name or address of the hypervisor, with `kind: ssh`."""
    user: Annotated[str, "user"] | None
    """User there, who is root or may use sudo. Null: what ssh is configured for."""
    state_dir: Directory
    """Directory on the hypervisor in which clusters keep disks, consoles and services."""
    egress: bool
    """Whether the machines reach what this host reaches."""
    route: bool
    """Whether this host reaches the machines by their IPv4 addresses."""
    domain_type: Literal["auto", "kvm", "qemu"]
    """How machines are virtualized. `auto`: KVM where a guest really boots on it, else emulation."""


class _RequiredName(TypedDict):
    name: Label
    """Its name: in the inventory, in messages, and in `nodes.NAME.hypervisor`."""


class FurtherOptions(_RequiredName, PlacedOptions, total=False):
    """One more hypervisor, which only carries machines: the services are those of `hypervisor`. See hypervisors.md."""

    kind: Literal["sandbox", "local", "ssh"]
    """A sandbox on this host, this host's own libvirt, or another host that is reached by ssh; sandbox unless given."""
    host: Host | None
    """Its name or address, with `kind: ssh`."""
    user: Annotated[str, "user"] | None
    """User there, who is root or may use sudo; what ssh is configured for unless given."""
    state_dir: Directory
    """Directory on it in which clusters keep disks and consoles; that of `hypervisor` unless given."""
    domain_type: Literal["auto", "kvm", "qemu"]
    """How its machines are virtualized; as those of `hypervisor` unless given."""
