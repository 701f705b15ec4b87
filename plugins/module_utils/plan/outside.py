"""The types of machines outside of the cluster: of a profile (`machines`, `outside_networks`), and of a plan (`machines`).

Nothing that makes or validates the cluster sees them: they are a list of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from .fields import Bridge, Cidr, Directory, Ip, Label, Size
from .machine_options import Cpus, Gib
from .machines import Common

LAB = "lab"
"""The image of a machine that runs the lab's operating system."""
MACHINE_NETWORK = "machine"
"""The name by which a machine of a profile names the machine network."""
DISK_GIB = 10
"""Size of the disk of a machine that needs one, in GiB."""
Image = Annotated[str, "image"]


class _RequiredNetwork(TypedDict):
    name: Bridge
    """`machine`, or the name of an extra network, a segment or an outside network."""


class MachineNetworkOptions(_RequiredNetwork, total=False):
    """A network that a machine is in, by a NIC of its own."""

    addresses: list[Ip]
    """Its addresses there. By default one for each family of the network, from `network.offsets.machines` on."""


class _RequiredMachine(TypedDict):
    name: Label
    """Its name, which no node has."""


class OutsideMachineOptions(_RequiredMachine, total=False):
    """A machine that is not part of the cluster: a client, a landing zone, a load balancer. See machines.md."""

    networks: list[MachineNetworkOptions]
    """Its networks; the first one has its default route. The machine network unless given."""
    image: Annotated[str, "own_image"] | None
    """`lab`, the lab's operating system, which it boots from a CD, unless given; the path of an image (qcow2 or raw) of your own, which
    is not changed, and may be in the folder of the profile; or null: an empty disk, and then the network."""
    disk_gib: Gib | None
    """Size of its disk in GiB; 10 unless given, and none with the image `lab`."""
    vcpus: Cpus
    """Virtual CPUs; 1 unless given."""
    memory_mib: Size
    """Memory in MiB; 512 unless given."""
    firmware: Literal["uefi", "bios"]
    """Its firmware; uefi unless given."""
    load_balancer: bool
    """Whether it is the load balancer of API and ingress (haproxy), and has their addresses. The cluster is installed with `loadBalancer:
    {type: UserManaged}` then."""
    files: dict[Directory, Annotated[str, "word"]]
    """Small files of the image `lab`: path and text."""
    units: dict[Annotated[str, "unit"], Annotated[str, "word"]]
    """Units of systemd that the image `lab` enables: name and text."""


class _RequiredOutsideNetwork(TypedDict):
    name: Bridge
    """Its name, and that of its bridge."""


class OutsideNetworkOptions(_RequiredOutsideNetwork, total=False):
    """A network that no node is in, for `machines`. It needs `ipv4`, `ipv6` or both, and has DHCP."""

    nat: bool
    """Whether its packets leave with the host's address; no unless given."""
    ipv4: Cidr
    """Its IPv4 network."""
    ipv6: Cidr
    """Its IPv6 network."""


class Machine(Common):
    """A machine outside of the cluster. It has no disk with the image `lab` unless the profile has a size."""

    image: Image | None
    """`lab`, the path of the image below its disk, or null."""
    files: dict[Directory, Annotated[str, "word"]]
    """Files of one with the image `lab`, by path."""
    units: dict[Annotated[str, "unit"], Annotated[str, "word"]]
    """Units of one with the image `lab`, by name."""


class _Plan(TypedDict, total=False):
    # What is read here of `model.Plan`, which imports this file.
    machines: list[Machine] | None


def machines(plan: _Plan) -> list[Machine]:
    """Return the machines of a plan that are not part of its cluster."""
    return plan.get("machines") or []


def address_of(machine: Machine) -> str:
    """Return the address at which a machine is reached: the first of its first network."""
    return machine["nics"][0]["addresses"][0]["ip"]


def complete(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a profile's `machines` with its defaults; `disk_gib` is None for a machine without a disk."""
    made = {
        "networks": [{"name": MACHINE_NETWORK}],
        "image": LAB,
        "disk_gib": None,
        "vcpus": 1,
        "memory_mib": 512,
        "firmware": "uefi",
        "load_balancer": False,
        "files": {},
        "units": {},
        **given,
    }
    if made["disk_gib"] is None and made["image"] != LAB:
        made["disk_gib"] = DISK_GIB
    return made


def load_balancer(profile: Mapping[str, Any]) -> OutsideMachineOptions | None:
    """Return the machine of a complete profile that is the cluster's load balancer; None without one."""
    return next((one for one in profile["machines"] if one.get("load_balancer")), None)


def add_machines(profile: dict[str, Any]) -> None:
    """Give a profile that is laid over its defaults what follows from its machines: the load balancer in install-config.yaml.

    That is for platform baremetal alone, where nodes would hold the addresses of API and ingress themselves.
    """
    masters = profile["master"]["count"]
    platform = profile["platform"] or ("none" if masters == 1 else "baremetal")
    if platform != "baremetal" or load_balancer(profile) is None:
        return
    section: Any = profile["installer"]["install_config"]
    for key in ("platform", "baremetal", "loadBalancer"):
        section = section.setdefault(key, {})
        if not isinstance(section, dict):
            return  # which openshift-install refuses
    section.setdefault("type", "UserManaged")
