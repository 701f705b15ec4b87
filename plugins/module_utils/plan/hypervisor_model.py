"""The types of a plan's hypervisors; see `model`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from .fields import Cidr, Directory, Host, Ip, Label, Link, Name, Size, Url


class Uplink(TypedDict):
    """The pair of links between a sandbox and its host, for `egress` and `route`. It follows from the cluster's name."""

    link: Link
    """Name of the host's end."""
    inside: Link
    """Name of the sandbox's end."""
    table: Name
    """Name of the host's nftables table."""
    network: Cidr
    """The network of the two."""
    host_address: Ip
    """Address of the host's end."""
    address: Ip
    """Address of the sandbox's end."""


class Tunnel(TypedDict):
    """The VXLANs between a further hypervisor and the first one."""

    address: Ip
    """End on the further hypervisor."""
    peer: Ip
    """End on the first one."""
    paired: bool
    """Whether both are sandboxes of one host, joined by a pair of links with these addresses."""
    ids: dict[Name, Size]
    """VXLAN network identifier of each network."""


class Further(TypedDict):
    """What a hypervisor other than the first has of its own."""

    name: Label
    """Its name."""
    addresses: dict[Name, list[Ip]]
    """Its addresses in each network, in the order of the subnets."""
    bmc: Url
    """URL of its BMC emulator's collection of systems; that of the first hypervisor passes requests on to it."""
    tunnel: Tunnel


class _Hypervisor(TypedDict):
    kind: Literal["sandbox", "local", "ssh"]
    """A sandbox on this host, this host's own libvirt, or another host that is reached by ssh."""
    host: Host | None
    """Name or address of the hypervisor, with `kind: ssh`."""
    user: Annotated[str, "user"] | None
    """User there; null: what ssh is configured for."""
    netns: Name
    """Name of the sandbox's network namespace."""
    state_dir: Directory
    """Directory on the hypervisor with all that the cluster keeps there. It is removed with the cluster."""
    console_dir: Directory
    """Directory with the machines' console logs."""
    pool: Name
    """Name of the storage pool."""
    pool_dir: Directory
    """Directory of the storage pool."""
    egress: bool
    """Whether the machines reach what the hypervisor reaches."""
    route: bool
    """Whether the hypervisor reaches the machines of a sandbox by their IPv4 addresses."""
    uplink: Uplink
    domain_type: Literal["auto", "kvm", "qemu"]
    """How machines are virtualized. `auto`: KVM where a guest really boots on it, else emulation."""


class Hypervisor(_Hypervisor, total=False):
    """Where the machines run."""

    further: Further | None
    """What it has if it is not the first; null, or not given: it is, with the services."""
