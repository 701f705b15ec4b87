"""Faults that a profile can inject: kinds and their fields, and the effects of those that are part of a plan.

A fault is either in the plan from the start (`in_plan`), or has a trigger during the installation: then the lab's process
`faults` (`sandbox.faultd`) into machines, cables, media and services. Programs in the nodes have no fault code.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypedDict, cast

from ..vocabulary import STAGES, STATUSES, Component, Status
from .fields import Name, OneOf, Range, Role, Tagged
from .shapes import fields

BOOT = "boot"
"""The trigger of what happens as soon as a machine starts."""

EXTRA: Role = "extra"
NO_SERIAL = "no-disk-has-this"
"""A serial number that no disk of the lab has; the format of a profile's serial numbers allows it, a check does not."""
FAILS = "fails"
"""As an override of a component: each of its programs exits with an error at once."""

ON_BRIDGE = ("arp_one_way", "delay", "loss", "rate")
"""The kinds that take effect at a bridge of the sandbox."""
MEDIA = ("eject", "slow_media", "boot_order")
"""Kinds that are about a medium, which a network boot has not."""

_COMPONENTS = (
    Component.API_SERVER, Component.ORCHESTRATOR, Component.CSR_APPROVER, Component.MACHINE_CONFIG_OPERATOR, Component.HYPERKUBE,
    Component.CLUSTER_ETCD_OPERATOR,
)  # fmt: skip
SERVICES = ("registry", "ntp", "bmc", "http")
When = Annotated[str, OneOf((BOOT, *STAGES, *STATUSES))]
Seconds = Annotated[int, Range(1, 86400)]


class _Kind(TypedDict):
    kind: str
    """What goes wrong."""


class Fault(_Kind, total=False):
    """Something that goes wrong on purpose; see docs/faults.md. Which fields there are depends on `kind`."""

    node: Name
    """The machine that it happens to."""
    nic: Name
    """Its interface, eth0 unless given."""
    peer: Name
    """The machine whose replies it does not receive."""
    of: Name
    """The machine whose host name it has."""
    mtu: Annotated[int, Range(576, 9216)]
    """The largest packet that the switch port passes, in bytes."""
    milliseconds: Annotated[int, Range(1, 60000)]
    """By how long each packet is late, in either direction."""
    percent: Annotated[int, Range(1, 100)]
    """How many of a hundred packets are lost, in either direction."""
    kbits: Annotated[int, Range(8, 10**7)]
    """The rate of either direction, in kilobits per second."""
    bytes_per_second: Annotated[int, Range(1024, 10**9)]
    """How fast the machine reads its medium at most."""
    service: Annotated[str, OneOf(SERVICES)]
    """The service of the lab that ends."""
    component: Name
    """The component of the release."""
    offset: Annotated[int, Range(-(10**9), 10**9)]
    """By how many seconds the clock is off."""
    when: When
    """The trigger: `boot`, or an installation stage or status of the node that it has reached."""
    seconds: Seconds | None
    """How long it lasts; null, or not given: until the end."""


class Kind(NamedTuple):
    """One kind: its meaning, its outcome, the fields of its own, which of them are required.

    in_plan: it is in the plan and has no trigger; lasting: it cannot be undone, so it takes no `seconds`; components:
    the only ones that it can be about.
    """

    meaning: str
    outcome: str
    fields: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    in_plan: bool = False
    lasting: bool = False
    components: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the fields that a profile can give in addition to `kind`.

        A fault with a trigger has `when`; one that can be undone also has `seconds`.
        """
        trigger: tuple[str, ...] = () if self.in_plan else ("when",) if self.lasting else ("when", "seconds")
        return (*self.fields, *trigger)


KINDS: dict[str, Kind] = {
    "power_off": Kind("the machine loses its power", "VM ... is shut off", ("node",), ("node",)),
    "pause": Kind("the machine is paused", "host ... is disconnected, or slow", ("node",), ("node",)),
    "link_down": Kind(
        "the cable of a network card is unplugged; at `boot`: the host never registers",
        "host ... never registered, or is disconnected",
        ("node", "nic"),
        ("node",),
    ),
    "mtu": Kind(
        "the switch port of a network card only passes smaller packets",
        "validation mtu-valid",
        ("node", "nic", "mtu"),
        ("node", "mtu"),
    ),
    "delay": Kind(
        "packets of a network card are late, in both directions",
        "everything is slow; validation sufficient-network-latency-requirement-for-role",
        ("node", "nic", "milliseconds"),
        ("node", "milliseconds"),
    ),
    "loss": Kind(
        "packets of a network card are lost at random, in both directions",
        "validation sufficient-packet-loss-requirement-for-role",
        ("node", "nic", "percent"),
        ("node", "percent"),
    ),
    "rate": Kind(
        "a network card sends and receives at a limited rate",
        "downloads are slow; a wait without progress where they time out",
        ("node", "nic", "kbits"),
        ("node", "kbits"),
    ),
    "arp_one_way": Kind(
        "the node does not receive `peer`'s ARP and neighbour discovery replies",
        "validation belongs-to-majority-group",
        ("node", "peer"),
        ("node", "peer"),
    ),
    "eject": Kind("the medium is ejected from the running machine", "validation media-connected", ("node",), ("node",)),
    "slow_media": Kind(
        "the machine reads its medium slowly",
        "host ... registers late, or never",
        ("node", "bytes_per_second"),
        ("node", "bytes_per_second"),
    ),
    "disk_lost": Kind(
        "the first disk is unplugged", "host ... is error: failed after 3 attempts", ("node",), ("node",), lasting=True
    ),
    "service_down": Kind("a service of the lab stops", "the lab's ... does not answer", ("service",), ("service",)),
    "image_missing": Kind(
        "the registry does not have the image of a component",
        "preparing fails, or a unit cannot pull",
        ("component",),
        ("component",),
    ),
    "component_fails": Kind(
        "the programs of a component exit with an error at once (lab payload)",
        "assisted-service never started, for agent-installer-api-server",
        ("component",),
        ("component",),
        in_plan=True,
        components=_COMPONENTS,
    ),
    "clock": Kind(
        "the machine's clock is off by `offset` seconds; chrony corrects it unless ntp is down",
        "validation time-synced-between-host-and-service",
        ("node", "offset"),
        ("node", "offset"),
        in_plan=True,
    ),
    "wrong_token": Kind(
        "the machine boots an image of another run: the key of this run's service did not sign its token",
        "host ... is refused by the assisted service",
        ("node",),
        ("node",),
        in_plan=True,
    ),
    "expired_token": Kind(
        "the tokens of the image have expired when the machines boot it",
        "the service refuses this run's token",
        in_plan=True,
    ),
    "unsigned_image": Kind(
        "the live system demands signatures of the payload's images, which have none",
        "assisted-service never started: A signature was required, but no signature exists",
        in_plan=True,
    ),
    "boot_order": Kind(
        "the machine boots from its medium even if its disk was written",
        Status.PENDING_USER_ACTION,
        ("node",),
        ("node",),
        in_plan=True,
    ),
    "dns_wildcard": Kind(
        "a DNS wildcard resolves every name of the cluster's domain",
        "validation dns-wildcard-not-configured",
        in_plan=True,
    ),
    "duplicate_hostname": Kind(
        "the node has the host name of another node",
        "validation hostname-unique",
        ("node", "of"),
        ("node", "of"),
        in_plan=True,
    ),
    "wrong_root_device": Kind(
        "the root device hints of the node match none of its disks",
        "No disk of the host matches the root device hints",
        ("node",),
        ("node",),
        in_plan=True,
    ),
    "fence_fails": Kind(
        "the cluster has a wrong password of the node's BMC and cannot fence it",
        "the API does not answer while the node is frozen",
        ("node",),
        ("node",),
        in_plan=True,
    ),
    "extra_host": Kind(
        "an additional machine, extra-0, boots the image (DHCP)", "host ... is not part of this plan", in_plan=True
    ),
}


@functools.cache
def _in_profile(kind: str) -> tuple[Mapping[str, Any], Collection[str]]:
    """Return the fields of a fault in a profile, and those that are required."""
    row, types = KINDS[kind], fields(Fault)
    known = {name: types[name] for name in row.names()}
    if "seconds" in known:
        known["seconds"] = Seconds
    if row.components:
        known["component"] = Annotated[str, OneOf(row.components)]
    return known, row.required


@functools.cache
def _in_plan(kind: str) -> tuple[Mapping[str, Any], Collection[str]]:
    """Return the fields of a fault in a plan, which `complete` has filled in: all of them."""
    known = {**_in_profile(kind)[0], **({} if KINDS[kind].in_plan else {"seconds": Seconds | None})}
    return known, known.keys()


class WithFaults(TypedDict):
    """What this module reads of a plan. `model.Plan` has it, and is made of types of this module."""

    faults: list[Fault]


ProfileFault = Annotated[Fault, Tagged("kind", KINDS, _in_profile)]
PlanFault = Annotated[Fault, Tagged("kind", KINDS, _in_plan)]


def complete(fault: Mapping[str, Any]) -> Fault:
    """Return a fault of a profile with its defaults: at `boot`, on `eth0`, permanent (`seconds: null`).

    `fault` has passed the checks. What its kind has no field for is not added.
    """
    kind = KINDS[fault["kind"]]
    defaults: dict[str, Any] = {} if kind.in_plan else {"when": BOOT, "seconds": None}
    return cast(Fault, {**defaults, **({"nic": "eth0"} if "nic" in kind.fields else {}), **fault})


def of_kind(plan: WithFaults, kind: str, node: str | None = None) -> Iterator[Fault]:
    """Yield the faults of a kind in a plan, or those of one of its nodes.

    `node` is a name; a fault without a node, such as one of a service, belongs to none.
    """
    return (fault for fault in plan["faults"] if fault["kind"] == kind and node in (None, fault.get("node")))
